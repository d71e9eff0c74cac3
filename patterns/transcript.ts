/**
 * What an agent's run keeps of its turns: what may go back to the model, what was repeated, what it cost.
 *
 *     reply ─┬─ content ─► remember ──► the next request
 *            └─ usage ───► addUsage ──► the sum of all turns
 *     calls and results ─► countRepeats ─► 1, 2, 3, … in a row
 *
 * Copy along: step.ts
 */
import type {
  Message,
  MessageParam,
  ToolResultBlockParam,
  ToolUseBlock,
} from "@anthropic-ai/sdk/resources/messages";
import type { Usage } from "./step.ts";

/** The turn goes back as it came, thinking too; but the API refuses what it gives itself now and then:
 * an empty text, and thinking with nothing after it. */
export function remember(transcript: MessageParam[], { content }: Pick<Message, "content">): void {
  const kept = content.filter((block) => block.type !== "text" || block.text.trim() !== "");
  const last = kept.findLastIndex(({ type }) => !type.endsWith("thinking"));
  if (last >= 0) transcript.push({ role: "assistant", content: kept.slice(0, last + 1) });
}

/** Tells how often the same calls with the same results have come in a row, these included. */
export type CountRepeats = (
  calls: readonly ToolUseBlock[],
  results: readonly ToolResultBlockParam[],
) => number;

/** Makes a counter for one run. */
export function countRepeats(): CountRepeats {
  let [lastRound, repeats] = ["", 0];
  return (calls, results) => {
    const round = JSON.stringify([
      calls.map(({ name, input }) => [name, input]),
      results.map(({ content }) => content),
    ]);
    repeats = round === lastRound ? repeats + 1 : 1;
    lastRound = round;
    return repeats;
  };
}

/** Token counts to add to. */
export type UsageSum = { -readonly [Key in keyof Usage]-?: number };

/** A sum of nothing yet. */
export function noUsage(): UsageSum {
  return {
    input_tokens: 0,
    output_tokens: 0,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
  };
}

/** Adds a turn's token counts to the sum. */
export function addUsage(sum: UsageSum, usage: Usage): void {
  // Whatever the types say, a server may leave them out.
  sum.input_tokens += usage.input_tokens ?? 0;
  sum.output_tokens += usage.output_tokens ?? 0;
  sum.cache_creation_input_tokens += usage.cache_creation_input_tokens ?? 0;
  sum.cache_read_input_tokens += usage.cache_read_input_tokens ?? 0;
}
