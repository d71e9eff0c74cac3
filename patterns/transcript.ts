/**
 * What an agent's run keeps of its turns: what may go back to the model, what was repeated, what it cost;
 * and whether a run can go on from what is handed in.
 *
 *     reply ─┬─ content ─► remember ──► the next request
 *            └─ usage ───► addUsage ──► the sum of all turns
 *     calls and results ─► countRepeats ─► 1, 2, 3, … in a row
 *
 * Copy along: errors.ts, step.ts
 * From effective-agents 0.1.0: patterns/transcript.ts
 */
import type {
  Message,
  MessageParam,
  ToolResultBlockParam,
  ToolUseBlock,
} from "@anthropic-ai/sdk/resources/messages";
import { shown } from "./errors.ts";
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

/** Throws a `TypeError` unless it's a text with something in it, or messages that a model can go on from. */
export function checkTask(task: string | readonly MessageParam[]): void {
  if (typeof task === "string" && task.trim() !== "") return;
  if (!Array.isArray(task) || task.length === 0) {
    const rule = "a text with something in it, or a list of messages";
    throw new TypeError(`The task must be ${rule}, got ${shown(task)}`);
  }
  for (const [index, message] of task.entries()) checkMessage(task, message, index);
}

function checkMessage(
  transcript: readonly MessageParam[],
  message: MessageParam | null,
  index: number,
): void {
  const invalid = (why: string) => new TypeError(`The transcript's message[${index}] ${why}`);
  const blocks = blocksOf(message);
  if (!blocks) throw invalid(`must have a role and content, got ${shown(message)}`);
  if (message?.role !== "assistant") return;
  const answered = blocksOf(transcript[index + 1])?.map((block) => {
    return block.type === "tool_result" ? block.tool_use_id : "";
  });
  const isOpen = blocks.some((block) => block.type === "tool_use" && !answered?.includes(block.id));
  if (isOpen) throw invalid("calls a tool without a result: add it, or leave the turn out");
  // A turn that was paused beside the API's own tools goes back as it is.
  const isPaused = blocks.some(({ type }) => type.startsWith("server_tool"));
  if (index < transcript.length - 1 || isPaused) return;
  throw invalid("is the model's, and the last: say something that it can go on from");
}

/** The content's blocks, none for a text; `undefined` where it's no message. */
function blocksOf(message: MessageParam | null | undefined) {
  const { role, content } = message ?? {};
  if (role !== "user" && role !== "assistant") return undefined;
  if (typeof content === "string") return [];
  return Array.isArray(content) ? content : undefined;
}
