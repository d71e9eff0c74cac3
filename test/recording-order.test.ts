/**
 * In which order a recording gives its replies, and who waits for whom.
 *
 * From effective-agents 0.1.0: test/recording-order.test.ts
 */
import { readFile, writeFile } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import { APIError } from "@anthropic-ai/sdk";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { expect, test } from "vitest";
import { RecordingError } from "../patterns/errors.ts";
import { createLlm, type Llm } from "../patterns/llm-call.ts";
import { FIRST_TOKEN_MS, OUTPUT_TOKENS_PER_SECOND } from "../patterns/recording/clock.ts";
import type { TapeLine } from "../patterns/recording/tape.ts";
import { openRecording, type RecordingOptions, recordedClient } from "../patterns/recording.ts";
import { observe, type RunEvent, step } from "../patterns/step.ts";
import {
  type Answer,
  eventsOf,
  fails,
  hold,
  message,
  partly,
  rejection,
  reply,
  startServer,
} from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

/** A tape of these lines, written by hand. */
function tapeOf(lines: readonly unknown[], origin = "api"): Promise<string> {
  const header = { version: 1, origin, date: "2026-10-21T00:00:00.000Z" };
  return tapeFile([header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** The line of a call that asked `Hi`. */
function line(path: string, begin: number, ms: number, rest: Partial<Message> = {}): TapeLine {
  const messages = [{ content: "Hi", role: "user" }];
  const body = { max_tokens: 16_000, messages, model: "claude-sonnet-5-5" };
  const request = { endpoint: "/v1/messages", body };
  const headers = { "content-type": "application/json" };
  const answer = { status: 200, headers, body: { json: message(`re: ${path}`, rest) } };
  return { path, begin, ms, outcome: "replied", request, reply: answer };
}

async function linesOf(file: string): Promise<TapeLine[]> {
  const [, ...lines] = (await readFile(file, "utf8")).trim().split("\n");
  return lines.map((text) => JSON.parse(text));
}

/** Opens a door whose calls are recorded or replayed. */
async function open(
  file: string,
  options: RecordingOptions & { readonly baseURL?: string; readonly maxRetries?: number },
) {
  const { baseURL, maxRetries = 0, concurrency = 20, ...rest } = options;
  const recording = await openRecording(file, { quietMs: 60_000, concurrency, ...rest });
  const client = recordedClient(recording, {
    apiKey: "none",
    baseURL,
    maxRetries,
    logLevel: "off",
  });
  const llm = createLlm({ client, concurrency, layers: [recording.layer] });
  return { recording, llm };
}

/** What happened in `fn`: starts and ends, with the path and how it ended. */
async function eventsIn(fn: () => Promise<unknown>): Promise<string[]> {
  const events: string[] = [];
  await observe((e) => {
    if (e.type === "start") events.push(`${e.path}: ${e.kind}`);
    if (e.type === "end") events.push(`${e.path}: ${e.kind} ${e.outcome}`);
  }, fn);
  return events;
}

/** What a call's end says of it under that name. */
function noteOf({ notes = {} }: Pick<RunEvent & { type: "end" }, "notes">, name: string): unknown {
  return notes[name];
}

/** Nine voters; when the fifth reply is there, the rest is cancelled. */
async function vote({ llmCall }: Llm): Promise<string[]> {
  const decided = new AbortController();
  const replies: string[] = [];
  const voter = async (i: number) => {
    replies.push(await llmCall(`Voter ${i}: yes or no?`, { signal: decided.signal }));
    if (replies.length === 5) decided.abort(new Error("decided"));
  };
  await step("vote", () =>
    Promise.allSettled(
      Array.from({ length: 9 }, (_, i) => step(`voter[${i}]`, () => voter(i), decided.signal)),
    ),
  );
  return replies;
}

/** Answers a voter with its own number, if it is one of these. */
const onlyVoters =
  (...numbers: readonly number[]): Answer =>
  (exchange) => {
    const number = Number(/Voter (\d)/.exec(JSON.stringify(exchange.body))?.[1]);
    if (numbers.includes(number)) reply(String(number))(exchange);
  };

/** Records a vote in which these voters reply in this order. */
async function recordVote(file: string, order: readonly number[], concurrency = 20) {
  const server = await startServer(hold);
  const { llm, recording } = await open(file, { mode: "record", baseURL: server.url, concurrency });
  let replies: string[] = [];
  const events = eventsIn(async () => {
    replies = await vote(llm);
  });
  await server.received(9);
  for (const number of order) {
    for (const exchange of server.requests) onlyVoters(number)(exchange);
  }
  const seen = await events;
  await recording.close();
  return { events: seen, replies };
}

// The order

test("an early-stopping race of nine replays to the same events a hundred times", {
  timeout: 30_000,
}, async () => {
  const file = await tapeFile();
  const recorded = await recordVote(file, [7, 2, 8, 0, 4]);
  expect(recorded.replies.toSorted()).toEqual(["0", "2", "4", "7", "8"]);
  expect(recorded.events.filter((event) => event.endsWith("call cancelled"))).toHaveLength(4);
  for (let i = 0; i < 100; i++) {
    const { llm, recording } = await open(file, { mode: "replay" });
    let replies: string[] = [];
    const events = await eventsIn(async () => {
      replies = await vote(llm);
    });
    expect(replies).toEqual(recorded.replies);
    expect(events).toEqual(recorded.events);
    expect(recording.unused()).toEqual([]);
  }
});

test("a race in which all replies come at once is decided by the same five again", async () => {
  const file = await tapeFile();
  const recorded = await recordVote(file, [8, 7, 6, 5, 4, 3, 2, 1, 0]);
  expect(recorded.replies).toHaveLength(5);
  for (let i = 0; i < 20; i++) {
    const { llm } = await open(file, { mode: "replay" });
    expect(await vote(llm)).toEqual(recorded.replies);
  }
});

test("replies come in the tape's order, however the calls are asked for", async () => {
  const file = await tapeOf([line("c", 0, 1), line("a", 0, 2), line("b", 0, 3)]);
  const { llm } = await open(file, { mode: "replay" });
  const ended: string[] = [];
  const call = async (name: string, turns: number) => {
    for (let i = 0; i < turns; i++) await turn();
    ended.push(await llm.llmCall("Hi", { name }));
  };
  await Promise.all([call("a", 0), call("b", 20), call("c", 50)]);
  expect(ended).toEqual(["re: c", "re: a", "re: b"]);
});

test("what a reply starts is asked for before the next reply is handed out", async () => {
  const file = await tapeOf([line("a", 0, 1), line("a/next", 1, 1), line("b", 0, 3)]);
  const { llm } = await open(file, { mode: "replay" });
  const ended: string[] = [];
  const call = (name: string) =>
    step(name, async () => {
      ended.push(await llm.llmCall("Hi"));
      if (name === "a") await call("next");
    });
  await Promise.all([call("b"), call("a")]);
  expect(ended).toEqual(["re: a", "re: a/next", "re: b"]);
});

test("a line that nobody asks for holds up no other", async () => {
  const file = await tapeOf([line("a", 0, 1), line("b", 0, 2), line("c", 0, 3)]);
  const { llm, recording } = await open(file, { mode: "replay", quietMs: 20 });
  expect(await llm.llmCall("Hi", { name: "c" })).toBe("re: c");
  expect(await llm.llmCall("Hi", { name: "a" })).toBe("re: a");
  expect(recording.unused()).toEqual(["b"]);
});

test("a call made while a stream is read, which waits for it, isn't locked out", async () => {
  const file = await tapeFile();
  const [first, ...others] = eventsOf({ ...message("outer") });
  let finish = () => {};
  const outer: Answer = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).write(first);
    finish = () => response.end(others.join(""));
  };
  const server = await startServer(outer, reply("inner"));
  const run = async (mode: "record" | "replay") => {
    const recording = await openRecording(file, { mode, quietMs: 20 });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const asked = { model: "claude-sonnet-5-5", max_tokens: 9, messages: [] };
    return step("outer", async () => {
      const types: string[] = [];
      for await (const { type } of await client.messages.create({ ...asked, stream: true })) {
        types.push(type);
        if (type !== "message_start") continue;
        await step("inner", () => client.messages.create(asked));
        finish();
      }
      return types;
    });
  };
  const recorded = await run("record");
  expect(recorded.at(-1)).toBe("message_stop");
  expect((await linesOf(file)).map(({ path }) => path)).toEqual(["outer/inner", "outer"]);
  expect(await run("replay")).toEqual(recorded);
});

test("a response whose body is never read holds up no other", async () => {
  const file = await tapeOf([line("a", 0, 1), line("b", 0, 2)]);
  const { recording, llm } = await open(file, { mode: "replay", quietMs: 20 });
  const { body } = (await linesOf(file))[0]?.request ?? {};
  const client = recordedClient(recording);
  // The tape's own request: it has the shape of the SDK's parameters.
  const params = body as Parameters<typeof client.messages.create>[0];
  const response = await step("a", () => client.messages.create(params).asResponse());
  expect(await llm.llmCall("Hi", { name: "b" })).toBe("re: b");
  expect(await response.json()).toMatchObject({ type: "message" });
});

test("a call that is cancelled while it waits for its turn rejects with the signal's reason", async () => {
  const file = await tapeOf([line("a", 0, 1), line("b", 0, 2)]);
  const { llm } = await open(file, { mode: "replay" });
  const controller = new AbortController();
  const b = llm.llmCall("Hi", { name: "b", signal: controller.signal });
  await turn();
  controller.abort(new Error("enough"));
  await expect(b).rejects.toThrow("enough");
  expect(await llm.llmCall("Hi", { name: "a" })).toBe("re: a");
});

// Pace

test("pace adds the waiting, and scales a recorded retry-after", async () => {
  const failing = line("a", 0, 40);
  const headers = { "content-type": "application/json", "retry-after": "7" };
  const overloaded = { status: 529, headers, body: { json: { type: "error", error: {} } } };
  const file = await tapeOf([{ ...failing, reply: overloaded }]);
  for (const [pace, wait] of [
    [0, "1"],
    [0.5, "3500"],
  ] as const) {
    const { llm } = await open(file, { mode: "replay", pace });
    const startedAt = performance.now();
    const error = await rejection(llm.llmCall("Hi", { name: "a" }));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(pace * 40 - 2);
    if (!(error instanceof APIError)) throw error;
    expect(error.headers?.get("retry-after-ms")).toBe(wait);
  }
});

test("paced replies keep the tape's order, however long the gaps between them are", async () => {
  const file = await tapeOf([line("a", 0, 60), line("b", 0, 70), line("c", 0, 80)]);
  const { llm } = await open(file, { mode: "replay", pace: 1, quietMs: 5 });
  const ended: string[] = [];
  const call = async (name: string) => void ended.push(await llm.llmCall("Hi", { name }));
  await Promise.all([call("c"), call("b"), call("a")]);
  expect(ended).toEqual(["re: a", "re: b", "re: c"]);
});

test("a paced stream keeps its turn between its events", async () => {
  const events = { "content-type": "text/event-stream" };
  const body = { events: eventsOf({ ...message("one two three") }) };
  const whole = line("a", 0, 160);
  const request = {
    endpoint: "/v1/messages",
    body: { ...Object(whole.request?.body), stream: true },
  };
  const streamed = { ...whole, request, reply: { status: 200, headers: events, body } };
  const file = await tapeOf([streamed, line("b", 0, 161)]);
  const { llm } = await open(file, { mode: "replay", pace: 1, quietMs: 5 });
  const ended: string[] = [];
  const a = llm.llmCall("Hi", { name: "a", onText: (text) => ended.push(text) });
  const b = llm.llmCall("Hi", { name: "b" });
  await Promise.all([a, b.then((text) => ended.push(text))]);
  expect(ended).toEqual(["one ", "two ", "three", "re: b"]);
});

test.each([
  ["told to", { status: 529, headers: { "retry-after-ms": "300" }, body: { text: "" } }],
  ["by itself", undefined],
])(
  "while the SDK waits %s before it tries again, no other reply goes first",
  async (_, failure) => {
    const failed = { ...line("a", 0, 1), outcome: failure ? "replied" : "broken", reply: failure };
    const file = await tapeOf([failed, line("a", 60, 10), line("b", 0, 80)]);
    // Shorter than the wait, and long enough for a busy machine to send what comes after it.
    const options = { mode: "replay", pace: 1, quietMs: 100, maxRetries: 1 } as const;
    const { llm } = await open(file, options);
    const ended: string[] = [];
    const call = async (name: string) => void ended.push(await llm.llmCall("Hi", { name }));
    await Promise.all([call("b"), call("a")]);
    expect(ended).toEqual(["re: a", "re: b"]);
  },
);

test.each([
  ["answered", { outcome: "replied" }, false],
  ["cancelled", { outcome: "cancelled", reply: undefined }, true],
] as const)(
  "a recorded next attempt that was %s is made before a reply goes out that cancels it",
  async (_, ending, wasSent) => {
    const overloaded = { status: 529, headers: { "retry-after-ms": "50" }, body: { text: "" } };
    const failed = { ...line("a", 0, 1), reply: overloaded };
    const file = await tapeOf([failed, line("b", 0, 2), { ...line("a", 60, 10), ...ending }]);
    const { llm, recording } = await open(file, { mode: "replay", pace: 1, maxRetries: 1 });
    const controller = new AbortController();
    const notes: unknown[] = [];
    await observe(
      (e) => e.type === "end" && e.kind === "call" && e.path === "a" && notes.push(e.notes),
      () => {
        const a = rejection(llm.llmCall("Hi", { name: "a", signal: controller.signal }));
        const b = llm.llmCall("Hi", { name: "b" }).then(() => controller.abort());
        return Promise.all([a, b]);
      },
    );
    expect(recording.unused()).toEqual([]);
    const recorded = { begin: 0, ms: 70, estimated: false };
    expect(notes).toMatchObject([{ sent: wasSent, recorded }]);
  },
);

test("a recorded next attempt that nobody makes holds up no other", async () => {
  const overloaded = { status: 529, headers: {}, body: { text: "" } };
  const failed = { ...line("a", 0, 1), reply: overloaded };
  const file = await tapeOf([failed, line("b", 0, 2), line("a", 3, 4)]);
  const { llm, recording } = await open(file, { mode: "replay", quietMs: 20 });
  const a = rejection(llm.llmCall("Hi", { name: "a" }));
  expect(await llm.llmCall("Hi", { name: "b" })).toBe("re: b");
  expect(await a).toBeInstanceOf(APIError);
  expect(recording.unused()).toEqual(["a"]);
});

test("a call cancelled while the SDK waits before its next attempt lets the next one go", async () => {
  const overloaded = { status: 529, headers: { "retry-after": "600" }, body: { text: "" } };
  const failed = { ...line("a", 0, 1), reply: overloaded };
  const file = await tapeOf([failed, line("b", 0, 2), line("a", 3, 4)]);
  const { llm } = await open(file, { mode: "replay", pace: 1, maxRetries: 1 });
  const controller = new AbortController();
  const a = rejection(llm.llmCall("Hi", { name: "a", signal: controller.signal }));
  const b = llm.llmCall("Hi", { name: "b" });
  for (let i = 0; i < 200; i++) await turn();
  controller.abort(new Error("enough"));
  expect(await a).toEqual(new Error("enough"));
  expect(await b).toBe("re: b");
});

test("a call cancelled while its recorded time passes lets the next one go", async () => {
  const file = await tapeOf([line("a", 0, 600_000), line("b", 0, 600_001)]);
  const { llm } = await open(file, { mode: "replay", pace: 1 });
  const controller = new AbortController();
  const a = rejection(llm.llmCall("Hi", { name: "a", signal: controller.signal }));
  const b = llm.llmCall("Hi", { name: "b" });
  for (let i = 0; i < 50; i++) await turn();
  controller.abort(new Error("enough"));
  expect(await a).toEqual(new Error("enough"));
  expect(await b).toBe("re: b");
});

// Cancelled calls

test("a replayed call says that it was sent only where it was cancelled when it was recorded", async () => {
  const file = await tapeFile();
  await recordVote(file, [0, 1, 2, 3, 4]);
  const { llm } = await open(file, { mode: "replay" });
  const sent = new Map<string, unknown>();
  await observe(
    (e) => e.type === "end" && e.kind === "call" && sent.set(e.path, noteOf(e, "sent")),
    () => vote(llm),
  );
  const told = [...sent].map(([path, said]) => [Number(/\d+/.exec(path)?.[0]), said]);
  expect(told.toSorted()).toEqual([...Array(9).keys()].map((i) => [i, i > 4]));
});

test("a cancelled call is on the tape as cancelled, one cancelled in the door's queue too", async () => {
  const file = await tapeFile();
  const server = await startServer(onlyVoters(0, 1, 2, 3, 4));
  const options = { baseURL: server.url, concurrency: 2 };
  const first = await open(file, { mode: "record", ...options });
  const recorded = await eventsIn(() => vote(first.llm));
  const lines = await linesOf(file);
  const cancelled = lines.filter(({ outcome }) => outcome === "cancelled");
  expect(lines).toHaveLength(9);
  expect(lines.slice(0, 5).every(({ outcome }) => outcome === "replied")).toBe(true);
  expect(cancelled.map(({ path }) => path).toSorted()).toEqual(
    [5, 6, 7, 8].map((i) => `vote/voter[${i}]`),
  );
  expect(server.requests.length).toBeLessThan(9);
  // Those that were never sent have no request.
  expect(cancelled.filter(({ request }) => request)).toHaveLength(server.requests.length - 5);
  for (let i = 0; i < 20; i++) {
    const { llm, recording } = await open(file, { mode: "replay", concurrency: 2 });
    expect(await eventsIn(() => vote(llm))).toEqual(recorded);
    expect(recording.unused()).toEqual([]);
  }
});

test("a cancelled call that nobody cancels in replay is an error that names it", async () => {
  const file = await tapeFile();
  await recordVote(file, [0, 1, 2, 3, 4]);
  const { llm } = await open(file, { mode: "replay", quietMs: 20 });
  const asked = (i: number) =>
    step("vote", () => step(`voter[${i}]`, () => llm.llmCall(`Voter ${i}: yes or no?`)));
  const error = await rejection(Promise.all([asked(0), asked(7)]));
  expect(error).toBeInstanceOf(RecordingError);
  expect(String(error)).toBe(
    "RecordingError: vote/voter[7] was cancelled when it was recorded, and now nobody cancels it",
  );
});

test("a stream cancelled by its reader plays what had come, and stays open until it's cancelled", async () => {
  const file = await tapeFile();
  const server = await startServer(partly("one two three", hold));
  const run = async ({ llmCall }: Llm) => {
    const controller = new AbortController();
    const texts: string[] = [];
    const onText = (text: string) => {
      texts.push(text);
      controller.abort(new Error("seen enough"));
    };
    const error = await rejection(llmCall("Hi", { name: "a", signal: controller.signal, onText }));
    return [...texts, String(error)];
  };
  const first = await open(file, { mode: "record", baseURL: server.url });
  const recorded = await run(first.llm);
  await first.recording.close();
  expect(recorded).toEqual(["one ", "Error: seen enough"]);
  expect(first.recording.calls).toMatchObject([{ outcome: "cancelled", status: 200 }]);
  const second = await open(file, { mode: "replay" });
  expect(await run(second.llm)).toEqual(recorded);
  const third = await open(file, { mode: "replay", quietMs: 20 });
  await expect(third.llm.llmCall("Hi", { name: "a", onText: () => {} })).rejects.toThrow(
    "a was cancelled when it was recorded, and now nobody cancels it",
  );
});

test("a call cancelled between two attempts is on the tape, and replays", async () => {
  const file = await tapeFile();
  const server = await startServer(hold);
  const run = async ({ llmCall }: Llm) => {
    const controller = new AbortController();
    const a = llmCall("Hi", { name: "a", signal: controller.signal });
    const b = llmCall("Hi", { name: "b" }).then(() => controller.abort(new Error("b was first")));
    return [String(await rejection(a)), await b];
  };
  const first = await open(file, { mode: "record", baseURL: server.url, maxRetries: 2 });
  const running = run(first.llm);
  const [a, b] = [await server.received(1), await server.received(2)];
  fails(429, { "retry-after": "3600" })(a);
  while ((await linesOf(file)).length === 0) await turn();
  reply("b")(b);
  const recorded = await running;
  expect(recorded[0]).toBe("Error: b was first");
  const { calls } = first.recording;
  expect(calls.map(({ path, outcome, status }) => [path, outcome, status])).toEqual([
    ["a", "replied", 429],
    ["b", "replied", 200],
    ["a", "cancelled", undefined],
  ]);
  const second = await open(file, { mode: "replay", maxRetries: 2 });
  expect(await run(second.llm)).toEqual(recorded);
});

// Resuming

/** Asks `Hi` in these steps, one after the other. */
async function askAll({ llmCall }: Llm, ...names: readonly string[]): Promise<string[]> {
  const replies: string[] = [];
  for (const name of names) replies.push(await llmCall("Hi", { name }));
  return replies;
}

test("resume replays what succeeded and calls the rest, once", async () => {
  const failed = line("b", 1, 1);
  const file = await tapeOf([
    line("a", 0, 100_000),
    { ...failed, reply: { status: 529, headers: {}, body: { text: "" } } },
    { path: "c", begin: 2, ms: 1, outcome: "cancelled" },
  ]);
  const server = await startServer(reply("new"));
  const first = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(first.llm, "a", "b", "c")).toEqual(["re: a", "new", "new"]);
  await first.recording.close();
  expect(server.requests).toHaveLength(2);
  const [a, b] = first.recording.calls;
  expect(b?.begin).toBeGreaterThanOrEqual((a?.begin ?? 0) + (a?.ms ?? 0));

  const second = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(second.llm, "a", "b", "c")).toEqual(["re: a", "new", "new"]);
  expect(server.requests).toHaveLength(2);
  expect(second.recording.unused()).toEqual([]);

  const third = await open(file, { mode: "replay" });
  expect(await askAll(third.llm, "a", "b", "c")).toEqual(["re: a", "new", "new"]);
  expect(third.recording.unused()).toEqual([]);
});

test("a tape of 130,000 lines is gone on with", async () => {
  const request = { endpoint: "/v1/messages/count_tokens", body: null };
  const counted = { status: 200, headers: {}, body: { json: { input_tokens: 5 } } };
  const one = { path: "a", begin: 1, ms: 0, outcome: "replied", request, reply: counted };
  const failed = { ...one, reply: { ...counted, status: 529 } };
  const file = await tapeOf([failed, ...Array(130_000).fill(one)], "transcribed");
  const { recording } = await open(file, { mode: "resume" });
  expect(recording.calls).toHaveLength(130_000);
  await recording.close();
});

test("resume counts a stream that was cut, and a reply that was cut, as absent", async () => {
  const stream = { ...line("a", 0, 1) };
  const events = { "content-type": "text/event-stream" };
  const file = await tapeOf([
    { ...stream, reply: { status: 200, headers: events, body: { events: ["event: ping\n\n"] } } },
    {
      ...line("b", 0, 1),
      reply: {
        status: 200,
        headers: { "content-type": "application/json" },
        body: { text: '{"type":' },
      },
    },
  ]);
  const server = await startServer(reply("whole"));
  const { llm } = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(llm, "a", "b")).toEqual(["whole", "whole"]);
});

const JSON_TYPE = { "content-type": "application/json" };

test.each([
  ["text", { status: 200, headers: { "content-type": "text/plain" }, body: { text: "Hello" } }],
  ["nothing", { status: 200, headers: { "content-type": "text/plain" }, body: { text: "" } }],
  ["bytes", { status: 200, headers: {}, body: { base64: "/w==" } }],
  ["other JSON", { status: 200, headers: JSON_TYPE, body: { json: { ok: true } } }],
  ["null", { status: 200, headers: JSON_TYPE, body: { json: null } }],
  [
    "a message without usage",
    { status: 200, headers: JSON_TYPE, body: { json: { type: "message", content: [] } } },
  ],
  [
    "a stream without a message",
    { status: 200, headers: {}, body: { events: ["event: message_stop\ndata: {}\n\n"] } },
  ],
])("resume counts a success that is no message as absent: %s", async (_, useless) => {
  const file = await tapeOf([{ ...line("a", 0, 1), reply: useless }, line("b", 0, 1)]);
  const server = await startServer(reply("whole"));
  const first = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(first.llm, "b", "a")).toEqual(["re: b", "whole"]);
  await first.recording.close();
  const again = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(again.llm, "b", "a")).toEqual(["re: b", "whole"]);
  expect(server.requests).toHaveLength(1);
});

test("resume takes other endpoints' replies as they are", async () => {
  const counted = { status: 200, headers: JSON_TYPE, body: { json: { input_tokens: 5 } } };
  const request = { endpoint: "/v1/messages/count_tokens", body: { messages: [], model: "m" } };
  const file = await tapeOf([{ ...line("call", 0, 1), request, path: "", reply: counted }]);
  const recording = await openRecording(file, { mode: "resume" });
  const client = recordedClient(recording, { apiKey: "none", baseURL: "http://127.0.0.1:1" });
  expect(await client.messages.countTokens({ messages: [], model: "m" })).toMatchObject({
    input_tokens: 5,
  });
});

test("resume refuses a different request at a recorded path before it's paid", async () => {
  const file = await tapeOf([line("a", 0, 1)]);
  const server = await startServer(reply("new"));
  const { llm } = await open(file, { mode: "resume", baseURL: server.url });
  await expect(llm.llmCall("Ho", { name: "a" })).rejects.toThrow(
    "a has changed since it was recorded: messages[0].content, line 1:\n  recorded: Hi\n  now:      Ho",
  );
  expect(server.requests).toHaveLength(0);
});

test("resume without a tape records", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("new"));
  const { llm } = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(llm, "a")).toEqual(["new"]);
  expect((await linesOf(file)).map(({ path }) => path)).toEqual(["a"]);
});

test.each([
  ["is cut off when it's torn", (text: string) => text.slice(0, 100), ["re: a", "new"]],
  ["is cut off when it's torn inside a character", (text: string) => text, ["re: a", "new"]],
  ["counts when only its newline is missing", (text: string) => text, ["re: a", "re: b"]],
])("in resume, a last line %s", async (title, tear, expected) => {
  const whole = JSON.stringify(line("b", 1, 1));
  const file = await tapeOf([line("a", 0, 1)]);
  const start = await readFile(file);
  const last = title.includes("character")
    ? Buffer.from('{"path":"é').subarray(0, -1)
    : Buffer.from(tear(whole));
  await writeFile(file, Buffer.concat([start, last]));
  const server = await startServer(reply("new"));
  const { llm, recording } = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(llm, "a", "b")).toEqual(expected);
  await recording.close();
  const again = await open(file, { mode: "resume", baseURL: server.url });
  expect(await askAll(again.llm, "a", "b", "c")).toEqual([...expected, "new"]);
  expect((await linesOf(file)).map(({ path }) => path)).toEqual(["a", "b", "c"]);
});

test("in resume, a decided vote doesn't buy its losers again", async () => {
  const file = await tapeFile();
  const recorded = await recordVote(file, [7, 2, 8, 0, 4]);
  const server = await startServer(reply("late"));
  const { llm } = await open(file, { mode: "resume", baseURL: server.url });
  expect(await vote(llm)).toEqual(recorded.replies);
  expect(server.requests).toHaveLength(0);
  // One loser was killed before it could be cancelled: it is not bought again either.
  const lines = await linesOf(file);
  const killed = await tapeOf(lines.filter(({ path }) => path !== "vote/voter[6]"));
  const again = await open(killed, { mode: "resume", baseURL: server.url });
  expect(await vote(again.llm)).toEqual(recorded.replies);
  expect(server.requests).toHaveLength(0);
});

test("in resume, an undecided vote calls exactly the voters that are missing", async () => {
  const file = await tapeFile();
  await recordVote(file, [7, 2, 8, 0, 4]);
  const killed = await tapeOf((await linesOf(file)).slice(0, 3));
  const server = await startServer(reply("new"));
  const { llm } = await open(killed, { mode: "resume", baseURL: server.url });
  const replies = await vote(llm);
  expect(replies).toHaveLength(5);
  expect(replies.filter((text) => text !== "new").toSorted()).toEqual(["2", "7", "8"]);
  const asked = server.requests.map(({ body }) => JSON.stringify(body));
  expect(asked.some((text) => /Voter [278]/.test(text))).toBe(false);
});

test("in resume, live calls don't wait for ever for a reply that nobody asks for", async () => {
  const file = await tapeOf([line("a", 0, 1), line("b", 0, 2)]);
  const server = await startServer(reply("new"));
  const { llm, recording } = await open(file, { mode: "resume", baseURL: server.url, quietMs: 20 });
  expect(await askAll(llm, "c", "d", "b")).toEqual(["new", "new", "re: b"]);
  expect(recording.unused()).toEqual(["a"]);
});

test("in resume, a call cancelled while it waits for the tape's replies is never sent", async () => {
  const file = await tapeOf([line("a", 0, 1)]);
  const server = await startServer(reply("new"));
  const { llm, recording } = await open(file, { mode: "resume", baseURL: server.url });
  const controller = new AbortController();
  const sent: unknown[] = [];
  const b = observe(
    (e) => e.type === "end" && e.kind === "call" && sent.push(noteOf(e, "sent")),
    () => llm.llmCall("Hi", { name: "b", signal: controller.signal }),
  );
  for (let i = 0; i < 50; i++) await turn();
  controller.abort(new Error("enough"));
  await expect(b).rejects.toThrow("enough");
  expect(sent).toEqual([false]);
  expect(server.requests).toHaveLength(0);
  await recording.close();
  expect((await linesOf(file)).map(({ path, outcome }) => [path, outcome])).toEqual([
    ["a", "replied"],
    ["b", "cancelled"],
  ]);
});

// Estimated times

const tokens = (output_tokens: number) => ({ usage: { ...message("").usage, output_tokens } });
const estimate = (count: number) => FIRST_TOKEN_MS + (count / OUTPUT_TOKENS_PER_SECOND) * 1000;

test("where the replies weren't recorded from the API, times are estimated and marked as such", async () => {
  // Written in the order a, b; each answer took minutes, c was asked for after a, d was cancelled by c.
  const lines = [
    line("a", 0, 90_000, tokens(120)),
    line("b", 1, 200_000, tokens(30)),
    line("c", 90_000, 160_000, tokens(60)),
    { path: "d", begin: 90_001, ms: 160_000, outcome: "cancelled" },
  ];
  const file = await tapeOf(lines, "transcribed");
  const { recording, llm } = await open(file, { mode: "replay" });
  const c = { path: "c", begin: estimate(120), ms: estimate(60) };
  expect(recording.calls).toMatchObject([
    { path: "a", begin: 0, ms: estimate(120), estimated: true },
    { path: "b", begin: 0, ms: estimate(30), estimated: true },
    { ...c, estimated: true },
    { path: "d", begin: estimate(120), ms: estimate(60), outcome: "cancelled", estimated: true },
  ]);
  const ended: string[] = [];
  const call = async (name: string) => void ended.push(await llm.llmCall("Hi", { name }));
  const notes: unknown[] = [];
  await observe(
    (e) => e.type === "end" && e.kind === "call" && notes.push(noteOf(e, "recorded")),
    () => Promise.all([call("a").then(() => call("c")), call("b")]),
  );
  // b's answer is short, so it comes first.
  expect(ended).toEqual(["re: b", "re: a", "re: c"]);
  expect(notes[1]).toEqual({ begin: 0, ms: estimate(120), estimated: true });
});

test("an estimated call begins after those that had ended, in whatever order they are on the tape", async () => {
  const file = await tapeOf(
    [
      line("late", 0, 200_000, tokens(30)),
      line("early", 0, 100_000, tokens(120)),
      line("after both", 200_000, 1, tokens(0)),
      line("after early", 100_000, 1, tokens(0)),
    ],
    "transcribed",
  );
  const { recording } = await open(file, { mode: "replay" });
  expect(recording.calls.map(({ path, begin }) => [path, begin])).toEqual([
    ["late", 0],
    ["early", 0],
    ["after both", estimate(120)],
    ["after early", estimate(120)],
  ]);
});
