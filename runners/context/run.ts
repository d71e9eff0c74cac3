/**
 * What the runs of all ways have in common.
 */
import type { AgentOptions, AgentResult } from "../../patterns/agent.ts";
import { counted } from "../shared/words.ts";
import { MAX_LOG, readLog, taskOf } from "./log.ts";

/** What each way is run with. */
export type Means = Pick<AgentOptions, "llm" | "model" | "signal">;

export const [FIRST, MIDDLE, LAST] = [0, 2, 5];

export const TASK = taskOf(FIRST, LAST);

export const RUN = { tools: [readLog], maxOutputChars: MAX_LOG };

/** How a run ended, in words. */
export function ending(result: AgentResult): string {
  const answer = result.status === "answered" ? `: ${result.answer.replaceAll("\n", ", ")}` : "";
  return `${result.status} after ${counted(result.turns, "turn")}${answer}`;
}
