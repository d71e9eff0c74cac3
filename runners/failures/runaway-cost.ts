/**
 * Runaway cost: the model reads on and on, and every turn sends all that was read before.
 *
 * No call repeats, so nothing looks wrong but the bill, which grows with the square of the turns. The
 * budget reserves what a call may cost at most before it's sent. When that no longer fits, the call
 * isn't made, and the run comes back with what it has.
 */
import { runAgent } from "../../patterns/agent.ts";
import { costOf } from "../../patterns/cost.ts";
import { createBudget } from "../../patterns/layers/budget.ts";
import { defineTool } from "../../patterns/tool.ts";
import { dollars } from "../shared/words.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const MODEL = "claude-opus-5-5";
/** In US dollars. */
const BUDGET = 0.5;

const readOrders = defineTool<{ page: number }>({
  name: "read_orders",
  description: "Read a page of the order book. Returns its orders, one a line.",
  input_schema: takes({ page: { type: "integer", minimum: 1 } }),
  run: ({ page }) => `Page ${page} of 900\n${"A-1017 paid, sent\n".repeat(1_000)}`,
});

const play: Play = ({ messages }) => ({
  calls: [["read_orders", { page: resultsIn(messages).length + 1 }]],
});

export const failure = defineFailure({
  name: "runaway-cost",
  title: "runaway cost",
  symptom: "Each turn costs more than the one before, and you hear of it with the bill.",
  catches: [
    { file: "patterns/layers/budget/ledger.ts", code: "throw refusal(lacking)" },
    { file: "patterns/agent.ts", code: 'status: "budget", error, ...run' },
  ],
  run: (catching) =>
    runAgent("How many orders were never sent?", {
      tools: [readOrders],
      model: MODEL,
      max_tokens: 1_000,
      llm: playedBy(play, ...(catching ? [createBudget({ usd: BUDGET }).layer] : [])),
    }),
  tell: (result) => [
    `${result.status} after ${result.turns} turns, ${dollars(costOf(MODEL, result.usage) ?? Number.NaN)} spent`,
    ...(result.status === "budget" ? [result.error.message] : []),
  ],
});
