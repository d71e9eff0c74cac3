/**
 * What was asked of the API to keep a run short, and what it did: read off the requests and the replies.
 */
import type { BetaMessage } from "@anthropic-ai/sdk/resources/beta/messages";
import type { LlmParams } from "../../patterns/llm-call.ts";
import type { RunEvent } from "../../patterns/step.ts";
import { tokensIn } from "../shared/trace.ts";
import { counted } from "../shared/words.ts";

/** Watches one way's run. */
export interface Watch {
  readonly onEvent: (event: RunEvent) => void;
  /** What the requests held for it, each once. */
  readonly asked: () => readonly string[];
  /** What the API did, a line a reply that tells of something. */
  readonly done: () => readonly string[];
  /** All that went in, in tokens, and the most of one request. */
  readonly tokens: () => { readonly all: number; readonly most: number };
}

/** Starts to watch. Of a script the token counts are made up, and left out. */
export function watch(isScripted: boolean): Watch {
  const asked = new Set<string>();
  const done: string[] = [];
  let calls = 0;
  let [all, most] = [0, 0];
  return {
    onEvent: (event) => {
      if (event.type === "text" || event.kind !== "call") return;
      if (event.type === "start") {
        for (const part of partsOf(event.input as LlmParams)) asked.add(part);
        return;
      }
      calls += 1;
      if (!event.value) return;
      // An answered call's value is its message, here the beta API's.
      const message = event.value as BetaMessage;
      const read = tokensIn(message.usage);
      [all, most] = [all + read, Math.max(most, read)];
      const applied = [...clearedIn(message, isScripted), ...summedUpIn(message)];
      if (applied.length > 0) done.push(`call ${calls}: ${applied.join("; ")}`);
    },
    asked: () => [...asked],
    done: () => done,
    tokens: () => ({ all, most }),
  };
}

/** The parts of a request that are for it, as they are sent. */
function partsOf({ betas, context_management, tools = [] }: LlmParams): string[] {
  const parts = tools.filter((tool) => "type" in tool).map((tool) => JSON.stringify(tool));
  if (betas?.length) parts.push(`anthropic-beta: ${betas.join(",")}`);
  if (context_management) parts.push(JSON.stringify(context_management));
  return parts;
}

function clearedIn({ context_management }: BetaMessage, isScripted: boolean): string[] {
  return (context_management?.applied_edits ?? []).map((edit) => {
    const what =
      edit.type === "clear_tool_uses_20250919"
        ? counted(edit.cleared_tool_uses, "tool result")
        : counted(edit.cleared_thinking_turns, "turn's thinking");
    if (isScripted) return `${what} cleared`;
    return `${what} cleared, ${edit.cleared_input_tokens.toLocaleString("en")} tokens`;
  });
}

function summedUpIn({ content }: BetaMessage): string[] {
  return content.flatMap((block) => {
    if (block.type !== "compaction") return [];
    if (block.content === null) return ["a summary that failed"];
    return [`all before it summed up in ${block.content.length} characters`];
  });
}
