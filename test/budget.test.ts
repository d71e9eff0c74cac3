/**
 * A budget: what is reserved, spent and refused, alone and with calls in flight.
 *
 * From effective-agents 0.1.0: test/budget.test.ts
 */
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import Anthropic, { APIConnectionError, InternalServerError } from "@anthropic-ai/sdk";
import type { Message, MessageCreateParams } from "@anthropic-ai/sdk/resources/messages";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Price, Prices } from "../patterns/cost.ts";
import type { MessagesClient } from "../patterns/door/send.ts";
import { BudgetError, HaltError, LlmOutputError, RecordingError } from "../patterns/errors.ts";
import { type Budget, type BudgetOptions, createBudget } from "../patterns/layers/budget.ts";
import { createLlm, type Layer, type LlmOptions } from "../patterns/llm-call.ts";
import { annotate } from "../patterns/step.ts";
import {
  type Answer,
  cut,
  fails,
  hold,
  lose,
  message,
  partly,
  raw,
  rejection,
  reply,
  startServer,
} from "./shared/server.ts";

/** An output token costs a dollar and the input nothing, so that all sums are exact. */
const OUTPUT_ONLY: Price = { input: 0, output: 1_000_000, source: "test" };
const PRICES: Prices = new Map([["m", OUTPUT_ONLY]]);
const NONE = { usd: 0, calls: 0 };

/** A request that has gone out: to be answered by the test, with so many output tokens or an error. */
interface Sent {
  readonly params: MessageCreateParams;
  readonly answer: (outputTokens: number, rest?: Partial<Message>) => void;
  readonly fail: (error: unknown) => void;
}

/** A client that sends nothing and keeps what it's given. An abort ends a request as in the SDK. */
function heldClient(onSend: () => void = () => {}) {
  const sent: Sent[] = [];
  const create = (params: MessageCreateParams, { signal }: { signal?: AbortSignal }) =>
    new Promise<Message>((resolve, reject) => {
      const answer: Sent["answer"] = (tokens, rest) => resolve(used(tokens, rest));
      sent.push({ params, answer, fail: reject });
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
      onSend();
    });
  const messages = { create, stream: () => {} };
  // Of the SDK's many overloads the door uses this one.
  const client = { messages, beta: { messages } } as unknown as MessagesClient;
  return { client, sent };
}

/** A reply that took this many output tokens. */
function used(output_tokens: number, rest: Partial<Message> = {}): Message {
  const { usage, ...whole } = message("Yes");
  return { ...whole, model: "m", usage: { ...usage, output_tokens }, ...rest };
}

/** A door with a budget over a held client. `ask(9)` may cost 9 dollars at most. */
function open(limits: BudgetOptions, options: LlmOptions = {}) {
  const budget = createBudget({ prices: PRICES, ...limits });
  const { client, sent } = heldClient();
  const llm = createLlm({ client, model: "m", layers: [budget.layer], ...options });
  const ask = (max_tokens: number, signal?: AbortSignal) =>
    llm.llmCall("Hi", { max_tokens, signal });
  return { budget, sent, llm, ask };
}

/** A door with a budget over the real SDK and a local server. */
async function openServer(limits: BudgetOptions, answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  const budget = createBudget({ prices: PRICES, ...limits });
  const { llmCall } = createLlm({
    client: server.client(),
    model: "m",
    max_tokens: 10,
    layers: [budget.layer],
  });
  return { server, budget, llmCall };
}

/** What the budget holds back in all, in its three parts. */
function amounts({ spent, reserved, unsettled }: Budget) {
  return { spent: spent(), reserved: reserved(), unsettled: unsettled() };
}

/** The replies' usage, as `reply` takes it. */
function usage(output_tokens: number) {
  return { model: "m", usage: { input_tokens: 5, output_tokens } };
}

test("reserves what a call may cost at most, and settles what it did cost", async () => {
  const { budget, sent, ask } = open({ usd: 100, calls: 5 });
  const run = ask(9);
  await turn();
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: { usd: 9, calls: 1 },
    unsettled: NONE,
  });
  sent[0]?.answer(4);
  expect(await run).toBe("Yes");
  expect(amounts(budget)).toEqual({
    spent: { usd: 4, calls: 1 },
    reserved: NONE,
    unsettled: NONE,
  });
});

test("takes each byte of the request for a token written to the cache", async () => {
  const prices: Prices = new Map([["m", { input: 1_000_000, output: 0, source: "test" }]]);
  const { budget, sent, ask } = open({ usd: 10_000, prices });
  ask(9).catch(() => {});
  await turn();
  const { stream: _, ...params } = sent[0]?.params ?? {};
  expect(budget.reserved().usd).toBe(Buffer.byteLength(JSON.stringify(params)) * 1.25);
});

test("reserves an hour's cache write where the request asks for one, not where it quotes one", async () => {
  const prices: Prices = new Map([["m", { input: 1_000_000, output: 0, source: "test" }]]);
  const { budget, sent, llm } = open({ usd: 100_000, prices });
  const cache_control = { type: "ephemeral", ttl: "1h" } as const;
  const size = (index: number) => {
    const { stream: _, ...params } = sent[index]?.params ?? {};
    return Buffer.byteLength(JSON.stringify(params));
  };
  llm.llmCall("Hi", { cache_control }).catch(() => {});
  await turn();
  expect(budget.reserved().usd).toBe(size(0) * 2);
  llm.llmCall(`What is ${JSON.stringify(cache_control)}?`).catch(() => {});
  await turn();
  expect(budget.reserved().usd).toBe(size(0) * 2 + size(1) * 1.25);
});

test("counts a character of several bytes as several tokens", async () => {
  const prices: Prices = new Map([["m", { input: 1_000_000, output: 0, source: "test" }]]);
  const { budget, llm } = open({ usd: 10_000, prices });
  llm.llmCall("x").catch(() => {});
  await turn();
  const plain = budget.reserved().usd;
  llm.llmCall("😀").catch(() => {});
  await turn();
  expect(budget.reserved().usd - plain).toBe(plain + 3 * 1.25);
});

test("knows the prices of the default models", async () => {
  const { budget, sent, llm } = open({ usd: 1, prices: undefined }, { model: undefined });
  const run = llm.llmCall("Hi");
  await turn();
  expect(budget.reserved().usd).toBeGreaterThan(0.16);
  expect(budget.reserved().usd).toBeLessThan(0.161);
  sent[0]?.answer(100, { model: "claude-sonnet-5-5" });
  await run;
  expect(budget.spent().usd).toBeCloseTo((12 * 2 + 100 * 10) / 1e6, 12);
});

test("never overdraws, whatever calls cost and in whatever order they end", async () => {
  const ending = fc.constantFrom("ok", "ok", "ok", "http error", "reset", "cancel" as const);
  const call = fc.record({ most: fc.integer({ min: 1, max: 12 }), share: fc.nat(100), ending });
  const scenario = fc.record({
    calls: fc.array(call, { minLength: 1, maxLength: 25 }),
    usd: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
    count: fc.option(fc.integer({ min: 1, max: 15 }), { nil: undefined }),
    /** Which of the calls in flight ends next, and whether a waiting one is cancelled before. */
    order: fc.array(fc.record({ pick: fc.nat(100), cancel: fc.nat(5) }), { minLength: 1 }),
  });
  const property = fc.asyncProperty(scenario, async ({ calls, usd, count, order }) => {
    fc.pre(usd !== undefined || count !== undefined);
    const limit = { usd: usd ?? Number.POSITIVE_INFINITY, calls: count ?? 1000 };
    const budget = createBudget({ usd, calls: count, prices: PRICES });
    const held = (key: "usd" | "calls") =>
      budget.spent()[key] + budget.reserved()[key] + budget.unsettled()[key];
    const check = () => {
      expect(held("usd")).toBeLessThanOrEqual(limit.usd);
      expect(held("calls")).toBeLessThanOrEqual(limit.calls);
    };
    const { client, sent } = heldClient(check);
    const llm = createLlm({ client, model: "m", concurrency: 100, layers: [budget.layer] });

    const waiting = new Map<number, AbortController>();
    const inFlight = new Map<number, AbortController>();
    const outcomes = new Map<number, unknown>();
    const expected = { spent: { usd: 0, calls: 0 }, unsettled: { usd: 0, calls: 0 } };
    const add = (total: { usd: number; calls: number }, dollars: number) => {
      total.usd += dollars;
      total.calls += 1;
    };
    for (const [i, { most }] of calls.entries()) {
      const controller = new AbortController();
      waiting.set(i, controller);
      const ended = (outcome: unknown) => {
        outcomes.set(i, outcome);
        waiting.delete(i);
        inFlight.delete(i);
      };
      // Its own number is the prompt, so that a request says whose it is.
      const options = { max_tokens: most, signal: controller.signal };
      llm.llmCall(String(i), options).then(ended, ended);
    }

    let seen = 0;
    const settle = async () => {
      // Those that wait go on a turn after the call that lets them.
      await turn();
      await turn();
      for (; seen < sent.length; seen += 1) {
        const i = Number(sent[seen]?.params.messages[0]?.content);
        const controller = waiting.get(i);
        if (controller) inFlight.set(i, controller);
        waiting.delete(i);
      }
      check();
      expect(budget.reserved().calls).toBe(inFlight.size);
      const most = [...inFlight.keys()].map((i) => calls[i]?.most ?? 0);
      expect(budget.reserved().usd).toBe(most.reduce((a, b) => a + b, 0));
      // Nobody waits who would fit, and so nobody waits for nothing.
      for (const i of waiting.keys()) {
        const fits = held("usd") + (calls[i]?.most ?? 0) <= limit.usd;
        expect(fits && held("calls") + 1 <= limit.calls).toBe(false);
      }
    };

    await settle();
    for (let round = 0; inFlight.size > 0; round += 1) {
      const { pick = 0, cancel = 0 } = order[round % order.length] ?? {};
      const [first] = waiting.values();
      if (cancel === 0 && first) {
        first.abort("not any more");
        await settle();
      }
      const [i = -1, controller] = [...inFlight][pick % inFlight.size] ?? [];
      const { most = 0, share = 0, ending } = calls[i] ?? {};
      const own = sent.find(({ params }) => params.messages[0]?.content === String(i));
      const cost = Math.floor((most * share) / 100);
      if (ending === "ok") {
        add(expected.spent, cost);
        own?.answer(cost);
      } else if (ending === "http error") {
        own?.fail(new InternalServerError(500, undefined, "no", new Headers()));
      } else {
        add(expected.unsettled, most);
        if (ending === "cancel") controller?.abort("enough");
        else own?.fail(new APIConnectionError({ message: "reset" }));
      }
      await settle();
    }

    expect(amounts(budget)).toEqual({ ...expected, reserved: NONE });
    expect([waiting.size, outcomes.size]).toEqual([0, calls.length]);
    for (const [i, outcome] of outcomes) {
      const wasSent = sent.some(({ params }) => params.messages[0]?.content === String(i));
      expect(outcome instanceof BudgetError && wasSent).toBe(false);
      if (!(outcome instanceof BudgetError)) continue;
      const dollars = expected.spent.usd + expected.unsettled.usd + (calls[i]?.most ?? 0);
      const requests = expected.spent.calls + expected.unsettled.calls + 1;
      expect(dollars > limit.usd || requests > limit.calls).toBe(true);
    }
  });
  await fc.assert(property, { numRuns: 100 });
});

test("lets a call wait that fits only once others have settled", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const runs = [ask(6), ask(6), ask(4)];
  await turn();
  expect(sent.map(({ params }) => params.max_tokens)).toEqual([6, 4]);
  sent[1]?.answer(4);
  await turn();
  expect(sent).toHaveLength(2);
  sent[0]?.answer(0);
  await turn();
  expect(sent).toHaveLength(3);
  sent[2]?.answer(6);
  expect(await Promise.all(runs)).toEqual(["Yes", "Yes", "Yes"]);
  expect(budget.spent()).toEqual({ usd: 10, calls: 3 });
});

test("lets nobody pass who waited longer and fits as well", async () => {
  const { sent, ask } = open({ usd: 10 });
  const runs = [ask(10), ask(6)];
  await turn();
  sent[0]?.answer(0);
  await runs[0];
  // It comes when there is room, and the one that waits has not been told of it yet.
  runs.push(ask(7));
  await turn();
  await turn();
  expect(sent.map(({ params }) => params.max_tokens)).toEqual([10, 6]);
  sent[1]?.answer(0);
  await turn();
  await turn();
  sent[2]?.answer(0);
  expect(await Promise.all(runs)).toEqual(["Yes", "Yes", "Yes"]);
});

test("does as much for a call that waits, however many others settle meanwhile", async () => {
  const listening = vi.spyOn(EventTarget.prototype, "addEventListener");
  onTestFinished(() => listening.mockRestore());
  const listened: number[] = [];
  for (const count of [10, 100]) {
    const { sent, ask } = open({ usd: 1 }, { concurrency: 1000 });
    const { signal } = withAbort();
    listening.mockClear();
    const runs = Array.from({ length: count }, () => ask(1, signal));
    for (let i = 0; i < count; i += 1) {
      while (sent.length <= i) await turn();
      sent[i]?.answer(0);
    }
    await Promise.all(runs);
    listened.push(listening.mock.calls.length / count);
  }
  const [few = 0, many = 0] = listened;
  expect(few).toBeGreaterThan(0);
  expect(many).toBeLessThanOrEqual(few);
});

test("spends to the last cent", async () => {
  const prices: Prices = new Map([["m", { input: 0, output: 10, source: "test" }]]);
  const { budget, sent, ask } = open({ usd: 0.3, prices });
  for (let i = 0; i < 3; i += 1) {
    const run = ask(10_000);
    await turn();
    sent[i]?.answer(10_000);
    await run;
  }
  expect(budget.spent()).toEqual({ usd: 0.3, calls: 3 });
  expect(await rejection(ask(1))).toBeInstanceOf(BudgetError);
});

test("refuses a call that can't fit, sends nothing, and says where and why", async () => {
  const { budget, sent, llm } = open({ usd: 10 });
  const run = llm.llmCall("Hi", { max_tokens: 10 });
  await turn();
  sent[0]?.answer(7);
  await run;
  const error = await rejection(llm.llmCall("Hi", { max_tokens: 4, name: "late" }));
  expect(error).toBeInstanceOf(BudgetError);
  expect(error).toBeInstanceOf(HaltError);
  expect(error).toMatchObject({
    path: "late",
    message:
      "late: The budget of $10 has $3.0000 left, and this call may cost $4.0000: " +
      "lower max_tokens, or raise the budget",
  });
  expect(sent).toHaveLength(1);
  expect(amounts(budget)).toEqual({
    spent: { usd: 7, calls: 1 },
    reserved: NONE,
    unsettled: NONE,
  });
});

test("refuses at once what can never fit, though others are in flight", async () => {
  const { sent, ask } = open({ usd: 10 });
  ask(2).catch(() => {});
  await turn();
  expect(await rejection(ask(11))).toBeInstanceOf(BudgetError);
  expect(sent).toHaveLength(1);
});

test("refuses a call that waited when those in flight leave no room for it", async () => {
  const { sent, ask } = open({ usd: 10 });
  const first = ask(8);
  const second = rejection(ask(5));
  await turn();
  sent[0]?.answer(8);
  await first;
  expect(await second).toBeInstanceOf(BudgetError);
  expect(sent).toHaveLength(1);
});

test("still makes a smaller call after a larger one was refused", async () => {
  const { sent, ask } = open({ usd: 10 });
  expect(await rejection(ask(11))).toBeInstanceOf(BudgetError);
  const run = ask(10);
  await turn();
  sent[0]?.answer(1);
  expect(await run).toBe("Yes");
});

test("gives back what was reserved for a call that was cancelled before it was sent", async () => {
  const { budget, sent, ask } = open({ usd: 100, calls: 5 }, { concurrency: 1 });
  const cancel = new AbortController();
  const first = ask(9);
  const queued = rejection(ask(9, cancel.signal));
  await turn();
  expect(budget.reserved()).toEqual({ usd: 18, calls: 2 });
  cancel.abort("enough");
  expect(await queued).toBe("enough");
  expect(budget.unsettled()).toEqual(NONE);
  sent[0]?.answer(2);
  await first;
  expect(sent).toHaveLength(1);
  expect(budget.spent()).toEqual({ usd: 2, calls: 1 });
});

test("counts calls, and refuses those past the limit", async () => {
  const { budget, sent, ask } = open({ calls: 2 });
  const runs = [ask(1), ask(1)];
  const third = rejection(ask(1));
  await turn();
  expect(sent).toHaveLength(2);
  for (const { answer } of sent) answer(1);
  await Promise.all(runs);
  expect(await third).toMatchObject({
    name: "BudgetError",
    message: expect.stringContaining("The budget of 2 calls is used up"),
  });
  expect(budget.spent()).toEqual({ usd: 2, calls: 2 });
  expect(sent).toHaveLength(2);
});

test("holds both limits, whichever is reached first", async () => {
  const byCalls = open({ usd: 100, calls: 1 });
  const byDollars = open({ usd: 5, calls: 100 });
  for (const { sent, ask } of [byCalls, byDollars]) {
    const run = ask(4);
    await turn();
    sent[0]?.answer(4);
    await run;
  }
  expect(await rejection(byCalls.ask(4))).toMatchObject({
    message: expect.stringContaining("calls"),
  });
  expect(await rejection(byDollars.ask(4))).toMatchObject({
    message: expect.stringContaining("$"),
  });
});

test("rejects a waiting call with the signal's reason, sends nothing and lets the others go on", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const first = ask(10);
  const controller = new AbortController();
  const second = rejection(ask(10, controller.signal));
  const third = ask(10);
  await turn();
  controller.abort("enough");
  expect(await second).toBe("enough");
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: { usd: 10, calls: 1 },
    unsettled: NONE,
  });
  sent[0]?.answer(0);
  await first;
  await turn();
  sent[1]?.answer(0);
  expect(await third).toBe("Yes");
  expect(sent).toHaveLength(2);
});

test("never sends a waiting call that was cancelled, not even as its turn comes", async () => {
  for (let hops = 0; hops < 30; hops += 1) {
    const budget = createBudget({ calls: 1 });
    let made = 0;
    let answer = () => {};
    const send = budget.layer(async () => {
      made += 1;
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      throw new RecordingError("releases its reservation");
    });
    const params = { model: "m", max_tokens: 1, messages: [] };
    const { signal, abort } = withAbort();
    const first = rejection(send(params, {}));
    const second = rejection(send(params, { signal }));
    await turn();
    answer();
    for (let i = 0; i < hops; i += 1) await Promise.resolve();
    abort("enough");
    const madeBefore = made;
    await first;
    await turn();
    expect(made).toBe(madeBefore);
    if (made === 1) expect(await second).toBe("enough");
  }
});

test("listens once to a signal however many calls wait under it", async () => {
  const { ask } = open({ calls: 1 }, { concurrency: 100 });
  const { signal, abort } = withAbort();
  const runs = Array.from({ length: 50 }, () => rejection(ask(1, signal)));
  await turn();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  abort("enough");
  expect(new Set(await Promise.all(runs))).toEqual(new Set(["enough"]));
});

function withAbort() {
  const controller = new AbortController();
  const abort = (reason: unknown) => controller.abort(reason);
  return { signal: controller.signal, abort };
}

test("keeps a cancelled call's reservation as unsettled", async () => {
  const { server, budget, llmCall } = await openServer({ usd: 25 }, [hold, reply("Yes", usage(3))]);
  const { signal, abort } = withAbort();
  const run = rejection(llmCall("Hi", { signal }));
  await server.received(1);
  abort("enough");
  expect(await run).toBe("enough");
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 10, calls: 1 },
  });
  await llmCall("Hi");
  // 10 dollars unsettled and 3 spent leave 12: the next call fits, and the one after does not.
  await llmCall("Hi");
  expect(await rejection(llmCall("Hi"))).toBeInstanceOf(BudgetError);
  expect(amounts(budget)).toEqual({
    spent: { usd: 6, calls: 2 },
    reserved: NONE,
    unsettled: { usd: 10, calls: 1 },
  });
});

test.for([
  ["is lost", lose, undefined, APIConnectionError],
  ["is lost in the middle of the body", partly("One two", lose), undefined, APIConnectionError],
  ["is cut off in the middle of the body", partly("One two", cut), undefined, LlmOutputError],
  ["is lost in the middle of the stream", partly("One two", lose), () => {}, APIConnectionError],
  ["isn't a message", raw("<html>", {}), undefined, LlmOutputError],
  ["says nothing of what it used", raw('{"type":"message"}', {}), undefined, LlmOutputError],
] as const)("keeps the reservation of a call whose reply %s", async ([, answer, onText, kind]) => {
  const { budget, llmCall } = await openServer({ usd: 25 }, [answer]);
  expect(await rejection(llmCall("Hi", { onText }))).toBeInstanceOf(kind);
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 10, calls: 1 },
  });
});

test("keeps no more than it can have cost where the price of cache reads isn't known", async () => {
  const usage = { input_tokens: 0, output_tokens: 1, cache_read_input_tokens: 3 };
  const prices = new Map([["m", { input: 1_000_000, output: 1_000_000, source: "" }]]);
  const budget = createBudget({ usd: 1_000, prices });
  const server = await startServer(reply("Hi", { ...message("Hi"), model: "m", usage }));
  const client = server.client();
  const { llmCall } = createLlm({ client, model: "m", max_tokens: 10, layers: [budget.layer] });
  await llmCall("Hi");
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 4, calls: 1 },
  });
});

test.for([400, 401, 404, 413, 429, 500, 529])(
  "releases the reservation of a call that was answered with %i",
  async (status) => {
    const { budget, llmCall } = await openServer({ usd: 10, calls: 1 }, [
      fails(status),
      reply("Yes", usage(10)),
    ]);
    expect(await rejection(llmCall("Hi"))).toMatchObject({ status });
    expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
    expect(await llmCall("Hi")).toBe("Yes");
    expect(budget.spent()).toEqual({ usd: 10, calls: 1 });
  },
);

test("releases the reservation of a call that the SDK couldn't send", async () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("ANTHROPIC_CONFIG_DIR", "/nonexistent");
  const client = new Anthropic({ apiKey: null, authToken: null, baseURL: "http://127.0.0.1:9" });
  for (const onText of [undefined, () => {}]) {
    const { budget, ask: _, llm } = open({ calls: 1 }, { client });
    for (let i = 0; i < 2; i += 1) {
      expect(String(await rejection(llm.llmCall("Hi", { onText })))).toContain("authentication");
    }
    expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
  }
});

test("releases the reservation of a call that was never made", async () => {
  for (const error of [new RecordingError("not on the tape"), new BudgetError("no money inside")]) {
    const refuse: Layer = () => async () => {
      throw error;
    };
    const budget = createBudget({ usd: 10, prices: PRICES });
    const { ask, sent } = open({ usd: 10 }, { layers: [budget.layer, refuse] });
    expect(await rejection(ask(10))).toBe(error);
    expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
    expect(sent).toHaveLength(0);
  }
});

test("releases the reservation of a call that was cancelled while it waited for a slot", async () => {
  const { budget, sent, ask } = open({ usd: 100 }, { concurrency: 1 });
  const { signal, abort } = withAbort();
  const runs = [ask(10, signal), ask(20, signal)].map(rejection);
  await turn();
  expect(budget.reserved()).toEqual({ usd: 30, calls: 2 });
  abort("enough");
  expect(await Promise.all(runs)).toEqual(["enough", "enough"]);
  expect(sent).toHaveLength(1);
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 10, calls: 1 },
  });
});

test("releases the reservation of a call that another budget can't price", async () => {
  const outer = createBudget({ calls: 5 });
  const inner = createBudget({ usd: 5, prices: PRICES });
  const { sent, llm } = open({ usd: 1 }, { layers: [outer.layer, inner.layer] });
  expect(await rejection(llm.llmCall("Hi", { model: "unknown" }))).toBeInstanceOf(RangeError);
  expect(sent).toHaveLength(0);
  expect(amounts(outer)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
});

test("counts a reply that can't be used at what it cost", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const run = rejection(ask(10));
  await turn();
  sent[0]?.answer(9, { stop_reason: "refusal" });
  expect(await run).toBeInstanceOf(LlmOutputError);
  expect(budget.spent()).toEqual({ usd: 9, calls: 1 });
});

test("prices a streamed reply", async () => {
  const { budget, llmCall } = await openServer({ usd: 10 }, [reply("Yes or no", usage(7))]);
  const texts: string[] = [];
  await llmCall("Hi", { onText: (text) => texts.push(text) });
  expect(texts.join("")).toBe("Yes or no");
  expect(budget.spent()).toEqual({ usd: 7, calls: 1 });
});

test("throws before the call when the model has no price, under a limit in dollars only", async () => {
  const dollars = open({ usd: 10, calls: 10 });
  const error = await rejection(dollars.llm.llmCall("Hi", { model: "constructor" }));
  expect(error).toBeInstanceOf(RangeError);
  expect(error).toMatchObject({ message: expect.stringContaining('"constructor"') });
  expect(dollars.sent).toHaveLength(0);
  expect(amounts(dollars.budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });

  const calls = open({ calls: 10 });
  const run = calls.llm.llmCall("Hi", { model: "unknown" });
  await turn();
  calls.sent[0]?.answer(3, { model: "unknown" });
  expect(await run).toBe("Yes");
  expect(calls.budget.spent().calls + calls.budget.unsettled().calls).toBe(1);
});

test.for([
  { inference_geo: "us" },
  { speed: "fast" as const },
  { container: "c" },
  { tools: [{ type: "web_search_20250305" as const, name: "web_search" as const }] },
])("throws before the call when its bytes don't bound what %j costs", async (params) => {
  const dollars = open({ usd: 10 });
  const error = await rejection(dollars.llm.llmCall("Hi", params));
  expect(error).toBeInstanceOf(RangeError);
  const [name = ""] = Object.keys(params);
  expect(error).toMatchObject({ message: expect.stringContaining(name) });
  expect(error).toMatchObject({ message: expect.stringContaining("give a limit in calls") });
  expect(dollars.sent).toHaveLength(0);
  expect(amounts(dollars.budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });

  const calls = open({ calls: 1 });
  const run = calls.llm.llmCall("Hi", params);
  await turn();
  expect(calls.budget.reserved()).toEqual({ usd: 0, calls: 1 });
  calls.sent[0]?.answer(3);
  expect(await run).toBe("Yes");
});

test("keeps the reservation of a reply that is billed otherwise than was asked for", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const run = ask(9);
  await turn();
  const { usage } = message("Yes");
  sent[0]?.answer(1, { usage: { ...usage, service_tier: "priority" } });
  await run;
  expect(amounts(budget)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 9, calls: 1 },
  });
});

test("keeps the reservation where the reply's price isn't known", async () => {
  const { budget, sent, llm } = open({ usd: 1, prices: undefined }, { model: "claude-sonnet-5-5" });
  const run = llm.llmCall("Hi", { max_tokens: 1000 });
  await turn();
  const most = budget.reserved();
  const { usage } = message("Yes");
  sent[0]?.answer(1, {
    model: "claude-sonnet-5-5",
    usage: { ...usage, service_tier: "priority" },
  });
  await run;
  expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: most });
});

test("prices each reply by the model that gave it", async () => {
  const prices: Prices = new Map([...PRICES, ["half", { ...OUTPUT_ONLY, output: 500_000 }]]);
  const { budget, sent, ask } = open({ usd: 100, prices });
  const runs = [ask(10), ask(10)];
  await turn();
  sent[0]?.answer(10);
  sent[1]?.answer(10, { model: "half-20261201" });
  await Promise.all(runs);
  expect(budget.spent()).toEqual({ usd: 15, calls: 2 });
});

test.for([
  ["succeeded", undefined],
  ["failed", new APIConnectionError({ message: "reset" })],
] as const)("spends nothing on a replayed call that %s", async ([, error]) => {
  const replay: Layer = () => async () => {
    annotate({ recorded: { begin: 0, ms: 1 } });
    if (error) throw error;
    return used(9);
  };
  const budget = createBudget({ usd: 10, prices: PRICES });
  const { ask } = open({ usd: 10 }, { layers: [budget.layer, replay] });
  for (let i = 0; i < 3; i += 1) await ask(10).catch(() => {});
  expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
});

test("prices each continuation of a paused turn", async () => {
  const { server, budget, llmCall } = await openServer({ usd: 30 }, [
    reply("One ", { ...usage(3), stop_reason: "pause_turn" }),
    reply("two", usage(5)),
  ]);
  expect(await llmCall("Hi")).toBe("One two");
  expect(server.requests).toHaveLength(2);
  expect(budget.spent()).toEqual({ usd: 8, calls: 2 });
});

test("refuses the continuation of a paused turn that doesn't fit", async () => {
  const { server, budget, llmCall } = await openServer({ calls: 1 }, [
    reply("One ", { ...usage(3), stop_reason: "pause_turn" }),
  ]);
  expect(await rejection(llmCall("Hi"))).toBeInstanceOf(BudgetError);
  expect(server.requests).toHaveLength(1);
  expect(budget.spent()).toEqual({ usd: 3, calls: 1 });
});

test("is shared by several doors", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const other = heldClient();
  const second = createLlm({ client: other.client, model: "m", layers: [budget.layer] });
  const first = ask(6);
  const waits = second.llmCall("Hi", { max_tokens: 6 });
  await turn();
  expect([sent.length, other.sent.length]).toEqual([1, 0]);
  sent[0]?.answer(4);
  await first;
  await turn();
  other.sent[0]?.answer(6);
  await waits;
  expect(budget.spent()).toEqual({ usd: 10, calls: 2 });
  for (const refused of [ask(1), second.llmCall("Hi", { max_tokens: 1 })]) {
    expect(await rejection(refused)).toBeInstanceOf(BudgetError);
  }
});

test("holds both budgets of a stack, the process's and the request's", async () => {
  const all = createBudget({ usd: 20, prices: PRICES });
  const { sent, llm } = open({ usd: 1 }, { layers: [all.layer], max_tokens: 6 });
  const perRequest = () => {
    const budget = createBudget({ usd: 10, prices: PRICES });
    return { budget, ...llm.with({ layers: [budget.layer] }) };
  };
  const [a, b] = [perRequest(), perRequest()];
  const runs = [a, b].map(({ llmCall }) => llmCall("Hi"));
  await turn();
  for (const { answer } of sent) answer(6);
  await Promise.all(runs);
  for (const { budget } of [a, b]) expect(budget.spent()).toEqual({ usd: 6, calls: 1 });
  expect(all.spent()).toEqual({ usd: 12, calls: 2 });

  // The request's budget refuses, and the process's has its reservation back.
  expect(await rejection(a.llmCall("Hi"))).toMatchObject({
    message: expect.stringContaining("The budget of $10 has $4.0000 left"),
  });
  expect(all.reserved()).toEqual(NONE);
  expect(all.unsettled()).toEqual(NONE);

  // The process's budget refuses, and a new request's is untouched.
  const c = perRequest();
  expect(await rejection(c.llmCall("Hi", { max_tokens: 9 }))).toMatchObject({
    message: expect.stringContaining("The budget of $20 has $8.0000 left"),
  });
  expect(amounts(c.budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
  expect(sent).toHaveLength(2);
});

test("has no two calls wait for each other, whatever the order of their budgets", async () => {
  const a = createBudget({ calls: 2, prices: PRICES });
  const b = createBudget({ calls: 2, prices: PRICES });
  const { sent, llm } = open({ usd: 99 }, { max_tokens: 1 });
  const doors = [
    [a.layer, b.layer],
    [b.layer, a.layer],
  ].map((layers) => llm.with({ layers }));
  const runs = [...doors, ...doors].map(({ llmCall }) => llmCall("Hi").catch((error) => error));
  for (let i = 0; i < 2; i += 1) {
    while (sent.length <= i) await turn();
    sent[i]?.answer(1);
  }
  const ended = await Promise.all(runs);
  expect(ended.filter((outcome) => outcome === "Yes")).toHaveLength(2);
  expect(ended.filter((outcome) => outcome instanceof BudgetError)).toHaveLength(2);
  for (const budget of [a, b]) {
    expect(amounts(budget)).toEqual({
      spent: { usd: 2, calls: 2 },
      reserved: NONE,
      unsettled: NONE,
    });
  }
});

test("lets others have what a call would hold that waits for another budget", async () => {
  const shared = createBudget({ usd: 10, prices: PRICES });
  const own = createBudget({ usd: 5, prices: PRICES });
  const { sent, llm } = open({ usd: 99 }, { layers: [shared.layer], max_tokens: 5 });
  const limited = llm.with({ layers: [own.layer] });
  const runs = [limited, limited, llm].map(({ llmCall }) => llmCall("Hi"));
  await turn();
  await turn();
  // The second waits for its own budget, and the third has its place in the shared one.
  expect(sent).toHaveLength(2);
  expect(shared.reserved()).toEqual({ usd: 10, calls: 2 });
  sent[0]?.answer(0);
  sent[1]?.answer(0);
  while (sent.length < 3) await turn();
  sent[2]?.answer(0);
  expect(await Promise.all(runs)).toEqual(["Yes", "Yes", "Yes"]);
});

/** Two budgets with a layer in between, and another call that holds half of the inner one. */
async function between(layer: Layer) {
  const outer = createBudget({ calls: 2, prices: PRICES });
  const inner = createBudget({ usd: 10, prices: PRICES });
  const { sent, llm } = open({ usd: 99 });
  const other = llm.with({ layers: [inner.layer] }).llmCall("Other", { max_tokens: 5 });
  await turn();
  const ask = llm.with({ layers: [outer.layer, layer, inner.layer] }).llmCall;
  const answer = async (index: number, cost = 1) => {
    while (sent.length <= index) await turn();
    sent[index]?.answer(cost);
  };
  return { outer, sent, other, ask, answer };
}

test("gives all back of a call whose two attempts have waited for another budget", async () => {
  const race: Layer = (next) => (params, call) =>
    Promise.any([next(params, call), next(params, call)]);
  const { outer, other, ask, answer } = await between(race);
  const run = ask("Hi", { max_tokens: 6 });
  for (const index of [0, 1, 2]) await answer(index);
  await Promise.all([other, run]);
  await turn();
  expect(outer.reserved()).toEqual(NONE);
  expect(outer.spent()).toEqual({ usd: 2, calls: 2 });
});

test("holds room again for an attempt behind one that gave up waiting for another budget", async () => {
  const { signal, abort } = withAbort();
  const cheaper: Layer = (next) => (params, call) =>
    next(params, { ...call, signal }).catch(() => next({ ...params, max_tokens: 1 }, call));
  const { outer, sent, ask } = await between(cheaper);
  const run = ask("Hi", { max_tokens: 6 });
  await turn();
  expect(outer.reserved()).toEqual(NONE);
  abort("too long");
  while (sent.length < 2) await turn();
  expect(outer.reserved()).toEqual({ usd: 6, calls: 1 });
  sent[1]?.answer(1);
  expect(await run).toBe("Yes");
});

test("keeps what a lost request may have cost while the next attempt waits for another budget", async () => {
  let goOn = () => {};
  const lost = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const retry: Layer = (next) => async (params, call) => {
    await rejection(next(params, call));
    await lost;
    return next(params, call);
  };
  const { outer, sent, other, ask, answer } = await between(retry);
  const run = ask("Hi", { max_tokens: 5 });
  while (sent.length < 2) await turn();
  sent[1]?.fail(new APIConnectionError({ message: "reset" }));
  await turn();
  goOn();
  await turn();
  expect(amounts(outer)).toEqual({
    spent: NONE,
    reserved: NONE,
    unsettled: { usd: 5, calls: 1 },
  });
  await answer(0, 0);
  await answer(2);
  await Promise.all([other, run]);
  expect(amounts(outer)).toEqual({
    spent: { usd: 1, calls: 1 },
    reserved: NONE,
    unsettled: { usd: 5, calls: 1 },
  });
});

test("has room again as soon as a call is answered, for one that a layer then makes", async () => {
  const { budget, sent, llm } = open({ calls: 2 });
  const judge: Layer = (next) => async (params, call) => {
    const message = await next(params, call);
    expect(amounts(budget)).toEqual({
      spent: { usd: 1, calls: 1 },
      reserved: NONE,
      unsettled: NONE,
    });
    await llm.llmCall("Is it fine?", { max_tokens: 1 });
    return message;
  };
  const run = llm.with({ layers: [judge] }).llmCall("Hi", { max_tokens: 1 });
  for (let i = 0; i < 2; i += 1) {
    while (sent.length <= i) await turn();
    sent[i]?.answer(1);
  }
  expect(await run).toBe("Yes");
  expect(budget.spent()).toEqual({ usd: 2, calls: 2 });
});

test("counts an attempt once that is under way while the next one waits for another budget", async () => {
  const both: Layer = (next) => async (params, call) => {
    const [first] = await Promise.all([next(params, call), turn().then(() => next(params, call))]);
    return first;
  };
  const { outer, sent, other, ask, answer } = await between(both);
  const run = ask("Hi", { max_tokens: 5 });
  while (sent.length < 2) await turn();
  for (let i = 0; i < 5; i += 1) await turn();
  expect(sent).toHaveLength(2);
  const { reserved, unsettled } = amounts(outer);
  expect(reserved.calls + unsettled.calls).toBe(1);
  await answer(0, 0);
  await answer(1, 0);
  await answer(2, 0);
  await Promise.all([other, run]);
  expect(amounts(outer)).toEqual({
    spent: { usd: 0, calls: 2 },
    reserved: NONE,
    unsettled: NONE,
  });
});

test("ends a call with two attempts, beside one whose layer asks under its outer budget", async () => {
  const [a, b] = [
    createBudget({ usd: 10, prices: PRICES }),
    createBudget({ usd: 10, prices: PRICES }),
  ];
  const { sent, llm } = open({ usd: 99 }, { max_tokens: 10 });
  let startSecond = () => {};
  const second = new Promise<void>((resolve) => {
    startSecond = resolve;
  });
  const both: Layer = (next) => async (params, call) => {
    const [first] = await Promise.all([next(params, call), second.then(() => next(params, call))]);
    return first;
  };
  const underA = llm.with({ layers: [a.layer] });
  const guard: Layer = (next) => async (params, call) => {
    await underA.llmCall("Is it safe?").catch(() => {});
    return next(params, call);
  };
  const runs: Promise<string>[] = [];
  for (const layers of [[b.layer], [a.layer, both, b.layer], [b.layer, guard]]) {
    runs.push(llm.with({ layers }).llmCall("Hi"));
    await turn();
  }
  startSecond();
  let isOpen = true;
  const ended = Promise.all(runs).finally(() => {
    isOpen = false;
  });
  for (let i = 0; isOpen; ) {
    for (let turns = 0; turns < 5; turns += 1) await turn();
    if (sent[i]) sent[i++]?.answer(0);
  }
  expect(await ended).toEqual(["Yes", "Yes", "Yes"]);
  for (const { reserved } of [a, b]) expect(reserved()).toEqual(NONE);
});

test("counts a call once in a door that has the budget twice, and calls beside it too", async () => {
  const { budget, sent, llm } = open({ usd: 20, calls: 3 });
  const rename: Layer = (next) => (params, call) => next({ ...params }, { ...call });
  const twice = llm.with({ layers: [rename, budget.layer] });
  const runs = [9, 9, 2].map((max_tokens) => twice.llmCall("Hi", { max_tokens }));
  await turn();
  expect(sent).toHaveLength(3);
  expect(budget.reserved()).toEqual({ usd: 20, calls: 3 });
  for (const { answer } of sent) answer(1);
  await Promise.all(runs);
  expect(amounts(budget)).toEqual({
    spent: { usd: 3, calls: 3 },
    reserved: NONE,
    unsettled: NONE,
  });
});

test("counts each request of a layer outside that sends a call twice at once", async () => {
  const budget = createBudget({ usd: 20, prices: PRICES });
  const race: Layer = (next) => (params, call) =>
    Promise.race([next(params, call), next(params, call)]);
  const { sent, llm } = open({ usd: 99 }, { layers: [race, budget.layer] });
  const run = llm.llmCall("Hi", { max_tokens: 9 });
  await turn();
  expect(budget.reserved()).toEqual({ usd: 18, calls: 2 });
  for (const { answer } of sent) answer(1);
  await run;
  await turn();
  expect(budget.spent()).toEqual({ usd: 2, calls: 2 });
});

test("refuses a call made inside of another one once all wait for each other", async () => {
  const { budget, sent, llm } = open({ usd: 10 });
  const outcomes: unknown[] = [];
  const ask: Layer = (next) => async (params, call) => {
    const inner = llm.llmCall("What is it about?", { max_tokens: 5 });
    outcomes.push(await inner.catch((error) => error));
    return next(params, call);
  };
  const runs = [0, 1].map(() => llm.with({ layers: [ask] }).llmCall("Hi", { max_tokens: 5 }));
  // The second's is refused; it goes on, and leaves too little for the first's.
  for (let i = 0; i < 2; i += 1) {
    while (sent.length <= i) await turn();
    sent[i]?.answer(1);
  }
  expect(await Promise.all(runs)).toEqual(["Yes", "Yes"]);
  expect(outcomes).toHaveLength(2);
  for (const error of outcomes) expect(error).toBeInstanceOf(BudgetError);
  expect(amounts(budget)).toEqual({
    spent: { usd: 2, calls: 2 },
    reserved: NONE,
    unsettled: NONE,
  });
});

test("lets a call made inside of another one wait for a third that is under way", async () => {
  const { sent, llm, ask } = open({ usd: 10 });
  const third = ask(5);
  const within: Layer = (next) => async (params, call) => {
    await llm.llmCall("What is it about?", { max_tokens: 5 });
    return next(params, call);
  };
  const run = llm.with({ layers: [within] }).llmCall("Hi", { max_tokens: 5 });
  await turn();
  await turn();
  expect(sent).toHaveLength(1);
  for (let i = 0; i < 3; i += 1) {
    while (sent.length <= i) await turn();
    sent[i]?.answer(0);
  }
  expect(await Promise.all([third, run])).toEqual(["Yes", "Yes"]);
});

test("ends calls whose layers ask under each other's budget", async () => {
  const a = createBudget({ calls: 1, prices: PRICES });
  const b = createBudget({ calls: 1, prices: PRICES });
  const { sent, llm } = open({ usd: 99 }, { max_tokens: 1 });
  const [underA, underB] = [a, b].map(({ layer }) => llm.with({ layers: [layer] }));
  const guard =
    (door = llm): Layer =>
    (next) =>
    async (params, call) => {
      await turn();
      await door.llmCall("Is it safe?");
      return next(params, call);
    };
  const runs = [
    underA?.with({ layers: [guard(underB)] }).llmCall("Hi"),
    underB?.with({ layers: [guard(underA)] }).llmCall("Hi"),
  ].map((run) => run?.catch((error) => error));
  const ended = Promise.all(runs);
  for (let i = 0; i < 2; i += 1) {
    while (sent.length <= i) await turn();
    sent[i]?.answer(1);
  }
  const outcomes = await ended;
  expect(outcomes.filter((outcome) => outcome instanceof BudgetError)).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === "Yes")).toHaveLength(1);
});

test("counts a call made inside of another one by itself, where both fit", async () => {
  const { budget, sent, llm } = open({ usd: 10 });
  const ask: Layer = (next) => async (params, call) => {
    await llm.llmCall("What is it about?", { max_tokens: 4 });
    return next(params, call);
  };
  const run = llm.with({ layers: [ask] }).llmCall("Hi", { max_tokens: 5 });
  await turn();
  expect(budget.reserved()).toEqual({ usd: 9, calls: 2 });
  sent[0]?.answer(3);
  await turn();
  sent[1]?.answer(2);
  await run;
  expect(budget.spent()).toEqual({ usd: 5, calls: 2 });
});

test("counts a call and the SDK's retries of it as one", async () => {
  const budget = createBudget({ calls: 1 });
  const busy = fails(529, { "retry-after-ms": "1" });
  const server = await startServer(busy, busy, reply("Yes"));
  const client = server.client({ maxRetries: 2 });
  const { llmCall } = createLlm({ client, layers: [budget.layer] });
  expect(await llmCall("Hi")).toBe("Yes");
  expect(server.requests).toHaveLength(3);
  expect(budget.spent().calls).toBe(1);
});

test("gives amounts that don't change afterwards", async () => {
  const { budget, sent, ask } = open({ usd: 10 });
  const before = budget.spent();
  const run = ask(10);
  await turn();
  sent[0]?.answer(10);
  await run;
  expect([before, budget.spent()]).toEqual([NONE, { usd: 10, calls: 1 }]);
});

test("keeps no rest of a cent's fraction when everything has settled", async () => {
  const prices: Prices = new Map([["m", { input: 0.1, output: 0.7, source: "test" }]]);
  const { budget, sent, ask } = open({ usd: 10, prices });
  const runs = Array.from({ length: 7 }, (_, i) => ask(i + 1));
  await turn();
  for (const { fail } of sent) fail(new InternalServerError(500, undefined, "no", new Headers()));
  await Promise.allSettled(runs);
  expect(amounts(budget)).toEqual({ spent: NONE, reserved: NONE, unsettled: NONE });
});

test.for([
  {},
  { usd: undefined, calls: undefined },
  { usd: 0 },
  { usd: -1 },
  { usd: Number.NaN },
  { usd: Number.POSITIVE_INFINITY },
  { usd: "1" as unknown as number },
  { usd: null as unknown as number },
  { calls: "1" as unknown as number },
  { calls: 0 },
  { calls: 1.5 },
  { calls: -1 },
  { calls: Number.NaN },
  { usd: 1, calls: 0 },
  { usd: 0, calls: 1 },
])("throws a RangeError for the limits %j", (limits) => {
  expect(() => createBudget(limits)).toThrow(RangeError);
});

test("tells a text from a number in what it says of a limit", () => {
  const usd = "1" as unknown as number; // what callers without types hand in
  expect(() => createBudget({ usd })).toThrow('usd must be a number above 0, got "1"');
  expect(() => createBudget({ calls: usd })).toThrow('of at least 1, got "1"');
});

test("takes a limit that is undefined for none", () => {
  expect(() => createBudget({ usd: undefined, calls: 1 })).not.toThrow();
  expect(() => createBudget({ usd: 0.000001, calls: undefined, prices: undefined })).not.toThrow();
});
