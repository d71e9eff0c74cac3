/**
 * The calls of a run, and their sums.
 *
 * From effective-agents 0.1.0: runners/shared/trace.ts
 */
import type { Usage } from "../../patterns/step.ts";
import type { TraceCall, TraceStep } from "../../patterns/trace-file.ts";
import { addUsage, noUsage, type UsageSum } from "../../patterns/usage.ts";

/** All calls of a run, each with the path of its step. */
export function callsIn(steps: readonly TraceStep[]): (TraceCall & { readonly path: string })[] {
  return steps.flatMap(({ path, calls }) => calls.map((call) => ({ path, ...call })));
}

/** The sums over all calls. */
export interface Totals {
  readonly answered: number;
  /** How many of those have token counts: none where a script plays the API. */
  readonly metered: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** In US dollars, of the calls whose cost is known. */
  readonly usd: number;
  /** How many answered calls have no known cost. */
  readonly unpriced: number;
  /** From the first call's start to the last call's end, in milliseconds. */
  readonly ms: number;
  /** How much longer the same calls would have taken one after the other, in milliseconds. Cancelled
   * ones don't count: one after the other, they would not have been made. */
  readonly savedMs: number;
  readonly estimated: boolean;
}

/** Adds up the calls. */
export function totalsOf(calls: readonly TraceCall[]): Totals {
  const ended = calls.filter(({ outcome }) => outcome !== "unfinished");
  const answered = ended.filter(({ outcome }) => outcome === "ok");
  const metered = answered.filter(({ usage }) => usage !== undefined);
  const sum = (of: (call: TraceCall) => number) =>
    ended.reduce((total, call) => total + of(call), 0);
  const usage = noUsage();
  for (const call of ended) if (call.usage) addUsage(usage, call.usage);
  // Not as arguments of one function: a run may have more calls than that takes.
  const begin = ended.reduce((first, { begin }) => Math.min(first, begin), Infinity);
  const end = ended.reduce((last, { begin, ms }) => Math.max(last, begin + ms), 0);
  const ms = ended.length > 0 ? end - begin : 0;
  return {
    answered: answered.length,
    metered: metered.length,
    failed: ended.filter(({ outcome }) => outcome === "failed").length,
    cancelled: ended.filter(({ outcome }) => outcome === "cancelled").length,
    tokensIn: tokensIn(usage),
    tokensOut: tokensOut(usage),
    usd: sum(({ usd }) => usd ?? 0),
    unpriced: metered.filter(({ usd }) => usd === undefined).length,
    ms,
    savedMs: Math.max(0, sum((call) => (call.outcome === "cancelled" ? 0 : call.ms)) - ms),
    estimated: ended.some(({ estimated }) => estimated),
  };
}

/** All tokens that went in, from the cache or not. */
export function tokensIn(usage: Usage | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = sumOf(usage);
  return input_tokens + cache_creation_input_tokens + cache_read_input_tokens;
}

/** All tokens that came out. */
export function tokensOut(usage: Usage | undefined): number {
  return sumOf(usage).output_tokens;
}

function sumOf(usage: Usage | undefined): UsageSum {
  const sum = noUsage();
  if (usage) addUsage(sum, usage);
  return sum;
}
