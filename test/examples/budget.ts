import { createBudget } from "../../patterns/layers/budget.ts";
import { createLlm, type Layer } from "../../patterns/llm-call.ts";
import { refine } from "../../patterns/refine.ts";

const log: Layer = (next) => async (params, call) => {
  const message = await next(params, call);
  console.error(message.model, message.usage.output_tokens);
  return message;
};

export async function slogan(usd: number) {
  const budget = createBudget({ usd });
  const { llmCall } = createLlm({ layers: [log, budget.layer], max_tokens: 1_000 });
  const result = await refine("Write a slogan for a bakery", {
    criteria: "Six words at the most. No puns.",
    llm: llmCall,
  });
  // "budget" when the money ended first: then this is the best draft so far.
  return { status: result.status, draft: result.draft, spent: budget.spent().usd };
}
