/**
 * A run at a moment: what each step is doing, and the sums so far. All of it is a function of the run
 * and the time, so that a slider can go anywhere.
 *
 *     waiting ─► flight ─► ok | failed | cancelled | unfinished
 */
import type { Outcome } from "../../../patterns/trace-file.ts";
import { type Totals, totalsOf } from "../../shared/trace.ts";
import type { Run, Span } from "./run.ts";

export type State = "waiting" | "flight" | Outcome;

/** What a step or a call is doing at `time`. */
export function stateAt({ begin, end, outcome }: Span, time: number): State {
  if (time < begin) return "waiting";
  return time < end ? "flight" : outcome;
}

/** The sums over what has ended by a time. */
export interface TotalsAt extends Totals {
  readonly inFlight: number;
}

/** The sums over the calls that have ended by `time`, and how many are in flight. */
export function totalsAt({ calls }: Pick<Run, "calls">, time: number): TotalsAt {
  const ended = calls.filter(({ end }) => end <= time);
  const inFlight = calls.filter((call) => stateAt(call, time) === "flight").length;
  return { ...totalsOf(ended.map(({ trace }) => trace)), inFlight };
}

/** The moments at which something begins or ends, in order. */
export function momentsOf({ steps, calls }: Pick<Run, "steps" | "calls">): number[] {
  const times = new Set([0]);
  for (const { begin, end } of [...steps, ...calls]) times.add(begin).add(end);
  return [...times].filter(Number.isFinite).sort((a, b) => a - b);
}

/** What stopping early has saved. */
export interface Savings {
  readonly cancelled: number;
  /** Of those the ones that had not gone out, and cost nothing; the others may be billed. */
  readonly neverSent: number;
  /** What all of them would have cost, taken from their answered siblings, in US dollars. */
  readonly usd: number | undefined;
}

/** Looks at the calls that were cancelled. */
export function savingsOf({ calls }: Pick<Run, "calls">): Savings {
  const cancelled = calls.filter(({ outcome }) => outcome === "cancelled");
  const usd = cancelled.reduce((sum, { step }) => {
    const costs = calls.flatMap((other) =>
      other.step.base === step.base && other.step.parent === step.parent
        ? (other.trace.usd ?? [])
        : [],
    );
    return sum + costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  }, 0);
  return {
    cancelled: cancelled.length,
    neverSent: cancelled.filter(({ trace }) => !trace.sent).length,
    usd: cancelled.length > 0 && Number.isFinite(usd) ? usd : undefined,
  };
}
