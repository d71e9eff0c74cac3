/** A budget around patterns and recordings: apart from its own tests, which are copied without those. */
import { expect, test } from "vitest";
import { chain } from "../patterns/chain.ts";
import type { Prices } from "../patterns/cost.ts";
import { type BudgetOptions, createBudget } from "../patterns/layers/budget.ts";
import { createLlm } from "../patterns/llm-call.ts";
import { openRecording, recordedClient } from "../patterns/recording.ts";
import { section } from "../patterns/section.ts";
import { type Answer, fails, hold, rejection, reply, startServer } from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

/** An output token costs a dollar and the input nothing, so that all sums are exact. */
const PRICES: Prices = new Map([["m", { input: 0, output: 1_000_000, source: "test" }]]);
const NONE = { usd: 0, calls: 0 };

/** A door with a budget over the real SDK and a local server. */
async function openServer(limits: BudgetOptions, answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  const budget = createBudget({ prices: PRICES, ...limits });
  const { llmCall } = createLlm({
    client: server.client(),
    model: "m",
    max_tokens: 10,
    layers: [budget.layer],
  });
  return { server, budget, llmCall };
}

/** The replies' usage, as `reply` takes it. */
function usage(output_tokens: number) {
  return { model: "m", usage: { input_tokens: 5, output_tokens } };
}

test("a call that a sibling's HTTP error cancels may be billed, whatever that one was", async () => {
  const { server, budget, llmCall } = await openServer({ usd: 25 }, [hold, fails(400)]);
  const error = await rejection(
    section("Hi", {
      llm: llmCall,
      sections: {
        slow: (text, { llm }) => llm(text),
        bad: async (text, { llm }) => {
          await server.received(1);
          return llm(text);
        },
      },
    }),
  );
  expect(error).toMatchObject({ status: 400 });
  expect([budget.spent(), budget.reserved()]).toEqual([NONE, NONE]);
  expect(budget.unsettled()).toEqual({ usd: 10, calls: 1 });
});

test("spends on a recorded run what it costs, and nothing on its replay", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("Yes", usage(4)));
  for (const mode of ["record", "replay"] as const) {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const budget = createBudget({ usd: 20, prices: PRICES });
    const llm = createLlm({ client, model: "m", max_tokens: 10, layers: [budget.layer] });
    expect(await llm.llmCall("Hi")).toBe("Yes");
    expect(budget.spent()).toEqual(mode === "record" ? { usd: 4, calls: 1 } : NONE);
    expect(budget.unsettled()).toEqual(NONE);
  }
});

test("is shared by nested patterns, which return what they have when it ends", async () => {
  const { server, budget, llmCall } = await openServer({ calls: 3 }, [reply("Yes", usage(2))]);
  const result = await section("diff", {
    llm: llmCall,
    sections: {
      short: (text, { llm }) => llm(`Review: ${text}`),
      long: (text, { llm, signal }) =>
        chain(text, {
          llm,
          signal,
          steps: ["a", "b", "c"].map((name) => ({ name, run: (text, { llm }) => llm(text) })),
        }),
    },
  });
  expect(server.requests).toHaveLength(3);
  expect(budget.spent()).toEqual({ usd: 6, calls: 3 });
  expect(result.outputs).toMatchObject({
    short: "Yes",
    long: { status: "budget", step: "c", outputs: { a: "Yes", b: "Yes" } },
  });
});
