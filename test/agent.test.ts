/**
 * The agent's loop: each stop reason, each limit, what goes back to the model, and how a run ends.
 *
 * From effective-agents 0.1.0: test/agent.test.ts
 */
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { BadRequestError } from "@anthropic-ai/sdk";
import type { Message, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import fc from "fast-check";
import { expect, expectTypeOf, test } from "vitest";
import {
  type AgentOptions,
  type AgentResult,
  runAgent,
  type Standing,
  type Steering,
  type SuspendedRun,
} from "../patterns/agent.ts";
import {
  BudgetError,
  HaltError,
  LlmOutputError,
  RecordingError,
  SuspendError,
} from "../patterns/errors.ts";
import { createBudget } from "../patterns/layers/budget.ts";
import { createLlm } from "../patterns/llm-call.ts";
import { currentPath, observe, type RunEvent } from "../patterns/step.ts";
import { defineTool, type InputSchema, type Tool, ToolError } from "../patterns/tool.ts";
import { held } from "./shared/scripted.ts";
import { eventsOf, message, raw, rejection, reply, startServer } from "./shared/server.ts";
import {
  brokenRule,
  expectSamePrefixes,
  redacted,
  type StrictApi,
  serverResult,
  serverUse,
  strictApi,
  type Turn,
  text,
  think,
  turn,
  use,
  withoutServerCalls,
} from "./shared/strict-api.ts";

const schema = (properties: InputSchema["properties"] = {}): InputSchema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

const add = defineTool<{ a: number; b: number }>({
  name: "add",
  description: "Adds two numbers.",
  input_schema: schema({ a: { type: "number" }, b: { type: "number" } }),
  run: ({ a, b }) => String(a + b),
});

function toolThat(run: Tool["run"], name = "go"): Tool {
  return { name, description: "Goes.", input_schema: schema(), run };
}

const addCall = (id: string, a = 1, b = 2) => use(id, "add", { a, b });
const goCall = (id: string) => use(id, "go");
const done = turn("end_turn", "Three");

/** Runs an agent that can add, on a strict API with these turns. */
function start(script: readonly Turn[], options: Partial<AgentOptions> = {}) {
  const api = strictApi(script);
  return { api, result: runAgent("1 + 2?", { tools: [add], llm: api.llm, ...options }) };
}

interface Body {
  readonly messages: readonly MessageParam[];
  readonly max_tokens: number;
}

const bodiesOf = ({ sent }: StrictApi): Body[] => sent.map((body) => JSON.parse(body));
const lastMessages = (api: StrictApi) => bodiesOf(api).at(-1)?.messages ?? [];
/** The contents of the results that were sent last. */
const lastResults = (api: StrictApi) => lastMessages(api).at(-1)?.content;

test("answers without a tool", async () => {
  const { api, result } = start([done]);
  expect(await result).toEqual({
    status: "answered",
    answer: "Three",
    stopSequence: null,
    turns: 1,
    usage: {
      input_tokens: 12,
      output_tokens: 3,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    },
    transcript: [
      { role: "user", content: "1 + 2?" },
      { role: "assistant", content: [text("Three")] },
    ],
  });
  const { run: _, ...definition } = add;
  expect(bodiesOf(api)).toEqual([
    {
      model: "claude-opus-5-5",
      max_tokens: 16_000,
      cache_control: { type: "ephemeral" },
      messages: [{ role: "user", content: "1 + 2?" }],
      tools: [definition],
    },
  ]);
});

test("runs a turn's tools, gives back all results in one message, and calls again", async () => {
  const first = [think("two sums"), text("Let me add."), addCall("t1"), addCall("t2", 3, 4)];
  const { api, result } = start([turn("tool_use", ...first), done]);
  expect(await result).toMatchObject({ status: "answered", answer: "Three", turns: 2 });
  expect(lastMessages(api)).toEqual([
    { role: "user", content: "1 + 2?" },
    { role: "assistant", content: first },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: "3" },
        { type: "tool_result", tool_use_id: "t2", content: "7" },
      ],
    },
  ]);
  expect(api.refusals).toEqual([]);
});

test("runs the calls of a turn at once", async () => {
  const both = [held(), held()];
  const tools = both.map((one, index) => toolThat(() => one.reply(), `go${index}`));
  const script = [turn("tool_use", use("t1", "go0"), use("t2", "go1")), done];
  const { api, result } = start(script, { tools });
  await Promise.all(both.map(({ started }) => started));
  both[1]?.answer("second");
  await setImmediate();
  both[0]?.answer("first");
  await result;
  expect(lastResults(api)).toMatchObject([
    { tool_use_id: "t1", content: "first" },
    { tool_use_id: "t2", content: "second" },
  ]);
});

test("gives calls that are denied, unknown, unfit, thrown or aborted a result, and goes on", async () => {
  const tools = [
    add,
    toolThat(() => {
      throw new ToolError("Denied by the user. Ask first.");
    }, "pay"),
    toolThat(() => {
      throw new Error("disk full");
    }, "write"),
    toolThat(() => {
      throw new DOMException("timed out", "TimeoutError");
    }, "fetch"),
  ];
  const names = ["pay", "constructor", "add", "write", "fetch"];
  const calls = names.map((name, index) => use(`t${index}`, name));
  const { api, result } = start([turn("tool_use", ...calls), done], { tools });
  expect((await result).status).toBe("answered");
  const contents = [
    "Denied by the user. Ask first.",
    "There is no tool 'constructor'. The tools are: add, pay, write, fetch.",
    "The input of 'add' doesn't fit: ",
    "'write' failed: disk full. Try another way, or go on without it.",
    "'fetch' failed: timed out. Try another way, or go on without it.",
  ];
  expect(lastResults(api)).toEqual(
    contents.map((content, index) => ({
      type: "tool_result",
      tool_use_id: `t${index}`,
      content: expect.stringContaining(content),
      is_error: true,
    })),
  );
});

test("sends thinking back untouched and drops empty texts only", async () => {
  const kept = [think("first"), redacted("x="), text("Look"), addCall("t1")];
  const empty = [text(""), text(" \n"), text("\t"), text("")];
  const content = kept.flatMap((block, index) => [empty[index] ?? "", block]);
  const { api, result } = start([turn("tool_use", ...content), done]);
  await result;
  expect(lastMessages(api)[1]?.content).toEqual(kept);
  expect(api.refusals).toEqual([]);
});

test("never sends back a turn of nothing but thinking, which the API refuses", async () => {
  const script = [
    turn("tool_use", think("add"), addCall("t1")),
    turn("end_turn", think("hm"), redacted("x"), ""),
    turn("end_turn", think("now"), text("Three"), think("good")),
  ];
  const { api, result } = start(script);
  const { transcript } = await result;
  expect(transcript.map(({ role }) => role)).toEqual([
    ...["user", "assistant", "user"],
    ...["user", "assistant"],
  ]);
  expect(transcript.at(-1)?.content).toEqual([think("now"), text("Three")]);
  expect(api.refusals).toEqual([]);
});

test("caps what a tool gives, and never sends nothing", async () => {
  const tools = [toolThat(() => "x".repeat(1000), "big"), toolThat(() => "", "empty")];
  const script = [turn("tool_use", use("t1", "big"), use("t2", "empty")), done];
  const { api, result } = start(script, { tools, maxOutputChars: 100 });
  await result;
  expect(lastResults(api)).toMatchObject([
    { content: `${"x".repeat(20)}\n[truncated: 980 more characters; ask for less at a time]` },
    { content: "(no output)" },
  ]);
});

test("caps a tool's output at 30,000 characters by default", async () => {
  const tools = [toolThat(() => "x".repeat(30_001))];
  const { api, result } = start([turn("tool_use", goCall("t1")), done], { tools });
  await result;
  expect(lastResults(api)).toMatchObject([
    { content: expect.stringMatching(/^x{29920}\n\[truncated: 81 /) },
  ]);
});

test("passes the API's parameters on, and keeps its own options out", async () => {
  const params = {
    model: "claude-sonnet-5-5",
    system: "Be brief",
    thinking: { type: "adaptive" },
    cache_control: { type: "ephemeral", ttl: "1h" },
    max_tokens: 500,
    tool_choice: { type: "auto" },
  } as const;
  const own = { maxTurns: 2, maxRepeats: 2, maxOutputChars: 200, onText: () => {} };
  const { api, result } = start([done], { ...params, ...own });
  await result;
  const [body] = bodiesOf(api);
  expect(body).toMatchObject(params);
  expect(Object.keys(body ?? {}).sort()).toEqual(
    [...Object.keys(params), "messages", "tools"].sort(),
  );
});

test("doesn't let an option that is undefined hide a default", async () => {
  const none = { model: undefined, cache_control: undefined, max_tokens: undefined };
  const limits = { maxTurns: undefined, maxRepeats: undefined, maxOutputChars: undefined };
  const { api, result } = start([turn("tool_use", addCall("t1")), done], { ...none, ...limits });
  await result;
  expect(bodiesOf(api)[1]).toMatchObject({
    model: "claude-opus-5-5",
    max_tokens: 16_000,
    cache_control: { type: "ephemeral" },
  });
});

test("asks once to continue after an empty answer", async () => {
  const script = [turn("tool_use", addCall("t1")), turn("end_turn"), done];
  const { api, result } = start(script);
  expect(await result).toMatchObject({ status: "answered", answer: "Three", turns: 3 });
  expect(lastMessages(api).at(-1)).toEqual({
    role: "user",
    content: "Please continue, and give your answer.",
  });
});

test.each([
  ["nothing", []],
  ["an empty text", [text("")]],
  ["spaces", [text(" \n")]],
  ["thinking", [think("hm")]],
])("throws when a turn ends twice with %s", async (_, content) => {
  const empty = turn("end_turn", ...content);
  const { api, result } = start([turn("tool_use", addCall("t1")), empty, empty, done]);
  const error = await rejection(result);
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toMatchObject({
    path: "agent/turn[2]",
    stopReason: "end_turn",
    message: "agent/turn[2]: Twice the turn ended without an answer",
  });
  expect(api.refusals).toEqual([]);
});

test("stops at max_tokens with what was said", async () => {
  const { api, result } = start([turn("max_tokens", think("hm"), text("Thr"))]);
  expect(await result).toMatchObject({
    status: "max_tokens",
    text: "Thr",
    turns: 1,
    transcript: [{ role: "user" }],
  });
  expect(api.sent).toHaveLength(1);
});

test("never runs a turn whose call was cut off, and asks again with twice the room", async () => {
  let runs = 0;
  const tools = [toolThat(() => String(++runs))];
  const cut = turn("max_tokens", "Let me", goCall("t1"), goCall("t2"));
  const { api, result } = start([cut, cut, turn("tool_use", goCall("t1")), done], { tools });
  expect(await result).toMatchObject({ status: "answered", turns: 4 });
  expect(runs).toBe(1);
  const bodies = bodiesOf(api);
  expect(bodies.map(({ max_tokens }) => max_tokens)).toEqual([16_000, 32_000, 64_000, 16_000]);
  expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 1, 1, 3]);
});

test("a turn that is cut off gets no more room than a model takes", async () => {
  const cut = turn("max_tokens", addCall("t1"));
  const roomsOf = async (max_tokens: number, ...script: readonly Turn[]) => {
    const { api, result } = start(script, { max_tokens });
    const [outcome] = await Promise.allSettled([result]);
    return [outcome.status, ...bodiesOf(api).map((body) => body.max_tokens)];
  };
  const call = turn("tool_use", addCall("t2"));
  const whole = await roomsOf(50_000, cut, cut, call, done);
  expect(whole).toEqual(["fulfilled", 50_000, 100_000, 128_000, 50_000]);
  expect(await roomsOf(64_000, cut, cut)).toEqual(["rejected", 64_000, 128_000]);
  expect(await roomsOf(200_000, cut)).toEqual(["rejected", 200_000]);
});

test("a turn that is cut off later gets as much room again", async () => {
  const cut = turn("max_tokens", addCall("t1"));
  const script = [cut, cut, turn("tool_use", addCall("t2")), cut, cut, done];
  const { api, result } = start(script, { max_tokens: 100 });
  expect(await result).toMatchObject({ status: "answered", turns: 6 });
  expect(bodiesOf(api).map(({ max_tokens }) => max_tokens)).toEqual([100, 200, 400, 100, 200, 400]);
});

test("returns a sequence that the caller chose to stop at, without a text too", async () => {
  const empty = { ...turn("stop_sequence"), stop_sequence: "END" };
  const { api, result } = start([empty, done], { stop_sequences: ["END"] });
  expect(await result).toMatchObject({ status: "answered", answer: "", stopSequence: "END" });
  expect(api.sent).toHaveLength(1);
});

test("throws when a call is cut off three times", async () => {
  const cut = turn("max_tokens", "Let me", addCall("t1"));
  const { api, result } = start([cut, cut, cut, done], { max_tokens: 100 });
  expect(await rejection(result)).toMatchObject({
    name: "LlmOutputError",
    message: "agent/turn[2]: A tool call was cut off at 400 tokens",
    stopReason: "max_tokens",
    text: "Let me",
  });
  expect(bodiesOf(api).map(({ max_tokens }) => max_tokens)).toEqual([100, 200, 400]);
});

test("sends a paused turn back as it is, and joins what was said before and after", async () => {
  const paused = [think("hm"), text("It is "), serverUse("s1")];
  const { api, result } = start([turn("pause_turn", ...paused), turn("end_turn", "three.")]);
  expect(await result).toMatchObject({ status: "answered", answer: "It is three.", turns: 2 });
  expect(bodiesOf(api)[1]).toEqual({
    ...bodiesOf(api)[0],
    messages: [
      { role: "user", content: "1 + 2?" },
      { role: "assistant", content: paused },
    ],
  });
  expect(api.refusals).toEqual([]);
});

test("answers with the last turn's text only where tools ran in between", async () => {
  const script = [
    turn("pause_turn", "Searching. ", serverUse("s1")),
    turn("tool_use", "Adding. ", addCall("t1")),
    done,
  ];
  const { api, result } = start(script);
  expect(await result).toMatchObject({ answer: "Three" });
  expect(api.refusals).toEqual([]);
});

test("gives up on a turn that is paused for ever", async () => {
  const paused = Array.from({ length: 20 }, (_, index) =>
    turn("pause_turn", serverUse(`s${index}`)),
  );
  const { api, result } = start(paused);
  expect(await result).toMatchObject({ status: "max_turns", turns: 12 });
  expect(api.sent).toHaveLength(12);
});

test("reports a refusal and never asks again", async () => {
  const stop_details: Message["stop_details"] = {
    type: "refusal",
    category: "cyber",
    explanation: "no",
  };
  const script = [{ ...turn("refusal", "I can", addCall("t1")), stop_details }, done];
  const { api, result } = start(script);
  expect(await result).toMatchObject({
    status: "refusal",
    text: "I can",
    stopDetails: stop_details,
    turns: 1,
    transcript: [{ role: "user" }],
  });
  expect(api.sent).toHaveLength(1);
});

test("reports a refusal without any content", async () => {
  const { result } = start([turn("refusal")]);
  expect(await result).toMatchObject({ status: "refusal", text: "", stopDetails: null });
});

test("gives the text and the sequence that stopped it", async () => {
  const script = [{ ...turn("stop_sequence", "Three"), stop_sequence: "END" }];
  const { result } = start(script, { stop_sequences: ["END"] });
  expect(await result).toMatchObject({
    status: "answered",
    answer: "Three",
    stopSequence: "END",
  });
});

test("stops when the context window is full", async () => {
  const { api, result } = start([turn("model_context_window_exceeded", "Thr"), done]);
  expect(await result).toMatchObject({
    status: "model_context_window_exceeded",
    text: "Thr",
    turns: 1,
  });
  expect(api.sent).toHaveLength(1);
});

test.each([
  ["an unknown stop reason", turn("distraction", "Hm"), 'Unknown stop reason "distraction"'],
  ["no stop reason", turn(null, "Hm"), "Unknown stop reason null"],
  ["tool_use without a call", turn("tool_use", "Hm"), "stopped for a tool and calls none"],
  ["end_turn beside a call", turn("end_turn", "Hm", goCall("t1")), "ended beside a tool call"],
  ["stop_sequence beside a call", turn("stop_sequence", "Hm", goCall("t1")), "beside a tool"],
  ["pause_turn beside a call", turn("pause_turn", "Hm", goCall("t1")), "beside a tool call"],
])("throws on %s and runs nothing", async (_, odd, why) => {
  let ran = false;
  const tools = [
    toolThat(() => {
      ran = true;
      return "ran";
    }),
  ];
  const { api, result } = start([odd, done], { tools });
  const error = await rejection(result);
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toMatchObject({ text: "Hm", stopReason: odd.stop_reason, path: "agent/turn[0]" });
  expect(String(error)).toContain(why);
  expect(api.sent).toHaveLength(1);
  expect(ran).toBe(false);
});

test("throws when two calls of a turn have the same id, and sends nothing more", async () => {
  const { api, result } = start([turn("tool_use", addCall("t1"), addCall("t1")), done]);
  expect(await rejection(result)).toBeInstanceOf(LlmOutputError);
  expect(api.sent).toHaveLength(1);
});

/** Turns that add other numbers each. */
const manySums = (count: number) =>
  Array.from({ length: count }, (_, index) => turn("tool_use", addCall(`t${index}`, index)));

test("stops after maxTurns, 12 by default", async () => {
  for (const [maxTurns, turns] of [
    [undefined, 12],
    [1, 1],
    [3, 3],
  ] as const) {
    const { api, result } = start(manySums(20), { maxTurns });
    expect(await result).toMatchObject({ status: "max_turns", turns });
    expect(api.sent).toHaveLength(turns);
  }
});

test("goes on from the transcript of a run that was stopped", async () => {
  const { result } = start(manySums(2), { maxTurns: 2 });
  const { transcript } = await result;
  expect(transcript).toHaveLength(5);
  const saved: MessageParam[] = JSON.parse(JSON.stringify(transcript));
  expect(saved).toEqual(transcript);
  const api = strictApi([done]);
  const again = await runAgent(saved, { tools: [add], llm: api.llm });
  expect(again).toMatchObject({ status: "answered", turns: 1 });
  expect(again.transcript).toHaveLength(6);
  expect(lastMessages(api)).toEqual(transcript);
  expect(saved).toHaveLength(5);
});

test("stops when the same calls give the same results three times in a row", async () => {
  const same = ["t1", "t2", "t3", "t4"].map((id) => turn("tool_use", addCall(id)));
  const { api, result } = start([...same, done]);
  expect(await result).toMatchObject({ status: "repeating", turns: 3 });
  expect(api.sent).toHaveLength(3);
  const twice = start([...same, done], { maxRepeats: 2 });
  expect(await twice.result).toMatchObject({ status: "repeating", turns: 2 });
  const off = start([...same, done], { maxRepeats: 0 });
  expect(await off.result).toMatchObject({ status: "answered", turns: 5 });
});

test("can go on from a run that repeated itself", async () => {
  const { result } = start(
    ["t1", "t2"].map((id) => turn("tool_use", addCall(id))),
    { maxRepeats: 2 },
  );
  const { transcript } = await result;
  const api = strictApi([done]);
  const hint: MessageParam = { role: "user", content: "You have the sum already." };
  const again = await runAgent([...transcript, hint], { tools: [add], llm: api.llm });
  expect(again.status).toBe("answered");
});

test("takes the same call with another result, or another call, for progress", async () => {
  let count = 0;
  const tools = [toolThat(() => String(++count))];
  const polls = ["t1", "t2", "t3", "t4"].map((id) => turn("tool_use", goCall(id)));
  expect(await start([...polls, done], { tools }).result).toMatchObject({ turns: 5 });
  const between = [
    turn("tool_use", addCall("t1")),
    turn("tool_use", addCall("t2")),
    turn("tool_use", addCall("t3", 2, 1)),
    turn("tool_use", addCall("t4")),
    turn("tool_use", addCall("t5")),
  ];
  expect(await start([...between, done]).result).toMatchObject({ status: "answered", turns: 6 });
});

// Steering

/** Steers with these, one after the other, and keeps where the run stood each time. */
function steering(...all: readonly (Steering | undefined)[]) {
  const stood: Standing[] = [];
  const steer = (standing: Standing) => {
    stood.push({ ...standing, transcript: [...standing.transcript] });
    return all[stood.length - 1];
  };
  return { stood, steer };
}

test("asks before each turn and after the last how to go on, and goes on by itself if not told", async () => {
  const { stood, steer } = steering();
  const { result } = start([turn("tool_use", addCall("t1")), done], { steer, maxTurns: 5 });
  const { transcript } = await result;
  expect(await result).toMatchObject({ status: "answered", answer: "Three", turns: 2 });
  const ending = { status: "answered", answer: "Three", stopSequence: null };
  expect(stood).toEqual([
    { turn: 0, left: 5, ending: undefined, isPaused: false, transcript: transcript.slice(0, 1) },
    { turn: 1, left: 4, ending: undefined, isPaused: false, transcript: transcript.slice(0, 3) },
    { turn: 2, left: 3, ending, isPaused: false, transcript },
  ]);
});

test("ends when it's told to stop, before the next turn and after the last", async () => {
  const { steer: early } = steering(undefined, { stop: true });
  const before = start([turn("tool_use", addCall("t1")), done], { steer: early });
  expect(await before.result).toMatchObject({ status: "stopped", turns: 1 });
  expect((await before.result).transcript).toHaveLength(3);
  expect(before.api.sent).toHaveLength(1);
  const { steer } = steering(undefined, { stop: true, say: "Never sent" });
  const after = start([turn("tool_use", addCall("t1"))], { steer, maxTurns: 1 });
  expect(await after.result).toMatchObject({ status: "stopped", turns: 1 });
  const never = start([done], { steer: () => ({ stop: true }) });
  expect(await never.result).toMatchObject({ status: "stopped", turns: 0 });
  expect(never.api.sent).toEqual([]);
});

test("says more in a message of its own, after results too, and goes on in place of ending", async () => {
  const { steer } = steering({ say: "Be exact." }, { say: "Hurry." }, { say: "Sure?" });
  const script = [turn("tool_use", addCall("t1")), turn("end_turn", "Four"), done];
  const { api, result } = start(script, { steer });
  expect(await result).toMatchObject({ status: "answered", answer: "Three", turns: 3 });
  const said = bodiesOf(api).map(({ messages }) => messages.at(-1));
  expect(said).toEqual(
    ["Be exact.", "Hurry.", "Sure?"].map((content) => ({ role: "user", content })),
  );
  expect(lastMessages(api).map(({ role }) => role)).toEqual([
    ...["user", "user", "assistant", "user", "user"],
    ...["assistant", "user"],
  ]);
  expect(api.refusals).toEqual([]);
  expectSamePrefixes(api);
});

test.each([
  ["a refusal", [turn("refusal", "No")]],
  ["an answer cut off", [turn("max_tokens", "Thr")]],
  ["a full window", [turn("model_context_window_exceeded")]],
  ["repeats", ["t1", "t2"].map((id) => turn("tool_use", addCall(id)))],
])("goes on after %s if something is said", async (_, script) => {
  const steer = ({ ending }: Standing) => (ending ? { say: "Go on." } : undefined);
  const { api, result } = start([...script, turn("tool_use", addCall("t9")), done, done], {
    steer: (standing) => (standing.ending?.status === "answered" ? undefined : steer(standing)),
    maxRepeats: 2,
  });
  expect(await result).toMatchObject({ status: "answered", turns: script.length + 2 });
  expect(api.refusals).toEqual([]);
});

test("shows an empty answer, and asks to continue only if nothing else is said", async () => {
  const { stood, steer } = steering(undefined, { say: "An answer!" }, undefined, undefined);
  const empty = turn("end_turn", " ");
  const { api, result } = start([empty, empty, done], { steer });
  expect(await result).toMatchObject({ status: "answered", answer: "Three" });
  expect(stood.map(({ ending }) => ending)).toMatchObject([
    undefined,
    { status: "answered", answer: " " },
    { status: "answered", answer: " " },
    { status: "answered", answer: "Three" },
  ]);
  expect(lastMessages(api).map(({ content }) => content)).toEqual([
    "1 + 2?",
    "An answer!",
    "Please continue, and give your answer.",
  ]);
});

test("chooses a tool for one turn alone", async () => {
  const choice = { type: "tool", name: "add" } as const;
  const { steer } = steering(undefined, { tool_choice: choice });
  const script = [1, 2, 3].map((n) => turn("tool_use", addCall(`t${n}`, n)));
  const own = { model: "claude-sonnet-4-6", tool_choice: { type: "auto" } } as const;
  const { api, result } = start([...script, done], { steer, ...own });
  await result;
  expect(api.sent.map((body) => JSON.parse(body).tool_choice)).toEqual([
    ...[{ type: "auto" }, choice, { type: "auto" }, { type: "auto" }],
  ]);
  const { steer: forced } = steering({ tool_choice: choice });
  const thinks = start([done], { steer: forced, thinking: { type: "adaptive" } });
  expect(await rejection(thinks.result)).toBeInstanceOf(TypeError);
  expect(thinks.api.sent).toEqual([]);
});

test("says that a turn is paused, also after it was cut off in its pause", async () => {
  const { stood, steer } = steering();
  const pause = turn("pause_turn", "It is ", serverUse("s1"));
  const script = [pause, turn("max_tokens", addCall("t1")), turn("end_turn", "three")];
  const { api, result } = start(script, { steer });
  expect(await result).toMatchObject({ status: "answered", answer: "It is three" });
  expect(stood.map(({ isPaused }) => isPaused)).toEqual([false, true, true, false]);
  expect(api.refusals).toEqual([]);
});

test("what is said gives a paused turn up, with the call of the API's own that it waits in", async () => {
  const { steer } = steering(undefined, { say: "Enough." });
  const paused = turn("pause_turn", "It is ", think("hm"), serverUse("s1"));
  const { api, result } = start([paused, done], { steer });
  expect(await result).toMatchObject({ status: "answered", answer: "Three" });
  expect(bodiesOf(api)[1]?.messages.slice(1)).toEqual([
    { role: "assistant", content: [text("It is ")] },
    { role: "user", content: "Enough." },
  ]);
  expect(api.refusals).toEqual([]);
});

test("a call of the API's own that waits beside another is dropped only if something is said", async () => {
  const calls = turn("tool_use", serverUse("s1"), addCall("t1"));
  const plain = start([calls, done]);
  await plain.result;
  expect(bodiesOf(plain.api)[1]?.messages[1]?.content).toEqual([serverUse("s1"), addCall("t1")]);
  const { steer } = steering(undefined, { say: "Be brief." });
  const { api, result } = start([calls, done], { steer });
  expect(await result).toMatchObject({ status: "answered" });
  expect(bodiesOf(api)[1]?.messages[1]?.content).toEqual([addCall("t1")]);
  expect([plain.api.refusals, api.refusals]).toEqual([[], []]);
});

test("adds up the usage of all turns, of those that are asked again too", async () => {
  const usage = {
    ...message("").usage,
    input_tokens: 100,
    output_tokens: 10,
    cache_creation_input_tokens: 7,
    cache_read_input_tokens: null,
  };
  const script = [
    { ...turn("max_tokens", addCall("t1")), usage },
    { ...turn("tool_use", addCall("t1")), usage: { ...usage, cache_read_input_tokens: 5 } },
    done,
  ];
  expect((await start(script).result).usage).toEqual({
    input_tokens: 212,
    output_tokens: 23,
    cache_creation_input_tokens: 14,
    cache_read_input_tokens: 5,
  });
});

test("never changes a byte of what was sent before", async () => {
  const script = [
    turn("tool_use", think("hm"), "", addCall("t1"), use("t2", "no")),
    turn("max_tokens", addCall("t3")),
    turn("pause_turn", "", serverUse("s1")),
    turn("tool_use", serverResult("s1"), addCall("t4")),
    turn("end_turn", think("hm")),
    turn("end_turn"),
  ];
  const { api, result } = start(script, { system: "Be brief" });
  await rejection(result);
  expect(api.sent).toHaveLength(6);
  expectSamePrefixes(api);
});

test("sends a call back as it was made, whatever a tool does to its input", async () => {
  const tool = defineTool<{ paths: string[] }>({
    name: "go",
    description: "Goes.",
    input_schema: schema({ paths: { type: "array" } }),
    run: ({ paths }) => String(paths.push("/root")),
  });
  const call = use("t1", "go", { paths: ["a"] });
  const { api, result } = start([turn("tool_use", call), done], { tools: [tool] });
  await result;
  expect(lastMessages(api)[1]?.content).toEqual([call]);
});

test("returns what it has when the budget ends after a turn", async () => {
  const budget = createBudget({ calls: 2 });
  const api = strictApi(manySums(5));
  const server = await startServer(api.answer);
  const { llmMessage: llm } = createLlm({ client: server.client(), layers: [budget.layer] });
  const result = await runAgent("1 + 2?", { tools: [add], llm });
  expect(result).toMatchObject({ status: "budget", turns: 2, usage: { input_tokens: 24 } });
  if (result.status !== "budget") throw new Error("narrows");
  expect(result.error).toBeInstanceOf(BudgetError);
  expect(result.transcript).toHaveLength(5);
  expect(brokenRule(JSON.stringify({ ...bodiesOf(api)[1], messages: result.transcript }))).toBe(
    undefined,
  );
});

test("rejects when the budget ends before the first turn", async () => {
  const error = new BudgetError("No money");
  const llm = async () => {
    throw error;
  };
  expect(await rejection(runAgent("Hi", { tools: [], llm }))).toBe(error);
});

test("keeps what a turn's tools gave where one of them met the end of the budget", async () => {
  const tools = [
    add,
    toolThat(() => {
      throw new BudgetError("No money for the subagent");
    }),
  ];
  const script = [turn("tool_use", addCall("t1")), turn("tool_use", addCall("t2"), goCall("t3"))];
  const { result } = start(script, { tools });
  const { status, turns, transcript } = await result;
  expect([status, turns]).toEqual(["budget", 2]);
  expect(transcript.at(-1)?.content).toMatchObject([
    { tool_use_id: "t2", content: "3" },
    { tool_use_id: "t3", content: expect.stringContaining("No money for the subagent") },
  ]);
  const api = strictApi([done]);
  const again = await runAgent(transcript, { tools, llm: api.llm });
  expect(again.status).toBe("answered");
  expect(api.refusals).toEqual([]);
});

test.each([new HaltError("No call"), new RecordingError("Not recorded")])(
  "rejects with the %s of a tool's own call, which no model is told",
  async (error) => {
    const tools = [
      toolThat(() => {
        throw error;
      }),
    ];
    const script = [turn("tool_use", goCall("t1")), done];
    const { api, result } = start(script, { tools });
    expect(await rejection(result)).toBe(error);
    expect(api.sent).toHaveLength(1);
  },
);

// Suspended

/** A tool that waits for answers from outside, and how often it ran after them. */
function waiting() {
  const answers = new Map<string, string>();
  const runs: string[] = [];
  const tool = defineTool({
    ...toolThat(() => "", "ask"),
    run: (_, { callId }) => {
      const answer = answers.get(callId);
      if (answer === undefined) throw new SuspendError("Waits for an answer");
      runs.push(callId);
      return answer;
    },
  });
  return { answers, runs, tool };
}

/** As it comes back from wherever it was kept. */
const kept = (result: AgentResult): SuspendedRun => JSON.parse(JSON.stringify(result));

test("is suspended in the middle of a turn, and goes on from there when the answer is in", async () => {
  let adds = 0;
  const counted = { ...add, run: () => String(++adds) };
  const { tool, answers, runs } = waiting();
  const tools = [counted, tool];
  const ask = (id: string) => use(id, "ask");
  const calls = [think("hm"), text("Let me ask."), ask("t2"), addCall("t3"), ask("t4"), ask("t5")];
  const script = [turn("tool_use", addCall("t1")), turn("tool_use", ...calls), done];
  const { api, result } = start(script, { tools });
  const suspended = await result;
  expect(suspended).toMatchObject({
    status: "suspended",
    turns: 2,
    results: [{ tool_use_id: "t3", content: "2" }],
    usage: { input_tokens: 24 },
  });
  expect(suspended.transcript.at(-1)).toEqual({ role: "assistant", content: calls });

  // One answer of three: it waits on, and what has a result isn't run again.
  answers.set("t4", "four");
  const still = await runAgent(kept(suspended), { tools, llm: api.llm });
  expect(still).toMatchObject({
    status: "suspended",
    turns: 2,
    results: [{ tool_use_id: "t3" }, { tool_use_id: "t4", content: "four" }],
  });
  expect(still.transcript).toEqual(suspended.transcript);
  expect(api.sent).toHaveLength(2);

  answers.set("t2", "two").set("t5", "five");
  const ended = await runAgent(kept(still), { tools, llm: api.llm });
  expect(ended).toMatchObject({ status: "answered", turns: 3, usage: { input_tokens: 36 } });
  expect([adds, runs]).toEqual([2, ["t4", "t2", "t5"]]);
  expect(lastResults(api)).toEqual(
    [
      ["t2", "two"],
      ["t3", "2"],
      ["t4", "four"],
      ["t5", "five"],
    ].map(([tool_use_id, content]) => ({ type: "tool_result", tool_use_id, content })),
  );
  expect(api.refusals).toEqual([]);
  expectSamePrefixes(api);
});

test("a run that was suspended has the same paths, requests and limits as one that wasn't", async () => {
  const script = [
    turn("tool_use", addCall("t1")),
    turn("tool_use", use("t2", "ask"), addCall("t3")),
    turn("tool_use", addCall("t4", 5)),
    done,
  ];
  const pathsOf = async (run: () => Promise<AgentResult>) => {
    const paths = new Set<string>();
    const result = await observe((event) => paths.add(event.path), run);
    return { result, paths: [...paths] };
  };
  const { tool, answers } = waiting();
  const tools = [add, tool];
  const broken = strictApi(script);
  const llm = broken.llm;
  const before = await pathsOf(() => runAgent("1 + 2?", { tools, llm }));
  answers.set("t2", "two");
  const options = { tools, llm, maxTurns: 3 };
  const short = await runAgent(kept(before.result), { ...options, llm: strictApi([done]).llm });
  expect(short).toMatchObject({ status: "answered", turns: 3 });
  const capped = await runAgent(kept(before.result), { ...options, maxTurns: 2 });
  expect(capped).toMatchObject({ status: "max_turns", turns: 2 });
  const after = await pathsOf(() => runAgent(kept(before.result), { tools, llm }));
  const whole = strictApi(script);
  const unbroken = await pathsOf(() => runAgent("1 + 2?", { tools, llm: whole.llm }));
  expect(after.result).toEqual(unbroken.result);
  expect(broken.sent).toEqual(whole.sent);
  expect(new Set([...before.paths, ...after.paths])).toEqual(new Set(unbroken.paths));
  expect(after.paths.slice(0, 4)).toEqual([
    "agent",
    "agent/turn[1]",
    "agent/turn[1]/tool[0]",
    "agent/turn[2]",
  ]);
});

test("a run that was suspended after a paused turn is gone on with", async () => {
  const { tool } = waiting();
  const script = [turn("pause_turn", "Let me see. "), turn("tool_use", use("t1", "ask"))];
  const { result } = start(script, { tools: [add, tool] });
  const broken = await result;
  expect(broken).toMatchObject({ status: "suspended", turns: 2 });
  const api = strictApi([done]);
  const answering = toolThat(() => "yes", "ask");
  const after = await runAgent(kept(broken), { tools: [add, answering], llm: api.llm });
  expect(after).toMatchObject({ status: "answered", turns: 3 });
});

test("asks how to go on after a pause whose rest was cut off", async () => {
  const script = [turn("pause_turn", "It is "), turn("max_tokens", "thr"), done];
  const steer = ({ ending }: Standing) =>
    ending?.status === "max_tokens" ? { say: "Go on." } : undefined;
  const { result } = start(script, { steer });
  expect(await result).toMatchObject({ status: "answered", answer: "Three" });
});

test("a budget that ends beside a call that waits leaves the run suspended", async () => {
  const { tool } = waiting();
  const broke = toolThat(() => {
    throw new BudgetError("No money");
  });
  const script = [
    turn("tool_use", addCall("t1")),
    turn("tool_use", use("t2", "ask"), use("t3", "go")),
  ];
  const { result } = start(script, { tools: [add, tool, broke] });
  // What waits can still be answered, and is lost otherwise.
  expect(await result).toMatchObject({ status: "suspended", turns: 2 });
});

test("a suspended run that isn't as it was is refused before any call", async () => {
  const { tool } = waiting();
  const { result } = start([turn("tool_use", use("t1", "ask"), addCall("t2"))], {
    tools: [add, tool],
  });
  const good = kept(await result);
  const call = { type: "tool_result", tool_use_id: "t1", content: "" } as const;
  for (const bad of [
    { ...good, status: "answered" },
    { ...good, turns: 0 },
    { ...good, turns: undefined },
    { ...good, transcript: good.transcript.slice(0, -1) },
    { ...good, transcript: [] },
    { ...good, transcript: undefined },
    { ...good, results: undefined },
    { ...good, results: [...good.results, call] },
    { ...good, results: [null] },
    { ...good, results: [{ ...call, tool_use_id: "t9" }] },
    { ...good, results: [{ tool_use_id: "t2", content: "3" }] },
    {
      ...good,
      transcript: good.transcript.map(({ role, content }) => ({
        role,
        content:
          typeof content === "string" ? content : content.map((block) => ({ ...block, id: "" })),
      })),
    },
    { ...good, usage: undefined },
    { ...good, usage: { ...good.usage, input_tokens: -5 } },
    { ...good, usage: { ...good.usage, input_tokens: "5" } },
    { ...good, transcript: [...good.transcript.slice(0, -1), { role: "user", content: [null] }] },
    {
      ...good,
      transcript: good.transcript.map((message) => ({ ...message, role: "user" as const })),
    },
  ]) {
    const api = strictApi([done]);
    // What JSON from elsewhere can be.
    const run = runAgent(bad as SuspendedRun, { tools: [add, tool], llm: api.llm });
    const error = await rejection(run);
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain("no suspended run");
    expect(api.sent).toEqual([]);
  }
  const { turns } = good;
  const short = runAgent({ ...good, turns: turns + 1 }, { tools: [], maxTurns: 1 });
  expect(await rejection(short)).toBeInstanceOf(RangeError);
});

test("passes on the transport's errors", async () => {
  const error = new Error("down");
  const llm = async () => {
    throw error;
  };
  expect(await rejection(runAgent("Hi", { tools: [], llm }))).toBe(error);
});

test("makes no call under a signal that has fired", async () => {
  const { api, result } = start([done], { signal: AbortSignal.abort("no more") });
  expect(await rejection(result)).toBe("no more");
  expect(api.sent).toEqual([]);
});

test("rejects with the signal's reason when it fires during a call to the model", async () => {
  const server = await startServer(() => {});
  const { llmMessage: llm } = createLlm({ client: server.client() });
  const controller = new AbortController();
  const { signal } = controller;
  const rejected = rejection(runAgent("Hi", { tools: [], llm, signal }));
  const { gone } = await server.received(1);
  controller.abort("enough");
  expect(await rejected).toBe("enough");
  await gone;
});

test.each(["heeds it", "fails in its own way", "answers all the same"])(
  "rejects with the signal's reason when it fires while a tool runs that %s",
  async (way) => {
    const controller = new AbortController();
    const { signal } = controller;
    const slow = held();
    const tools = [toolThat((_, context) => slow.reply("", way === "heeds it" ? context : {}))];
    const script = [turn("tool_use", goCall("t1")), done];
    const { api, result } = start(script, { tools, signal });
    const rejected = rejection(result);
    await slow.started;
    controller.abort("enough");
    if (way === "fails in its own way") slow.fail(new Error("disturbed"));
    if (way === "answers all the same") slow.answer("ok");
    expect(await rejected).toBe("enough");
    expect(slow.state()).toBe("ended");
    expect(api.sent).toHaveLength(1);
  },
);

test("rejects with the signal's reason when it fires beside the last answer", async () => {
  const controller = new AbortController();
  const last = () => {
    controller.abort("enough");
    return done;
  };
  const { result } = start([last], { signal: controller.signal });
  expect(await rejection(result)).toBe("enough");
});

test("names its calls and tools by turn", async () => {
  const paths: string[] = [];
  const tools = [
    toolThat(() => {
      paths.push(currentPath());
      return "ok";
    }),
  ];
  const script = [turn("tool_use", goCall("t1"), goCall("t2")), done];
  const api = strictApi(script);
  const events: RunEvent[] = [];
  await observe(
    (event) => events.push(event),
    () => runAgent("Hi", { tools, llm: api.llm }),
  );
  expect(paths).toEqual(["agent/turn[0]/tool[0]", "agent/turn[0]/tool[1]"]);
  expect(events.flatMap(({ type, path }) => (type === "start" ? [path] : []))).toEqual([
    "agent",
    "agent/turn[0]",
    "agent/turn[0]/tool[0]",
    "agent/turn[0]/tool[1]",
    "agent/turn[1]",
  ]);
});

test("hands on every turn's text as it comes", async () => {
  const api = strictApi([turn("tool_use", think("hm"), "Let me add.", addCall("t1")), done]);
  const server = await startServer(api.answer);
  const { llmMessage: llm } = createLlm({ client: server.client() });
  const heard: string[] = [];
  const onText = (piece: string) => heard.push(piece);
  const result = await runAgent("1 + 2?", { tools: [add], llm, onText });
  expect(result).toMatchObject({ status: "answered", answer: "Three" });
  expect(heard).toEqual(["Let ", "me ", "add.", "Three"]);
  expect(server.requests.every(({ body }) => body.stream === true)).toBe(true);
  expect(api.refusals).toEqual([]);
});

test("runs no tool on a streamed input that is no JSON", async () => {
  let ran = false;
  const tools = [
    toolThat(() => {
      ran = true;
      return "ran";
    }),
  ];
  const call = { type: "tool_use", id: "t1", name: "go", input: {} };
  const events = eventsOf({ ...message(""), content: [call], stop_reason: "tool_use" });
  const body = events.join("").replace('"partial_json":"{}"', '"partial_json":"{\\"a\\":}"');
  expect(body).toContain('{\\"a\\":}');
  const broken = raw(body, { headers: { "content-type": "text/event-stream" } });
  const server = await startServer(broken, reply("Three"));
  const { llmMessage: llm } = createLlm({ client: server.client({ maxRetries: 2 }) });
  const error = await rejection(runAgent("Hi", { tools, llm, onText: () => {} }));
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(ran).toBe(false);
  expect(server.requests).toHaveLength(1);
});

const UNANSWERED: readonly MessageParam[] = [
  { role: "user", content: "Hi" },
  { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "add", input: {} }] },
];

test.each([
  ["an empty task", "", {}, TypeError],
  ["a task of spaces", " \n", {}, TypeError],
  ["an empty transcript", [], {}, TypeError],
  ["a transcript that ends in a tool call", UNANSWERED, {}, TypeError],
  ["two tools of one name", "Hi", { tools: [add, add] }, TypeError],
  ["a bad name", "Hi", { tools: [{ ...add, name: "a b" }] }, TypeError],
  [
    "a forced tool while thinking",
    "Hi",
    { thinking: { type: "adaptive" }, tool_choice: { type: "any" } },
    TypeError,
  ],
  // What plain JavaScript may give.
  ["a steer that is none", "Hi", { steer: "left" as unknown as () => undefined }, TypeError],
  ["tools that are no list", "Hi", { tools: undefined as unknown as [] }, TypeError],
  ["a tool without run", "Hi", { tools: [{ ...add, run: undefined as never }] }, TypeError],
  ["an onText that is no function", "Hi", { onText: 5 as never }, TypeError],
  ["no turns", "Hi", { maxTurns: 0 }, RangeError],
  ["half a turn", "Hi", { maxTurns: 1.5 }, RangeError],
  ["no tokens", "Hi", { max_tokens: 0 }, RangeError],
  ["maxRepeats 1, which would end at the first call", "Hi", { maxRepeats: 1 }, RangeError],
  ["maxRepeats NaN", "Hi", { maxRepeats: Number.NaN }, RangeError],
  ["maxRepeats -1", "Hi", { maxRepeats: -1 }, RangeError],
  ["too little output", "Hi", { maxOutputChars: 99 }, RangeError],
] as const)("refuses %s before any call", async (_, task, options, kind) => {
  const api = strictApi([done]);
  const error = await rejection(runAgent(task, { tools: [], llm: api.llm, ...options }));
  expect(error).toBeInstanceOf(kind);
  expect(api.sent).toEqual([]);
});

const user = { role: "user", content: "Hi" };
const calls = {
  role: "assistant",
  content: [{ type: "tool_use", id: "t1", name: "add", input: {} }],
};

const resultOf = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "3" });

test.each([
  [
    "null",
    null,
    /: The task must be a text with something in it, or a list of messages, got null$/,
  ],
  ["a number", 5, /got 5$/],
  ["no message", [{}], /message\[0\] must have a role and content, a text or blocks, got \{\}$/],
  [
    "null among messages",
    [user, null],
    /message\[1\] must have a role and content, a text or blocks, got null$/,
  ],
  ["no content", [{ role: "user" }], /message\[0\] must have a role and content/],
  ["a call without a result", [user, calls, user], /message\[1\] calls a tool without a result/],
  ["a call at the end", [user, calls], /message\[1\] calls a tool without a result/],
  [
    "the result of another call",
    [user, calls, { role: "user", content: [{ type: "tool_result", tool_use_id: "t2" }] }],
    /message\[1\] calls a tool without a result/,
  ],
  [
    "a text before the results",
    [user, calls, { role: "user", content: [{ type: "text", text: "So:" }, resultOf("t1")] }],
    /message\[2\] has something before its tool results: they come first$/,
  ],
  [
    "two results for one call",
    [user, calls, { role: "user", content: [resultOf("t1"), resultOf("t1")] }],
    /message\[2\] has two results for one call$/,
  ],
  [
    "a result of no call",
    [user, { role: "user", content: [resultOf("t1")] }],
    /message\[1\] has the result of a call that the message before doesn't make$/,
  ],
  [
    "the model's turn first",
    [{ role: "assistant", content: "Hi" }, user],
    /message\[0\] is the model's, and the first: begin with what it was asked$/,
  ],
  [
    "a block that is null",
    [{ role: "user", content: [null] }],
    /message\[0\] must have a role and content, a text or blocks, got .*null/,
  ],
  [
    "a block without a type, after a call",
    [user, calls, { role: "user", content: [{}] }],
    /message\[1\] calls a tool without a result/,
  ],
  ["an empty text", [{ role: "user", content: " " }], /message\[0\] is empty: leave it out$/],
  ["no blocks", [user, { role: "assistant", content: [] }, user], /message\[1\] is empty/],
  [
    "blank blocks",
    [{ role: "user", content: [{ type: "text", text: "\u200b" }] }],
    /message\[0\] is empty/,
  ],
  [
    "the model's turn at the end",
    [user, { role: "assistant", content: "Three" }],
    /message\[1\] is the model's, and the last: say something that it can go on from$/,
  ],
] as const)("says what is wrong with a task that is %s", async (_, task, message) => {
  const api = strictApi([done]);
  // What plain JavaScript can hand over.
  const given = task as unknown as readonly MessageParam[];
  const error = await rejection(runAgent(given, { tools: [], llm: api.llm }));
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toMatch(message);
  expect(api.sent).toEqual([]);
});

test("goes on from a turn that was paused beside the API's own tools", async () => {
  const { llm, sent, refusals } = strictApi([turn("pause_turn", serverUse("s1")), done]);
  const { status, transcript } = await runAgent("Hi", { tools: [], llm, maxTurns: 1 });
  const result = await runAgent(transcript, { tools: [], llm });
  expect([status, result.status, refusals]).toEqual(["max_turns", "answered", []]);
  expect(JSON.parse(sent[1] ?? "").messages).toEqual(transcript);
});

test("types a result by its status", async () => {
  const result = await start([done]).result;
  expectTypeOf(result).toEqualTypeOf<AgentResult>();
  expectTypeOf(result.transcript).toEqualTypeOf<readonly MessageParam[]>();
  expectTypeOf(result.status).toEqualTypeOf<
    | ("answered" | "max_turns" | "repeating" | "stopped" | "budget" | "suspended")
    | ("refusal" | "max_tokens" | "model_context_window_exceeded")
  >();
  if (result.status === "answered") expectTypeOf(result.answer).toEqualTypeOf<string>();
  // @ts-expect-error Only an answered run has an answer.
  if (result.status !== "answered") result.answer;
  // @ts-expect-error An agent needs tools, if only an empty list.
  const _options: AgentOptions = {};
});

// What a tool can do, one name each.
const deeds = {
  answers: () => "ok",
  says_nothing: () => "",
  says_undefined: () => undefined,
  says_spaces: () => " \n",
  says_much: () => "x😀".repeat(200),
  says_half: () => "\ud83d",
  gives_json: () => ({ a: 1 }),
  gives_circle: () => {
    const circle: unknown[] = [];
    circle.push(circle);
    return circle;
  },
  is_slow: async () => {
    await setImmediate();
    return "late";
  },
  denies: () => {
    throw new ToolError("");
  },
  throws: async () => {
    throw new Error("\udc00 disk full");
  },
  throws_odd: () => {
    throw Object.create(null);
  },
  times_out: () => {
    throw new DOMException("aborted", "AbortError");
  },
} satisfies Record<string, () => unknown>;

const rightInput = (deed: string) => ({ deed, list: ["a"] });

/** An input that is right, for a deed that ends the run or for another, or any input at all. */
const anyInput = fc.oneof(
  { weight: 16, arbitrary: fc.constantFrom(...Object.keys(deeds), "edits").map(rightInput) },
  {
    weight: 2,
    arbitrary: fc.constantFrom("halts", "runs_out", "aborts", "aborts").map(rightInput),
  },
  {
    weight: 3,
    arbitrary: fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 1 })),
  },
);

const names = ["go", "go", "go", "go", "go", "unknown", "constructor", "__proto__", "toString"];

/** One block of a turn; ids are numbered later. */
const anyBlock = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom("", " ", "\n\t", "Hm.").map((value) => () => text(value)),
  },
  { weight: 2, arbitrary: fc.string({ maxLength: 4 }).map((value) => () => think(value)) },
  { weight: 1, arbitrary: fc.constant(() => redacted("x=")) },
  { weight: 1, arbitrary: fc.constant((id: string) => serverUse(id)) },
  {
    weight: 6,
    arbitrary: fc.record({ name: fc.constantFrom(...names), input: anyInput }).map(
      ({ name, input }) =>
        (id: string) =>
          use(id, name, input),
    ),
  },
);

const anyTurn = fc.record({
  blocks: fc.array(anyBlock, { maxLength: 6 }),
  // A reason that goes with the blocks is what the API gives, and now and then it doesn't.
  reason: fc.oneof(
    { weight: 20, arbitrary: fc.constant("fitting") },
    { weight: 1, arbitrary: fc.constantFrom("pause_turn", "max_tokens", "end_turn", "tool_use") },
    { weight: 1, arbitrary: fc.constantFrom("stop_sequence", "refusal", "compaction") },
  ),
  paused: fc.boolean(),
});

const anyRun = fc.record({
  turns: fc.array(anyTurn, { minLength: 1, maxLength: 7 }),
  maxTurns: fc.integer({ min: 1, max: 8 }),
  maxRepeats: fc.constantFrom(0, 2, 3),
  /** Before which turns something is said. */
  says: fc.oneof(fc.constant([]), fc.array(fc.boolean(), { maxLength: 9 })),
});
type Run = typeof anyRun extends fc.Arbitrary<infer R> ? R : never;

function scriptOf({ turns }: Run): Partial<Message>[] {
  const script = turns.map(({ blocks, reason, paused }, at) => {
    const content = blocks.map((block, index) => block(`t${at}_${index}`));
    const calls = content.some(({ type }) => type === "tool_use");
    const fitting = calls ? "tool_use" : paused ? "pause_turn" : "end_turn";
    return turn(reason === "fitting" ? fitting : reason, ...content);
  });
  return [...script, ...Array.from({ length: 8 }, () => done)];
}

/** A tool that does what its input says. One, since a schema takes a while to compile. */
function anyTool(controller: AbortController): Tool {
  const doing: Readonly<Record<string, (list: string[]) => unknown>> = {
    ...deeds,
    halts: () => {
      throw new HaltError("No call");
    },
    runs_out: () => {
      throw new BudgetError("No money");
    },
    edits: (list) => list.push("edited"),
    aborts: () => controller.abort("enough"),
  };
  return defineTool<{ deed: string; list: string[] }>({
    name: "go",
    description: "Does it.",
    input_schema: schema({ deed: { enum: Object.keys(doing) }, list: { type: "array" } }),
    // What plain JavaScript gives may be no text.
    run: ({ deed, list }) => doing[deed]?.(list) as string,
  });
}

async function checkRun(run: Run, api: StrictApi, llm: AgentOptions["llm"]): Promise<string> {
  const { maxTurns, maxRepeats, says } = run;
  const controller = new AbortController();
  const tools = [anyTool(controller)];
  const { signal } = controller;
  const steer = ({ turn }: Standing) => (says[turn] ? { say: "Go on." } : undefined);
  const options = { tools, llm, signal, maxTurns, maxRepeats, maxOutputChars: 100, steer };
  const [outcome] = await Promise.allSettled([runAgent("Go", options)]);

  expect(api.refusals).toEqual([]);
  expect(api.sent.length).toBeLessThanOrEqual(maxTurns);
  const sent = api.sent.map(withoutServerCalls);
  expectSamePrefixes({ sent });
  for (const body of sent) {
    const given = api.issued.map(({ content }) => ({ role: "assistant", content }));
    const { messages } = JSON.parse(withoutServerCalls(JSON.stringify({ messages: given })));
    const left = messages.map(({ content }: MessageParam) => content);
    for (const { role, content } of JSON.parse(body).messages) {
      if (role !== "assistant") continue;
      // Some turns aren't sent back; those that are, in their order.
      while (left[0] && !isDeepStrictEqual(left[0], content)) left.shift();
      expect(left.shift()).toEqual(content);
    }
  }

  if (outcome.status === "rejected") {
    const known = outcome.reason instanceof HaltError || outcome.reason instanceof LlmOutputError;
    expect(known || outcome.reason === "enough", String(outcome.reason)).toBe(true);
    return signal.aborted ? "aborted" : "rejected";
  }
  expect(signal.aborted).toBe(false);
  const { status, transcript } = outcome.value;
  expect(JSON.parse(JSON.stringify(transcript))).toEqual(transcript);
  // Whatever ended it, it can go on; after an answer with the user's next question.
  const more: MessageParam[] = status === "answered" ? [{ role: "user", content: "And?" }] : [];
  const resumed = [...transcript, ...more];
  const body = { ...bodiesOf(api)[0], messages: resumed };
  // No turn ends with an answer beside a call of the API's own, whatever this script has.
  const sound = status === "answered" ? withoutServerCalls(JSON.stringify(body)) : undefined;
  expect(brokenRule(sound ?? JSON.stringify(body), api.issued)).toBe(undefined);
  return status;
}

// Where it was copied to, a test has five seconds if it doesn't say.
const LONG = { timeout: 30_000 };

test(
  "makes no request that the API refuses, whatever the turns, tools and aborts",
  LONG,
  async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(anyRun, async (run) => {
      const api = strictApi(scriptOf(run));
      seen.add(await checkRun(run, api, api.llm));
    });
    await fc.assert(property, { numRuns: 150 });
    for (const outcome of ["answered", "rejected", "aborted", "max_turns"]) {
      expect(seen).toContain(outcome);
    }
  },
);

test("makes no request that a server refuses, over the SDK, in one piece and as a stream", async () => {
  let api = strictApi([]);
  const server = await startServer((exchange) => api.answer(exchange));
  const { llmMessage } = createLlm({ client: server.client() });
  const property = fc.asyncProperty(anyRun, fc.boolean(), async (run, streams) => {
    api = strictApi(scriptOf(run));
    const onText = streams ? () => {} : undefined;
    const llm: typeof llmMessage = (params, call) => llmMessage(params, { ...call, onText });
    await checkRun(run, api, llm);
  });
  await fc.assert(property, { numRuns: 25 });
});

const ask: MessageParam = { role: "user", content: "Hi" };
const called = (...content: readonly unknown[]) => ({ role: "assistant", content });
const results = (...ids: readonly string[]) => ({
  role: "user",
  content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "ok" })),
});
const { run: _run, ...definition } = add;
const base = { model: "m", max_tokens: 1, tools: [definition] };
const twoCalls = called(addCall("t1"), addCall("t2"));
const note = { type: "text", text: "note" };

test.each([
  ["a field it doesn't know", { maxTurns: 3 }, "maxTurns: Extra inputs"],
  ["no model", { model: "" }, "model"],
  ["no max_tokens", { max_tokens: undefined }, "max_tokens"],
  ["no message", { messages: [] }, "at least one message"],
  ["an assistant's message first", { messages: [called(note), ask] }, "first message"],
  ["another role", { messages: [{ role: "tool", content: "x" }] }, "role must be"],
  ["an empty content", { messages: [ask, called(), ask] }, "non-empty content"],
  ["an empty text", { messages: [ask, called(text("")), ask] }, "must be non-empty"],
  ["spaces", { messages: [{ role: "user", content: " " }] }, "must be non-empty"],
  ["half a character", { messages: [{ role: "user", content: "\ud83d" }] }, "surrogate"],
  ["an answer last", { messages: [ask, called(note)] }, "must end with a user message"],
  ["a call last", { messages: [ask, twoCalls] }, "without tool_result"],
  ["a result too few", { messages: [ask, twoCalls, results("t1")] }, "without tool_result"],
  [
    "results in two messages",
    { messages: [ask, twoCalls, results("t1"), results("t2")] },
    "without tool_result",
  ],
  ["a result too many", { messages: [ask, twoCalls, results("t1", "t2", "t3")] }, "unexpected"],
  ["a result of nothing", { messages: [ask, called(note), results("t1")] }, "unexpected"],
  ["a result twice", { messages: [ask, called(addCall("t1")), results("t1", "t1")] }, "single"],
  [
    "a text before the results",
    {
      messages: [ask, twoCalls, { role: "user", content: [note, ...results("t1", "t2").content] }],
    },
    "must come first",
  ],
  [
    "an empty result",
    {
      messages: [
        ask,
        called(addCall("t1")),
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "" }] },
      ],
    },
    "content cannot be empty",
  ],
  [
    "an id twice",
    { messages: [ask, called(addCall("t1")), results("t1"), called(addCall("t1")), results("t1")] },
    "ids must be unique",
  ],
  ["an input that is no object", { messages: [ask, called(use("t1", "add", "x"))] }, "dictionary"],
  ["thinking last", { messages: [ask, called(think("hm")), ask] }, "cannot be `thinking`"],
  ["a result from the assistant", { messages: [ask, called(results("t1").content[0])] }, "take no"],
  ["a tool without a name", { tools: [{ ...definition, name: "" }] }, "name"],
  ["two tools of one name", { tools: [definition, definition] }, "unique"],
  ["a tool's extra field", { tools: [{ ...definition, confirm: true }] }, "Extra confirm"],
  ["a schema of no object", { tools: [{ ...definition, input_schema: {} }] }, "input_schema.type"],
  ["a choice without tools", { tools: [], tool_choice: { type: "any" } }, "while providing tools"],
  ["a choice of no tool", { tool_choice: { type: "tool", name: "no" } }, "not found"],
  [
    "a forced tool with thinking",
    { tool_choice: { type: "any" }, thinking: { type: "adaptive" } },
    "Thinking may not be enabled",
  ],
  [
    "a forced tool of a model that takes none",
    { model: "claude-opus-5-5", tool_choice: { type: "any" } },
    "doesn't support forced tool use",
  ],
])("the strict API refuses %s", (_, fault, rule) => {
  const sound = { ...base, messages: [ask] };
  expect(brokenRule(JSON.stringify(sound))).toBe(undefined);
  expect(brokenRule(JSON.stringify({ ...sound, ...fault }))).toContain(rule);
});

test("the strict API refuses thinking that was changed, dropped, moved or made up", () => {
  const issued = [message("", turn("tool_use", think("a"), think("b"), addCall("t1")))];
  const verdict = (...content: readonly unknown[]) => {
    const messages = [ask, called(...content), results("t1")];
    return brokenRule(JSON.stringify({ ...base, messages }), issued);
  };
  expect(verdict(think("a"), think("b"), addCall("t1"))).toBe(undefined);
  for (const thoughts of [[], [think("a")], [think("b"), think("a")], [think("a"), think("c")]]) {
    expect(verdict(...thoughts, addCall("t1"))).toContain("cannot be modified");
  }
  const madeUp = [ask, called(think("c"), note), ask];
  expect(brokenRule(JSON.stringify({ ...base, messages: madeUp }), issued)).toContain("modified");
});

test("the strict API throws what the SDK throws, in process and as a server", async () => {
  const api = strictApi([done]);
  const server = await startServer(api.answer);
  const { llmMessage } = createLlm({ client: server.client() });
  for (const llm of [api.llm, llmMessage]) {
    const error = await rejection(llm({ model: "m", max_tokens: 1, messages: [] }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining("at least one") });
  }
  expect(api.refusals).toHaveLength(2);
  expect(await api.llm({ ...base, tools: [], messages: [ask] })).toEqual(message("", done));
});

test.for(["text", null, {}, undefined])(
  "says what is wrong with an llm that gives %j",
  async (said) => {
    const llm = async () => said as unknown as Message; // the compiler would refuse it
    const error = await rejection(runAgent("Hi", { tools: [], llm }));
    expect(String(error)).toContain("The reply is not a message");
  },
);
