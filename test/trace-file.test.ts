/** What a trace keeps of a run, live or replayed, and that it can be written whatever the run made. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { expect, test } from "vitest";
import type { Ask } from "../patterns/approve.ts";
import { chain } from "../patterns/chain.ts";
import { createLlm, type LlmCall } from "../patterns/llm-call.ts";
import { section } from "../patterns/section.ts";
import { observe, type RunEvent, step } from "../patterns/step.ts";
import { plain } from "../patterns/trace-file/plain.ts";
import { collectTrace, type TraceFile, type TraceStep } from "../patterns/trace-file.ts";
import type { Job } from "../runners/shared/job.ts";
import { factsOf, runJob } from "../runners/shared/perform.ts";
import { openSource } from "../runners/shared/source.ts";
import { ROOT } from "./shared/runner.ts";
import { held, scripted, withResolvers } from "./shared/scripted.ts";
import { fails, reply, startServer } from "./shared/server.ts";

/** Runs something under a trace; what it fails with is the trace's matter. */
async function traced(fn: () => unknown): Promise<TraceFile> {
  const trace = collectTrace();
  const result = await Promise.resolve(observe(trace.onEvent, fn)).catch(() => undefined);
  return trace.file({ origin: "live", result });
}

/** The trace of a runner's recording. */
async function replayed(name: string): Promise<TraceFile> {
  const file = join(ROOT, `runners/recordings/${name}.jsonl`);
  await using source = await openSource({ mode: "replay", file });
  const { job }: { job: Job } = await import(`../runners/${name}.ts`);
  const trace = collectTrace();
  const { result } = await runJob(job, job.input, source, {
    mode: "replay",
    left: () => Infinity,
    asking: (script: Ask) => script,
    suspension: undefined,
    signal: undefined,
    onEvent: trace.onEvent,
  });
  return trace.file({ ...factsOf(source, "replay"), result });
}

const end = ({ begin, ms }: { readonly begin: number; readonly ms: number }) => begin + ms;

function at(trace: TraceFile, path: string): TraceStep {
  const found = trace.steps.find((step) => step.path === path);
  if (!found) throw new Error(`There is no ${path} in ${trace.steps.map(({ path }) => path)}`);
  return found;
}

// A run as it happens

test("keeps each call with its request, reply, usage and cost", async () => {
  const server = await startServer(reply("Hello", { model: "claude-sonnet-5-5" }));
  const { llmCall: llm } = createLlm({ client: server.client() });
  const trace = await traced(() => step("greet", () => llm("Hi", { max_tokens: 9 })));
  expect(trace).toMatchObject({ format: "effective-agents/trace", version: 1, name: "greet" });
  expect(trace).toMatchObject({ origin: "live", result: "Hello" });
  expect(Date.parse(trace.startedAt)).toBeGreaterThan(Date.now() - 60_000);
  const [greet, ...others] = trace.steps;
  expect(others).toEqual([]);
  expect(greet).toMatchObject({ path: "greet", begin: 0, outcome: "ok", value: "Hello" });
  expect(greet?.calls).toMatchObject([
    {
      outcome: "ok",
      sent: true,
      estimated: false,
      request: { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
      reply: { type: "message", content: [{ text: "Hello" }] },
      model: "claude-sonnet-5-5",
      usage: { input_tokens: 12, output_tokens: 3 },
      usd: (12 * 2 + 3 * 10) / 1e6,
    },
  ]);
});

test("holds no key and no header", async () => {
  const server = await startServer(fails(400));
  const { llmCall: llm } = createLlm({ client: server.client({ apiKey: "sk-secret" }) });
  const text = JSON.stringify(await traced(() => step("greet", () => llm("Hi"))));
  expect(text).toContain("error 400");
  expect(text).not.toMatch(/sk-secret|header|authorization|content-type/i);
});

test("leaves the cost out where it isn't known", async () => {
  const server = await startServer(reply("Hello", { model: "qwen3" }));
  const { llmCall: llm } = createLlm({ client: server.client() });
  const trace = await traced(() => step("greet", () => llm("Hi")));
  expect(at(trace, "greet").calls[0]).toMatchObject({ model: "qwen3" });
  expect(at(trace, "greet").calls[0]).not.toHaveProperty("usd");
});

test("keeps what failed, what was cancelled and never sent, and the errors", async () => {
  const server = await startServer(fails(400));
  const { llmCall: llm } = createLlm({ client: server.client(), concurrency: 1 });
  const sections = {
    first: (_: string, context: { llm: LlmCall }) => context.llm("Hi"),
    second: (_: string, context: { llm: LlmCall }) => context.llm("Ho"),
    third: (_: string, context: { llm: LlmCall }) => context.llm("Hu"),
  };
  const trace = await traced(() => section("input", { sections, llm }));
  const [first, third] = [at(trace, "section/first"), at(trace, "section/third")];
  expect(first).toMatchObject({ outcome: "failed", error: { name: "BadRequestError" } });
  expect(first.calls).toMatchObject([{ outcome: "failed", sent: true }]);
  expect(third.calls).toMatchObject([{ outcome: "cancelled", sent: false }]);
  expect(at(trace, "section")).toMatchObject({ outcome: "failed" });
  expect(trace).not.toHaveProperty("result");
});

test("can be written while the run goes on, and says what isn't finished", async () => {
  const slow = held();
  const trace = collectTrace();
  const { llm } = scripted([slow.reply]);
  const run = observe(trace.onEvent, () => step("wait", () => llm("Hi")));
  const early = trace.file({ origin: "live" });
  expect(early.steps).toMatchObject([{ path: "wait", outcome: "unfinished" }]);
  slow.answer("there");
  await run;
  expect(trace.file({ origin: "live" }).steps).toMatchObject([{ outcome: "ok", value: "there" }]);
});

test("puts each step before those inside it, and siblings as they started", async () => {
  const inner = () => step("inner", () => 1);
  const trace = await traced(() =>
    step("run", async () => {
      const slow = withResolvers<void>();
      const first = step("b", async () => {
        await slow.promise;
        await inner();
      });
      await step("a", inner);
      slow.resolve();
      await first;
    }),
  );
  expect(trace.steps.map(({ path }) => path)).toEqual([
    "run",
    "run/b",
    "run/b/inner",
    "run/a",
    "run/a/inner",
  ]);
});

test("numbers a second run of one name", async () => {
  const trace = await traced(async () => {
    for (const value of [1, 2, 3]) await step("run", () => step("inner", () => value));
  });
  const values = trace.steps.map(({ path, value }) => [path, value]);
  expect(values).toEqual([
    ["run", 1],
    ["run/inner", 1],
    ["run#2", 2],
    ["run#2/inner", 2],
    ["run#3", 3],
    ["run#3/inner", 3],
  ]);
});

test("keeps what is observed within a step of the caller's own", async () => {
  const server = await startServer(reply("Hello"));
  const { llmCall: llm } = createLlm({ client: server.client() });
  const trace = await step("ticket[3]", () =>
    traced(async () => {
      await llm("Hi");
      await chain("input", { steps: [{ name: "shout", run: (text) => text.toUpperCase() }] });
    }),
  );
  expect(trace.steps.map(({ path, outcome }) => [path, outcome])).toEqual([
    ["ticket[3]", "ok"],
    ["ticket[3]/chain", "ok"],
    ["ticket[3]/chain/shout", "ok"],
  ]);
});

test("leaves no reader with what a step's list became later", () => {
  const trace = collectTrace();
  const messages = [{ role: "user", content: "Hi" }];
  const event = { path: "a", at: 1, kind: "call", type: "start" } as const;
  trace.onEvent({ ...event, input: { messages } });
  messages.push({ role: "user", content: "later" });
  expect(trace.steps()[0]?.calls[0]?.request).toEqual({
    messages: [{ role: "user", content: "Hi" }],
  });
});

// A run as it was recorded

test("has the recorded times of a replay, the same each time", async () => {
  const [one, other] = [await replayed("vote"), await replayed("vote")];
  const spans = ({ steps }: TraceFile) => steps.map(({ path, begin, ms }) => [path, begin, ms]);
  expect(spans(one)).toEqual(spans(other));
  const vote = at(one, "vote");
  expect(vote).toMatchObject({ begin: 0, outcome: "ok" });
  expect(vote.ms).toBeGreaterThan(4_000);
  expect(at(one, "vote/voter[6]").calls).toMatchObject([
    { outcome: "cancelled", estimated: true, sent: true },
  ]);
  expect(at(one, "vote/voter[1]").calls).toMatchObject([{ outcome: "ok", sent: true }]);
});

test("has a step last from the first recorded begin inside it to the last end", async () => {
  for (const name of ["orchestrate", "agent", "refund"]) {
    const { steps } = await replayed(name);
    for (const outer of steps) {
      const inside = steps.filter(({ path }) => path.startsWith(`${outer.path}/`));
      for (const span of [...inside, ...outer.calls]) {
        expect(span.begin).toBeGreaterThanOrEqual(outer.begin);
        expect(end(span)).toBeLessThanOrEqual(end(outer));
      }
    }
    const turns = steps.filter(({ path }) => /turn\[\d+\]$/.test(path));
    for (const [index, turn] of turns.slice(1).entries()) {
      expect(turn.begin).toBeGreaterThanOrEqual(end(turns[index] ?? turn));
    }
  }
});

test("times what goes on from a recording after it", () => {
  const { onEvent, steps } = collectTrace();
  const events: RunEvent[] = [];
  const add = (path: string, at: number, rest: object) =>
    events.push({ path, at, kind: "step", ...rest } as RunEvent);
  const recorded = { begin: 100, ms: 2_000, estimated: true };
  const live = { kind: "call", outcome: "ok", ms: 300 };
  add("run", 1_000, { type: "start" });
  for (const [path, at] of [["run/a", 1_000] as const, ["run/b", 1_005] as const]) {
    add(path, at, { type: "start" });
    add(path, at, { type: "start", kind: "call" });
  }
  add("run/a", 1_003, { type: "end", ...live, notes: { recorded } });
  add("run/a", 1_003, { type: "end", outcome: "ok", ms: 3 });
  add("run/b", 1_305, { type: "end", ...live, notes: { sent: true } });
  add("run/b", 1_305, { type: "end", outcome: "ok", ms: 300 });
  add("run", 1_305, { type: "end", outcome: "ok", ms: 305 });
  for (const event of events) onEvent(event);
  const [run, a, b] = steps();
  expect(a).toMatchObject({ path: "run/a", calls: [{ begin: 100, ms: 2_000, estimated: true }] });
  expect(b?.calls).toMatchObject([{ begin: 2_100, ms: 300, estimated: false }]);
  expect(end(run ?? { begin: 0, ms: 0 })).toBeGreaterThanOrEqual(2_400);
});

// The history of an agent

test.for(["agent", "subagent", "refund"])(
  "leaves out of %s what an earlier turn has sent, and says where it is",
  { timeout: 60_000 },
  async (name) => {
    const trace = await replayed(name);
    const tape = await readFile(join(ROOT, `runners/recordings/${name}.jsonl`), "utf8");
    const [, ...lines] = tape.trimEnd().split("\n");
    let leftOut = 0;
    for (const line of lines) {
      const { path, request } = JSON.parse(line);
      leftOut += at(trace, path).calls[0]?.messagesFrom?.count ?? 0;
      expect(messagesAt(trace, path), path).toEqual(request.body.messages);
    }
    expect(leftOut).toBeGreaterThan(2);
  },
);

/** The messages that the first call at a path sent. */
function messagesAt(trace: TraceFile, path: string): MessageParam[] {
  const { request, messagesFrom } = at(trace, path).calls[0] ?? {};
  const { messages } = request as { messages: MessageParam[] };
  const before = messagesFrom ? messagesAt(trace, messagesFrom.path) : [];
  return [...before.slice(0, messagesFrom?.count), ...messages];
}

test("shows a tool's step as the call that the model made", async () => {
  const { steps } = await replayed("refund");
  const tool = steps.find(({ toolCall }) => toolCall !== undefined);
  expect(tool?.path).toMatch(/^agent\/turn\[\d+\]\/tool\[\d+\]$/);
  expect(tool?.toolCall).toMatch(/^\w+\(\{"\w+": .*\}\)$/);
});

// What JSON can't hold

const circle: { self?: unknown } = {};
circle.self = circle;
const deep = Array.from({ length: 5_000 }).reduce((inside) => [inside], 1);

test.for<[string, unknown, unknown]>([
  ["a bigint", BigInt(7), "7n"],
  ["no number", [Number.NaN, Number.POSITIVE_INFINITY], ["NaN", "Infinity"]],
  ["a function", { run: function go() {} }, { run: "[function go]" }],
  ["a symbol", Symbol("a"), "Symbol(a)"],
  ["a circle", circle, { self: "[circular]" }],
  ["one object twice", Object(((one) => ({ a: one, b: one }))({})), { a: {}, b: {} }],
  ["an error", { error: new RangeError("no") }, { error: { name: "RangeError", message: "no" } }],
  ["a map", new Map([["a", new Set([1])]]), [["a", [1]]]],
  ["bytes", new Uint8Array(12), "[Uint8Array of 12 bytes]"],
  ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["nothing", { a: undefined, b: [undefined] }, { b: [null] }],
  ["a hole", Array.of<unknown>().concat(new Array(1), 1), [null, 1]],
  [
    "a key of the prototype's",
    JSON.parse('{"__proto__":{"a":1}}'),
    JSON.parse('{"__proto__":{"a":1}}'),
  ],
])("makes %s one that it can", ([, value, copied]) => {
  const copy = plain(value);
  expect(copy).toEqual(copied);
  expect(JSON.parse(JSON.stringify(copy))).toEqual(copied);
});

test("is written whatever a step ends with", async () => {
  const hostile = {
    get broken() {
      throw new Error("no getter");
    },
  };
  const gone = Proxy.revocable({}, {});
  gone.revoke();
  for (const value of [hostile, gone.proxy, deep, circle, BigInt(7)]) {
    const trace = await traced(() => step("run", () => ({ value })));
    expect(JSON.parse(JSON.stringify(trace))).toEqual(trace);
  }
  for (const thrown of ["words", undefined, BigInt(7), circle, { a: 1 }]) {
    const trace = await traced(() => step("run", () => Promise.reject(thrown)));
    expect(at(trace, "run")).toMatchObject({ outcome: "failed", error: { name: "Error" } });
    expect(JSON.parse(JSON.stringify(trace))).toEqual(trace);
  }
});
