/**
 * What the Claude Agent SDK says of its run, in our words and figures.
 *
 * From effective-agents 0.1.0: runners/levels/agent-sdk-result.ts
 */

import type { Totals } from "../shared/trace.ts";
import { counted, dollars } from "../shared/words.ts";
import type { AgentSdkResult } from "./agent-sdk-package.ts";
import type { Outcome } from "./level.ts";

/** The limits that it ran under. */
interface Limits {
  readonly maxTurns: number;
  /** In US dollars. */
  readonly maxBudgetUsd: number;
}

/** What came of it, by its last message. Its own count of turns counts tool calls too. */
export function outcomeOf(
  result: AgentSdkResult | undefined,
  turns: number,
  limits: Limits,
): Outcome {
  if (!result) return { status: "no answer: it ended without a result" };
  const totals = totalsIn(result, turns);
  const after = `after ${counted(turns, "turn")}`;
  const { subtype, is_error, result: answer = "", stop_reason, errors = [] } = result;
  switch (subtype) {
    case "success": {
      const isWhole = stop_reason === "end_turn" || stop_reason === "stop_sequence";
      if (!is_error && isWhole && answer.trim())
        return { answer, status: `answered ${after}`, totals };
      const why = is_error ? answer : `it stopped for ${stop_reason}`;
      return { status: `no answer ${after}: ${why}`, totals };
    }
    case "error_max_turns": {
      const status = `no answer after maxTurns=${limits.maxTurns}; raise it or ask a narrower question`;
      return { status, totals };
    }
    case "error_max_budget_usd": {
      const most = dollars(limits.maxBudgetUsd);
      return {
        status: `no answer within maxBudgetUsd=${most}, which it looks at after a turn`,
        totals,
      };
    }
    default:
      return { status: `no answer ${after}: ${[subtype, ...errors].join("; ")}`, totals };
  }
}

function totalsIn(
  { modelUsage, total_cost_usd, duration_ms }: AgentSdkResult,
  turns: number,
): Totals {
  const all = Object.values(modelUsage);
  return {
    answered: turns,
    metered: turns,
    failed: 0,
    cancelled: 0,
    tokensIn: all.reduce(
      (sum, one) => sum + one.inputTokens + one.cacheReadInputTokens + one.cacheCreationInputTokens,
      0,
    ),
    tokensOut: all.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
    usd: total_cost_usd,
    unpriced: 0,
    ms: duration_ms,
    savedMs: 0,
    estimated: false,
  };
}
