/**
 * The door: what is sent, what passes for an answer, what waits, and what a call that was cancelled gives.
 *
 * From effective-agents 0.1.0: test/llm-call.test.ts
 */
import { getEventListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import Anthropic, { AnthropicError, BadRequestError, type Middleware } from "@anthropic-ai/sdk";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { expect, onTestFinished, test, vi } from "vitest";
import { HaltError, LlmOutputError, RecordingError } from "../patterns/errors.ts";
import { follow } from "../patterns/fan-out.ts";
import {
  type CallOptions,
  createLlm,
  type Layer,
  type LlmCall,
  type LlmOptions,
  withSignal,
} from "../patterns/llm-call.ts";
import { currentPath, observe, type RunEvent, step } from "../patterns/step.ts";
import {
  type Answer,
  type Exchange,
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
  type TestServer,
  type Wire,
  ways,
} from "./shared/server.ts";

const EVENTS = "text/event-stream";

/** A door to a local server with these answers. */
async function open(answers: Answer | readonly Answer[], options: LlmOptions = {}) {
  const [first = hold, ...more] = typeof answers === "function" ? [answers] : answers;
  const server = await startServer(first, ...more);
  return { server, ...createLlm({ client: server.client(), ...options }) };
}

function bodies({ requests }: TestServer) {
  return requests.map(({ body }) => body);
}

test("sends the prompt with the default model and max_tokens, and gives the reply's text", async () => {
  const { server, llmCall } = await open(reply("4"));
  expect(await llmCall("2 + 2?")).toBe("4");
  expect(server.requests[0]?.url).toBe("/v1/messages");
  expect(bodies(server)).toEqual([
    {
      model: "claude-sonnet-5-5",
      max_tokens: 16_000,
      messages: [{ role: "user", content: "2 + 2?" }],
      stream: false,
    },
  ]);
});

test("sends messages and gives the whole message, untouched", async () => {
  const { server, llmMessage } = await open(reply("4"));
  const messages = [{ role: "user" as const, content: "2 + 2?" }];
  expect(await llmMessage({ messages })).toMatchObject({
    ...message("4"),
    content: [{ text: "4" }],
  });
  expect(bodies(server)).toMatchObject([
    { model: "claude-sonnet-5-5", max_tokens: 16_000, messages },
  ]);
});

test("lets a door's parameters beat the defaults, and a call's beat the door's", async () => {
  const { server, llmCall } = await open(reply("4"), {
    model: "claude-opus-5-5",
    system: "Be brief",
  });
  await llmCall("Hi");
  await llmCall("Hi", { model: "claude-haiku-5-5", max_tokens: 7 });
  expect(bodies(server)).toMatchObject([
    { model: "claude-opus-5-5", system: "Be brief", max_tokens: 16_000 },
    { model: "claude-haiku-5-5", system: "Be brief", max_tokens: 7 },
  ]);
});

test("doesn't let an option that is undefined hide a default", async () => {
  const { server, ...llm } = await open(reply("4"), {
    model: "claude-opus-5-5",
    max_tokens: undefined,
  });
  const nothing = { model: undefined, max_tokens: undefined, system: undefined, onText: undefined };
  await llm.llmCall("Hi", { ...nothing, name: undefined, signal: undefined });
  await llm.llmMessage({ ...nothing, messages: [{ role: "user", content: "Hi" }] });
  const bare = llm.with({
    model: undefined,
    client: undefined,
    layers: undefined,
    idleMs: undefined,
  });
  await bare.llmCall("Hi");
  const messages = [{ role: "user", content: "Hi" }];
  const expected = { model: "claude-opus-5-5", max_tokens: 16_000, messages, stream: false };
  expect(bodies(server)).toEqual([expected, expected, expected]);
});

test("passes the API's parameters on as they are", async () => {
  const { server, llmCall } = await open(reply("4"));
  const params = {
    system: [
      { type: "text" as const, text: "Be brief", cache_control: { type: "ephemeral" as const } },
    ],
    thinking: { type: "adaptive" as const },
    stop_sequences: ["END"],
    output_config: { effort: "low" as const },
    metadata: { user_id: "7" },
    cache_control: { type: "ephemeral" as const },
    tools: [{ name: "look", input_schema: { type: "object" as const } }],
    tool_choice: { type: "none" as const },
    max_tokens: 7,
  };
  await llmCall("Hi", params);
  expect(bodies(server)).toMatchObject([params]);
});

test("keeps its own options out of the request", async () => {
  const options = { concurrency: 2, idleMs: 1000, layers: [] };
  const { server, llmCall } = await open(reply("4"), options);
  const { signal } = new AbortController();
  await llmCall("Hi", { name: "hi", signal, onText: () => {} });
  expect(Object.keys(bodies(server)[0] ?? {}).sort()).toEqual([
    "max_tokens",
    "messages",
    "model",
    "stream",
  ]);
});

test("takes content blocks as the prompt", async () => {
  const { server, llmCall } = await open(reply("A cat"));
  const prompt = [
    { type: "text" as const, text: "What is this?" },
    { type: "image" as const, source: { type: "url" as const, url: "https://example.com/a.png" } },
  ];
  await llmCall(prompt);
  expect(bodies(server)).toMatchObject([{ messages: [{ role: "user", content: prompt }] }]);
});

test.for([
  ["", '""'],
  [" \n\t", '" \\n\\t"'],
  [[], "[]"],
  [null, "null"],
  [undefined, "undefined"],
  [5, "5"],
  [Number.NaN, "NaN"],
  [{}, "{}"],
])(
  "refuses the prompt %j before any request, saying the rule and the value",
  async ([prompt, got]) => {
    const { server, llmCall } = await open(reply("4"));
    const error = await rejection(llmCall(prompt as string)); // what callers without types hand in
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toHaveProperty(
      "message",
      `The prompt must be a text with something in it, or a list of content blocks, got ${got}`,
    );
    expect(server.requests).toEqual([]);
  },
);

test.for([Number.NaN, Number.POSITIVE_INFINITY, -5, 1.5, "7", null])(
  "refuses %j as max_tokens before any layer and request, the door's own too",
  async (bad) => {
    const max_tokens = bad as number;
    const layer: Layer = () => async () => message("from a layer");
    const {
      server,
      llmCall,
      llmMessage,
      with: change,
    } = await open(reply("4"), {
      layers: [layer],
    });
    const messages = [{ role: "user" as const, content: "Hi" }];
    const errors = await Promise.all([
      rejection(llmCall("Hi", { max_tokens })),
      rejection(llmMessage({ max_tokens, messages })),
      rejection(change({ max_tokens }).llmCall("Hi")),
    ]);
    for (const error of errors) {
      expect(error).toBeInstanceOf(RangeError);
      expect(String(error)).toMatch(/max_tokens must be a whole number of at least [01], got ./);
    }
    expect(server.requests).toEqual([]);
  },
);

test("lets agents fill the cache with max_tokens 0, which can give no text", async () => {
  const { server, llmCall, llmMessage } = await open(reply([], { stop_reason: "max_tokens" }));
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect(await llmMessage({ max_tokens: 0, messages })).toMatchObject({ content: [] });
  expect(await rejection(llmCall("Hi", { max_tokens: 0 }))).toMatchObject({
    name: "RangeError",
    message: "max_tokens must be a whole number of at least 1, got 0",
  });
  expect(server.requests).toHaveLength(1);
});

test.for(["", "a/b", "a#2"])("refuses a call named %j before any request", async (name) => {
  const { server, llmCall, llmMessage } = await open(reply("4"));
  expect(await rejection(llmCall("Hi", { name }))).toBeInstanceOf(TypeError);
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect(await rejection(llmMessage({ messages }, { name }))).toBeInstanceOf(TypeError);
  expect(server.requests).toEqual([]);
});

const badCounts = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "4", null];

test.for(badCounts)(
  "refuses %j as concurrency and as idleMs, saying the rule and the value",
  (bad) => {
    const value = bad as number; // what callers without types hand in
    expect(() => createLlm({ concurrency: value })).toThrow(RangeError);
    expect(() => createLlm({ concurrency: value })).toThrow(
      `concurrency must be a whole number of at least 1, got ${bad === "4" ? '"4"' : bad}`,
    );
    expect(() => createLlm({ idleMs: value })).toThrow(RangeError);
    expect(() => createLlm({ idleMs: value })).toThrow(/idleMs .* got/);
    expect(() => createLlm().with({ idleMs: value })).toThrow(RangeError);
  },
);

test("refuses an idleMs that is longer than a timer can wait", () => {
  expect(() => createLlm({ idleMs: 2 ** 31 })).toThrow(RangeError);
  createLlm({ idleMs: 2 ** 31 - 1 });
});

for (const { way, onText } of ways) {
  test.for(["end_turn", "stop_sequence"])(
    `gives the text of a reply that ended with %s, ${way}`,
    async (stop_reason) => {
      const { llmCall } = await open(reply("Hello there", { stop_reason }));
      expect(await llmCall("Hi", { onText })).toBe("Hello there");
    },
  );

  test.for([
    ["max_tokens", "cut off"],
    ["refusal", "refused"],
    ["tool_use", "calls a tool"],
    ["model_context_window_exceeded", "context window"],
    ["something_new", 'Unknown stop reason "something_new"'],
    [null, "Unknown stop reason null"],
    ["compaction", 'Unknown stop reason "compaction"'],
  ] as const)(
    `throws for a reply that ended with %s, with its text, ${way}`,
    async ([stop_reason, why]) => {
      const { server, llmCall } = await open(reply("Half a", { stop_reason }));
      const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
      expect(error).toBeInstanceOf(LlmOutputError);
      expect(error).toMatchObject({ path: "ask", text: "Half a", stopReason: stop_reason });
      expect(error).toHaveProperty("message", expect.stringContaining(why));
      expect(server.requests).toHaveLength(1);
    },
  );

  test.for([
    "end_turn",
    "stop_sequence",
    "max_tokens",
    "refusal",
    "tool_use",
    "pause_turn",
    "model_context_window_exceeded",
  ])(`gives agents a message that ended with %s, ${way}`, async (stop_reason) => {
    const { server, llmMessage } = await open(reply([], { stop_reason }));
    const messages = [{ role: "user" as const, content: "Hi" }];
    expect(await llmMessage({ messages }, { onText })).toMatchObject({ content: [], stop_reason });
    expect(server.requests).toHaveLength(1);
  });

  test.for(["something_new", null, "compaction"])(
    `throws for agents when a message ended with %s, ${way}`,
    async (stop_reason) => {
      const { llmMessage } = await open(reply("Hm", { stop_reason }));
      const error = await rejection(
        llmMessage({ messages: [{ role: "user", content: "Hi" }] }, { onText }),
      );
      expect(error).toBeInstanceOf(LlmOutputError);
      expect(error).toMatchObject({ stopReason: stop_reason, text: "Hm", path: "call" });
    },
  );

  test(`sends what carries betas to the beta API, where compaction is known, ${way}`, async () => {
    const betas = ["compact-2026-01-12"];
    const { server, llmMessage, llmCall } = await open(reply("Hm", { stop_reason: "compaction" }));
    const got = await llmMessage(
      { betas, messages: [{ role: "user", content: "Hi" }] },
      { onText },
    );
    expect(got.stop_reason).toBe("compaction");
    expect(server.requests[0]).toMatchObject({
      headers: { "anthropic-beta": expect.stringContaining("compact-2026-01-12") },
    });
    expect(bodies(server)[0]).not.toHaveProperty("betas");
    const error = await rejection(llmCall("Hi", { betas, onText }));
    expect(error).toMatchObject({ name: "LlmOutputError", stopReason: "compaction", text: "Hm" });
  });

  test.for([
    { content: [] },
    { content: [{ type: "text", text: "" }] },
    { content: [{ type: "text", text: " \n" }] },
    { content: [{ type: "text", text: "\u200b\ufeff" }] },
    { content: [{ type: "thinking", thinking: "Hm", signature: "s" }] },
  ])(`throws for the empty reply %j, ${way}`, async ({ content }) => {
    const { llmCall } = await open(reply(content));
    expect(await rejection(llmCall("Hi", { onText }))).toMatchObject({
      name: "LlmOutputError",
      message: "call: The reply is empty",
      stopReason: "end_turn",
    });
  });

  test(`joins the text blocks of a reply and leaves thinking out, ${way}`, async () => {
    const { llmCall } = await open(
      reply([
        { type: "thinking", thinking: "Let me think", signature: "s" },
        { type: "text", text: "One, " },
        { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "x" } },
        { type: "text", text: "two" },
      ]),
    );
    expect(await llmCall("Hi", { onText })).toBe("One, two");
  });

  test(`says what a refusal was for, ${way}`, async () => {
    const stop_details = { type: "refusal", category: "cyber", explanation: null };
    const { llmCall } = await open(reply([], { stop_reason: "refusal", stop_details }));
    const error = await rejection(llmCall("Hi", { onText }));
    expect(error).toMatchObject({
      message: "call: The model refused (cyber)",
      stopReason: "refusal",
    });
  });

  test(`sends a paused turn back unchanged, through the layers each time, ${way}`, async () => {
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "x" } };
    const thought = { type: "thinking", thinking: "Hm", signature: "s" };
    const first = [thought, { type: "text", text: "Look: " }, search];
    const paused = { stop_reason: "pause_turn" };
    const seen: string[] = [];
    const layer: Layer = (next) => async (params, call) => {
      seen.push(currentPath());
      return next(params, call);
    };
    const { server, llmCall } = await open(
      [reply(first, paused), reply("more, ", paused), reply("done")],
      { layers: [layer] },
    );
    const params = {
      system: "Be brief",
      tools: [{ name: "look", input_schema: { type: "object" as const } }],
    };
    const text = await step("ask", () => llmCall("Hi", { ...params, onText }));
    expect(text).toBe("Look: more, done");
    const user = { role: "user", content: "Hi" };
    const turn1 = { role: "assistant", content: first };
    const turn2 = { role: "assistant", content: [{ type: "text", text: "more, " }] };
    expect(bodies(server)).toMatchObject([
      { ...params, messages: [user] },
      { ...params, messages: [user, turn1] },
      { ...params, messages: [user, turn1, turn2] },
    ]);
    expect(seen).toEqual(["ask", "ask", "ask"]);
  });

  test(`gives up on a turn that is paused again and again, with its text, ${way}`, async () => {
    const { server, llmCall } = await open(reply("so ", { stop_reason: "pause_turn" }));
    const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ path: "ask", stopReason: "pause_turn", text: "so ".repeat(6) });
    expect(server.requests).toHaveLength(6);
  });

  test.for([
    ["an HTML page", raw("<html>Welcome</html>", { headers: { "content-type": "text/html" } })],
    ["an HTML page said to be JSON", raw("<html>Welcome</html>", {})],
    ["an error object", raw('{"type":"error","error":{"type":"api_error","message":"x"}}', {})],
    ["an empty body", raw("", {})],
    [
      "an empty body of unknown length",
      ({ response }) =>
        void response
          .writeHead(200, { "content-type": "application/json" })
          .write("", () => response.end()),
    ],
    ["no content (204)", ({ response }) => void response.writeHead(204).end()],
    ["null", raw("null", {})],
    ["a number", raw("7", {})],
    ["a list", raw("[]", {})],
    ["another object", raw('{"choices":[]}', {})],
    ["a message without content", raw('{"type":"message","usage":{"input_tokens":1}}', {})],
    [
      "a message without usage",
      raw('{"type":"message","content":[],"stop_reason":"end_turn"}', {}),
    ],
    [
      "a message with usage null",
      raw('{"type":"message","content":[],"stop_reason":"end_turn","usage":null}', {}),
    ],
    ["a message without a model", wire({ model: undefined })],
    ["a message with a model that is no text", wire({ model: 5 })],
    ["a message with no block in a place", wire({ content: [null] })],
    ["a message with a number for a block", wire({ content: [7] })],
    ["a message with a block without a type", wire({ content: [{ text: "Hi" }] })],
    ["a text block without text", wire({ content: [{ type: "text" }] })],
    ["a text block with a number", wire({ content: [{ type: "text", text: 5 }] })],
    ["a thinking block without thoughts", wire({ content: [{ type: "thinking" }] })],
    ["cut JSON", raw('{"type":"message","content":[{"type":"te', {})],
  ] satisfies [string, Answer][])(`throws for %s with status 200, ${way}`, async ([, answer]) => {
    const { server, llmCall, llmMessage } = await open(answer);
    const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ path: "ask", stopReason: null });
    const messages = [{ role: "user" as const, content: "Hi" }];
    expect(await rejection(llmMessage({ messages }, { onText }))).toBeInstanceOf(LlmOutputError);
    expect(server.requests).toHaveLength(2);
  });
}

test("shows what came instead of a message, whole in the error's text", async () => {
  const page = `<html>${"x".repeat(500)}</html>`;
  const { llmCall } = await open(raw(page, { headers: { "content-type": "text/html" } }));
  const error = await rejection(llmCall("Hi"));
  expect(error).toMatchObject({ text: page });
  expect(String(error)).toContain("not a message: <html>xxx");
});

test.for([
  ["an HTML page", "<html>Welcome</html>", { headers: { "content-type": "text/html" } }],
  ["an HTML page said to be JSON", "<html>Welcome</html>", {}],
  ["an HTML page said to be events", "<p>\n</p>", { headers: { "content-type": EVENTS } }],
  ["an error object", '{ "type": "error", "error": { "type": "x" } }', {}],
  ["a message without content", '{"type": "message"}', {}],
  ["null", "null", {}],
  ["cut JSON", '{"type":"message","content":[{"type":"text","text":"The answer is 4', {}],
  ["an empty body", "", {}],
  ["no content (204)", "", { status: 204 }],
] as const)("gives the same error for %s, streamed or not, with all that came", async (given) => {
  const [, body, rest] = given;
  for (const { onText } of ways) {
    const { llmCall } = await open(raw(body, rest));
    const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ path: "ask", stopReason: null, text: body });
  }
});

test("keeps 100 kB of a page that came instead of a stream", async () => {
  const page = `<html>\n${"é".repeat(100_000)}`;
  const { llmCall } = await open(raw(page, { headers: { "content-type": "text/html" } }));
  const error = await rejection(llmCall("Hi", { onText: () => {} }));
  const text = Buffer.from(page).subarray(0, 100_000).toString();
  expect(error).toMatchObject({ name: "LlmOutputError", text });
});

const textBlock = { index: 0, content_block: { type: "text", text: "" } };
const thoughtBlock = { index: 0, content_block: { type: "thinking", thinking: "" } };
const oddPieces = [
  [textBlock, { type: "text_delta" }],
  [textBlock, { type: "text_delta", text: 5 }],
  [textBlock, { type: "text_delta", text: null }],
  [
    { index: 0, content_block: { type: "text", text: 5 } },
    { type: "text_delta", text: "x" },
  ],
  [
    { index: 0, content_block: null },
    { type: "text_delta", text: "x" },
  ],
  [thoughtBlock, { type: "thinking_delta" }],
  [
    { index: 0, content_block: { type: "thinking" } },
    { type: "thinking_delta", thinking: "x" },
  ],
  [textBlock, {}],
  [textBlock, null],
] as const;

test.for(oddPieces)("throws for a streamed block %j with the piece %j", async ([block, delta]) => {
  const events = eventsOf({ ...message("Hello there") });
  const last = { ...block, index: 1 };
  const odd = [
    event("content_block_start", last),
    event("content_block_delta", { index: 1, delta }),
    // A piece of a block that isn't the last one is no text for the SDK's listeners.
    event("content_block_delta", { index: 0, delta }),
  ];
  events.splice(5, 0, ...odd);
  const { llmCall, llmMessage } = await open(
    raw(events.join(""), { headers: { "content-type": EVENTS } }),
  );
  const pieces: unknown[] = [];
  const onText = (text: string) => pieces.push(text);
  const error = await rejection(llmCall("Hi", { onText }));
  expect(error).toMatchObject({
    name: "LlmOutputError",
    message: expect.stringMatching(/^call: /),
  });
  expect(String(error)).not.toContain("undefined");
  expect(pieces.slice(0, 2)).toEqual(["Hello ", "there"]);
  expect(pieces.every((text) => typeof text === "string")).toBe(true);
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect(await rejection(llmMessage({ messages }, { onText }))).toBeInstanceOf(LlmOutputError);
});

test("gives agents a tool call as it came, streamed or not, cut off or not", async () => {
  const content = [{ type: "tool_use", id: "t1", name: "write", input: { path: "a", n: [1] } }];
  for (const { onText } of ways) {
    for (const stop_reason of ["tool_use", "max_tokens"]) {
      const { llmMessage } = await open(reply(content, { stop_reason }));
      const got = await llmMessage({ messages: [{ role: "user", content: "Hi" }] }, { onText });
      expect(got).toMatchObject({ content, stop_reason });
    }
  }
});

test("throws for a streamed tool call whose input is no JSON", async () => {
  const events = eventsOf({
    ...message(""),
    content: [{ type: "tool_use", id: "t1", name: "write", input: { a: 1 } }],
    stop_reason: "tool_use",
  }).join("");
  const broken = events.replace('{\\"a\\":1}', '{\\"a\\":}');
  const { llmMessage } = await open(
    raw(broken, { headers: { "content-type": "text/event-stream" } }),
  );
  const messages = [{ role: "user" as const, content: "Hi" }];
  const error = await rejection(llmMessage({ messages }, { onText: () => {} }));
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toHaveProperty("cause", expect.any(AnthropicError));
});

test("throws for a streamed event that is no JSON", async () => {
  const events = eventsOf({ ...message("Hello there") });
  events.splice(3, 0, "event: content_block_delta\ndata: {oops\n\n");
  const { llmCall } = await open(
    raw(events.join(""), { headers: { "content-type": "text/event-stream" } }),
  );
  const error = await rejection(llmCall("Hi", { onText: () => {} }));
  expect(error).toMatchObject({ name: "LlmOutputError", text: "Hello " });
});

test("hands text on as it comes, and reports it", async () => {
  const { server, llmCall } = await open(partly("Hello there", hold));
  const pieces: string[] = [];
  const events: RunEvent[] = [];
  const onText = (text: string) => {
    pieces.push(text);
    if (pieces.length > 1) return;
    // The rest is sent only once the first word has been handed on.
    for (const rest of eventsOf({ ...message("Hello there") }).slice(3)) {
      server.requests[0]?.response.write(rest);
    }
    server.requests[0]?.response.end();
  };
  const call = () => step("ask", () => llmCall("Hi", { onText }));
  expect(await observe((e) => events.push(e), call)).toBe("Hello there");
  expect(pieces).toEqual(["Hello ", "there"]);
  expect(events.map((e) => ("kind" in e ? `${e.type} ${e.kind}` : e.text))).toEqual([
    "start step",
    "start call",
    "Hello ",
    "there",
    "end call",
    "end step",
  ]);
  expect(events.every(({ path }) => path === "ask")).toBe(true);
  expect(events[4]).toMatchObject({
    outcome: "ok",
    model: "claude-sonnet-5-5",
    usage: { input_tokens: 12, output_tokens: 3 },
    value: { type: "message" },
  });
});

test("streams where onText is given and from 21,334 max_tokens on", async () => {
  const { server, llmCall } = await open(reply("4"));
  await llmCall("Hi", { max_tokens: 21_333 });
  await llmCall("Hi", { max_tokens: 21_334 });
  await llmCall("Hi", { max_tokens: 10, onText: () => {} });
  expect(bodies(server).map(({ stream }) => stream)).toEqual([false, true, true]);
});

test.for([
  new Error("mine"),
  new SyntaxError("mine"),
  "text",
  undefined,
  new AnthropicError("mine"),
])("rethrows what onText throws as it is (%s)", async (thrown) => {
  const { server, llmCall } = await open(partly("Hello there", hold));
  const onText = () => {
    throw thrown;
  };
  expect(await rejection(llmCall("Hi", { onText }))).toBe(thrown);
  await server.requests[0]?.gone;
});

test("calls onText synchronously, and doesn't look at what it returns", async () => {
  const { llmCall } = await open(reply("Hello there"));
  const pieces: string[] = [];
  const onText = (text: string) => {
    pieces.push(text);
    return new Promise<void>(() => {});
  };
  expect(await llmCall("Hi", { onText })).toBe("Hello there");
  expect(pieces).toEqual(["Hello ", "there"]);
});

test("doesn't call onText again once it has thrown", async () => {
  const { llmCall } = await open(reply("One two three"));
  const pieces: string[] = [];
  const onText = (text: string) => {
    pieces.push(text);
    throw new Error(text);
  };
  expect(await rejection(llmCall("Hi", { onText }))).toMatchObject({ message: "One " });
  expect(pieces).toEqual(["One "]);
});

test("doesn't call onText again once the call is aborted", async () => {
  const { llmCall } = await open(reply("One two three"));
  const controller = new AbortController();
  const pieces: string[] = [];
  const onText = (text: string) => {
    pieces.push(text);
    controller.abort("enough");
  };
  expect(await rejection(llmCall("Hi", { onText, signal: controller.signal }))).toBe("enough");
  expect(pieces).toEqual(["One "]);
});

test("wraps the first layer outermost, after the defaults have been filled in", async () => {
  const seen: unknown[] = [];
  const watch =
    (name: string): Layer =>
    (next) =>
    async (params, call) => {
      seen.push([name, params.model, params.max_tokens, call.onText === onText]);
      const got = await next({ ...params, system: `${params.system ?? ""}${name}` }, call);
      seen.push(`${name} done`);
      return got;
    };
  const onText = () => {};
  const { server, llmCall } = await open(reply("4"), { layers: [watch("a"), watch("b")] });
  await llmCall("Hi", { max_tokens: 9, onText });
  expect(seen).toEqual([
    ["a", "claude-sonnet-5-5", 9, true],
    ["b", "claude-sonnet-5-5", 9, true],
    "b done",
    "a done",
  ]);
  expect(bodies(server)).toMatchObject([{ system: "ab" }]);
});

test("lets a layer answer by itself, and checks its answer as any other", async () => {
  const answer = message("from the cache");
  const cache: Layer = () => async (_params, call) => {
    call.onText?.("from the cache");
    return answer;
  };
  const { server, llmCall, llmMessage } = await open(hold, { layers: [cache] });
  const pieces: string[] = [];
  expect(await llmCall("Hi", { onText: (text) => pieces.push(text) })).toBe("from the cache");
  expect(pieces).toEqual(["from the cache"]);
  expect(await llmMessage({ messages: [{ role: "user", content: "Hi" }] })).toBe(answer);
  const cut: Layer = () => async () => message("half", { stop_reason: "max_tokens" });
  const llm = createLlm({ client: server.client(), layers: [cut] });
  expect(await rejection(llm.llmCall("Hi"))).toBeInstanceOf(LlmOutputError);
  expect(server.requests).toEqual([]);
});

const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;

test.for([
  undefined,
  null,
  "text",
  {},
  cyclic,
  { ...message("4"), content: undefined },
  { ...message("4"), content: [{ type: "text" }] },
  { ...message("4"), model: undefined },
  { ...message("4"), usage: null },
  BigInt(5),
  Object.assign(Object.create(null), { size: BigInt(5) }),
])("throws when a layer gives %o for a message, before another layer reads it", async (bad) => {
  const odd: Layer = () => async () => bad as Message; // what layers without types give
  let read: unknown;
  const outer: Layer = (next) => async (params, call) => {
    const got = await next(params, call);
    read = got.usage.output_tokens;
    return got;
  };
  const { server, llmCall, llmMessage } = await open(reply("4"), { layers: [outer, odd] });
  const error = await rejection(step("ask", () => llmCall("Hi")));
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toMatchObject({ path: "ask", message: expect.stringContaining("not a message") });
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect(await rejection(llmMessage({ messages }))).toBeInstanceOf(LlmOutputError);
  expect(read).toBe(undefined);
  expect(server.requests).toEqual([]);
});

test("passes a layer's error through as it is", async () => {
  for (const error of [new HaltError("No"), new SyntaxError("mine")]) {
    const layer: Layer = () => async () => {
      throw error;
    };
    const { llmCall } = await open(hold, { layers: [layer] });
    expect(await rejection(llmCall("Hi"))).toBe(error);
    expect(await rejection(llmCall("Hi", { onText: () => {} }))).toBe(error);
  }
});

for (const { way, onText } of ways) {
  test(`passes a call that the client's middleware refuses to make through as it is, ${way}`, async () => {
    const server = await startServer(reply("4"));
    const halt = new RecordingError("Not on the tape");
    const middleware = [
      () => {
        throw halt;
      },
    ];
    const client = server.client({ middleware, maxRetries: 2 });
    const { llmCall } = createLlm({ client });
    expect(await rejection(llmCall("Hi", { onText }))).toBe(halt);
    expect(server.requests).toEqual([]);
  });

  test(`keeps the path inside layers and in the client's middleware, for each waiter its own, ${way}`, async () => {
    const server = await startServer(reply("4"));
    const paths: Record<"layer" | "middleware", string[]> = { layer: [], middleware: [] };
    const client = server.client({
      middleware: [
        async (request, next) => {
          paths.middleware.push(currentPath());
          return next(request);
        },
      ],
    });
    const layer: Layer = (next) => async (params, call) => {
      const got = await next(params, call);
      paths.layer.push(currentPath());
      return got;
    };
    const { llmCall } = createLlm({ client, concurrency: 1, layers: [layer] });
    await step("vote", () =>
      Promise.all([0, 1, 2].map((i) => step(`voter[${i}]`, () => llmCall("Hi", { onText })))),
    );
    const expected = ["vote/voter[0]", "vote/voter[1]", "vote/voter[2]"];
    expect(paths).toEqual({ layer: expected, middleware: expected });
  });
}

test("names calls by the step that makes them, by their name, and call outside of steps", async () => {
  const { llmCall } = await open(reply("4"));
  const paths: string[] = [];
  const run = () =>
    step("route", async () => {
      await llmCall("Hi");
      await llmCall("Hi");
      await llmCall("Hi", { name: "classify" });
    });
  await observe(
    (e) => e.type === "start" && e.kind === "call" && paths.push(e.path),
    async () => {
      await run();
      await llmCall("Hi");
    },
  );
  expect(paths).toEqual(["route", "route/call#2", "route/classify", "call"]);
});

test("gives a call that a layer makes inside of another one a path of its own", async () => {
  const { llmCall, with: change } = await open(reply("4"));
  const layer: Layer = (next) => async (params, call) => {
    await llmCall("before");
    return next(params, call);
  };
  const outer = change({ layers: [layer] });
  const paths: string[] = [];
  await observe(
    (e) => e.type === "start" && e.kind === "call" && paths.push(e.path),
    async () => {
      await outer.llmCall("Hi");
      await outer.llmCall("Hi", { name: "ask" });
      await step("route", () => outer.llmCall("Hi"));
    },
  );
  const inner = ["call/call#2", "ask/call#2", "route/call#2"];
  expect(paths).toEqual(["call", inner[0], "ask", inner[1], "route", inner[2]]);
});

test("doesn't go through the layers under a signal that has fired", async () => {
  let ran = false;
  const layer: Layer = () => async () => {
    ran = true;
    return message("4");
  };
  const { llmCall, llmMessage } = await open(reply("4"), { layers: [layer] });
  const signal = AbortSignal.abort("late");
  expect(await rejection(llmCall("Hi", { signal }))).toBe("late");
  expect(await rejection(step("a", () => llmCall("Hi", { signal })))).toBe("late");
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect(await rejection(step("a", () => llmMessage({ messages }, { signal })))).toBe("late");
  expect(ran).toBe(false);
});

test("makes a door with other settings, whose layers come inside of its parent's", async () => {
  const mark =
    (name: string): Layer =>
    (next) =>
    (params, call) =>
      next({ ...params, system: `${params.system ?? ""}${name}` }, call);
  const parent = await open(reply("4"), { model: "claude-opus-5-5", layers: [mark("a")] });
  const child = parent.with({ max_tokens: 9, layers: [mark("b")] });
  const grandchild = child.with({ model: "claude-haiku-5-5", layers: [mark("c")] });
  await grandchild.llmCall("Hi");
  await child.llmCall("Hi");
  await parent.llmCall("Hi");
  expect(bodies(parent.server)).toMatchObject([
    { system: "abc", model: "claude-haiku-5-5", max_tokens: 9 },
    { system: "ab", model: "claude-opus-5-5", max_tokens: 9 },
    { system: "a", model: "claude-opus-5-5", max_tokens: 16_000 },
  ]);
});

test("shares the slots with the doors made from it, another client's too", async () => {
  const server = await startServer(hold);
  const { client, sent } = counting(server);
  const { llmCall, with: change } = createLlm({ client, concurrency: 1 });
  const other = change({ client: counting(server, sent).client, model: "claude-opus-5-5" });
  const calls = [llmCall("first"), other.llmCall("second")];
  const first = await server.received(1);
  expect(sent).toHaveLength(1);
  reply("4")(first);
  reply("5")(await server.received(2));
  expect(await Promise.all(calls)).toEqual(["4", "5"]);
});

test("never has more requests in flight than allowed, and as many as that", async () => {
  const inFlight: Exchange[] = [];
  const threeByThree: Answer = (exchange) => {
    inFlight.push(exchange);
    if (inFlight.length === 3) for (const each of inFlight.splice(0)) reply("4")(each);
  };
  const { server, llmCall } = await open(threeByThree, { concurrency: 3 });
  await Promise.all(
    Array.from({ length: 21 }, (_, i) => llmCall("Hi", i % 2 ? { onText: () => {} } : {})),
  );
  expect(server.peak()).toBe(3);
  expect(server.requests).toHaveLength(21);
});

test("has 8 requests in flight by default", async () => {
  const server = await startServer(hold);
  const { client, sent } = counting(server);
  const { llmCall } = createLlm({ client });
  const calls = Array.from({ length: 9 }, () => llmCall("Hi"));
  await server.received(8);
  expect(sent).toHaveLength(8);
  for (const exchange of server.requests) reply("4")(exchange);
  reply("4")(await server.received(9));
  await Promise.all(calls);
});

test("serves the waiting calls in the order in which they came", async () => {
  const { server, llmCall } = await open(reply("4"), { concurrency: 1 });
  const prompts = ["a", "b", "c", "d", "e"];
  await Promise.all(prompts.map((prompt) => llmCall(prompt)));
  expect(bodies(server).map(({ messages }) => messages[0]?.content)).toEqual(prompts);
});

test("rejects with the signal's reason while it waits in the queue, and leaves it", async () => {
  const { server, llmCall } = await open(hold, { concurrency: 1 });
  const first = llmCall("first");
  const controller = new AbortController();
  const second = llmCall("second", { signal: controller.signal });
  const third = llmCall("third");
  const exchange = await server.received(1);
  controller.abort("enough");
  expect(await rejection(second)).toBe("enough");
  reply("1")(exchange);
  reply("3")(await server.received(2));
  expect(await Promise.all([first, third])).toEqual(["1", "3"]);
  expect(bodies(server).map(({ messages }) => messages[0]?.content)).toEqual(["first", "third"]);
});

test("rejects with the reason when it's aborted just as its turn comes, and passes the slot on", async () => {
  const { server, llmCall } = await open([hold, reply("3")], { concurrency: 1 });
  const controller = new AbortController();
  const first = llmCall("first").then(() => controller.abort("enough"));
  const second = llmCall("second", { signal: controller.signal });
  const third = llmCall("third");
  reply("1")(await server.received(1));
  await first;
  expect(await rejection(second)).toBe("enough");
  expect(await third).toBe("3");
});

for (const { way, onText } of ways) {
  test(`frees the slot after each kind of failure, ${way}`, async () => {
    const answers: [Answer, ...Answer[]] = [
      fails(400),
      raw("oops", {}),
      reply("Half", { stop_reason: "max_tokens" }),
      lose,
      partly("Hello there", lose),
      hold,
      partly("Hello there", hold),
      reply("4"),
    ];
    const { server, llmCall } = await open(answers, { concurrency: 1 });
    for (let i = 1; i < answers.length; i++) {
      const controller = new AbortController();
      const call = llmCall("Hi", { onText, signal: controller.signal });
      if (i >= 6) server.received(i).then(() => controller.abort("enough"));
      await rejection(call);
    }
    expect(await llmCall("Hi")).toBe("4");
    expect(server.requests).toHaveLength(answers.length);
  });
}

test("frees the slot after an onText that throws", async () => {
  const { llmCall } = await open([partly("Hello there", hold), reply("4")], { concurrency: 1 });
  const onText = () => {
    throw new Error("mine");
  };
  await rejection(llmCall("Hi", { onText }));
  expect(await llmCall("Hi")).toBe("4");
});

test("ends calls that are made inside a layer, with one slot", async () => {
  const { server, with: change } = await open(reply("4"), { concurrency: 1 });
  const inner = change({});
  const layer: Layer = (next) => async (params, call) => {
    await inner.llmCall("before");
    const got = await next(params, call);
    await inner.llmCall("after");
    return got;
  };
  const { llmCall } = change({ layers: [layer] });
  expect(await Promise.all([llmCall("a"), llmCall("b")])).toEqual(["4", "4"]);
  expect(server.requests).toHaveLength(6);
});

test("ends nested steps that call at once, with one slot", async () => {
  const { server, llmCall } = await open(reply("4"), { concurrency: 1 });
  const worker = (i: number) =>
    step(`worker[${i}]`, async () => {
      await llmCall("plan");
      return Promise.all([llmCall("a"), llmCall("b")]);
    });
  await step("orchestrate", () => Promise.all([worker(0), worker(1)]));
  expect(server.requests).toHaveLength(6);
});

test("listens to one signal once for a hundred calls, without a warning, and leaves no more behind", async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on("warning", keep);
  onTestFinished(() => void process.off("warning", keep));
  const { signal } = new AbortController();
  const { server, llmCall } = await open(reply("4"), { concurrency: 20 });
  const ask = withSignal(signal, llmCall);
  const calls = Array.from({ length: 100 }, (_, i) => ask("Hi", i % 2 ? { onText: () => {} } : {}));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  await Promise.all(calls);
  await setImmediate();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  expect(warnings).toEqual([]);
  expect(server.requests).toHaveLength(100);
});

test("hands a fan-out's own signal on to its calls, without a warning, and leaves nothing on it", async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on("warning", keep);
  onTestFinished(() => void process.off("warning", keep));
  const { server, llmCall } = await open(reply("4"), { concurrency: 20 });
  const { controller, release } = follow(undefined);
  const ask = withSignal(controller.signal, llmCall);
  const calls = Array.from({ length: 50 }, (_, i) => ask("Hi", i % 2 ? { onText: () => {} } : {}));
  await Promise.all(calls);
  await setImmediate();
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  expect(warnings).toEqual([]);
  expect(server.requests).toHaveLength(50);
  release();
});

test("puts calls under a signal, beside the signal that they are given", async () => {
  const { server, llmCall } = await open(hold);
  for (const which of ["outer", "own"] as const) {
    const outer = new AbortController();
    const own = new AbortController();
    const call = withSignal(outer.signal, llmCall)("Hi", { signal: own.signal });
    const { gone } = await server.received(which === "outer" ? 1 : 2);
    (which === "outer" ? outer : own).abort(which);
    expect(await rejection(call)).toBe(which);
    await gone;
  }
  expect(withSignal(undefined, llmCall)).toBe(llmCall);
});

test.for<readonly [string, () => unknown]>([
  [
    "throws at once",
    () => {
      throw new Error("no");
    },
  ],
  ["gives no promise", () => "4"],
])("leaves a call alone that has ended, where an llm %s", async ([, answer]) => {
  const [outer, own] = [new AbortController(), new AbortController()];
  let lent: AbortSignal | undefined;
  const llm = (_: unknown, options?: CallOptions) => {
    lent = options?.signal;
    return answer();
  };
  // What callers without types hand in.
  const call = withSignal(outer.signal, llm as LlmCall)("Hi", { signal: own.signal });
  expect(await call.catch(String)).toMatch(/^(Error: no|4)$/);
  outer.abort("later");
  expect(lent?.aborted).toBe(false);
});

test("refuses layers that are no list of functions, and a client that is none, saying no secret", () => {
  const layer: Layer = (next) => next;
  const wrong: readonly (readonly [object, string])[] = [
    [{ layers: layer }, "layers must be a list, got [Function: layer]"],
    [{ layers: [layer, null] }, "layers[1] must be a function, got null"],
    [{ client: { apiKey: "sk-secret" } }, "what was given has no messages.create"],
    [{ client: null }, "client must be an SDK client"],
  ];
  for (const [options, words] of wrong) {
    expect(() => createLlm(options)).toThrow(TypeError);
    expect(() => createLlm(options)).toThrow(words);
    expect(() => createLlm(options)).not.toThrow("sk-secret");
  }
});

test("reports an aborted call as cancelled, and its step too", async () => {
  const { server, llmCall } = await open(hold);
  const controller = new AbortController();
  const events: RunEvent[] = [];
  const call = observe(
    (e) => events.push(e),
    () => llmCall("Hi", { name: "ask", signal: controller.signal }),
  );
  await server.received(1);
  controller.abort("enough");
  await rejection(call);
  expect(events.slice(-2)).toMatchObject([
    { kind: "call", path: "ask", outcome: "cancelled", error: "enough" },
    { kind: "step", path: "ask", outcome: "cancelled", error: "enough" },
  ]);
});

test("makes its client at the first call, from the environment", async () => {
  const { llmCall } = createLlm();
  const server = await startServer(reply("4"));
  setEnv({ ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: server.url });
  expect(await llmCall("Hi")).toBe("4");
  setEnv({ ANTHROPIC_API_KEY: "other", ANTHROPIC_BASE_URL: "http://127.0.0.1:1" });
  expect(await llmCall("Hi")).toBe("4");
  const keys = server.requests.map(({ headers }) => headers.authorization);
  expect(keys).toEqual(["Bearer key", "Bearer key"]);
});

test("takes a token from the environment where there is no key, in the shared door", async () => {
  const server = await startServer(reply("4"));
  setEnv({ ANTHROPIC_AUTH_TOKEN: "token", ANTHROPIC_BASE_URL: server.url });
  // The shared door takes its client from the environment at its first call, here or in another file.
  vi.resetModules();
  const { llmCall: sharedCall, llmMessage: sharedMessage } = await import(
    "../patterns/llm-call.ts"
  );
  expect(await sharedCall("Hi")).toBe("4");
  const messages = [{ role: "user" as const, content: "Hi" }];
  expect((await sharedMessage({ messages })).stop_reason).toBe("end_turn");
  const keys = server.requests.map(({ headers }) => headers.authorization);
  expect(keys).toEqual(["Bearer token", "Bearer token"]);
});

for (const { way, onText } of ways) {
  test(`lets the SDK say that there is no key, ${way}`, async () => {
    const server = await startServer(reply("4"));
    setEnv({ ANTHROPIC_BASE_URL: server.url });
    const body = {
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user" as const, content: "Hi" }],
    };
    const client = new Anthropic();
    const sdks = await rejection(
      onText ? client.messages.stream(body).finalMessage() : client.messages.create(body),
    );
    const error = await rejection(createLlm().llmCall("Hi", { onText }));
    expect(String(error)).toContain("authentication");
    expect(String(error)).toBe(String(sdks));
    expect(error).not.toBeInstanceOf(LlmOutputError);
    expect(server.requests).toEqual([]);
  });
}

test("makes no client when it is imported, and refuses to make one in a browser", async () => {
  vi.stubGlobal("window", {});
  vi.stubGlobal("document", {});
  onTestFinished(() => void vi.unstubAllGlobals());
  vi.resetModules();
  const fresh = await import("../patterns/llm-call.ts");
  for (const { onText } of ways) {
    const error = await rejection(fresh.llmCall("Hi", { onText }));
    expect(String(error)).toContain("from the server only");
  }
});

test("takes any client that has messages and beta messages", async () => {
  const server = await startServer(reply("4"));
  const { messages, beta } = server.client();
  const { llmCall } = createLlm({ client: { messages, beta: { messages: beta.messages } } });
  expect(await llmCall("Hi")).toBe("4");
  expect(await llmCall("Hi", { onText: () => {} })).toBe("4");
});

test("passes the SDK's error of a refused request through as it is", async () => {
  const { llmCall } = await open(fails(400));
  const error = await rejection(step("a", () => llmCall("Hi")));
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
});

test("types the options: the API's parameters and ours, undefined allowed, messages not", async () => {
  const { server, llmCall, llmMessage, with: change } = await open(reply("4"));
  const text: string = await llmCall("Hi", { model: undefined, effort: undefined } as {
    model: undefined;
  });
  const typed: LlmCall = llmCall;
  // @ts-expect-error The reply is text.
  const wrong: number = await llmCall("Hi");
  // @ts-expect-error The prompt is the message.
  await llmCall("Hi", { messages: [] }).catch(() => {});
  // @ts-expect-error Whether it streams is the door's to say.
  await llmCall("Hi", { stream: true });
  // @ts-expect-error The SDK has no temperature any more.
  await llmCall("Hi", { temperature: 1 });
  // @ts-expect-error Messages are what llmMessage sends.
  await llmMessage({}).catch(() => {});
  // @ts-expect-error The slots are shared, their number can't change.
  change({ concurrency: 2 });
  // @ts-expect-error A layer gives a message.
  const layer: Layer = () => async () => "text";
  const usage: number = (await llmMessage({ messages: [{ role: "user", content: "Hi" }] })).usage
    .input_tokens;
  expect([text, typeof typed, wrong, usage, typeof layer]).toEqual([
    "4",
    "function",
    "4",
    12,
    "function",
  ]);
  expect(bodies(server).filter(({ stream }) => stream)).toEqual([]);
});

/** A message with these parts, in one piece or as a stream, as the request asks. */
function wire(parts: Wire): Answer {
  return ({ body, response }) => {
    const whole = { ...message("Hi"), ...parts };
    const type = body.stream ? EVENTS : "application/json";
    const content = body.stream ? streamOf(whole) : JSON.stringify(whole);
    response.writeHead(200, { "content-type": type }).end(content);
  };
}

/** A stream whose blocks come whole, whatever they are. */
function streamOf({ content, ...rest }: Wire): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const [start = "", ...ends] = eventsOf({ ...rest, content: [] });
  const starts = blocks.map((block, index) =>
    event("content_block_start", { index, content_block: block }),
  );
  return [start, ...starts, ...ends].join("");
}

/** A client that lists each request before it goes out. */
function counting(server: TestServer, sent: string[] = []) {
  const count: Middleware = (request, next) => {
    sent.push(request.url);
    return next(request);
  };
  return { client: server.client({ middleware: [count] }), sent };
}

/** Sets the client's environment for the test under way, and nothing else of it. */
function setEnv(env: Readonly<Record<string, string>>): void {
  const names = Object.keys(process.env).filter((name) => name.startsWith("ANTHROPIC_"));
  for (const name of names) vi.stubEnv(name, undefined);
  const all = { ANTHROPIC_LOG: "off", ANTHROPIC_CONFIG_DIR: "/nonexistent", ...env };
  for (const [name, value] of Object.entries(all)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}
