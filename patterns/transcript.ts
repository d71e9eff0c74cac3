/**
 * What an agent's run keeps of its turns: what may go back to the model, and what was repeated; and
 * whether a run can go on from what is handed in.
 *
 *     reply ─► remember ──► the next request
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

/** Adds a turn as it came, its thinking too, since the API wants that back. Left out is what the API itself
 * gives now and then and then refuses: an empty text, and thinking with nothing after it. */
export function remember(transcript: MessageParam[], { content }: Pick<Message, "content">): void {
  const kept = content.filter((block) => block.type !== "text" || block.text.trim() !== "");
  const last = kept.findLastIndex(({ type }) => !type.endsWith("thinking"));
  if (last >= 0) transcript.push({ role: "assistant", content: kept.slice(0, last + 1) });
}

/** Of a turn that is dropped, adds the summary (compaction) that the API began it with: it's paid for, and
 * the next request would pay for it again. */
export function rememberSummary(
  transcript: MessageParam[],
  { content }: Pick<Message, "content">,
): void {
  remember(transcript, { content: content.filter(({ type }) => type === COMPACTION) });
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
  // A turn that was paused, beside the API's own tools or after a compaction, goes back as it is.
  const isSummedUp = blocks.at(-1)?.type === COMPACTION;
  const isPaused = isSummedUp || blocks.some(({ type }) => type.startsWith("server_tool"));
  if (index < transcript.length - 1 || isPaused) return;
  throw invalid("is the model's, and the last: say something that it can go on from");
}

/** A block of the beta API. */
const COMPACTION: string = "compaction";

/** The content's blocks, none for a text; `undefined` where it's no message. */
function blocksOf(message: MessageParam | null | undefined) {
  const { role, content } = message ?? {};
  if (role !== "user" && role !== "assistant") return undefined;
  if (typeof content === "string") return [];
  return Array.isArray(content) ? content : undefined;
}
