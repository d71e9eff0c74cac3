/**
 * The one place where replies are checked.
 *
 *     200 ─► a message? ─► a stop reason we know? ─► (llmCall) a whole answer with text? ─► text
 *             │ no            │ no                      │ no
 *             └───────────────┴─────────────────────────┴─► LlmOutputError
 *
 * What a caller must never get is an answer that was cut off and looks whole.
 *
 * From effective-agents 0.1.0: patterns/door/reply.ts
 */
import type { Message, MessageStreamEvent, StopReason } from "@anthropic-ai/sdk/resources/messages";
import { isBlank, LlmOutputError, shown } from "../errors.ts";
import type { LlmParams } from "../llm-call.ts";

/**
 * Passes a message on. A 200 can also be a proxy's HTML page, an error object, or a message with parts
 * missing: the SDK passes all of them on. A layer can answer with anything too.
 *
 * @param body What came over the wire, where that is known: it is the error's text then.
 */
export function asMessage(reply: Message, body?: string): Message {
  if (isMessage(reply)) return reply;
  throw notMessage(reply, body);
}

/** The error for what came in place of a message. */
export function notMessage(reply: unknown, body?: string, wanted = "a message"): LlmOutputError {
  const text = body ?? (typeof reply === "string" ? reply : asJson(reply));
  const start = text.slice(0, 200) || "nothing";
  return new LlmOutputError(`The reply is not ${wanted}: ${start}`, { text });
}

/** Throws for a streamed piece without its text: the SDK adds it up, to `"undefined"`. */
export function checkEvent(event: MessageStreamEvent): void {
  const part = partOf(event);
  if (part && !isWhole(part)) throw new Error(`a piece has no text: ${asJson(part)}`);
}

/** The answer's text in a streamed piece, `""` where it has none. */
export function textIn(event: MessageStreamEvent): string {
  const part = partOf(event);
  return part && (part.type === "text" || part.type === "text_delta") ? part.text : "";
}

/** The block that a streamed event begins, or the piece that it adds to one. */
function partOf(event: MessageStreamEvent) {
  if (event.type === "content_block_start") return event.content_block;
  return event.type === "content_block_delta" ? event.delta : undefined;
}

/** What the door, budgets, events and agents read without looking. */
function isMessage(reply: unknown): boolean {
  if (!isObject(reply)) return false;
  const { type, model, content, usage } = reply;
  const isFull = type === "message" && typeof model === "string" && isObject(usage);
  return isFull && Array.isArray(content) && content.every(isWhole);
}

/** Whether a block, or a streamed piece of one, has all that its type promises. */
function isWhole(part: unknown): boolean {
  if (!isObject(part)) return false;
  switch (part.type) {
    case "text":
    case "text_delta":
      return typeof part.text === "string";
    case "tool_use":
      return typeof part.id === "string" && part.id !== "" && typeof part.name === "string";
    case "thinking":
    case "thinking_delta":
      return typeof part.thinking === "string";
    case "input_json_delta":
      return typeof part.partial_json === "string";
    default:
      return typeof part.type === "string";
  }
}

/** The parts of messages, blocks and pieces that are looked at. */
type Parts = Readonly<Partial<Record<PartName, unknown>>>;
type PartName =
  | "type"
  | "model"
  | "content"
  | "usage"
  | "text"
  | "thinking"
  | "partial_json"
  | "id"
  | "name";

function isObject(value: unknown): value is Parts {
  return typeof value === "object" && value !== null;
}

/** Never throws: what a layer gives may be no JSON at all. */
function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return shown(value);
  }
}

const STOP_REASONS: ReadonlySet<unknown> = new Set<StopReason>([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
]);

/** Throws unless the message says why it ends, in a way that this code knows. */
export function checkStopReason(message: Message, { betas }: LlmParams): void {
  // The beta API has one more; the types of the two APIs differ only there.
  const stopReason: string | null = message.stop_reason;
  if (STOP_REASONS.has(stopReason) || (betas && stopReason === "compaction")) return;
  throw new LlmOutputError(`Unknown stop reason ${JSON.stringify(stopReason)}`, {
    text: joined([message]),
    stopReason,
  });
}

const UNUSABLE: ReadonlyMap<string | null, string> = new Map([
  ["max_tokens", "The reply was cut off: raise max_tokens or ask for less"],
  ["refusal", "The model refused"],
  ["tool_use", "The reply calls a tool, and llmCall takes text only: use llmMessage"],
  ["pause_turn", "The turn is still paused, after it was sent back as often as allowed"],
  ["model_context_window_exceeded", "The context window is full: send less"],
]);

/** The text of a whole answer, or an error. A turn that was paused has several messages. */
export function textOf(turns: readonly Message[]): string {
  const text = joined(turns);
  const last = turns.at(-1);
  const stopReason = last?.stop_reason ?? null;
  const category = last?.stop_details?.category;
  if (stopReason !== "end_turn" && stopReason !== "stop_sequence") {
    const why = UNUSABLE.get(stopReason) ?? `The reply ended with ${JSON.stringify(stopReason)}`;
    throw new LlmOutputError(category ? `${why} (${category})` : why, { text, stopReason });
  }
  if (isBlank(text)) throw new LlmOutputError("The reply is empty", { text, stopReason });
  return text;
}

/** Whether there is neither an answer nor a sequence that the caller chose to stop at. */
export function isSilent(answer: string, stopSequence: string | null): boolean {
  return isBlank(answer) && stopSequence === null;
}

/** The text blocks of replies one after the other, whatever else is wrong with them. */
export function joined(turns: readonly Message[]): string {
  let text = "";
  for (const { content } of turns) {
    for (const block of content) {
      if (block.type === "text") text += block.text;
    }
  }
  return text;
}
