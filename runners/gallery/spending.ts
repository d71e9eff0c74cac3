/**
 * What live runs have spent of their cap, and whether what is left pays another call.
 *
 *     cap = spent + reserved for calls in flight + for cancelled ones, which may be billed + left
 */
import { costOf } from "../../patterns/cost.ts";
import type { Budget } from "../../patterns/layers/budget.ts";
import type { RunEvent } from "../../patterns/step.ts";

/** What a page is told, in US dollars. */
export interface Spent {
  readonly usd: number;
  /** What calls in flight may cost. */
  readonly reservedUsd: number;
  /** What stays reserved for calls that ended without saying what they cost. */
  readonly unsettledUsd: number;
  readonly leftUsd: number;
  /** Whether what is left pays the cheapest of the pattern's calls, as far as any was seen. */
  readonly paysCall: boolean;
}

export interface Spending {
  /** What a page of this pattern is told. */
  readonly of: (pattern: string) => Spent;
  /** Learns what a pattern's calls may cost. */
  readonly notice: (pattern: string, event: RunEvent) => void;
}

/** Makes it for the runs that share a budget of `capUsd`. */
export function createSpending(budget: Budget, capUsd: number): Spending {
  const leastUsd = new Map<string, number>();
  return {
    of: (pattern) => {
      const [usd, reservedUsd] = [budget.spent().usd, budget.reserved().usd];
      const unsettledUsd = budget.unsettled().usd;
      const leftUsd = Math.max(0, capUsd - usd - reservedUsd - unsettledUsd);
      const paysCall = leftUsd > 0 && leftUsd >= (leastUsd.get(pattern) ?? 0);
      return { usd, reservedUsd, unsettledUsd, leftUsd, paysCall };
    },
    notice: (pattern, event) => {
      if (event.type !== "start" || event.kind !== "call") return;
      const least = leastUsd.get(pattern) ?? Number.POSITIVE_INFINITY;
      leastUsd.set(pattern, Math.min(least, replyAtMost(event.input)));
    },
  };
}

/** What the reply to a call may cost, whatever its prompt; 0 where that isn't known. */
function replyAtMost(params: unknown): number {
  const { model, max_tokens: tokens } = Object(params) as Record<string, unknown>;
  return costOf(String(model), { input_tokens: 0, output_tokens: Number(tokens) }) ?? 0;
}
