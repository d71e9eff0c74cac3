/**
 * Invented arguments: the model calls a tool with fields that it doesn't have, and tools that aren't there.
 *
 * An input is held to the tool's schema before the tool runs, and a tool is looked up in a `Map`, where
 * `__proto__` finds nothing. The model is told what doesn't fit and what there is, and puts it right.
 */
import { runAgent } from "../../patterns/agent.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const STRICT = takes({
  order: { type: "string", pattern: "^A-\\d+$" },
  cents: { type: "integer", minimum: 1 },
});
/** It lets everything through: what is left when nobody checks. */
const LENIENT = { ...takes({ order: {}, cents: {}, order_id: {}, amount: {} }), required: [] };

const play: Play = ({ messages }) => {
  const results = resultsIn(messages);
  if (results.length === 0) {
    return {
      calls: [
        ["refund", { order_id: "A-1017", amount: "all of it" }],
        ["issue_refund", { order: "A-1017" }],
        ["__proto__", {}],
      ],
    };
  }
  // It goes by what it's told.
  if (results.at(-1)?.is_error && results[0]?.is_error) {
    return { calls: [["refund", { order: "A-1017", cents: 1250 }]] };
  }
  return { text: "The money is on its way." };
};

export const failure = defineFailure({
  name: "invented-arguments",
  title: "invented arguments",
  symptom:
    "A tool runs on `undefined`, says that all is well, and the answer says so too; the books are wrong.",
  catches: [
    { file: "patterns/tool-calls.ts", code: "throw new ToolError(fault)" },
    { file: "patterns/tool-calls.ts", code: "known.get(name)" },
  ],
  leaves:
    "An order number that fits the schema and is somebody else's: only the tool can know that.",
  run: async (catching) => {
    const refunds: string[] = [];
    const refund = defineTool<{ order: string; cents: number }>({
      name: "refund",
      description: "Pay money back on an order. Returns what was paid.",
      input_schema: catching ? STRICT : LENIENT,
      run: ({ order, cents }) => {
        refunds.push(`${cents} cents on ${order}`);
        return `Paid back ${cents} cents on ${order}.`;
      },
    });
    const result = await runAgent("Pay back order A-1017, 12.50 euros.", {
      tools: [refund],
      llm: playedBy(play),
    });
    return { ...result, refunds };
  },
  tell: ({ status, refunds, transcript }) => [
    `${status}; paid back: ${refunds.join(", ")}`,
    ...resultsIn(transcript).map(({ content }) => `told: ${content}`),
  ],
});
