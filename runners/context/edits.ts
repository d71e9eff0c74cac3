/**
 * What the scripted API does to a conversation before the model reads it.
 */
import type {
  BetaClearToolUses20250919Edit,
  BetaCompact20260112Edit,
  BetaCompactionBlock,
} from "@anthropic-ai/sdk/resources/beta/messages";
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { Params } from "../../patterns/llm-call.ts";
import { tokens } from "../failures/scripted.ts";

/** Writes what a compaction keeps. */
export type Summarize = (messages: readonly MessageParam[]) => string;

function isAbove(params: Params, trigger: { readonly value: number } | null | undefined): boolean {
  return tokens(params.messages) > (trigger?.value ?? 100_000);
}

/** Sums a conversation up that is longer than the edit says, and gives the block that says so. */
export function compact(
  params: Params,
  edit: BetaCompact20260112Edit | undefined,
  summarize: Summarize,
): Params & { readonly summary: readonly BetaCompactionBlock[] } {
  // What comes before a summary is never read again.
  const last = params.messages.findLastIndex(({ content }) => hasSummary(content));
  const messages = params.messages.slice(Math.max(0, last));
  if (!edit || !isAbove({ ...params, messages }, edit.trigger)) {
    return { ...params, messages, summary: [] };
  }
  const content = summarize(messages);
  const summary = [{ type: "compaction", content, encrypted_content: null }] as const;
  // The block is the beta API's, and the conversation's type doesn't have it.
  const kept = { role: "assistant", content: summary } as unknown as MessageParam;
  return { ...params, messages: [kept], summary };
}

function hasSummary(content: MessageParam["content"]): boolean {
  if (typeof content === "string") return false;
  return content.some(({ type }) => (type as string) === "compaction");
}

/** Clears the oldest results of one that is longer than the edit says, and gives what the API says of it. */
export function clear(params: Params, edit: BetaClearToolUses20250919Edit | undefined) {
  if (!edit || !isAbove(params, edit.trigger)) return { ...params, applied: [] };
  let left = params.messages.flatMap(({ content }) => resultsIn(content)).length;
  left -= edit.keep?.value ?? 3;
  const uses = Math.max(0, left);
  const messages = params.messages.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    const content = message.content.map((block) => {
      const isOld = block.type === "tool_result" && left-- > 0;
      return isOld ? { ...block, content: "[cleared to save context]" } : block;
    });
    return { ...message, content };
  });
  if (uses === 0) return { ...params, applied: [] };
  const saved = tokens(params.messages) - tokens(messages);
  const applied = { type: edit.type, cleared_tool_uses: uses, cleared_input_tokens: saved };
  return { ...params, messages, applied: [applied] };
}

function resultsIn(content: MessageParam["content"]) {
  return typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_result");
}
