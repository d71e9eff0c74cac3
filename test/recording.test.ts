/**
 * Recordings: what is written, what a replay finds again, and what it says when it doesn't.
 *
 * From effective-agents 0.1.0: test/recording.test.ts
 */
import { spawnSync } from "node:child_process";
import { chmod, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type Anthropic from "@anthropic-ai/sdk";
import {
  AnthropicError,
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  APIUserAbortError,
  type ClientOptions,
  type Middleware,
} from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { expect, onTestFinished, test, vi } from "vitest";
import { LlmOutputError, RecordingError } from "../patterns/errors.ts";
import { createLlm } from "../patterns/llm-call.ts";
import {
  openRecording,
  type RecordingMode,
  type RecordingOptions,
  recordedClient,
} from "../patterns/recording.ts";
import { observe, step } from "../patterns/step.ts";
import {
  type Answer,
  cut,
  event,
  eventsOf,
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
import { tapeFile } from "./shared/tape.ts";

const KEY = "sk-ant-TEST-secret";

type Extra = ClientOptions & Pick<RecordingOptions, "origin"> & { readonly mode?: RecordingMode };

/** Opens a recording in mode `record` or `resume`, with a client of a server that answers like this. */
async function live(
  file: string,
  answers: [Answer, ...Answer[]],
  { mode = "record", origin, ...rest }: Extra = {},
) {
  const server = await startServer(...answers);
  const recording = await openRecording(file, { mode, origin, quietMs: 30 });
  const options = { apiKey: KEY, baseURL: server.url, logLevel: "off", ...rest } as const;
  return { server, recording, client: recordedClient(recording, options) };
}

/** Records what `run` does. */
async function record<T>(
  file: string,
  answers: [Answer, ...Answer[]],
  run: (client: Anthropic) => Promise<T>,
  extra?: Extra,
) {
  const { server, recording, client } = await live(file, answers, extra);
  const result = await run(client);
  await recording.close();
  return { result, recording, calls: server.requests.length };
}

async function replay<T>(file: string, run: (client: Anthropic) => Promise<T>) {
  const recording = await openRecording(file, { mode: "replay", quietMs: 30 });
  const result = await run(recordedClient(recording, { logLevel: "off" }));
  return { result, recording };
}

interface Asked {
  readonly content: string;
  readonly system?: string;
  readonly max_tokens?: number;
  readonly model?: string;
}

const params = ({ content, ...rest }: Asked) => ({
  model: "claude-sonnet-5-5",
  max_tokens: 100,
  messages: [{ role: "user" as const, content }],
  ...rest,
});

function ask(client: Anthropic, asked: string | Asked): Promise<Anthropic.Message> {
  return client.messages.create(params(typeof asked === "string" ? { content: asked } : asked));
}

async function askText(client: Anthropic, asked: string | Asked): Promise<string> {
  const [block] = (await ask(client, asked)).content;
  return block?.type === "text" ? block.text : "";
}

async function linesOf(file: string) {
  const text = await readFile(file, "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Answers with these chunks, each on the wire by itself. */
const chunked =
  (chunks: readonly Uint8Array[], then: Answer = cut): Answer =>
  async (exchange) => {
    const { response } = exchange;
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const chunk of chunks) {
      await new Promise((resolve) => response.write(chunk, resolve));
    }
    then(exchange);
  };

// What is found

test("replays what it recorded, by path and request, without a server", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) =>
    Promise.all([0, 1, 2].map((i) => step(`voter[${i}]`, () => askText(client, "Yes or no?"))));
  const recorded = await record(file, [reply("yes"), reply("no"), reply("maybe")], run);
  const { result, recording } = await replay(file, run);
  expect(recorded.calls).toBe(3);
  expect(result.toSorted()).toEqual(["maybe", "no", "yes"]);
  expect(result).toEqual(recorded.result);
  expect(recording.unused()).toEqual([]);
});

test("keeps the whole reply, stop reason and usage too", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => ask(client, "Write a novel");
  const { result } = await record(file, [reply("Once", { stop_reason: "max_tokens" })], run);
  expect(result).toMatchObject({ stop_reason: "max_tokens", usage: { output_tokens: 3 } });
  expect((await replay(file, run)).result).toEqual(result);
});

test("writes a header, then a line a call in the order in which the calls ended", async () => {
  const file = await tapeFile();
  const { client, server, recording } = await live(file, [hold]);
  const a = step("a", () => ask(client, "A"));
  const first = await server.received(1);
  const b = step("b", () => ask(client, "B"));
  const second = await server.received(2);
  reply("b")(second);
  await b;
  reply("a")(first);
  await a;
  const [header, ...lines] = await linesOf(file);
  expect(header).toMatchObject({ version: 1, origin: "api" });
  expect(Date.parse(header.date)).toBeGreaterThan(0);
  expect(lines.map(({ path }) => path)).toEqual(["b", "a"]);
  expect(recording.calls.map(({ path }) => path)).toEqual(["b", "a"]);
  const [lineB, lineA] = lines;
  expect(lineA.begin).toBeLessThanOrEqual(lineB.begin);
  expect(lineA.begin + lineA.ms).toBeGreaterThanOrEqual(lineB.begin + lineB.ms);
});

test("has the line on disk before the caller gets the reply", async () => {
  const file = await tapeFile();
  await record(file, [reply("yes")], async (client) => {
    await step("vote", () => ask(client, "Yes or no?"));
    expect(await linesOf(file)).toHaveLength(2);
  });
});

test("has a stream's line on disk before the caller gets its last event", async () => {
  const file = await tapeFile();
  const events = eventsOf({ ...message("Hello") });
  let finish = () => {};
  const answer = chunked([Buffer.from(events.slice(0, -1).join(""))], ({ response }) => {
    finish = () => response.end(events.at(-1));
  });
  await record(file, [answer], async (client) => {
    const stream = await client.messages.create({ ...params({ content: "Hi" }), stream: true });
    const linesSeen = new Map<string, number>();
    for await (const { type } of stream) {
      linesSeen.set(type, (await linesOf(file)).length);
      if (type === "message_delta") finish();
    }
    expect(linesSeen.get("content_block_delta")).toBe(1);
    expect(linesSeen.get("message_stop")).toBe(2);
  });
});

test("uses several recordings under one path in order, each once", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) =>
    step("loop", async () => [await askText(client, "Go on"), await askText(client, "Go on")]);
  await record(file, [reply("one"), reply("two")], run);
  expect((await replay(file, run)).result).toEqual(["one", "two"]);
  const thrice = (client: Anthropic) =>
    step("loop", async () => [await run(client), await run(client)]);
  await expect(replay(file, thrice)).rejects.toThrow(
    /^loop\/loop is not in the recording, which has loop$/,
  );
  const again = (client: Anthropic) =>
    step("loop", async () => {
      for (let i = 0; i < 3; i++) await ask(client, "Go on");
    });
  await expect(replay(file, again)).rejects.toThrow(
    "loop was recorded 2 times, and is asked for again",
  );
});

test("identical calls under one path get the replies that they got, in whatever order they ended", async () => {
  const file = await tapeFile();
  const { client, server, recording } = await live(file, [hold], { maxRetries: 1 });
  const run = (client: Anthropic) =>
    Promise.all([1, 2, 3].map(() => askText(client.withOptions({ maxRetries: 1 }), "Same")));
  const running = run(client);
  const third = await server.received(3);
  const [first, second] = server.requests;
  if (!first || !second) throw new Error("three were received");
  reply("three")(third);
  fails(429, { "retry-after-ms": "1" })(second);
  reply("two, again")(await server.received(4));
  reply("one")(first);
  const recorded = await running;
  await recording.close();
  expect(recorded.toSorted()).toEqual(["one", "three", "two, again"]);
  for (let i = 0; i < 5; i++) expect((await replay(file, run)).result).toEqual(recorded);
});

test("records a 429 and the retry after it, and replays both without waiting out retry-after", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => step("call", () => askText(client, "Hi"));
  const answers: [Answer, ...Answer[]] = [fails(429, { "retry-after-ms": "2" }), reply("Hello")];
  expect((await record(file, answers, run)).calls).toBe(2);
  const [header, ...lines] = await linesOf(file);
  expect(lines.map(({ reply }) => reply.status)).toEqual([429, 200]);
  // As an API would have it: no test would last 30 s.
  lines[0].reply.headers = { "retry-after": "30" };
  const patient = await tapeFile([header, ...lines].map((line) => JSON.stringify(line)).join("\n"));
  const { result, recording } = await replay(patient, run);
  expect(result).toBe("Hello");
  expect(recording.unused()).toEqual([]);
});

test("replays an error with its status, its message and its retry-after", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => rejection(client.messages.create(params({ content: "Hi" })));
  const options = { maxRetries: 0 };
  const recorded = await record(file, [fails(529, { "retry-after": "7" })], run, options);
  const again = await replay(file, (client) => run(client.withOptions(options)));
  for (const error of [recorded.result, again.result]) {
    if (!(error instanceof APIError)) throw error;
    expect(error).toMatchObject({ status: 529, type: "overloaded_error" });
    expect(error.headers?.get("retry-after")).toBe("7");
  }
});

test("replays a tool runner's turns", async () => {
  const file = await tapeFile();
  const toolUse = { type: "tool_use", id: "toolu_1", name: "add", input: { a: 2, b: 3 } };
  const run = (client: Anthropic) => {
    const add = betaTool({
      name: "add",
      description: "Adds",
      inputSchema: {
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
      },
      run: ({ a, b }) => String(a + b),
    });
    const runner = client.beta.messages.toolRunner({
      ...params({ content: "2 + 3?" }),
      tools: [add],
      thread: false,
    });
    return step("agent", async () => await runner);
  };
  const answers: [Answer, ...Answer[]] = [
    reply([toolUse], { stop_reason: "tool_use" }),
    reply("5"),
  ];
  const recorded = await record(file, answers, run);
  expect(recorded.calls).toBe(2);
  const { result, recording } = await replay(file, run);
  expect(result.content).toEqual(
    [{ type: "text", text: "5", citations: null }].map((b) =>
      expect.objectContaining({ text: b.text }),
    ),
  );
  expect(recording.calls.map(({ path }) => path)).toEqual(["agent", "agent"]);
  expect(recording.unused()).toEqual([]);
});

test("records under no path too, outside of any step", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => askText(client, "Hi");
  await record(file, [reply("Hello")], run);
  expect((await replay(file, run)).result).toBe("Hello");
  await expect(replay(file, (client) => ask(client, "Ho"))).rejects.toThrow(
    "A call outside of any step has changed since it was recorded: messages[0].content, line 1",
  );
});

test("finds a call whatever its metadata, its routing and its keys' order", async () => {
  const file = await tapeFile();
  await record(file, [reply("Hello")], (client) =>
    client.messages.create({
      ...params({ content: "Hi" }),
      metadata: { user_id: "a" },
      service_tier: "auto",
      inference_geo: "eu",
      speed: "fast",
    }),
  );
  const { messages, ...rest } = params({ content: "Hi" });
  const { result } = await replay(file, (client) =>
    client.messages.create({ messages, ...rest, metadata: { user_id: "b" } }),
  );
  expect(result.content).toHaveLength(1);
});

// What isn't found

const SPAM = "You sort mail.\nIs the following spam? Answer yes or no.";

test.each<[string, Asked, Asked, string]>([
  [
    "a prompt",
    { content: `${SPAM}\nBuy now` },
    { content: `${SPAM}\nBuy later` },
    "messages[0].content, line 3:\n  recorded: Buy now\n  now:      Buy later",
  ],
  [
    "the system prompt",
    { content: "Hi", system: "v1" },
    { content: "Hi", system: "v2" },
    "system, line 1:\n  recorded: v1\n  now:      v2",
  ],
  [
    "a line added at the end",
    { content: "a" },
    { content: "a\nb" },
    "messages[0].content, line 1:\n  recorded: a\n  now:      a\\nb",
  ],
  [
    "a number",
    { content: "Hi", max_tokens: 10 },
    { content: "Hi", max_tokens: 20 },
    "max_tokens:\n  recorded: 10\n  now:      20",
  ],
  [
    "a parameter added",
    { content: "Hi" },
    { content: "Hi", system: "Be kind" },
    "system:\n  recorded: (absent)\n  now:      Be kind",
  ],
  [
    "a long line",
    { content: `${"x".repeat(200)}A${"y".repeat(200)}` },
    { content: `${"x".repeat(200)}B${"y".repeat(200)}` },
    `messages[0].content, line 1:\n  recorded: …${"x".repeat(40)}A${"y".repeat(59)}…\n  now:      …${"x".repeat(40)}B${"y".repeat(59)}…`,
  ],
  [
    "a prompt about a request that timed out",
    { content: "It timed out" },
    { content: "It timed out again: timeout" },
    "messages[0].content, line 1:\n  recorded: It timed out\n  now:      It timed out again: timeout",
  ],
])("says what has changed: %s", async (_, recorded, present, difference) => {
  const file = await tapeFile();
  const vote = (asked: Asked) => (client: Anthropic) =>
    step("vote", () => step("voter[0]", () => askText(client, asked)));
  await record(file, [reply("yes")], vote(recorded));
  const error = await rejection(replay(file, vote(present)));
  if (!(error instanceof RecordingError)) throw error;
  expect(error.message).toBe(`vote/voter[0] has changed since it was recorded: ${difference}`);
  expect(error.path).toBe("vote/voter[0]");
});

test("says so when the endpoint or the betas have changed", async () => {
  const file = await tapeFile();
  const asked = params({ content: "Hi" });
  await record(file, [reply("Hello")], (client) =>
    client.beta.messages.create({ ...asked, betas: ["a"] }),
  );
  const { recording } = await replay(file, (client) =>
    client.beta.messages.create({ ...asked, betas: ["a"] }),
  );
  expect(recording.unused()).toEqual([]);
  await expect(
    replay(file, (client) => client.beta.messages.create({ ...asked, betas: ["b"] })),
  ).rejects.toThrow("anthropic-beta, line 1:\n  recorded: a\n  now:      b");
  const { max_tokens: _, ...counted } = asked;
  await expect(replay(file, (client) => client.messages.countTokens(counted))).rejects.toThrow(
    "endpoint, line 1:\n  recorded: /v1/messages\n  now:      /v1/messages/count_tokens",
  );
});

test("says which paths there are when a path isn't there, the first ten of them", async () => {
  const file = await tapeFile();
  await record(file, [reply("yes")], async (client) => {
    for (let i = 0; i < 12; i++) await step(`voter[${i}]`, () => ask(client, "Hi"));
  });
  const error = await rejection(replay(file, (client) => step("judge", () => ask(client, "Hi"))));
  const paths = Array.from({ length: 10 }, (_, i) => `voter[${i}]`).join(", ");
  expect(String(error)).toBe(
    `RecordingError: judge is not in the recording, which has ${paths} and 2 more`,
  );
});

test("a miss reaches the caller of create as it is, and of stream as the cause", async () => {
  const file = await tapeFile();
  await record(file, [reply("yes")], (client) => step("a", () => ask(client, "Hi")));
  const run = (fn: (client: Anthropic) => Promise<unknown>) =>
    rejection(replay(file, (client) => step("a", () => fn(client))));
  const changed = params({ content: "Ho" });
  expect(await run((client) => client.messages.create(changed))).toBeInstanceOf(RecordingError);
  const streamed = await run((client) => client.messages.stream(changed).finalMessage());
  if (!(streamed instanceof AnthropicError)) throw streamed;
  expect(streamed.cause).toBeInstanceOf(RecordingError);
  const runner = await run(async (client) => {
    await client.beta.messages.toolRunner({ ...changed, tools: [], thread: false });
  });
  expect(runner).toBeInstanceOf(RecordingError);
});

test("a miss through the door is a RecordingError, streamed or not", async () => {
  const file = await tapeFile();
  await record(file, [reply("yes")], (client) => createLlm({ client }).llmCall("Hi"));
  for (const onText of [undefined, () => {}]) {
    const run = (client: Anthropic) => createLlm({ client }).llmCall("Ho", { onText });
    await expect(replay(file, run)).rejects.toBeInstanceOf(RecordingError);
  }
});

test("reports the recordings that nobody asked for", async () => {
  const file = await tapeFile();
  await record(file, [reply("yes")], async (client) => {
    for (const name of ["a", "b", "c"]) await step(name, () => ask(client, "Hi"));
  });
  const { recording } = await replay(file, (client) => step("b", () => ask(client, "Hi")));
  expect(recording.unused()).toEqual(["a", "c"]);
});

test.each(["never", "Replay", "", undefined])("refuses the mode %j", async (mode) => {
  // As from JavaScript or a command line.
  const options = { mode } as unknown as RecordingOptions;
  await expect(openRecording(await tapeFile(), options)).rejects.toThrow(
    new TypeError(
      `A recording's mode must be "replay", "record" or "resume", got ${JSON.stringify(mode)}`,
    ),
  );
});

test("a pace and a quiet time beyond what a timer holds are cut to that", async () => {
  const file = await tapeFile(`${HEADER}\n${LINE}\n`);
  const options = { mode: "replay", pace: 1e12, quietMs: 1e12 } as const;
  const recording = await openRecording(file, options);
  const controller = new AbortController();
  const asked = { ...params({ content: "Hi" }) };
  const { signal } = controller;
  const client = recordedClient(recording, { logLevel: "off" });
  let ended = false;
  const call = step("a", () => rejection(client.messages.create(asked, { signal })));
  void call.then(() => {
    ended = true;
  });
  // An overflowing timer would fire after 1 ms.
  await sleep(20);
  expect(ended).toBe(false);
  controller.abort();
  expect(await call).toBeInstanceOf(APIUserAbortError);
});

test("refuses a pace that is negative or no number", async () => {
  for (const pace of [-1, Number.NaN]) {
    await expect(openRecording(await tapeFile(), { mode: "record", pace })).rejects.toThrow(
      new RangeError(`pace must be a number of at least 0, got ${pace}`),
    );
  }
});

test("replaces a recording only by a recording, and no other file", async () => {
  const file = await tapeFile();
  await writeFile(file, "the notes of a year\n");
  const error = await rejection(openRecording(file, { mode: "record" }));
  expect(error).toBeInstanceOf(RecordingError);
  expect(await readFile(file, "utf8")).toBe("the notes of a year\n");
  expect(await readdir(join(file, ".."))).toHaveLength(1);
});

test("says how to record when there's nothing to replay, and leaves no file", async () => {
  const file = await tapeFile();
  const error = await rejection(openRecording(file, { mode: "replay" }));
  expect(error).toBeInstanceOf(RecordingError);
  expect(String(error)).toContain(`There is no recording at ${file}. Make one with mode "record"`);
  expect(await readdir(join(file, ".."))).toEqual([]);
});

const HEADER = '{"version":1,"origin":"api","date":"2026-10-21T00:00:00.000Z"}';
const LINE = JSON.stringify({
  path: "a",
  begin: 0,
  ms: 1,
  outcome: "replied",
  request: { endpoint: "/v1/messages", body: params({ content: "Hi" }) },
  reply: {
    status: 200,
    headers: { "content-type": "application/json" },
    body: { json: message("Hello") },
  },
});

test.each([
  ["line 1: the recording's version must be 1, got 2", `{"version":2}\n${LINE}\n`],
  ["line 1: this is not a recording's header", `${LINE}\n`],
  ["line 1: this is not a recording's header", ""],
  ['line 1: its origin must be "api" or "transcribed"', '{"version":1,"origin":"x"}\n'],
  ["line 3: this is not a recorded call", `${HEADER}\n${LINE}\n{"path":\n${LINE}\n`],
  ["line 2: this is not a recorded call", `${HEADER}\n{"path":"a"}\n${LINE}\n`],
  ["line 3: this is not a recorded call", `${HEADER}\n${LINE}\nnot a line\n`],
  ["line 3: this is not a recorded call", `${HEADER}\n${LINE}\nnot a line`],
  ["line 1: its model must be a string", `${HEADER.replace("{", '{"model":5,')}\n`],
  [
    "line 1: its concurrency must be a whole number of at least 1",
    `${HEADER.replace("{", '{"concurrency":0,')}\n`,
  ],
])("refuses a broken tape: %s", async (message, content) => {
  const error = await rejection(openRecording(await tapeFile(content), { mode: "replay" }));
  expect(error).toBeInstanceOf(RecordingError);
  expect(String(error)).toContain(message);
});

test.each([
  { reply: {} },
  { reply: undefined },
  { reply: { status: 200, headers: {} } },
  { reply: { status: 99, headers: {}, body: { text: "" } } },
  { reply: { status: "200", headers: {}, body: { text: "" } } },
  { reply: { status: 200, headers: null, body: { text: "" } } },
  { reply: { status: 200, headers: { "content-type": 5 }, body: { text: "" } } },
  { reply: { status: 200, headers: { "content type": "x" }, body: { text: "" } } },
  { reply: { status: 200, headers: {}, body: { text: 5 } } },
  { reply: { status: 200, headers: {}, body: { events: [5] } } },
  { request: undefined },
  { request: "Hi" },
  { request: { endpoint: 5, body: {} } },
  { request: { endpoint: "/v1/messages" } },
  { outcome: "broken", request: undefined },
  { outcome: "broken", error: "reset" },
  { outcome: "lost" },
  { begin: -1 },
  { ms: null },
])("refuses a line of a wrong shape, with its number: %j", async (wrong) => {
  const line = JSON.stringify({ ...JSON.parse(LINE), ...wrong });
  const content = `${HEADER}\n${LINE}\n${line}\n`;
  for (const mode of ["replay", "resume"] as const) {
    const file = await tapeFile(content);
    const error = await rejection(openRecording(file, { mode }));
    expect(error).toBeInstanceOf(RecordingError);
    expect(String(error)).toContain("line 3: this is not a recorded call");
    expect(await readFile(file, "utf8")).toBe(content);
  }
});

test.each([
  "shopping list: eggs, milk",
  "{}",
  '{"version":1}',
  "{'version':1}",
  "\n",
  "eggs\n",
  `${HEADER}\neggs`,
  `${HEADER}\neggs\n`,
])("resume leaves a file alone that is no recording: %j", async (content) => {
  const file = await tapeFile(content);
  await expect(openRecording(file, { mode: "resume" })).rejects.toBeInstanceOf(RecordingError);
  expect(await readFile(file, "utf8")).toBe(content);
});

test.each(["", "{", '{"version":1,"ori', HEADER.slice(0, -1)])(
  "resume starts afresh where the header was torn: %j",
  async (content) => {
    const file = await tapeFile(content);
    await record(file, [reply("yes")], (client) => step("a", () => ask(client, "Hi")), {
      mode: "resume",
    });
    expect((await linesOf(file)).map(({ path }) => path)).toEqual([undefined, "a"]);
  },
);

test("replays a tape whose last line was torn, without that line", async () => {
  const file = await tapeFile(`${HEADER}\n${LINE}\n${LINE.slice(0, 90)}`);
  const { result } = await replay(file, (client) => step("a", () => askText(client, "Hi")));
  expect(result).toBe("Hello");
});

test.each([
  ["a blank line at its end", `${HEADER}\n${LINE}\n\n`],
  ["many of them, of Windows", `${HEADER}\r\n${LINE}\r\n\r\n \t\r\n`],
  ["blanks after its last newline", `${HEADER}\n${LINE}\n  `],
  ["a mark of its encoding", `\uFEFF${HEADER}\n${LINE}\n`],
  ["such a mark, and no newline", `\uFEFF${HEADER}\n${LINE}`],
])("a tape with %s is replayed, and gone on with", async (_, content) => {
  const file = await tapeFile(content);
  const run = async (client: Anthropic) => [
    await step("a", () => askText(client, "Hi")),
    await step("b", () => askText(client, "Ho")),
  ];
  const { result } = await replay(file, (client) => step("a", () => askText(client, "Hi")));
  expect(result).toBe("Hello");
  const { calls } = await record(file, [reply("Hoho")], run, { mode: "resume" });
  expect(calls).toBe(1);
  expect((await replay(file, run)).result).toEqual(["Hello", "Hoho"]);
});

test.each(["replay", "record", "resume"] as const)(
  "says in mode %s why a file can't be opened, and which",
  async (mode) => {
    const text = await tapeFile("eggs");
    for (const [file, why] of [
      [join(text, ".."), "it's a folder"],
      [join(text, "tape.jsonl"), "what should be its folder is a file"],
    ] as const) {
      const error = await rejection(openRecording(file, { mode }));
      expect(error).toBeInstanceOf(RecordingError);
      expect(String(error)).toBe(`RecordingError: ${file} can't be opened: ${why}`);
    }
  },
);

// Whoever may do everything isn't refused.
test.skipIf(process.platform === "win32" || process.getuid?.() === 0)(
  "says why a file can't be opened that is forbidden, or whose folder is",
  async () => {
    const file = await tapeFile(`${HEADER}\n`);
    const refused = async (mode: RecordingMode) => {
      const error = await rejection(openRecording(file, { mode }));
      expect(String(error)).toBe(`RecordingError: ${file} can't be opened: it's forbidden`);
    };
    await chmod(file, 0);
    for (const mode of ["replay", "record", "resume"] as const) await refused(mode);
    await chmod(file, 0o600);
    await chmod(join(file, ".."), 0o500);
    for (const mode of ["record", "resume"] as const) await refused(mode);
    await chmod(join(file, ".."), 0o700);
  },
);

test("replay never writes to the tape", async () => {
  const content = `${HEADER}\n${LINE}\n${LINE.slice(0, 90)}`;
  const file = await tapeFile(content);
  await replay(file, (client) => step("a", () => ask(client, "Hi")));
  expect(await readFile(file, "utf8")).toBe(content);
});

test("record starts an existing tape afresh, and makes the folder of a new one", async () => {
  const file = await tapeFile(`${HEADER}\n${LINE}\n`);
  await record(file, [reply("yes")], (client) => step("b", () => ask(client, "Hi")));
  expect((await linesOf(file)).map(({ path }) => path)).toEqual([undefined, "b"]);
  const deep = join(file, "..", "new", "tape.jsonl");
  await record(deep, [reply("yes")], (client) => step("c", () => ask(client, "Hi")));
  expect(await linesOf(deep)).toHaveLength(2);
});

test("record leaves an older tape alone until the first call has ended", async () => {
  const content = `${HEADER}\n${LINE}\n`;
  const file = await tapeFile(content);
  const { server, client, recording } = await live(file, [hold]);
  // Without a key.
  const keyless = client.withOptions({ apiKey: null, authToken: null });
  await rejection(step("b", () => ask(keyless, "Hi")));
  expect(await readFile(file, "utf8")).toBe(content);
  const asked = step("b", () => ask(client, "Hi"));
  const exchange = await server.received(1);
  expect(await readFile(file, "utf8")).toBe(content);
  reply("yes")(exchange);
  await asked;
  await recording.close();
  expect((await linesOf(file)).map(({ path }) => path)).toEqual([undefined, "b"]);
});

test.each<[string, Answer]>([
  ["a wrong key", fails(401)],
  ["a wrong address", raw("<html>hi</html>", { headers: { "content-type": "text/html" } })],
])("record leaves an older tape alone where all calls fail, as with %s", async (_, answer) => {
  const content = `${HEADER}\n${LINE}\n`;
  const file = await tapeFile(content);
  const run = (client: Anthropic) =>
    step("b", () => rejection(createLlm({ client }).llmCall("Hi")));
  await record(file, [answer], run);
  expect(await readFile(file, "utf8")).toBe(content);
  await record(file, [answer, reply("yes")], async (client) => {
    await run(client);
    await step("c", () => ask(client, "Hi"));
  });
  expect((await linesOf(file)).map(({ path }) => path)).toEqual([undefined, "b", "c"]);
});

test("record replaces a tape of failures by other failures", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => step("a", () => rejection(ask(client, "Hi")));
  for (const status of [400, 401]) await record(file, [fails(status)], run);
  expect((await linesOf(file)).map(({ reply }) => reply?.status)).toEqual([undefined, 401]);
});

test("model and concurrency are kept in the header", async () => {
  const file = await tapeFile();
  await openRecording(file, { mode: "record", model: "claude-opus-5-5", concurrency: 3 });
  const { header } = await openRecording(file, { mode: "replay" });
  expect(header).toMatchObject({ model: "claude-opus-5-5", concurrency: 3 });
});

// Who writes

test.each(["record", "resume"] as const)(
  "while one writes a tape, nobody else can, and in mode %s says so",
  async (mode) => {
    const file = await tapeFile();
    const first = await openRecording(file, { mode: "record" });
    const error = await rejection(openRecording(file, { mode }));
    expect(error).toBeInstanceOf(RecordingError);
    expect(String(error)).toBe(
      `RecordingError: ${file} is being written by this process: close that recording first`,
    );
    await openRecording(file, { mode: "replay" });
    await first.close();
    const second = await openRecording(file, { mode });
    // A recording that was closed long ago can't let others in.
    await first.close();
    await expect(openRecording(file, { mode })).rejects.toBeInstanceOf(RecordingError);
    await second.close();
    expect(await readdir(join(file, ".."))).toEqual(["tape.jsonl"]);
  },
);

test("says which process writes a tape, and asks nothing", async () => {
  const file = await tapeFile();
  await writeFile(`${file}.lock`, `${process.ppid} \n`);
  const error = await rejection(record(file, [hold], (client) => ask(client, "Hi")));
  expect(String(error)).toBe(
    `RecordingError: ${file} is being written by process ${process.ppid}: let it end first, or delete ${file}.lock if that isn't a recording`,
  );
  expect(await readdir(join(file, ".."))).toEqual(["tape.jsonl.lock"]);
});

/** A lock as a process leaves it that has ended. */
function deadLock(): string {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  return `${pid} 1\n`;
}

test("of many that find a dead process's lock, one takes it over", async () => {
  const file = await tapeFile(`${HEADER}\n${LINE}\n`);
  await writeFile(`${file}.lock`, deadLock());
  // Left by one that was killed while it took over.
  await writeFile(`${file}.lock.lock`, deadLock());
  const all = Array.from({ length: 20 }, () => openRecording(file, { mode: "resume" }));
  const opened = (await Promise.allSettled(all)).filter(({ status }) => status === "fulfilled");
  expect(opened).toHaveLength(1);
  await Promise.all(all.map((one) => one.then(({ close }) => close()).catch(() => {})));
  expect(await readdir(join(file, ".."))).toEqual(["tape.jsonl"]);
});

test.runIf(process.platform === "linux")(
  "a lock whose process's id is another's by now is taken over",
  async () => {
    const file = await tapeFile();
    await writeFile(`${file}.lock`, `${process.pid} 1\n`);
    await (await openRecording(file, { mode: "record" })).close();
    expect(await linesOf(file)).toHaveLength(1);
  },
);

test("a lock that isn't written yet counts as held, and as left behind once it's old", async () => {
  const file = await tapeFile();
  await writeFile(`${file}.lock`, "");
  await expect(openRecording(file, { mode: "record" })).rejects.toThrow(
    `${file} is being written by another process`,
  );
  await utimes(`${file}.lock`, 0, 0);
  await (await openRecording(file, { mode: "record" })).close();
  expect(await linesOf(file)).toHaveLength(1);
});

test("a tape that can't be opened is let go", async () => {
  // Too deep for whatever goes down by calling itself.
  const deep = LINE.replace('"Hi"', `${"[".repeat(20_000)}${"]".repeat(20_000)}`);
  for (const content of ["the notes of a year\n", `${HEADER}\n${deep}\n`]) {
    const file = await tapeFile(content);
    await rejection(openRecording(file, { mode: "resume" }));
    expect(await readdir(join(file, ".."))).toEqual(["tape.jsonl"]);
  }
});

test("close waits for the calls in flight, holds the tape for them, and then no call is made", async () => {
  const file = await tapeFile();
  const { client, server, recording } = await live(file, [hold]);
  const asked = step("a", () => askText(client, "Hi"));
  const exchange = await server.received(1);
  const closed = recording.close();
  await expect(openRecording(file, { mode: "resume" })).rejects.toThrow("is being written");
  reply("Hello")(exchange);
  await closed;
  expect((await linesOf(file)).map(({ path }) => path)).toEqual([undefined, "a"]);
  expect(await asked).toBe("Hello");
  const error = await rejection(step("b", () => ask(client, "Ho")));
  expect(String(error)).toBe(
    "RecordingError: b: The recording is closed: no more calls can be made",
  );
  expect(server.requests).toHaveLength(1);
  expect(await readdir(join(file, ".."))).toEqual(["tape.jsonl"]);
});

test("a stream read on after close fails in place of its end, and isn't on the tape", async () => {
  const file = await tapeFile();
  let finish = () => {};
  const events = eventsOf({ ...message("Hello") });
  const answer = chunked([Buffer.from(events.slice(0, -1).join(""))], ({ response }) => {
    finish = () => response.end(events.at(-1));
  });
  const { client, recording } = await live(file, [answer]);
  const types: string[] = [];
  const run = step("a", async () => {
    const stream = await client.messages.create({ ...params({ content: "Hi" }), stream: true });
    for await (const { type } of stream) {
      types.push(type);
      if (type !== "message_delta") continue;
      await recording.close();
      finish();
    }
  });
  expect(String(await rejection(run))).toBe(
    "RecordingError: a: The recording was closed before this reply's end",
  );
  expect(types.at(-1)).toBe("message_delta");
  expect(await linesOf(file)).toHaveLength(1);
});

test("close waits for a call between two attempts, and for one that is cancelled there", async () => {
  for (const wait of ["1", "3600"]) {
    const file = await tapeFile();
    const answers = [fails(529, { "retry-after-ms": wait }), reply("Hello")] as const;
    const server = await startServer(...answers);
    const recording = await openRecording(file, { mode: "record" });
    const client = recordedClient(recording, { apiKey: KEY, baseURL: server.url, logLevel: "off" });
    const { llmCall } = createLlm({ client, layers: [recording.layer] });
    const controller = new AbortController();
    const asked = llmCall("Hi", { name: "a", signal: controller.signal }).catch((error) => error);
    while ((await linesOf(file)).length === 1) await turn();
    const closed = recording.close();
    if (wait === "3600") controller.abort(new Error("enough"));
    await closed;
    expect(await asked).toEqual(wait === "1" ? "Hello" : new Error("enough"));
    const outcomes = (await linesOf(file)).map(({ outcome }) => outcome);
    const last = wait === "1" ? "replied" : "cancelled";
    expect(outcomes).toEqual([undefined, "replied", last]);
  }
});

test("a call cancelled in the queue is on the tape, though another one has its path", async () => {
  const file = await tapeFile();
  const server = await startServer(hold);
  for (const mode of ["record", "replay"] as const) {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: KEY, baseURL: server.url });
    const { llmCall } = createLlm({ client, concurrency: 1, layers: [recording.layer] });
    const controller = new AbortController();
    const first = llmCall("Hi");
    const second = rejection(llmCall("Ho", { signal: controller.signal }));
    if (mode === "record") await server.received(1);
    controller.abort("enough");
    expect(await second).toBe("enough");
    if (mode === "record") reply("Hello")(await server.received(1));
    expect(await first).toBe("Hello");
  }
  expect((await linesOf(file)).map(({ path, outcome }) => [path, outcome]).slice(1)).toEqual([
    ["call", "cancelled"],
    ["call", "replied"],
  ]);
});

test("makes no call any more whose reply couldn't be kept, and counts none as kept", async () => {
  const file = join(await tapeFile(), "..", "new", "tape.jsonl");
  const { client, server, recording } = await live(file, [reply("Hello")]);
  const run = (name: string) => step(name, () => ask(client, "Hi"));
  await run("a");
  await rm(join(file, ".."), { recursive: true });
  await rejection(run("b"));
  const error = await rejection(run("c"));
  expect(error).toBeInstanceOf(RecordingError);
  expect(String(error)).toBe(
    `RecordingError: c isn't made: ${file} can't be written: its folder is gone`,
  );
  expect(server.requests).toHaveLength(2);
  expect(recording.calls.map(({ path }) => path)).toEqual(["a"]);
  await rejection(recording.close());
});

test("says of a tape that can't be written any more which it is, why, and whose reply isn't on it", async () => {
  const file = join(await tapeFile(), "..", "new", "tape.jsonl");
  const { client, server, recording } = await live(file, [hold]);
  const run = (name: string) => rejection(step(name, () => ask(client, "Hi")));
  const errors = [run("a"), run("b")];
  await server.received(2);
  await rm(join(file, ".."), { recursive: true });
  for (const exchange of server.requests) reply("Hello")(exchange);
  const why = `${file} can't be written: its folder is gone`;
  for (const [i, name] of ["a", "b"].entries()) {
    const error = await errors[i];
    expect(error).toBeInstanceOf(RecordingError);
    expect(String(error)).toBe(`RecordingError: ${name} isn't on the tape: ${why}`);
  }
  expect(String(await rejection(recording.close()))).toBe(`RecordingError: ${why}`);
});

// What is kept, and what isn't

test("no byte of the key gets in any file or error text, recorded, recorded again or resumed", async () => {
  const file = await tapeFile();
  const echo: Answer = ({ headers, response }) => {
    const error = { type: "error", error: { type: "x", message: `bad: ${headers.authorization}` } };
    response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(error));
  };
  const run = (client: Anthropic) => step("a", () => rejection(ask(client, "Hi")));
  const errors: unknown[] = [];
  const texts: string[] = [];
  for (const mode of ["record", "record", "resume"] as const) {
    await record(file, [echo], run, { mode });
    texts.push(await readFile(file, "utf8"));
  }
  await record(file, [reply("Hello")], (client) => step("a", () => ask(client, "Hi")));
  errors.push(
    await rejection(record(file, [hold], (c) => step("a", () => ask(c, "Ho")), { mode: "resume" })),
  );
  errors.push(await rejection(replay(file, (client) => step("b", () => ask(client, "Hi")))));
  const folder = join(file, "..");
  for (const name of await readdir(folder)) texts.push(await readFile(join(folder, name), "utf8"));
  for (const error of errors)
    if (error instanceof Error) texts.push(`${error.stack}${error.message}`);
  expect(errors).toEqual([expect.any(RecordingError), expect.any(RecordingError)]);
  for (const text of texts) expect(text).not.toContain(KEY);
});

/** What is on the tape after a call that fails. */
async function failedTape(answer: Answer, options: ClientOptions): Promise<string> {
  const file = await tapeFile();
  await record(file, [answer], (client) => step("a", () => rejection(ask(client, "Hi"))), {
    maxRetries: 0,
    ...options,
  });
  expect(await linesOf(file)).toHaveLength(2);
  return readFile(file, "utf8");
}

/** Answers 401 with all that it was sent, in UTF-8 or with a byte that isn't. */
const echo =
  (encoding: "utf8" | "latin1"): Answer =>
  ({ url, headers, response }) => {
    response.writeHead(401, { "content-type": encoding === "utf8" ? "text/plain" : "text/html" });
    response.end(Buffer.from(`é ${decodeURIComponent(url)} ${JSON.stringify(headers)}`, encoding));
  };

test("a user and a password in the URL aren't kept", async () => {
  for (const user of ["me:passw0rd", "me:pw", "me:p%40ss%20word"]) {
    const text = await failedTape(hold, { baseURL: `http://${user}@127.0.0.1:1/x?key=s3cret` });
    expect(text).toContain("includes credentials: http://127.0.0.1:1/");
    expect(text).not.toMatch(/passw0rd|:pw|p%40ss|p@ss|s3cret/);
  }
});

test("of the query only what tells calls apart is kept and compared", async () => {
  const file = await tapeFile();
  const asked = params({ content: "Hi" });
  const run = (client: Anthropic) =>
    client.messages.create(asked, { query: { key: "s3cret", beta: "true", "api-version": "1" } });
  await record(file, [reply("Hello")], run);
  expect((await linesOf(file))[1].request.endpoint).toBe("/v1/messages?beta=true");
  expect(await readFile(file, "utf8")).not.toContain("s3cret");
  const again = (client: Anthropic) => client.messages.create(asked, { query: { beta: "true" } });
  expect((await replay(file, again)).recording.unused()).toEqual([]);
  await expect(replay(file, (client) => ask(client, "Hi"))).rejects.toThrow("endpoint, line 1");
});

test.each(["utf8", "latin1"] as const)(
  "a credential that a failed reply quotes in %s isn't kept, whatever header it came with",
  async (encoding) => {
    const octets: Answer = (exchange) => {
      const { response } = exchange;
      const writeHead = response.writeHead.bind(response);
      response.writeHead = () => writeHead(401, { "content-type": "application/octet-stream" });
      echo(encoding)(exchange);
    };
    const text = await failedTape(encoding === "utf8" ? echo(encoding) : octets, {
      apiKey: "short-key",
      defaultHeaders: {
        "x-gateway-key": "gate-123",
        cookie: "sid=cookie-45; a=b",
        "x-flag": "none",
      },
      defaultQuery: { key: "query/678" },
    });
    const { body } = JSON.parse(text.trim().split("\n")[1] ?? "").reply;
    const kept = body.text ?? Buffer.from(body.base64, "base64").toString("latin1");
    expect(kept).toContain("[struck out]");
    expect(kept).toContain('"x-flag":"none"');
    expect(kept).toContain("application/json");
    expect(kept).not.toMatch(/short-key|gate-123|cookie-45|query\/678/);
  },
);

test("a header's ordinary word stays in a prompt and in its answer", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => askText(client, "Is it in production?");
  const defaultHeaders = { "x-environment": "production" };
  await record(file, [reply("In production.")], run, { defaultHeaders });
  expect((await replay(file, run)).result).toBe("In production.");
});

test("nothing that names the account or the request is kept", async () => {
  const file = await tapeFile();
  const headers = {
    "anthropic-organization-id": "org-uuid",
    "anthropic-workspace-id": "wrkspc-1",
    "set-cookie": "__cf_bm=secret",
    "request-id": "req_1",
    "x-should-retry": "false",
  };
  const error = { type: "error", error: { type: "x", message: "no" }, request_id: "req_1" };
  const failing = raw(JSON.stringify(error), { status: 500, headers });
  const streamed = raw(event("error", { ...error }), {
    headers: { ...headers, "content-type": "text/event-stream" },
  });
  await record(file, [failing, streamed], async (client) => {
    await rejection(ask(client, "Hi"));
    await rejection(client.messages.stream(params({ content: "Hi" })).finalMessage());
  });
  const [, failed, cutOff] = await linesOf(file);
  expect(failed.reply.headers).toEqual({
    "content-type": "application/json",
    "x-should-retry": "false",
  });
  expect(Object.keys(cutOff.request).sort()).toEqual(["body", "endpoint"]);
  expect(await readFile(file, "utf8")).not.toMatch(/org-uuid|wrkspc|cf_bm|req_1|authorization/i);
});

test("replays a compressed reply", async () => {
  const file = await tapeFile();
  const gzipped: Answer = ({ response }) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync(JSON.stringify(message("héllo"))));
  };
  const run = (client: Anthropic) => askText(client, "Hi");
  expect((await record(file, [gzipped], run)).result).toBe("héllo");
  expect((await replay(file, run)).result).toBe("héllo");
  expect((await linesOf(file))[1].reply.body.json.content[0].text).toBe("héllo");
  // Whoever passes the response on would announce an encoding that is undone.
  await record(file, [gzipped], async (client) => {
    const { response } = await client.messages.create(params({ content: "Hi" })).withResponse();
    expect(response.headers.has("content-encoding")).toBe(false);
  });
});

test.each([
  ["a page of HTML", "<h1>Sorry</h1>", "text/html"],
  ["JSON that was cut", '{"type":"message","content":[', "application/json"],
  ["no body at all", "", "text/plain"],
  ["lines of JSON", '{"a":1}\n{"b":2}\n', "application/x-jsonl"],
])("replays %s as it came", async (_, body, type) => {
  const file = await tapeFile();
  const run = async (client: Anthropic) => {
    const [outcome] = await Promise.allSettled([ask(client, "Hi")]);
    return outcome.status === "rejected" ? String(outcome.reason) : outcome.value;
  };
  const { result } = await record(file, [raw(body, { headers: { "content-type": type } })], run);
  expect((await replay(file, run)).result).toEqual(result);
});

test("replays bytes that aren't text", async () => {
  const file = await tapeFile();
  const bytes = [0xff, 0x00, 0xc3];
  const answer: Answer = ({ response }) => {
    response.writeHead(200, { "content-type": "application/octet-stream" });
    response.end(Buffer.from(bytes));
  };
  const run = async (client: Anthropic) => {
    const response = await client.messages.create(params({ content: "Hi" })).asResponse();
    return [...new Uint8Array(await response.arrayBuffer())];
  };
  expect((await record(file, [answer], run)).result).toEqual(bytes);
  expect((await replay(file, run)).result).toEqual(bytes);
});

test.each(["text/html", "text/event-stream", "application/json", "text/plain"])(
  "a page of %s in place of an answer is the same error with the same text, streamed or not",
  async (type) => {
    for (const onText of [undefined, () => {}]) {
      const file = await tapeFile();
      const run = async (client: Anthropic) => {
        const error = await rejection(createLlm({ client }).llmCall("Hi", { onText }));
        return error instanceof LlmOutputError ? [error.message, error.text] : error;
      };
      const page = raw("<html>hi</html>", { headers: { "content-type": type } });
      const { result } = await record(file, [page], run);
      expect(result).toEqual([expect.any(String), "<html>hi</html>"]);
      expect((await replay(file, run)).result).toEqual(result);
    }
  },
);

test("a client's other middleware sees what is sent, and nothing in replay", async () => {
  const file = await tapeFile();
  let sent = 0;
  const middleware: Middleware[] = [
    (request, next) => {
      sent++;
      return next(request);
    },
  ];
  await record(file, [reply("Hello")], (client) => ask(client, "Hi"), { middleware });
  const recording = await openRecording(file, { mode: "replay" });
  await ask(recordedClient(recording, { middleware }), "Hi");
  expect(sent).toBe(1);
});

test("the token exchange of a client that logs in is neither recorded nor replayed", async () => {
  const file = await tapeFile();
  const recording = await openRecording(file, { mode: "record" });
  const request = { url: "https://x/v1/oauth/token", method: "POST", headers: new Headers() };
  const next = async () => new Response('{"access_token":"at-secret"}');
  const context = { logger: console, parse: () => Promise.reject(new Error("unused")) };
  const response = await recording.middleware(request, next, context);
  expect(await response.text()).toContain("at-secret");
  expect(await readFile(file, "utf8")).not.toContain("at-secret");
  const { middleware } = await openRecording(file, { mode: "replay" });
  await expect(middleware(request, next, context)).rejects.toBeInstanceOf(RecordingError);
});

test("in replay, nothing in the environment has a say", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => step("a", () => askText(client, "Hi"));
  await record(file, [reply("Hello")], run);
  vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/nowhere");
  vi.stubEnv("ANTHROPIC_API_KEY", "sk-ant-other");
  vi.stubEnv("ANTHROPIC_AUTH_TOKEN", "token");
  vi.stubEnv("ANTHROPIC_PROFILE", "absent");
  vi.stubEnv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-beta: other\nAnthropic-Beta: more");
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  const recording = await openRecording(file, { mode: "replay" });
  const client = recordedClient(recording, { profile: "absent" });
  expect(await run(client)).toBe("Hello");
  expect((await openRecording(file, { mode: "replay" })).unused()).toEqual(["a"]);
});

// Streams

const words = (client: Anthropic) =>
  step("poem", async () => {
    const events: string[] = [];
    const stream = client.messages.stream(params({ content: "A poem" }));
    stream.on("text", (text) => events.push(text));
    const [end] = await Promise.allSettled([stream.finalMessage()]);
    if (end.status === "fulfilled") return [...events, `end: ${end.value.stop_reason}`];
    return [...events, `${end.reason.constructor.name}: ${end.reason.message}`];
  });

test("streams replay as streams, event by event", async () => {
  const file = await tapeFile();
  const { result } = await record(file, [reply("Roses are red")], words);
  expect(result).toEqual(["Roses ", "are ", "red", "end: end_turn"]);
  expect((await replay(file, words)).result).toEqual(result);
  const [, line] = await linesOf(file);
  expect(line.reply.body.events).toHaveLength(8);
});

const HELLO = Buffer.from(eventsOf({ ...message("héllo wörld") }).join(""));
const inCharacter = HELLO.indexOf("é") + 1;

test("a stream cut inside a character replays with its text intact", async () => {
  const file = await tapeFile();
  const chunks = [HELLO.subarray(0, inCharacter), HELLO.subarray(inCharacter)];
  const { result } = await record(file, [chunked(chunks)], words);
  expect(result).toEqual(["héllo ", "wörld", "end: end_turn"]);
  expect((await replay(file, words)).result).toEqual(result);
});

test("a stream of single bytes, with carriage returns, replays the same", async () => {
  const file = await tapeFile();
  const crlf = Buffer.from(HELLO.toString().replaceAll("\n", "\r\n"));
  const bytes = [...crlf].map((byte) => Uint8Array.of(byte));
  const { result } = await record(file, [chunked(bytes)], words);
  expect(result).toEqual(["héllo ", "wörld", "end: end_turn"]);
  expect((await replay(file, words)).result).toEqual(result);
});

const head = HELLO.subarray(0, inCharacter);
const failing = event("error", { error: { type: "overloaded_error", message: "Overloaded" } });
const twoWords = eventsOf({ ...message("one two") }).slice(0, 4);

test.each<[string, Answer]>([
  ["an error event", chunked([Buffer.from(twoWords.join("") + failing)])],
  ["a clean end too early", partly("one two three", cut)],
  ["a reset", partly("one two three", lose)],
  ["a clean end inside a character", chunked([head])],
  ["a reset inside a character", chunked([head], lose)],
  ["a reset before any event", chunked([Buffer.from(": hi\n\n")], lose)],
])("a stream that ends with %s replays the same events and the same error", async (_, answer) => {
  const file = await tapeFile();
  const { result } = await record(file, [answer], words);
  expect(result.at(-1)).toMatch(/Error: /);
  expect((await replay(file, words)).result).toEqual(result);
});

test("a connection lost before the headers is replayed and retried", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => step("a", () => askText(client, "Hi"));
  await record(file, [lose, reply("Hello")], run);
  const { result, recording } = await replay(file, run);
  expect(result).toBe("Hello");
  expect(recording.calls.map(({ outcome }) => outcome)).toEqual(["broken", "replied"]);
  expect(recording.unused()).toEqual([]);
});

test("a timeout before the headers is the same error in replay, and retried as often", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) =>
    step("a", () => rejection(ask(client.withOptions({ maxRetries: 1, timeout: 30 }), "Hi")));
  const recorded = await record(file, [hold], run);
  expect(recorded.calls).toBe(2);
  const { result, recording } = await replay(file, run);
  for (const error of [recorded.result, result]) {
    expect(error).toBeInstanceOf(APIConnectionTimeoutError);
    expect(error).toMatchObject({ message: "Request timed out." });
  }
  expect(recording.unused()).toEqual([]);
});

test("a stream that is aborted unread is on the tape as cancelled once the recording is closed", async () => {
  const file = await tapeFile();
  const controller = new AbortController();
  await record(file, [partly("one two", hold)], async (client) => {
    const { signal } = controller;
    await client.messages.create({ ...params({ content: "Hi" }), stream: true }, { signal });
    controller.abort();
  });
  expect((await linesOf(file))[1]).toMatchObject({ outcome: "cancelled" });
});

test("a replay leaves no timer behind", async () => {
  const file = await tapeFile(`${HEADER}\n${LINE}\n${LINE.replace('"path":"a"', '"path":"b"')}\n`);
  const recording = await openRecording(file, { mode: "replay", quietMs: 60_000 });
  const client = recordedClient(recording);
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  await Promise.all(["a", "b"].map((name) => step(name, () => ask(client, "Hi"))));
  for (let i = 0; i < 10; i++) await turn();
  // Timers that other tests have left may go meanwhile.
  expect(timers()).toBeLessThanOrEqual(before);
});

test("a connection lost in a whole reply is the same error in replay, and not retried", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) =>
    step("a", () => rejection(createLlm({ client }).llmCall("Hi")));
  const { result, calls } = await record(file, [partly("Hello", lose)], run);
  expect(calls).toBe(1);
  expect(result).toBeInstanceOf(APIConnectionError);
  const again = await replay(file, run);
  expect(again.result).toBeInstanceOf(APIConnectionError);
  expect(String(again.result)).toBe(String(result));
});

test("what is shown in replay are the recorded times, of a retried call from its first attempt on", async () => {
  const file = await tapeFile();
  const run = (client: Anthropic) => createLlm({ client }).llmCall("Hi", { name: "a" });
  await record(file, [fails(529, { "retry-after-ms": "5" }), reply("Hello")], run);
  const notes: unknown[] = [];
  await observe(
    (e) => e.type === "end" && e.kind === "call" && notes.push(e.notes),
    () => replay(file, run),
  );
  const [, first, second] = await linesOf(file);
  const ms = second.begin + second.ms - first.begin;
  expect(notes).toMatchObject([{ recorded: { begin: first.begin, ms, estimated: false } }]);
});
