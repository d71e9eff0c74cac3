/**
 * Where an agent's run begins: with a task, with a transcript, or in the turn in which it was suspended.
 *
 *     turn[2] ─┬─ tool[0] ─► result ──────┬─► SuspendedRun, plain JSON
 *              └─ tool[1] ─► SuspendError ┘        │ days later,
 *     turn[2] ─┬─ tool[0]    has its result ◄──────┤ another process
 *              └─ tool[1] ─► runs anew ◄──────────┘ ─► turn[3]
 *
 * A run is suspended when a tool throws a `SuspendError`, since the answer that it waits for may take
 * days. The other calls of the turn end, and keep their results; those that wait have changed nothing.
 * The run goes on in the same turn, so that paths, turns and sums are those of a run without a break. What
 * is counted in a row begins anew: repeats, reminders, and how often `max_tokens` cut a turn off.
 *
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, tool.ts, tool-calls.ts, tool-input.ts,
 * transcript.ts, usage.ts, door/
 * From effective-agents 0.1.0: patterns/suspend.ts
 */
import type {
  ContentBlock,
  MessageParam,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import type { Usage } from "./step.ts";
import { toolCalls } from "./tool-calls.ts";
import { checkTask } from "./transcript.ts";
import { addUsage, noUsage, type UsageSum } from "./usage.ts";

/** Calls of the last turn wait for an answer that comes later; those that don't have a result. */
export type Suspended = Pick<SuspendedRun, "status" | "results">;

/** A run of which calls wait for an answer. Plain JSON: save it, and pass it to `runAgent` to go on. */
export interface SuspendedRun {
  readonly status: "suspended";
  /** How many calls to the model it took until now. */
  readonly turns: number;
  /** Token counts of all turns together. */
  readonly usage: Usage;
  /** The conversation. It ends in the turn whose calls wait, so the API would refuse it as it is. */
  readonly transcript: readonly MessageParam[];
  /** The results of those calls of that turn that have one. */
  readonly results: readonly ToolResultBlockParam[];
}

/** A turn that has called tools, and the results that are there. */
export interface OpenTurn {
  readonly content: ContentBlock[];
  readonly results?: readonly ToolResultBlockParam[];
}

/** Where a run begins. */
export interface Beginning {
  /** The conversation before its first turn, to be added to. */
  readonly transcript: MessageParam[];
  /** The index of its first turn. */
  readonly turn: number;
  /** What was used before, to be added to. */
  readonly usage: UsageSum;
  /** The first turn, where it needs no call to the model. */
  readonly open?: OpenTurn;
}

/**
 * Says where a run begins.
 *
 * @throws {TypeError} The task is empty, the transcript ends in a tool call, or what was saved is no
 *   suspended run.
 */
export function beginningOf(task: string | readonly MessageParam[] | SuspendedRun): Beginning {
  // What plain JavaScript hands over may be null.
  if (typeof task === "object" && task !== null && "status" in task) return goOn(task);
  checkTask(task);
  const transcript = typeof task === "string" ? [{ role: "user" as const, content: task }] : task;
  return { transcript: [...transcript], turn: 0, usage: noUsage() };
}

function goOn({ status, turns, usage, transcript, results }: SuspendedRun): Beginning {
  const waiting = Array.isArray(transcript) ? transcript.at(-1) : undefined;
  // The turn is as the model gave it, and JSON has kept it.
  const content = (Array.isArray(waiting?.content) ? waiting.content : []) as ContentBlock[];
  const ids = new Set(toolCalls(content.filter(isObject)).map(({ id }) => id));
  const isNamed = [...ids].every((id) => typeof id === "string" && id !== "");
  const isResult = (one: ToolResultBlockParam) =>
    one?.type === "tool_result" && ids.has(one.tool_use_id);
  const done = Array.isArray(results) && results.every(isResult) ? results : undefined;
  const isOnce = new Set(done?.map((one) => one.tool_use_id)).size === done?.length;
  const isOpen = waiting?.role === "assistant" && isNamed && isOnce && done.length < ids.size;
  const isCounted = Number.isSafeInteger(turns) && turns >= 1 && isUsage(usage);
  if (status !== "suspended" || !isOpen || !isCounted) {
    throw new TypeError("That is no suspended run: pass a result with status suspended as it was");
  }
  const before = transcript.slice(0, -1);
  // The turn before may have been paused: what it's followed by is the open one.
  checkTask(before.length > 0 ? [...before, { role: "user", content: "(open)" }] : before);
  const sum = noUsage();
  addUsage(sum, usage);
  return { transcript: before, turn: turns - 1, usage: sum, open: { content, results } };
}

function isUsage(usage: unknown): boolean {
  return (
    isObject(usage) && Object.values(usage).every((count) => Number.isFinite(count) && count >= 0)
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
