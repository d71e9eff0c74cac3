/** Our door and patterns: a worker that does its work with them. */
import { chain } from "../../patterns/chain.ts";
import { createLlm, type LlmCall } from "../../patterns/llm-call.ts";
import { orchestrate } from "../../patterns/orchestrate.ts";
import { refine } from "../../patterns/refine.ts";
import { route } from "../../patterns/route.ts";
import { section } from "../../patterns/section.ts";
import { vote } from "../../patterns/vote.ts";
import { clientOf } from "./bare.ts";
import { type Group, inLanes, obey } from "./protocol.ts";

interface Work {
  /** How many of its calls go out together, group after group. */
  readonly together: readonly number[];
  readonly run: (llm: LlmCall) => Promise<unknown>;
}

const ask = (text: string, { llm }: { readonly llm: LlmCall }) => llm(`Work on this: ${text}`);

const WORKS: ReadonlyMap<string, Work> = new Map([
  ["one call", { together: [1], run: (llm) => llm("What is 2 + 2?") }],
  [
    "chain of 3",
    {
      together: [1, 1, 1],
      run: (llm) =>
        chain("the notes", { llm, steps: ["a", "b", "c"].map((name) => ({ name, run: ask })) }),
    },
  ],
  [
    "route",
    {
      together: [1, 1],
      run: (llm) =>
        route("I was charged twice", {
          llm,
          routes: {
            billing: { when: "charges, refunds", run: ask },
            other: { when: "anything else", run: ask },
          },
        }),
    },
  ],
  [
    "section of 3",
    {
      together: [3],
      run: (llm) => section("the diff", { llm, sections: { a: ask, b: ask, c: ask } }),
    },
  ],
  [
    "vote of 5",
    {
      together: [5],
      // At a threshold of half or less all voters are awaited, as by Promise.all.
      run: (llm) => vote("Is 97 a prime number?", { llm, voters: 5, threshold: 2 }),
    },
  ],
  [
    "orchestrate 1 + 4 + 1",
    { together: [1, 4, 1], run: (llm) => orchestrate("Write a guide", { llm }) },
  ],
  [
    "refine of 2 rounds",
    {
      together: [1, 1, 1, 1],
      run: (llm) => refine("Write a text", { llm, criteria: "It is long" }),
    },
  ],
] satisfies [string, Work][]);

const [, , url] = process.argv;
const client = clientOf(url);
const { llmCall } = createLlm({ client, concurrency: 100 });

async function traced({ together, run }: Work): Promise<readonly Group[]> {
  const prompts: string[] = [];
  await run((prompt, options) => {
    prompts.push(String(prompt));
    return llmCall(prompt, options);
  });
  let at = 0;
  const groups = together.map((count) => {
    at += count;
    return prompts.slice(at - count, at);
  });
  if (at !== prompts.length) throw new Error(`It made ${prompts.length} calls, and not ${at}`);
  return groups;
}

obey(async (order) => {
  if (order.do === "load") {
    const calls = Array.from({ length: order.calls }, (_, i) => llmCall(`Call ${i}`));
    await Promise.all(calls);
    return undefined;
  }
  const work = typeof order.work === "string" ? WORKS.get(order.work) : undefined;
  if (!work) throw new Error(`No such work: ${order.work}`);
  if (order.do === "trace") return traced(work);
  await inLanes(order.times, order.lanes, () => work.run(llmCall));
  return undefined;
});
