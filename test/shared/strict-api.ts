/**
 * A scripted Messages API that is as strict as the real one, and names the rule that a request breaks.
 *
 *     const api = strictApi([turn("tool_use", use("t1", "add", { a: 1 })), turn("end_turn", text("1"))]);
 *     await runAgent("Add", { tools, llm: api.llm }); // in process
 *     const server = await startServer(api.answer);   // or as a real server
 *     api.refusals; // []
 *
 * Each request gets the next turn of the script, or, if it breaks a rule, the API's 400. `brokenRule` is
 * the check alone. Each rule names its source: the SDK's types or documentation,
 * or a report of the API's own message. Where sources disagree, the strict one counts.
 *
 * Not here: sizes (32 MB, 100,000 messages), images and files, and that a thinking budget is lower than
 * `max_tokens`.
 *
 * From effective-agents 0.1.0: test/shared/strict-api.ts
 */
import { isDeepStrictEqual } from "node:util";
import { APIError } from "@anthropic-ai/sdk";
import type { ContentBlock, Message } from "@anthropic-ai/sdk/resources/messages";
import { Ajv } from "ajv";
import { expect } from "vitest";
import { HaltError } from "../../patterns/errors.ts";
import type { LlmMessage } from "../../patterns/llm-call.ts";
import { callStep } from "../../patterns/step.ts";
import { type Answer, message, raw, reply, type Wire } from "./server.ts";

/** What the script answers with: a turn, or a function that makes one when it's asked for. */
export type Turn = Partial<Message> | ((body: Wire) => Partial<Message>);

export interface StrictApi {
  /** For a pattern's `llm`. It throws what the SDK throws on a 400. */
  readonly llm: LlmMessage;
  /** For `startServer`. */
  readonly answer: Answer;
  /** The requests as they were sent, in JSON. */
  readonly sent: readonly string[];
  /** The turns that were given. */
  readonly issued: readonly Message[];
  /** The rules that were broken. */
  readonly refusals: readonly string[];
}

/** Makes a strict API with these turns. */
export function strictApi(script: readonly Turn[]): StrictApi {
  const sent: string[] = [];
  const issued: Message[] = [];
  const refusals: string[] = [];
  const queue = [...script];
  const next = (body: string, betas: readonly string[]) => {
    sent.push(body);
    const broken = brokenRule(body, issued, betas);
    if (broken) {
      refusals.push(broken);
      return broken;
    }
    const turn = queue.shift();
    if (!turn) return undefined;
    const parsed: Wire = JSON.parse(body);
    // Twice through JSON, so that nobody's later change reaches what was issued.
    const whole = JSON.stringify(message("", typeof turn === "function" ? turn(parsed) : turn));
    issued.push(JSON.parse(whole));
    const given: Message = JSON.parse(whole);
    return given;
  };
  const refusal = (rule: string) => ({
    type: "error",
    error: { type: "invalid_request_error", message: rule },
  });
  return {
    llm: ({ betas = [], ...params }, { name, signal } = {}) =>
      callStep(
        name,
        async () => {
          signal?.throwIfAborted();
          const outcome = next(JSON.stringify(params), betas);
          if (outcome === undefined) throw new HaltError("The script has no turn left");
          if (typeof outcome === "string")
            throw APIError.generate(400, refusal(outcome), undefined, new Headers());
          return outcome;
        },
        signal,
      ),
    answer: (exchange) => {
      const betas = String(exchange.headers["anthropic-beta"] ?? "").split(",");
      const outcome = next(JSON.stringify(exchange.body), betas);
      if (typeof outcome === "object") {
        // The wire's blocks are the SDK's, whose types have no index signature.
        const blocks = outcome.content as unknown as (Wire & { type: string })[];
        return reply(blocks, { ...outcome })(exchange);
      }
      const error = JSON.stringify(refusal(outcome ?? "The script has no turn left"));
      raw(error, { status: outcome ? 400 : 500 })(exchange);
    },
    sent,
    issued,
    refusals,
  };
}

/** A turn of the script. */
export function turn(
  stop_reason: string | null,
  ...content: readonly (ContentBlock | string)[]
): Partial<Message> {
  return {
    // Also reasons that the SDK doesn't know.
    stop_reason: stop_reason as Message["stop_reason"],
    content: content.map((block) => (typeof block === "string" ? text(block) : block)),
  };
}

export function text(text: string): ContentBlock {
  return { type: "text", text, citations: null };
}

export function think(thinking: string): ContentBlock {
  return { type: "thinking", thinking, signature: `signed:${thinking}` };
}

export function redacted(data: string): ContentBlock {
  return { type: "redacted_thinking", data };
}

export function use(id: string, name: string, input: unknown = {}): ContentBlock {
  return { type: "tool_use", id, name, input, caller: { type: "direct" } };
}

/** A search that the API makes itself. */
export function serverUse(id: string): ContentBlock {
  const input = { query: "prices" };
  return { type: "server_tool_use", id, name: "web_search", input, caller: { type: "direct" } };
}

/** What the API found for such a call. */
export function serverResult(id: string): ContentBlock {
  return {
    type: "web_search_tool_result",
    tool_use_id: id,
    content: [],
    caller: { type: "direct" },
  };
}

/**
 * Each request repeats all messages of the one before, the tools, the system prompt and all else.
 *
 * @param apart Fields that a turn may have of its own, beside its room and whether it streams.
 */
export function expectSamePrefixes(
  { sent }: Pick<StrictApi, "sent">,
  apart: readonly string[] = [],
): void {
  let [before, rest] = ["", ""];
  for (const body of sent) {
    const { messages, max_tokens: _, stream: __, ...same } = JSON.parse(body);
    for (const field of apart) delete same[field];
    const bytes = JSON.stringify(messages).slice(0, -1);
    expect(bytes.startsWith(before)).toBe(true);
    if (before) expect(JSON.stringify(same)).toBe(rest);
    [before, rest] = [bytes, JSON.stringify(same)];
  }
}

/** Names the rule that a request breaks, if it breaks one. `issued` are the turns that the API gave. */
export function brokenRule(
  body: string,
  issued: readonly Message[] = [],
  betas: readonly string[] = [],
): string | undefined {
  try {
    check(body, issued, betas);
    return undefined;
  } catch (error) {
    if (error instanceof Broken) return error.message;
    throw error;
  }
}

/** What of a turn may go back: all but its empty texts, and what it thought last. */
export function sendable(content: readonly ContentBlock[]): ContentBlock[] {
  const kept = content.filter((block) => block.type !== "text" || isText(block.text));
  while (isThought(kept.at(-1))) kept.pop();
  return kept;
}

/** A request without the calls of the API's own tools, which are dropped where something is said after them. */
export function withoutServerCalls(body: string): string {
  const { messages, ...rest } = JSON.parse(body);
  const kept = messages.flatMap(({ role, content }: { role: string; content: ContentBlock[] }) => {
    if (role === "user") return [{ role, content }];
    const others = sendable(content.filter(({ type }) => type !== "server_tool_use"));
    return others.length > 0 ? [{ role, content: others }] : [];
  });
  return JSON.stringify({ messages: kept, ...rest });
}

class Broken extends Error {}

type Block = Wire & { readonly type: string };

const FIELDS: ReadonlySet<string> = new Set([
  ..."model max_tokens messages system tools tool_choice thinking cache_control stop_sequences".split(
    " ",
  ),
  ..."stream metadata output_config service_tier container inference_geo".split(" "),
  "context_management",
]);

const TOOL_FIELDS: ReadonlySet<string> = new Set(
  "type name description input_schema strict cache_control".split(" "),
);

const BLOCKS: Readonly<Record<string, ReadonlySet<string>>> = {
  user: new Set(["text", "tool_result", "image", "document", "search_result"]),
  assistant: new Set([
    ..."text thinking redacted_thinking tool_use server_tool_use".split(" "),
    ..."web_search_tool_result web_fetch_tool_result code_execution_tool_result".split(" "),
    "compaction",
  ]),
};

const ajv = new Ajv();

function check(body: string, issued: readonly Message[], betas: readonly string[]): void {
  // Reports (claude-code#3277 and many more): half a surrogate pair is no valid JSON to the API.
  const request: Wire = JSON.parse(body, (_, value) => {
    rule(typeof value !== "string" || !/\p{Surrogate}/u.test(value), "no low surrogate in string");
    return value;
  });
  // The API's "Extra inputs are not permitted", for any field that it doesn't know.
  for (const field of Object.keys(request)) rule(FIELDS.has(field), `${field}: Extra inputs`);
  // The SDK's types: these three are required. max_tokens 0 fills the cache.
  const { model, max_tokens } = request;
  rule(isText(model), "model: Field required");
  rule(Number.isSafeInteger(max_tokens), "max_tokens: Field required");
  rule(Number(max_tokens) >= 0, "max_tokens: must not be negative");
  checkTools(request);
  checkEdits(request, betas);
  checkMessages(request, issued);
}

function checkTools({ model, tools = [], tool_choice, thinking }: Wire): void {
  rule(Array.isArray(tools), "tools: Input should be a list");
  const names = new Set<unknown>();
  for (const tool of tools as readonly Wire[]) {
    const { name, type, description, input_schema } = tool;
    for (const field of Object.keys(tool)) rule(TOOL_FIELDS.has(field), `tools: Extra ${field}`);
    // The documentation of tool definitions: the pattern, and a JSON Schema of an object.
    rule(/^[a-zA-Z0-9_-]{1,64}$/.test(String(name)), "tools: name must match the pattern");
    rule(!names.has(name), "tools: Tool names must be unique");
    names.add(name);
    if (type === "memory_20250818") {
      // The SDK's types: the API has all the rest of it, and takes this one name.
      const fields = Object.keys(tool).sort().join();
      rule(fields === "name,type" && name === "memory", "tools: memory takes no other field");
      continue;
    }
    rule(isText(description), "tools: description must be a text");
    rule(isRecord(input_schema), "tools: input_schema: Field required");
    const { type: shape } = input_schema;
    rule(shape === "object", "tools: input_schema.type must be 'object'");
    rule(ajv.validateSchema(input_schema) === true, "tools: JSON schema is invalid");
  }
  if (!isRecord(tool_choice)) return;
  // The API: tool_choice may only be specified while providing tools; and a named one must be there.
  rule(names.size > 0, "tool_choice may only be specified while providing tools");
  const { type, name } = tool_choice;
  rule(type !== "tool" || names.has(name), "tool_choice: Tool not found");
  // Thinking and a forced tool exclude each other.
  const isForced = type === "any" || type === "tool";
  const { type: thought = "disabled" } = isRecord(thinking) ? thinking : {};
  rule(
    !isForced || thought === "disabled",
    "Thinking may not be enabled when tool_choice forces tool use",
  );
  // The models' own pages: these two take no forced tool.
  const takesNone = /^claude-(opus|sonnet)-5-5\b/.test(String(model));
  rule(!isForced || !takesNone, "tool_choice: this model doesn't support forced tool use");
}

/** The SDK's types, and the documentation of context editing and of compaction. */
function checkEdits({ context_management }: Wire, betas: readonly string[]): void {
  const { edits = [] } = (context_management ?? {}) as { readonly edits?: readonly Wire[] };
  for (const { type, trigger } of edits) {
    const isCompaction = type === "compact_20260112";
    const beta = isCompaction ? "compact-2026-01-12" : "context-management-2025-06-27";
    rule(betas.includes(beta), "context_management: Extra inputs are not permitted");
    if (!isCompaction || !isRecord(trigger)) continue;
    const { value } = trigger;
    rule(Number(value) >= 50_000, "compact_20260112.trigger: must be at least 50000");
  }
}

/** A report (a provider's notes): a summary goes back only beside the edit that it came of. */
function checkSummaries({ context_management }: Wire, blocks: readonly Block[]): void {
  const { edits = [] } = (context_management ?? {}) as { readonly edits?: readonly Wire[] };
  const isDeclared = edits.some(({ type }) => type === "compact_20260112");
  const hasSummary = blocks.some(({ type }) => type === "compaction");
  rule(isDeclared || !hasSummary, "compaction: its strategy must be declared");
}

function checkMessages({ messages, ...request }: Wire, issued: readonly Message[]): void {
  rule(
    Array.isArray(messages) && messages.length > 0,
    "messages: at least one message is required",
  );
  const all = (messages as readonly Wire[]).map(({ role, content }) => {
    // The SDK's types: turns are the user's and the assistant's. Two of one role in a row are allowed:
    // "consecutive user or assistant turns in your request will be combined into a single turn".
    rule(role === "user" || role === "assistant", "messages: role must be 'user' or 'assistant'");
    return { role, blocks: blocksOf(role, content) };
  });
  rule(all[0]?.role === "user", "messages: first message must use the user role");
  const ids = new Set<unknown>();
  let open: readonly unknown[] = [];
  let serverCalls: readonly unknown[] = [];
  for (const { role, blocks } of all) {
    if (role === "user") {
      // The documentation of stop reasons: whatever is no result of a tool ends the turn that they wait in.
      const isResults = blocks.every(({ type }) => type === "tool_result");
      rule(isResults || serverCalls.length === 0, "server_tool_use without a corresponding result");
      checkResults(blocks, open);
      open = [];
      continue;
    }
    rule(open.length === 0, "tool_use ids were found without tool_result blocks immediately after");
    const calls = blocks.filter(({ type }) => type === "tool_use");
    for (const { id } of calls) {
      // Reports (cua#524, claude-code#20631): over the whole conversation.
      rule(!ids.has(id), "tool_use ids must be unique");
      ids.add(id);
    }
    open = calls.map(({ id }) => id);
    const done = blocks.map(({ tool_use_id }) => tool_use_id);
    const own = blocks.filter(({ type }) => type === "server_tool_use").map(({ id }) => id);
    serverCalls = [...serverCalls, ...own].filter((id) => !done.includes(id));
    checkThinking(blocks, issued);
    checkSummaries(request, blocks);
  }
  rule(open.length === 0, "tool_use ids were found without tool_result blocks immediately after");
  // The SDK's types (prefill gives a 400) and reports (goose#7425); but a paused turn is gone on with,
  // and so is a summary that stands alone.
  const last = all.at(-1);
  const isSummary = last?.blocks.every(({ type }) => type === "compaction");
  const isPaused = issued.some(
    ({ stop_reason, content }) =>
      ["pause_turn", "compaction"].includes(String(stop_reason)) &&
      isDeepStrictEqual(sendable(content), last?.blocks),
  );
  rule(
    last?.role === "user" || isPaused || isSummary === true,
    "The conversation must end with a user message",
  );
}

function blocksOf(role: string, content: unknown): readonly Block[] {
  if (typeof content === "string") return blocksOf(role, [{ type: "text", text: content }]);
  // A turn with content [] must not be sent back.
  rule(Array.isArray(content) && content.length > 0, "all messages must have non-empty content");
  const blocks = content as readonly Block[];
  for (const { type, id, text, input, content } of blocks) {
    rule(BLOCKS[role]?.has(type) === true, `${role} messages take no ${type}`);
    // the API's message for spaces: "must contain non-whitespace text".
    rule(type !== "text" || isText(text), "text content blocks must be non-empty");
    if (type === "tool_use") {
      // Reports (nanobot#4356): ids have a pattern. The SDK's types: the input is an object.
      rule(/^[a-zA-Z0-9_-]+$/.test(String(id)), "tool_use.id must match the pattern");
      rule(isRecord(input), "tool_use.input: Input should be a valid dictionary");
    }
    if (type === "tool_result") {
      // The API refuses an empty one beside is_error; none at all is best.
      const full = isText(content) || (Array.isArray(content) && content[0]);
      rule(Boolean(full), "tool_result: content cannot be empty");
    }
  }
  return blocks;
}

/** The results lead, all of them in the one next message, one for each call. */
function checkResults(blocks: readonly Block[], open: readonly unknown[]): void {
  const results = blocks.filter(({ type }) => type === "tool_result");
  const leading = blocks.slice(0, results.length).every(({ type }) => type === "tool_result");
  rule(leading, "tool_result blocks must come first");
  const answered = results.map(({ tool_use_id }) => tool_use_id);
  for (const id of answered) rule(open.includes(id), "unexpected tool_use_id in tool_result");
  rule(new Set(answered).size === answered.length, "each tool_use must have a single result");
  rule(
    answered.length === open.length,
    "tool_use ids were found without tool_result blocks immediately after",
  );
}

/**
 * The SDK's types: thinking goes back unmodified and in its order. No block of it may
 * be dropped from a turn with calls. Reports (forgecode#2107, hermes-agent#16921): none may come last;
 * so what a turn thought last, with nothing after it, can't be sent back at all.
 */
function checkThinking(blocks: readonly Block[], issued: readonly Message[]): void {
  rule(!isThought(blocks.at(-1)), "The final block in an assistant message cannot be `thinking`");
  const [call] = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
  const source = issued.find(({ content }) =>
    content.some((block) => block.type === "tool_use" && block.id === call),
  );
  const thoughts = blocks.filter(isThought);
  const given = (source ? [source] : issued).flatMap(({ content }) =>
    sendable(content).filter(isThought),
  );
  // Where a server tool's call was left out, a thought before it came last, and couldn't stay.
  const others = source?.content.filter(({ type }) => type !== "server_tool_use") ?? [];
  const left = sendable(others).filter(isThought);
  const same = source
    ? isDeepStrictEqual(thoughts, given) || isDeepStrictEqual(thoughts, left)
    : issued.length === 0 ||
      thoughts.every((thought) => given.some((known) => isDeepStrictEqual(known, thought)));
  rule(same, "thinking or redacted_thinking blocks cannot be modified");
}

function rule(holds: boolean, broken: string): asserts holds {
  if (!holds) throw new Broken(broken);
}

function isThought(block: { readonly type: string } | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function isRecord(value: unknown): value is Wire {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
