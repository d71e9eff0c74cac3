/** A budget around patterns and recordings: apart from its own tests, which are copied without those. */
import { RateLimitError } from "@anthropic-ai/sdk";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { expect, test, vi } from "vitest";
import { chain } from "../patterns/chain.ts";
import type { Prices } from "../patterns/cost.ts";
import { BudgetError, LlmOutputError } from "../patterns/errors.ts";
import { type BudgetOptions, createBudget } from "../patterns/layers/budget.ts";
import { createLlm, type Layer } from "../patterns/llm-call.ts";
import { openRecording, recordedClient } from "../patterns/recording.ts";
import { section } from "../patterns/section.ts";
import { step } from "../patterns/step.ts";
import { vote } from "../patterns/vote.ts";
import {
  type Answer,
  fails,
  hold,
  lose,
  message,
  raw,
  rejection,
  reply,
  startServer,
} from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

/** An output token costs a dollar and the input nothing, so that all sums are exact. */
const PRICES: Prices = new Map([["m", { input: 0, output: 1_000_000, source: "test" }]]);
const NONE = { usd: 0, calls: 0 };

/** A door with a budget over the real SDK and a local server. */
async function openServer(
  limits: BudgetOptions,
  answers: [Answer, ...Answer[]],
  { outside = [], inside = [] }: { outside?: readonly Layer[]; inside?: readonly Layer[] } = {},
) {
  const server = await startServer(...answers);
  const budget = createBudget({ prices: PRICES, ...limits });
  const { llmCall } = createLlm({
    client: server.client(),
    model: "m",
    max_tokens: 10,
    layers: [...outside, budget.layer, ...inside],
  });
  return { server, budget, llmCall };
}

/** The replies' usage, as `reply` takes it. */
function usage(output_tokens: number) {
  return { model: "m", usage: { input_tokens: 5, output_tokens } };
}

test("a call that a sibling's HTTP error cancels may be billed, whatever that one was", async () => {
  const { server, budget, llmCall } = await openServer({ usd: 25 }, [hold, fails(400)]);
  const error = await rejection(
    section("Hi", {
      llm: llmCall,
      sections: {
        slow: (text, { llm }) => llm(text),
        bad: async (text, { llm }) => {
          await server.received(1);
          return llm(text);
        },
      },
    }),
  );
  expect(error).toMatchObject({ status: 400 });
  expect([budget.spent(), budget.reserved()]).toEqual([NONE, NONE]);
  expect(budget.unsettled()).toEqual({ usd: 10, calls: 1 });
});

test("spends on a recorded run what it costs, and nothing on its replay", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("Yes", usage(4)));
  for (const mode of ["record", "replay"] as const) {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 20, prices: PRICES });
    const llm = createLlm({ client, model: "m", max_tokens: 10, layers: [budget.layer] });
    expect(await llm.llmCall("Hi")).toBe("Yes");
    expect(budget.spent()).toEqual(mode === "record" ? { usd: 4, calls: 1 } : NONE);
    expect(budget.unsettled()).toEqual(NONE);
  }
});

test("is shared by nested patterns, which return what they have when it ends", async () => {
  const { server, budget, llmCall } = await openServer({ calls: 3 }, [reply("Yes", usage(2))]);
  const result = await section("diff", {
    llm: llmCall,
    sections: {
      short: (text, { llm }) => llm(`Review: ${text}`),
      long: (text, { llm, signal }) =>
        chain(text, {
          llm,
          signal,
          steps: ["a", "b", "c"].map((name) => ({ name, run: (text, { llm }) => llm(text) })),
        }),
    },
  });
  expect(server.requests).toHaveLength(3);
  expect(budget.spent()).toEqual({ usd: 6, calls: 3 });
  expect(result.outputs).toMatchObject({
    short: "Yes",
    long: { status: "budget", step: "c", outputs: { a: "Yes", b: "Yes" } },
  });
});

const YES = reply("<vote>yes</vote>", usage(2));

test.for<readonly [string, number, BudgetOptions]>([
  ["a slot", 1, { usd: 100, calls: 9 }],
  ["the budget", 8, { usd: 10 }],
])(
  "a voter that waits for %s when the vote is decided isn't sent, and costs nothing",
  async ([, concurrency, limits]) => {
    const server = await startServer(YES);
    const budget = createBudget({ prices: PRICES, ...limits });
    const settings = { client: server.client(), model: "m", max_tokens: 6, concurrency };
    const { llmCall } = createLlm({ ...settings, layers: [budget.layer] });
    const result = await vote("Well?", { llm: llmCall, voters: 3 });
    expect(result).toMatchObject({ status: "decided", winner: "yes" });
    expect(result.ballots[2]).toEqual({ status: "cancelled" });
    expect(server.requests).toHaveLength(2);
    expect([budget.spent(), budget.unsettled()]).toEqual([{ usd: 4, calls: 2 }, NONE]);
  },
);

/** Sends a call that fails once more. */
const retry: Layer = (next) => (params, call) => next(params, call).catch(() => next(params, call));

/** Has each call answered twice, and takes the second answer. */
const again: Layer = (next) => async (params, call) => {
  await next(params, call);
  return next(params, call);
};

test("counts a call that goes out behind one from the recording, in the same step", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("Yes", usage(4)));
  const results: unknown[] = [];
  for (const layers of [[], [again]]) {
    await using recording = await openRecording(file, { mode: "resume" });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 30, prices: PRICES });
    const all = [...layers, budget.layer, recording.layer];
    await createLlm({ client, model: "m", max_tokens: 10, layers: all }).llmCall("Hi");
    results.push(budget.spent());
  }
  expect(results).toEqual([
    { usd: 4, calls: 1 },
    { usd: 4, calls: 1 },
  ]);
  expect(server.requests).toHaveLength(2);
});

test("has no call go out for nothing behind one that did, in the same step", async () => {
  const refused = new BudgetError("no more");
  const once: Layer = (next) => {
    let made = 0;
    return async (params, call) => {
      made += 1;
      if (made > 1) throw refused;
      return next(params, call);
    };
  };
  const around = { outside: [again], inside: [once] };
  const { budget, llmCall } = await openServer({ usd: 30 }, [reply("Yes", usage(4))], around);
  expect(await rejection(llmCall("Hi"))).toBe(refused);
  expect([budget.spent(), budget.unsettled()]).toEqual([{ usd: 4, calls: 1 }, NONE]);
});

test.for<readonly [string, Error]>([
  ["a HaltError", new BudgetError("no more")],
  ["an error with a status", Object.assign(new Error("Unprocessable"), { status: 422 })],
])("counts a paid reply at what it did cost when a layer then ends with %s", async ([, error]) => {
  const judge: Layer = (next) => async (params, call) => {
    await next(params, call);
    throw error;
  };
  const inside = [judge];
  const { budget, llmCall } = await openServer({ usd: 30 }, [reply("Yes", usage(4))], { inside });
  expect(await rejection(llmCall("Hi"))).toBe(error);
  expect([budget.spent(), budget.unsettled()]).toEqual([{ usd: 4, calls: 1 }, NONE]);
});

test("keeps what a stream may have cost when its reader throws an error with a status", async () => {
  const { budget, llmCall } = await openServer({ usd: 30 }, [reply("Yes", usage(4))]);
  const error = Object.assign(new Error("Unprocessable"), { status: 422 });
  const onText = () => {
    throw error;
  };
  expect(await rejection(llmCall("Hi", { onText }))).toBe(error);
  expect([budget.spent(), budget.unsettled()]).toEqual([NONE, { usd: 10, calls: 1 }]);
});

test("keeps what a second attempt may have cost, behind one that wasn't billed", async () => {
  const inside = [retry];
  const { server, budget, llmCall } = await openServer({ usd: 30 }, [fails(529), lose], { inside });
  await rejection(llmCall("Hi"));
  expect(server.requests).toHaveLength(2);
  expect([budget.spent(), budget.unsettled()]).toEqual([NONE, { usd: 10, calls: 1 }]);
});

test.for<readonly [string, [Answer, Answer], Error | undefined]>([
  ["answered", [lose, reply("Yes", usage(4))], undefined],
  ["refused", [lose, fails(429)], new RateLimitError(429, undefined, "no", new Headers())],
])("keeps what a lost attempt may have cost, behind which the next one was %s", async (row) => {
  const [, answers, error] = row;
  const { server, budget, llmCall } = await openServer({ usd: 30 }, answers, { inside: [retry] });
  const outcome = await llmCall("Hi").catch((thrown) => thrown);
  if (error) expect(outcome).toBeInstanceOf(error.constructor);
  else expect(outcome).toBe("Yes");
  expect(server.requests).toHaveLength(2);
  expect(budget.spent()).toEqual(error ? NONE : { usd: 4, calls: 1 });
  expect(budget.unsettled()).toEqual({ usd: 10, calls: 1 });
});

/** Has each request in a step of its own, as a layer may that wants to see it in a trace. */
const named: Layer = (next) => (params, call) => step("attempt", () => next(params, call));
/** Sends each call twice at once, and takes what comes first. */
const race: Layer = (next) => (params, call) =>
  Promise.any([next(params, call), next(params, call)]);

test("counts a request that a layer makes in a step of its own", async () => {
  const inside = [retry, named];
  const { server, budget, llmCall } = await openServer({ usd: 30 }, [lose, lose], { inside });
  await rejection(llmCall("Hi"));
  expect(server.requests).toHaveLength(2);
  expect([budget.spent(), budget.unsettled()]).toEqual([NONE, { usd: 20, calls: 2 }]);
});

test("counts a request once that passes a budget twice, with a step in between", async () => {
  const server = await startServer(reply("Yes", usage(4)));
  const budget = createBudget({ calls: 9, prices: PRICES });
  const layers = [budget.layer, named, budget.layer];
  const { llmCall } = createLlm({ client: server.client(), model: "m", max_tokens: 10, layers });
  await llmCall("Hi");
  expect([budget.spent(), budget.unsettled()]).toEqual([{ usd: 4, calls: 1 }, NONE]);
});

test.for<readonly [string, readonly Layer[]]>([
  ["as it is", []],
  ["in a step of its own", [named]],
])("spends nothing on a replay whose layer sends it %s", async ([, inside]) => {
  const file = await tapeFile();
  for (const mode of ["record", "replay"] as const) {
    const server = await startServer(reply("Yes", usage(4)));
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 30, prices: PRICES });
    const layers = [budget.layer, ...inside];
    await createLlm({ client, model: "m", max_tokens: 10, layers }).llmCall("Hi");
    const spent = mode === "record" ? { usd: 4, calls: 1 } : NONE;
    expect([budget.spent(), budget.unsettled()]).toEqual([spent, NONE]);
  }
});

test("spends nothing on a replayed page in place of an answer", async () => {
  const file = await tapeFile();
  const server = await startServer(raw("<html>", {}));
  for (const mode of ["record", "replay"] as const) {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 30, prices: PRICES });
    const door = createLlm({ client, model: "m", max_tokens: 10, layers: [budget.layer] });
    expect(await rejection(door.llmCall("Hi"))).toBeInstanceOf(LlmOutputError);
    const unsettled = mode === "record" ? { usd: 10, calls: 1 } : NONE;
    expect([budget.spent(), budget.unsettled()]).toEqual([NONE, unsettled]);
  }
});

test("counts what goes out live beside the same call's replay", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("Yes", usage(4)));
  for (const layers of [[], [race]]) {
    await using recording = await openRecording(file, { mode: "resume" });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 30, prices: PRICES });
    const all = [...layers, budget.layer];
    await createLlm({ client, model: "m", max_tokens: 10, layers: all }).llmCall("Hi");
    await vi.waitFor(() => expect(budget.reserved()).toEqual(NONE));
    expect(budget.spent()).toEqual({ usd: 4, calls: 1 });
  }
  expect(server.requests).toHaveLength(2);
});

test("keeps a request that is lost while another one of the same call waits for a slot", async () => {
  const server = await startServer(lose, reply("Yes", usage(4)));
  const budget = createBudget({ usd: 30, prices: PRICES });
  const settings = { client: server.client(), model: "m", max_tokens: 10, concurrency: 1 };
  const { llmCall } = createLlm({ ...settings, layers: [race, budget.layer] });
  expect(await llmCall("Hi")).toBe("Yes");
  expect(server.requests).toHaveLength(2);
  expect(budget.spent()).toEqual({ usd: 4, calls: 1 });
  expect(budget.unsettled()).toEqual({ usd: 10, calls: 1 });
});

test("counts a request that goes out when its call has been answered already", async () => {
  const server = await startServer(reply("Yes", usage(4)));
  const budget = createBudget({ usd: 30, prices: PRICES });
  const settings = { client: server.client(), model: "m", max_tokens: 10, concurrency: 1 };
  const { llmCall } = createLlm({ ...settings, layers: [budget.layer, race] });
  await llmCall("Hi");
  await server.received(2);
  await vi.waitFor(() => expect(budget.unsettled()).toEqual({ usd: 10, calls: 1 }));
  expect(budget.spent()).toEqual({ usd: 4, calls: 1 });
});

test("spends nothing on what a layer answers by itself", async () => {
  let kept: ReturnType<ReturnType<Layer>> | undefined;
  const cache: Layer = (next) => (params, call) => {
    kept ??= next(params, call);
    return kept;
  };
  const { server, budget, llmCall } = await openServer({ calls: 2 }, [reply("Yes", usage(4))], {
    inside: [cache],
  });
  for (let i = 0; i < 5; i += 1) expect(await llmCall("Hi")).toBe("Yes");
  expect(server.requests).toHaveLength(1);
  expect(budget.spent()).toEqual({ usd: 4, calls: 1 });
});

test("keeps what a lost request may have cost, whatever a layer then answers by itself", async () => {
  const old: Message = { ...message("Old"), model: "m" };
  Object.assign(old.usage, { input_tokens: 0, output_tokens: 0 });
  const stale: Layer = (next) => (params, call) => next(params, call).catch(() => old);
  const { server, budget, llmCall } = await openServer({ usd: 25 }, [lose], { inside: [stale] });
  for (let i = 0; i < 2; i += 1) expect(await llmCall("Hi")).toBe("Old");
  expect(await rejection(llmCall("Hi"))).toBeInstanceOf(BudgetError);
  expect(server.requests).toHaveLength(2);
  expect([budget.spent(), budget.unsettled()]).toEqual([NONE, { usd: 20, calls: 2 }]);
});

test("counts what a queue sends that a layer keeps, though each is sent at another one's end", async () => {
  const jobs: (() => Promise<unknown>)[] = [];
  let busy = false;
  const pump = () => {
    const job = busy ? undefined : jobs.shift();
    if (!job) return;
    busy = true;
    void job().finally(() => {
      busy = false;
      pump();
    });
  };
  const queue: Layer = (next) => (params, call) =>
    new Promise((resolve, reject) => {
      jobs.push(() => next(params, call).then(resolve, reject));
      pump();
    });
  const { budget, llmCall } = await openServer({ usd: 100 }, [reply("Yes", usage(4))], {
    inside: [queue],
  });
  await Promise.all(Array.from({ length: 5 }, () => llmCall("Hi")));
  expect([budget.spent(), budget.unsettled()]).toEqual([{ usd: 20, calls: 5 }, NONE]);
  expect(budget.reserved()).toEqual(NONE);
});

test("lets a call wait that a reader of a stream starts, and doesn't wait for", async () => {
  const { budget, llmCall } = await openServer({ usd: 12 }, [reply("Yes", usage(1))]);
  let second: Promise<string> | undefined;
  const onText = () => {
    second ??= llmCall("And?");
  };
  expect(await llmCall("Hi", { onText })).toBe("Yes");
  expect(await second).toBe("Yes");
  expect(budget.spent()).toEqual({ usd: 2, calls: 2 });
});
