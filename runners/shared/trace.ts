/**
 * The calls of a run, and their sums.
 */
import type { Usage } from "../../patterns/step.ts";
import type { TraceCall, TraceStep } from "../../patterns/trace-file.ts";

/** All calls of a run, each with the path of its step. */
export function callsIn(steps: readonly TraceStep[]): (TraceCall & { readonly path: string })[] {
  return steps.flatMap(({ path, calls }) => calls.map((call) => ({ path, ...call })));
}

/** The sums over all calls. */
export interface Totals {
  readonly answered: number;
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
  const answered = ended.filter(({ usage }) => usage !== undefined);
  const sum = (of: (call: TraceCall) => number) =>
    ended.reduce((total, call) => total + of(call), 0);
  const begin = Math.min(...ended.map(({ begin }) => begin));
  const end = Math.max(...ended.map(({ begin, ms }) => begin + ms));
  const ms = ended.length > 0 ? end - begin : 0;
  return {
    answered: answered.length,
    failed: ended.filter(({ outcome }) => outcome === "failed").length,
    cancelled: ended.filter(({ outcome }) => outcome === "cancelled").length,
    tokensIn: sum(({ usage }) => tokensIn(usage)),
    tokensOut: sum(({ usage }) => usage?.output_tokens ?? 0),
    usd: sum(({ usd }) => usd ?? 0),
    unpriced: answered.filter(({ usd }) => usd === undefined).length,
    ms,
    savedMs: Math.max(0, sum((call) => (call.outcome === "cancelled" ? 0 : call.ms)) - ms),
    estimated: ended.some(({ estimated }) => estimated),
  };
}

/** All tokens that went in, from the cache or not. */
export function tokensIn(usage: Usage | undefined): number {
  if (!usage) return 0;
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage;
  return input_tokens + (cache_creation_input_tokens ?? 0) + (cache_read_input_tokens ?? 0);
}
