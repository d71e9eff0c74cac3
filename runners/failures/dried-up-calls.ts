/**
 * Parallel calls that dry up: three calls a turn in the beginning, and then one at a time.
 *
 * A model goes on as its history has it. Results in a message each teach it to call one tool at a time,
 * says the API's documentation of parallel tool use, and this model learns fast. So all results of a
 * turn go back in one message; a strict server refuses anything else.
 */
import { runAgent } from "../../patterns/agent.ts";
import type { Layer } from "../../patterns/llm-call.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const ARTICLES = ["cups", "pots", "pans", "jugs", "bowls", "trays", "forks", "spoons", "knives"];

const stock = defineTool<{ article: string }>({
  name: "stock",
  description: "How many there are of an article. Returns a number.",
  input_schema: takes({ article: { type: "string" } }),
  run: ({ article }) => String(article.length),
});

const play: Play = ({ messages }) => {
  const left = ARTICLES.slice(resultsIn(messages).length);
  if (left.length === 0) return { text: "All nine are there." };
  const apart = messages.some(({ role }, at) => role === "user" && messages[at + 1]?.role === role);
  const next = left.slice(0, apart ? 1 : 3);
  return { calls: next.map((article) => ["stock", { article }] as const) };
};

/** Sends each result in a message of its own. */
export const oneByOne: Layer = (next) => (params, call) => {
  const messages = params.messages.flatMap((message) => {
    if (message.role !== "user" || typeof message.content === "string") return [message];
    return message.content.map((block) => ({ ...message, content: [block] }));
  });
  return next({ ...params, messages }, call);
};

export const failure = defineFailure({
  name: "dried-up-calls",
  title: "parallel calls that dry up",
  symptom: "The same work takes twice the turns: from some turn on, it makes one call at a time.",
  catches: [
    { file: "patterns/agent.ts", code: 'transcript.push({ role: "user", content: results })' },
  ],
  run: (catching) =>
    runAgent("How many are there of each article?", {
      tools: [stock],
      llm: playedBy(play, ...(catching ? [] : [oneByOne])),
    }),
  tell: ({ status, turns, transcript }) => {
    const rounds = transcript.map(({ content }) =>
      typeof content === "string" ? 0 : content.filter(({ type }) => type === "tool_use").length,
    );
    const calls = rounds.filter((count) => count > 0).join(", ");
    return [`${status} after ${turns} turns, with ${calls} calls a turn`];
  },
});
