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
  ContentBlockParam,
  Message,
  MessageParam,
  ServerToolUseBlockParam,
  ToolResultBlockParam,
  ToolUseBlock,
} from "@anthropic-ai/sdk/resources/messages";
import { isBlank, shown } from "./errors.ts";

/** Adds a turn as it came, its thinking too, since the API wants that back. Left out is what the API itself
 * gives now and then and then refuses: an empty text, and thinking with nothing after it. */
export function remember(transcript: MessageParam[], { content }: Pick<Message, "content">): void {
  transcript.push(...turnOf(content));
}

/** The turn as it may go back, or none if nothing of it may. */
function turnOf(content: readonly ContentBlockParam[]): MessageParam[] {
  const kept = content.filter((block) => block.type !== "text" || block.text.trim() !== "");
  const last = kept.findLastIndex(({ type }) => !type.endsWith("thinking"));
  return last >= 0 ? [{ role: "assistant", content: kept.slice(0, last + 1) }] : [];
}

/** Says something to the model. Calls of the API's own tools that still wait for their results are left out
 * then: the API goes on with them only if nothing is said, and else refuses the request. */
export function speak(transcript: MessageParam[], words: string): void {
  const blocks = transcript.flatMap((message) => blocksOf(message) ?? []);
  const done = new Set(blocks.map((block) => "tool_use_id" in block && block.tool_use_id));
  const isOpen = (block: ContentBlockParam) => isServerCall(block) && !done.has(block.id);
  const kept = transcript.flatMap((message) => {
    const own = blocksOf(message) ?? [];
    return own.some(isOpen) ? turnOf(own.filter((block) => !isOpen(block))) : [message];
  });
  transcript.splice(0, transcript.length, ...kept, { role: "user", content: words });
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
  if (typeof task === "string" && !isBlank(task)) return;
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
  const rule = "must have a role and content, a text or blocks";
  if (!blocks) throw invalid(`${rule}, got ${shown(message)}`);
  if (isEmpty(message)) throw invalid("is empty: leave it out");
  if (message?.role !== "assistant") {
    const results = resultsIn(blocks);
    const calls = callsIn(blocksOf(transcript[index - 1]));
    const isLate = resultsIn(blocks.slice(0, results.length)).length < results.length;
    if (isLate) throw invalid("has something before its tool results: they come first");
    if (new Set(results).size < results.length) throw invalid("has two results for one call");
    const isStray = results.some((id) => !calls.includes(id));
    if (isStray) throw invalid("has the result of a call that the message before doesn't make");
    return;
  }
  if (index === 0 && blocks[0]?.type !== COMPACTION)
    throw invalid("is the model's, and the first: begin with what it was asked");
  const answered = resultsIn(blocksOf(transcript[index + 1]));
  const isOpen = callsIn(blocks).some((id) => !answered.includes(id));
  if (isOpen) throw invalid("calls a tool without a result: add it, or leave the turn out");
  // A turn that was paused, beside the API's own tools or after a compaction, goes back as it is.
  const isSummedUp = blocks.at(-1)?.type === COMPACTION;
  const isPaused = isSummedUp || blocks.some(isServerCall);
  if (index < transcript.length - 1 || isPaused) return;
  throw invalid("is the model's, and the last: say something that it can go on from");
}

/** A block of the beta API. */
const COMPACTION: string = "compaction";

/** The content's blocks, none for a text; `undefined` where it's no message. */
function blocksOf(message: MessageParam | null | undefined): ContentBlockParam[] | undefined {
  const { role, content } = message ?? {};
  if (role !== "user" && role !== "assistant") return undefined;
  if (typeof content === "string") return [];
  const isWhole =
    Array.isArray(content) && content.every((block) => typeof block?.type === "string");
  return isWhole ? content : undefined;
}

/** Whether there is nothing in it, or nothing but blank texts. */
function isEmpty(message: MessageParam | null): boolean {
  const { content = "" } = message ?? {};
  if (typeof content === "string") return isBlank(content);
  return content.every((block) => block.type === "text" && isBlank(block.text));
}

/** The ids of the calls. */
function callsIn(blocks: readonly ContentBlockParam[] = []): string[] {
  return blocks.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
}

/** The ids of the calls whose results these are. */
function resultsIn(blocks: readonly ContentBlockParam[] = []): string[] {
  return blocks.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
}

/** The API's own tools, an MCP server's of the beta API too. */
function isServerCall(block: ContentBlockParam): block is ServerToolUseBlockParam {
  return ["server_tool_use", "mcp_tool_use"].includes(block.type);
}
