/**
 * An endless loop: the model doesn't believe what it's told, and asks again.
 *
 * The same calls with the same results in a row are no progress, and end the run. A model that changes
 * its calls a little each time gets past that, and is ended by the cap on turns.
 */
import { runAgent } from "../../patterns/agent.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, takes } from "./scripted.ts";

const findOrders = defineTool<{ customer: string }>({
  name: "find_orders",
  description: "Find the orders of a customer by name. Returns a line for each.",
  input_schema: takes({ customer: { type: "string" } }),
  run: ({ customer }) => `There are no orders of '${customer}'.`,
});

const askAgain: Play = () => ({ calls: [["find_orders", { customer: "Inês" }]] });

const askOtherwise: Play = ({ messages }) => ({
  calls: [["find_orders", { customer: `Inês${"?".repeat(messages.length)}` }]],
});

/** Without limits the lab has to stop somewhere. */
const UNLIMITED = { maxRepeats: 0, maxTurns: 50 };

export const failure = defineFailure({
  name: "endless-loop",
  title: "an endless loop",
  symptom: "The same call comes back turn after turn, until somebody stops the process.",
  catches: [
    { file: "patterns/agent.ts", code: "repeatsOf(calls, results) === maxRepeats" },
    { file: "patterns/agent.ts", code: "turn === maxTurns" },
  ],
  run: async (catching) => {
    const limits = catching ? { maxTurns: 5 } : UNLIMITED;
    const run = (play: Play) =>
      runAgent("When does the order of Inês arrive?", {
        tools: [findOrders],
        llm: playedBy(play),
        ...limits,
      });
    return { same: await run(askAgain), varied: await run(askOtherwise) };
  },
  tell: ({ same, varied }) => [
    `${same.status} after ${same.turns} turns; with calls that vary, ${varied.status} after ${varied.turns}`,
  ],
});
