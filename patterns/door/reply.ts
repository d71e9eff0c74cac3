/**
 * The one place where replies are checked.
 *
 *     200 ─► a message? ─► a stop reason we know? ─► (llmCall) a whole answer with text? ─► text
 *             │ no            │ no                      │ no
 *             └───────────────┴─────────────────────────┴─► LlmOutputError
 *
 * What a caller must never get is an answer that was cut off and looks whole.
 */
import type { Message, StopReason } from "@anthropic-ai/sdk/resources/messages";
import { LlmOutputError } from "../errors.ts";
import type { LlmParams } from "../llm-call.ts";

/** Passes a message on. A 200 can also be a proxy's HTML page or an error object: the SDK passes both on. */
export function asMessage(reply: Message): Message {
  const parts: { readonly [K in keyof Message]?: unknown } | null | undefined | string = reply;
  const isMessage =
    typeof parts === "object" &&
    parts?.type === "message" &&
    Array.isArray(parts.content) &&
    typeof parts.usage === "object" &&
    parts.usage !== null;
  if (isMessage) return reply;
  const text = typeof parts === "string" ? parts : (JSON.stringify(parts) ?? "nothing");
  throw new LlmOutputError(`The reply is not a message: ${text.slice(0, 200)}`, { text });
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
  if (text.trim() === "") throw new LlmOutputError("The reply is empty", { text, stopReason });
  return text;
}

function joined(turns: readonly Message[]): string {
  let text = "";
  for (const block of turns.flatMap(({ content }) => content)) {
    if (block.type === "text") text += block.text;
  }
  return text;
}
