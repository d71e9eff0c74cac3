/**
 * What keeps a long run short: what is asked of the API, and how the loop goes on from what it did.
 *
 * From effective-agents 0.1.0: test/context.test.ts
 */
import type { ContentBlock, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { expect, expectTypeOf, test } from "vitest";
import { type AgentOptions, runAgent } from "../patterns/agent.ts";
import { type ContextParams, manageContext } from "../patterns/context.ts";
import { createLlm, type LlmParams } from "../patterns/llm-call.ts";
import { defineTool } from "../patterns/tool.ts";
import { startServer } from "./shared/server.ts";
import { brokenRule, strictApi, type Turn, text, turn, use } from "./shared/strict-api.ts";

const go = defineTool({
  name: "go",
  description: "Goes.",
  input_schema: { type: "object", properties: {}, required: [], additionalProperties: false },
  run: () => "gone",
});

const compacting = manageContext({ compact: { trigger: 50_000 } });

/** A block of the beta API, which a reply's type doesn't have. */
function summary(content: string | null): ContentBlock {
  const block = { type: "compaction", content, encrypted_content: null };
  return block as unknown as ContentBlock;
}

/** Runs an agent on a strict API with these turns. */
function start(script: readonly Turn[], options: Partial<AgentOptions> = {}) {
  const api = strictApi(script);
  const result = runAgent("Go", { tools: [go], llm: api.llm, ...compacting, ...options });
  return { api, result };
}

const messagesOf = (body: string | undefined): MessageParam[] => JSON.parse(body ?? "{}").messages;

test("asks for a clearing with the API's defaults", () => {
  expect(manageContext({ clear: {} })).toEqual({
    betas: ["context-management-2025-06-27"],
    context_management: {
      edits: [
        {
          type: "clear_tool_uses_20250919",
          trigger: { type: "input_tokens", value: 100_000 },
          keep: { type: "tool_uses", value: 3 },
        },
      ],
    },
  });
});

test("asks for a compaction before a clearing, with all that was given", () => {
  const clear = { trigger: 40_000, keep: 0, clear_at_least: 5_000, clear_tool_inputs: true };
  const compact = { trigger: 90_000, instructions: "Keep the file names." };
  const params = manageContext({ clear: { ...clear, exclude_tools: ["memory"] }, compact });
  expect(params).toEqual({
    betas: ["compact-2026-01-12", "context-management-2025-06-27"],
    context_management: {
      edits: [
        {
          type: "compact_20260112",
          trigger: { type: "input_tokens", value: 90_000 },
          instructions: "Keep the file names.",
        },
        {
          type: "clear_tool_uses_20250919",
          trigger: { type: "input_tokens", value: 40_000 },
          keep: { type: "tool_uses", value: 0 },
          clear_at_least: { type: "input_tokens", value: 5_000 },
          exclude_tools: ["memory"],
          clear_tool_inputs: true,
        },
      ],
    },
  });
});

test("keeps betas of the caller's own, each once", () => {
  const betas = ["files-api-2025-04-14", "compact-2026-01-12"];
  expect(manageContext({ compact: {}, betas }).betas).toEqual(betas);
});

test.for([
  [{}, TypeError, "Nothing to do: give clear, compact, or both"],
  [{ betas: ["a"] }, TypeError, "Nothing to do"],
  [{ compact: { trigger: 49_999 } }, RangeError, "at least 50000, got 49999"],
  [{ compact: { trigger: Number.NaN } }, RangeError, "compact.trigger must be a whole number"],
  [{ compact: { instructions: " " } }, TypeError, "instructions must be a text with something in"],
  [{ clear: { trigger: 0 } }, RangeError, "clear.trigger must be a whole number of at least 1"],
  [{ clear: { keep: -1 } }, RangeError, "clear.keep must be a whole number of at least 0, got -1"],
  [{ clear: { keep: 1.5 } }, RangeError, "got 1.5"],
  [{ clear: { clear_at_least: -5 } }, RangeError, "clear.clear_at_least must be a whole number"],
] as const)("refuses %j before any call", ([options, kind, message]) => {
  const act = () => manageContext(options);
  expect(act).toThrow(kind);
  expect(act).toThrow(message);
});

test.for([
  [
    { clear: { exclude_tools: "memory" } },
    'clear.exclude_tools must be a list of texts, got "memory"',
  ],
  [{ clear: { exclude_tools: [5] } }, "clear.exclude_tools must be a list of texts, got [ 5 ]"],
  [{ clear: {}, betas: "files-api" }, 'betas must be a list of texts, got "files-api"'],
] as const)("refuses what is no list of texts: %j", ([options, message]) => {
  // What plain JavaScript can hand over.
  const given = options as unknown as Parameters<typeof manageContext>[0];
  const act = () => manageContext(given);
  expect(act).toThrow(TypeError);
  expect(act).toThrow(message);
});

test("gives parameters that agents and calls take", () => {
  expectTypeOf<ContextParams>().toExtend<LlmParams>();
  expectTypeOf<ContextParams>().toExtend<Partial<AgentOptions>>();
  // @ts-expect-error The API knows no such figure.
  manageContext({ clear: { above: 5 } });
});

test("sends the edits in the body, and the betas in the header, with every turn", async () => {
  const api = strictApi([turn("tool_use", use("t1", "go")), turn("end_turn", "Done")]);
  const server = await startServer(api.answer);
  const { llmMessage } = createLlm({ client: server.client() });
  const params = manageContext({ clear: {}, compact: {} });
  const result = await runAgent("Go", { tools: [go], llm: llmMessage, ...params });
  expect(result).toMatchObject({ status: "answered", answer: "Done" });
  expect(server.requests).toHaveLength(2);
  for (const { headers, body } of server.requests) {
    expect(headers["anthropic-beta"]).toBe("compact-2026-01-12,context-management-2025-06-27");
    expect(body).toMatchObject({ context_management: params.context_management });
  }
});

test("sends a summary back where it stood, with what the turn said and called", async () => {
  const { api, result } = start([
    turn("tool_use", summary("Went once."), "Again.", use("t1", "go")),
    turn("end_turn", "Done"),
  ]);
  expect(await result).toMatchObject({ status: "answered", answer: "Done", turns: 2 });
  expect(api.refusals).toEqual([]);
  expect(messagesOf(api.sent[1])[1]).toEqual({
    role: "assistant",
    content: [summary("Went once."), text("Again."), use("t1", "go")],
  });
});

test("goes on from a turn that stopped for its compaction, as it is", async () => {
  const steer: unknown[] = [];
  const { api, result } = start(
    [turn("compaction", summary("All so far.")), turn("end_turn", "Done")],
    {
      steer: (standing) => {
        steer.push([standing.isPaused, standing.ending?.status]);
        return undefined;
      },
    },
  );
  expect(await result).toMatchObject({ status: "answered", answer: "Done", turns: 2 });
  expect(api.refusals).toEqual([]);
  expect(messagesOf(api.sent[1])).toEqual([
    { role: "user", content: "Go" },
    { role: "assistant", content: [summary("All so far.")] },
  ]);
  expect(steer).toEqual([
    [false, undefined],
    [true, undefined],
    [false, "answered"],
  ]);
});

test("sends back a compaction that failed, which the API takes for nothing", async () => {
  const { api, result } = start([
    turn("tool_use", summary(null), use("t1", "go")),
    turn("end_turn", "Done"),
  ]);
  expect(await result).toMatchObject({ answer: "Done" });
  expect(messagesOf(api.sent[1])[1]?.content).toContainEqual(summary(null));
});

test("keeps the summary of a turn whose call was cut off, so that it isn't made twice", async () => {
  const { api, result } = start([
    turn("max_tokens", summary("All so far."), "Hm", use("t1", "go")),
    turn("end_turn", "Done"),
  ]);
  expect(await result).toMatchObject({ status: "answered", answer: "Done", turns: 2 });
  expect(api.refusals).toEqual([]);
  expect(messagesOf(api.sent[1]).at(-1)).toEqual({
    role: "assistant",
    content: [summary("All so far.")],
  });
});

test("can be gone on with where a summary came last", async () => {
  const first = await start([turn("refusal", summary("All so far."), "I won't")]).result;
  expect(first).toMatchObject({ status: "refusal", text: "I won't" });
  const api = strictApi([turn("end_turn", "Done")]);
  const options = { tools: [go], llm: api.llm, ...compacting };
  expect(await runAgent(first.transcript, options)).toMatchObject({ answer: "Done" });
  expect(api.refusals).toEqual([]);
  expect(messagesOf(api.sent[0])).toEqual(first.transcript);
});

test("adds what a compaction used to the sum", async () => {
  const compaction = { input_tokens: 60_000, output_tokens: 900, cache_read_input_tokens: 5 };
  const iterations = [
    { type: "compaction", ...compaction },
    { type: "message", input_tokens: 10, output_tokens: 5 },
  ];
  const usage = { input_tokens: 10, output_tokens: 5, iterations };
  const answered = { ...turn("end_turn", summary("So far."), "Done"), usage } as unknown as Turn;
  const { result } = start([answered]);
  expect((await result).usage).toEqual({
    input_tokens: 60_010,
    output_tokens: 905,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 5,
  });
});

test("is told by the strict API what the real one would refuse", () => {
  const body = (rest: object, content: unknown = "Go") =>
    JSON.stringify({
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content }],
      ...rest,
    });
  const { context_management, betas = [] } = compacting;
  expect(brokenRule(body({ context_management }))).toContain("Extra inputs");
  expect(brokenRule(body({ context_management }), [], betas)).toBe(undefined);
  const messages = [
    { role: "user", content: "Go" },
    { role: "assistant", content: [summary("So far.")] },
  ];
  expect(brokenRule(body({ messages }))).toContain("strategy must be declared");
});
