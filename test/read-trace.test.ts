/** Reading a file with a run in it: our own format, OpenTelemetry's, and all that is neither. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TraceFile } from "../patterns/trace-file.ts";
import { FormatError, readTraces } from "../runners/gallery/read-trace.ts";
import { ROOT } from "./shared/runner.ts";
import { onlyTrace } from "./shared/traces.ts";

const CALL = {
  begin: 1,
  ms: 20,
  outcome: "ok",
  estimated: false,
  sent: true,
  request: { messages: [{ role: "user", content: "Hi" }] },
  reply: { content: [{ type: "text", text: "Hello" }] },
  model: "claude-sonnet-5-5",
  usage: { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: null },
  usd: 0.1,
};

const TRACE = {
  format: "effective-agents/trace",
  version: 1,
  name: "route",
  title: "a ticket",
  origin: "live",
  startedAt: "2026-12-01T10:00:00.000Z",
  steps: [
    { path: "route", begin: 0, ms: 30, outcome: "ok", value: { label: "bug" }, calls: [] },
    { path: "route/classify", begin: 1, ms: 20, outcome: "ok", value: "bug", calls: [CALL] },
    {
      path: "route/bug",
      begin: 21,
      ms: 9,
      outcome: "failed",
      error: { name: "Error", message: "no" },
      toolCall: "f({})",
      calls: [{ ...CALL, begin: 21, ms: 9, messagesFrom: { path: "route/classify", count: 1 } }],
    },
  ],
  result: { route: "bug" },
};

/** The trace with something else at a place, such as `steps.0.path`. */
function withField(place: string, value: unknown): string {
  const copy: unknown = structuredClone(TRACE);
  const keys = place.split(".");
  const last = keys.pop() ?? "";
  // Any place may be asked for.
  let inside = copy as Record<string, unknown>;
  for (const key of keys) inside = inside[key] as Record<string, unknown>;
  inside[last] = value;
  return JSON.stringify(copy);
}

function read(value: unknown): TraceFile {
  return onlyTrace(JSON.stringify(value));
}

function problemOf(text: string): string {
  try {
    readTraces(text);
  } catch (error) {
    if (error instanceof FormatError) return error.message;
    throw error;
  }
  return "none";
}

// Our own format

test("reads a trace as it was written", () => {
  expect(read(TRACE)).toEqual(TRACE);
  expect(onlyTrace(`\uFEFF${JSON.stringify(TRACE, undefined, 2)}\n`)).toEqual(TRACE);
});

test("skips fields that it doesn't know", () => {
  const [first] = TRACE.steps;
  expect(read({ ...TRACE, later: 1, steps: [{ ...first, later: 1 }] }).steps).toHaveLength(1);
});

test("puts steps that come in another order into that of a tree", () => {
  const { steps } = read({ ...TRACE, steps: TRACE.steps.toReversed() });
  expect(steps.map(({ path }) => path)).toEqual(["route", "route/bug", "route/classify"]);
});

test.for<[string, unknown, string]>([
  [
    "version",
    2,
    "The trace has version 2, and version 1 is read here: this gallery is older than the file, so update it",
  ],
  ["version", "1", 'The trace has version "1", and version 1 is read here'],
  ["version", undefined, "The trace has version undefined, and version 1 is read here"],
  ["name", undefined, "name must be a text, got nothing"],
  ["origin", "dream", 'origin must be one of api, transcribed, scripted, live, got "dream"'],
  ["startedAt", "soon", 'startedAt must be a date, got "soon"'],
  ["steps", {}, "steps must be a list, got {}"],
  ["steps", undefined, "steps must be a list, got nothing"],
  ["steps.1", null, "steps[1] must be an object, got null"],
  ["steps.1.path", "", 'steps[1].path must be a path of 1 to 100 names, got ""'],
  [
    "steps.1.path",
    "a/".repeat(100),
    `steps[1].path must be a path of 1 to 100 names, got "${"a/".repeat(19)}a`,
  ],
  ["steps.1.path", "route", 'steps[1].path is there twice: "route"'],
  ["steps.1.begin", "1", 'steps[1].begin must be a number from 0 to 1000000000000, got "1"'],
  ["steps.1.begin", -1, "steps[1].begin must be a number from 0 to 1000000000000, got -1"],
  ["steps.1.ms", -1, "steps[1].ms must be a number from 0 to 1000000000000, got -1"],
  ["steps.1.ms", 1e308, "steps[1].ms must be a number from 0 to 1000000000000, got 1e+308"],
  [
    "steps.1.outcome",
    "fine",
    'steps[1].outcome must be one of ok, failed, cancelled, unfinished, got "fine"',
  ],
  ["steps.1.calls", undefined, "steps[1].calls must be a list, got nothing"],
  ["steps.1.calls.0.sent", undefined, "steps[1].calls[0].sent must be true or false, got nothing"],
  [
    "steps.1.calls.0.usage.input_tokens",
    "9",
    'steps[1].calls[0].usage.input_tokens must be a count, got "9"',
  ],
  [
    "steps.1.calls.0.usd",
    Number.NaN,
    "steps[1].calls[0].usd must be a number from 0 to 1000000000000, got null",
  ],
  ["steps.2.error", "no", 'steps[2].error must be an object, got "no"'],
  ["steps.2.toolCall", 1, "steps[2].toolCall must be a text, got 1"],
  [
    "steps.2.calls.0.messagesFrom.count",
    1.5,
    "steps[2].calls[0].messagesFrom.count must be a count, got 1.5",
  ],
])("with %s %j says: %s", ([place, value, message]) => {
  expect(problemOf(withField(place, value))).toBe(message);
});

test("reads any JSON or says what is wrong with it", () => {
  const places = fc
    .constantFrom(
      "format version name title origin startedAt steps result steps.0 steps.1.path steps.1.begin steps.1.ms steps.1.outcome steps.1.value steps.1.error steps.1.calls steps.1.calls.0 steps.1.calls.0.request steps.1.calls.0.reply steps.1.calls.0.usage steps.2.calls.0.messagesFrom".split(
        " ",
      ),
    )
    .chain((all) => fc.constantFrom(...all));
  fc.assert(
    fc.property(places, fc.jsonValue(), (place, value) => {
      problemOf(withField(place, value));
    }),
  );
  fc.assert(fc.property(fc.json(), (text) => problemOf(text) !== "none"));
  fc.assert(fc.property(fc.string(), (text) => problemOf(text) !== "none"));
});

test("lets nothing be deeper than a page can show", () => {
  const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
  const { steps } = onlyTrace(withField("steps.1.value", "deep").replace('"deep"', deep));
  expect(JSON.stringify(steps[1]?.value)).toContain("[deeper]");
});

// What is none

test.for<[string, string, RegExp]>([
  [
    "an empty file",
    " \n",
    /^The file is empty. npm run live route -- --trace run.json makes a trace$/,
  ],
  ["a text", "# Notes\n", /^The file isn't JSON: /],
  ["half a trace", JSON.stringify(TRACE).slice(0, 200), /^The file isn't JSON: /],
  ["a file of bytes", "\u007fELF\0\u0001", /^The file is no text in UTF-8$/],
  [
    "lines of which one is torn",
    `{"resourceSpans":[]}\n{"resou`,
    /^The file isn't JSON in line 2: Unterminated/,
  ],
  ["a list", "[1, 2]", /^The file holds JSON, but neither /],
  [
    "a package.json",
    '{"name":"a"}',
    /^The file holds JSON, but neither a trace nor an OTLP export. /,
  ],
  [
    "what --json prints",
    '{"pattern":"route","calls":[],"totals":{}}',
    /^This is what --json prints, /,
  ],
  [
    "a suspended run",
    '{"asked":{},"run":{}}',
    /^This is a suspended run: .*--resume <file> --answer yes/,
  ],
  ["a trace without steps", JSON.stringify({ ...TRACE, steps: [] }), /^The trace holds no steps$/],
  [
    "two traces, one of them wrong",
    JSON.stringify([TRACE, { ...TRACE, version: 7 }]),
    /^The trace has version 7, /,
  ],
  [
    "a trace and something else",
    JSON.stringify([TRACE, 3]),
    /^The file holds JSON, but neither .* That is value 2 of 2$/,
  ],
  ["an empty export", '{"resourceSpans":[]}', /^The export holds no spans$/],
])("says of %s what it is", ([, text, message]) => {
  expect(problemOf(text)).toMatch(message);
  expect(problemOf(text)).not.toContain("\n");
});

test("says of a recording how a trace is made of it", async () => {
  const text = await readFile(join(ROOT, "runners/recordings/route.jsonl"), "utf8");
  expect(problemOf(text)).toMatch(
    /^This is a recording: .*--recording <file> --trace run.json makes/,
  );
});

// OpenTelemetry

const EXPORT = await readFile(join(ROOT, "test/shared/vote.otlp.json"), "utf8");

test("reads what OpenTelemetry's exporter writes of a run, prompts and replies too", () => {
  const { name, startedAt, steps } = onlyTrace(EXPORT);
  expect([name, startedAt.slice(0, 10)]).toEqual(["vote", "2026-12-02"]);
  expect(steps.map(({ path, outcome, calls }) => [path, outcome, calls.length])).toEqual([
    ["vote", "ok", 0],
    ...[0, 1, 2, 3].map((index) => [`vote/voter[${index}]`, "ok", 1]),
    ...[4, 5, 6].map((index) => [`vote/voter[${index}]`, "cancelled", 1]),
  ]);
  const [call] = steps[2]?.calls ?? [];
  expect(call).toMatchObject({
    outcome: "ok",
    model: "claude-sonnet-5-5",
    usage: { input_tokens: 241, output_tokens: 11, cache_read_input_tokens: 0 },
    usd: (241 * 2 + 11 * 10) / 1e6,
    request: { messages: [{ role: "user", content: [{ type: "text" }] }] },
    reply: {
      content: [{ type: "text", text: "<vote>yes</vote>" }],
      stop_reason: "end_turn",
    },
  });
  expect(steps[0]?.begin).toBe(0);
});

test("reads several traces of ours, one a line or in a list", () => {
  const second = { ...TRACE, title: "another ticket" };
  const traces = [TRACE, second];
  expect(readTraces(JSON.stringify(traces))).toEqual(traces);
  expect(readTraces(traces.map((trace) => JSON.stringify(trace)).join("\n"))).toEqual(traces);
});

test.for<[string, (...exports: string[]) => string]>([
  ["one a line, as the collector's file exporter writes them", (a, b) => `${a}\n${b}\n`],
  ["in a list", (a, b) => `[${a},\n${b}]`],
])("reads several exports of one trace as one, %s, and of two traces as two", ([, join]) => {
  const line = JSON.stringify(JSON.parse(EXPORT));
  const later = line.replaceAll('panId":"', 'panId":"f');
  const { steps } = onlyTrace(join(line, later));
  const roots = steps.filter(({ path }) => !path.includes("/")).map(({ path }) => path);
  expect(roots).toEqual(["vote", "vote#2"]);
  expect(steps).toHaveLength(16);
  const other = line.replaceAll('"traceId":"', '"traceId":"f');
  const [first, second, ...others] = readTraces(join(line, other));
  expect(first).toEqual(onlyTrace(line));
  expect(second).toEqual(first);
  expect(others).toEqual([]);
});

function spans(...list: readonly object[]): string {
  const filled = list.map((span, index) => ({
    traceId: "t",
    spanId: `s${index}`,
    startTimeUnixNano: `${1_764_000_000_000_000_000n + BigInt(index) * 1_000_000n}`,
    endTimeUnixNano: "1764000000100000000",
    ...span,
  }));
  return JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: filled }] }] });
}

const attributes = (values: Readonly<Record<string, string | number>>) =>
  Object.entries(values).map(([key, value]) => ({
    key,
    value: typeof value === "string" ? { stringValue: value } : { intValue: String(value) },
  }));

test("makes a tree of spans that aren't ours, by their parents, with names that a path can hold", () => {
  const { steps } = onlyTrace(
    spans(
      { name: "POST /tickets#new" },
      { name: "db", parentSpanId: "s0" },
      { name: "db", parentSpanId: "s0", status: { code: 2, message: "down" } },
      { name: "", parentSpanId: "s1" },
      { name: "ai.generate", parentSpanId: "s0", endTimeUnixNano: "0" },
      {
        name: "chat gpt",
        parentSpanId: "s4",
        attributes: attributes({
          "gen_ai.operation.name": "chat",
          "gen_ai.request.model": "gpt",
          "gen_ai.usage.input_tokens": 7,
          "gen_ai.usage.output_tokens": 2,
        }),
      },
      { name: "HTTP", parentSpanId: "s5" },
      { name: "orphan", parentSpanId: "elsewhere" },
    ),
  );
  expect(steps).toMatchObject([
    { path: "POST tickets new", outcome: "ok", ms: 100, calls: [] },
    { path: "POST tickets new/db", begin: 1 },
    { path: "POST tickets new/db/span" },
    { path: "POST tickets new/db#2", outcome: "failed", error: { message: "down" } },
    {
      path: "POST tickets new/ai.generate",
      outcome: "unfinished",
      calls: [{ model: "gpt", usage: { input_tokens: 7, output_tokens: 2 } }],
    },
    { path: "orphan" },
  ]);
  expect(steps[4]?.calls[0]).not.toHaveProperty("usd");
});

test("takes a model call that is in no step for one", () => {
  const model = attributes({ "gen_ai.request.model": "claude-opus-5-5" });
  const { steps } = onlyTrace(spans({ name: "anthropic.messages.create", attributes: model }));
  expect(steps).toMatchObject([{ path: "anthropic.messages.create", calls: [{ sent: true }] }]);
});

test("takes what came from the cache and went into it out of the input, which holds both there", () => {
  const counts = attributes({
    "gen_ai.request.model": "claude-opus-5-5",
    "gen_ai.usage.input_tokens": 1_000,
    "gen_ai.usage.output_tokens": 10,
    "gen_ai.usage.cache_read.input_tokens": 600,
    "gen_ai.usage.cache_write.input_tokens": 300,
  });
  const { steps } = onlyTrace(spans({ name: "anthropic.messages.create", attributes: counts }));
  const usage = {
    input_tokens: 100,
    output_tokens: 10,
    cache_read_input_tokens: 600,
    cache_creation_input_tokens: 300,
  };
  expect(steps[0]?.calls).toMatchObject([{ usage }]);
  // 100 at 4 dollars a million, 600 at 0.2, 300 at 5, and 10 at 20.
  expect(steps[0]?.calls[0]?.usd).toBeCloseTo(0.00222, 8);
});

test("says what is wrong with an export, and hangs on none", () => {
  expect(problemOf(spans({ name: "a", startTimeUnixNano: "soon" }))).toBe(
    'The export\'s span "a" has no name, spanId or startTimeUnixNano',
  );
  expect(
    problemOf(spans({ name: "a", parentSpanId: "s1" }, { name: "b", parentSpanId: "s0" })),
  ).toBe("The export holds no span that is outermost");
  expect(onlyTrace(spans({ name: "a", parentSpanId: "s0" })).steps).toHaveLength(1);
  const chain = Array.from({ length: 50_000 }, (_, i) => ({
    name: "a",
    parentSpanId: `s${i - 1}`,
  }));
  expect(onlyTrace(spans(...chain)).steps).toHaveLength(50_000);
});

// Where it runs

test("needs nothing of Node, so that a page can read a file too", async () => {
  const { outputFiles } = await build({
    stdin: { contents: 'export * from "./runners/gallery/read-trace.ts"', resolveDir: ROOT },
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
  });
  const [script] = outputFiles;
  expect(script?.text).not.toMatch(/node:|require\(/);
  expect(script?.text.length).toBeLessThan(40_000);
});
