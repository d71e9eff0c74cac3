/**
 * Keeps a long run short: the API clears old tool results, or sums up, before the model reads on.
 *
 *     sent     task, call, result, call, result, call, result, …
 *     clear    task, call, (gone), call, (gone), call, result, …    above `trigger` tokens
 *     compact  summary, …                                           above `trigger` tokens
 *
 * Use when a run may come near its context window, or before: a model gets worse the more it reads.
 * Clearing is for results that are used once; what is needed later must stand in the model's own words,
 * or in a memory (memory.ts). A compaction is for a conversation that matters as a whole. Where a part of
 * the task can do with a conversation of its own, that's a subagent.
 *
 * Costs: each clearing has the cache written anew from there on, so let it be worth it
 * (`clear_at_least`). A compaction is one more call, which reads all and writes the summary; `usage` and
 * cost hold it. Your transcript stays whole, and is sent whole: the API leaves out what isn't to be read.
 *
 * In Anthropic's "Effective context engineering for AI agents": compaction, and tool result clearing.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, door/
 * From effective-agents 0.1.0: patterns/context.ts
 */
import type { BetaContextManagementConfig } from "@anthropic-ai/sdk/resources/beta/messages";
import { checkCount, checkText, shown } from "./errors.ts";
import type { LlmParams } from "./llm-call.ts";

/** What is to be done, under the API's names: at least one of the two. Figures in tokens are of input. */
export interface ContextOptions {
  /** Leaves out the oldest results of tools. */
  readonly clear?: Clearing | undefined;
  /** Sums up all there is, and goes on from the summary. */
  readonly compact?: Compaction | undefined;
  /** Betas of yours, headers by which one opts into what the API still tries out. They go out beside those
   * that this needs. Default none. */
  readonly betas?: readonly string[] | undefined;
}

/** When and what to clear. Defaults are the API's. */
export interface Clearing {
  /** It's done above so many tokens. Default 100,000. */
  readonly trigger?: number | undefined;
  /** How many of the latest tool uses stay. Default 3. */
  readonly keep?: number | undefined;
  /** It isn't done for fewer tokens than this. Default 0. */
  readonly clear_at_least?: number | undefined;
  /** Tools whose results stay. Default none. */
  readonly exclude_tools?: readonly string[] | undefined;
  /** Whether the calls' inputs go too. Default false. */
  readonly clear_tool_inputs?: boolean | undefined;
}

/** When and how to sum up. */
export interface Compaction {
  /** It's done above so many tokens. Default 150,000, as in the API; at least 50,000. */
  readonly trigger?: number | undefined;
  /** The prompt for the summary, in place of the API's own. */
  readonly instructions?: string | undefined;
}

/** Parameters of a request. */
export type ContextParams = Required<Pick<LlmParams, "betas" | "context_management">>;

/**
 * Gives the parameters for an agent, a subagent or a call. Spread them last: a `betas` after them would
 * take the place of theirs.
 *
 * @throws {TypeError} There is nothing to do, `instructions` is empty, or a list is none of texts.
 * @throws {RangeError} A figure is out of range.
 *
 * @example
 * const context = manageContext({ clear: { trigger: 40_000, keep: 5 }, compact: {} });
 * await runAgent(task, { tools, ...context });
 */
export function manageContext({ clear, compact, betas = [] }: ContextOptions): ContextParams {
  checkList("betas", betas);
  if (!clear && !compact) throw new TypeError("Nothing to do: give clear, compact, or both");
  const edits: BetaContextManagementConfig["edits"] = [];
  const needed: string[] = [];
  if (compact) {
    const { trigger = 150_000, instructions } = compact;
    checkCount("compact.trigger", trigger, 50_000);
    if (instructions !== undefined) checkText("instructions", instructions);
    edits.push({
      type: "compact_20260112",
      trigger: { type: "input_tokens", value: trigger },
      ...(instructions !== undefined && { instructions }),
    });
    needed.push("compact-2026-01-12");
  }
  if (clear) {
    const { trigger = 100_000, keep = 3, clear_at_least: least = 0 } = clear;
    const { exclude_tools: tools = [], clear_tool_inputs = false } = clear;
    checkList("clear.exclude_tools", tools);
    checkCount("clear.trigger", trigger, 1);
    checkCount("clear.keep", keep, 0);
    checkCount("clear.clear_at_least", least, 0);
    edits.push({
      type: "clear_tool_uses_20250919",
      trigger: { type: "input_tokens", value: trigger },
      keep: { type: "tool_uses", value: keep },
      ...(least > 0 && { clear_at_least: { type: "input_tokens", value: least } }),
      ...(tools.length > 0 && { exclude_tools: [...tools] }),
      ...(clear_tool_inputs && { clear_tool_inputs }),
    });
    needed.push("context-management-2025-06-27");
  }
  return { betas: [...new Set([...betas, ...needed])], context_management: { edits } };
}

/** What plain JavaScript hands over may be a text, of which a list would be its letters. */
function checkList(name: string, list: readonly string[]): void {
  const isList = Array.isArray(list) && list.every((one) => typeof one === "string");
  if (!isList) throw new TypeError(`${name} must be a list of texts, got ${shown(list)}`);
}
