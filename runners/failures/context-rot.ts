/**
 * Context rot: the longer the history, the worse the model, and in the end there is no room for more.
 *
 * The loop has no cure for it. It names the end by its name, so that half a sentence doesn't pass for
 * an answer, and gives back the transcript: what was found goes into a short brief, from which a new run
 * starts. This model's window is small, since a real one would take hundreds of turns.
 */
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { runAgent } from "../../patterns/agent.ts";
import type { Layer } from "../../patterns/llm-call.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const TASK = "Which payments failed between midnight and six? Read the log hour by hour.";
/** In characters. */
const WINDOW = 24_000;
const HOURS = 6;
const FAILED = new Map([
  [1, "A-1017"],
  [4, "A-1022"],
]);

const readLog = defineTool<{ hour: number }>({
  name: "read_log",
  description: "Read the shop's log of one hour. Returns the log, a payment a line.",
  input_schema: takes({ hour: { type: "integer", minimum: 0, maximum: 23 } }),
  run: ({ hour }) => {
    const failed = FAILED.get(hour);
    return `Hour ${hour}${failed ? `\npayment of ${failed} failed` : ""}${"\npaid".repeat(1_200)}`;
  },
});

const play: Play = ({ messages }) => {
  if (JSON.stringify(messages).length > WINDOW) {
    return { text: "So far only the payment of", stop: "model_context_window_exceeded" };
  }
  const read = resultsIn(messages).map(({ content }) => noteOn(String(content)));
  const notes = [...notesIn(messages.slice(0, 1)), ...read];
  if (notes.length === HOURS) return { text: notes.join("\n") };
  return { text: read.at(-1) ?? "", calls: [["read_log", { hour: notes.length }]] };
};

function noteOn(log: string): string {
  return `${log.split("\n", 1)[0]}: ${/payment of .* failed/.exec(log)?.[0] ?? "nothing"}`;
}

/** What it has noted on the way: in the task that it was given, or in its own turns. */
function notesIn(messages: readonly MessageParam[]): string[] {
  return messages.flatMap(({ content }) => {
    const blocks =
      typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
    return blocks.flatMap((block) =>
      block.type === "text" ? (block.text.match(/^Hour \d+: .*$/gm) ?? []) : [],
    );
  });
}

/** What a loop sees that asks for nothing but whether a tool is called. */
const nameless: Layer = (next) => async (params, call) => {
  const message = await next(params, call);
  const isTool = message.stop_reason === "tool_use";
  return { ...message, stop_reason: isTool ? "tool_use" : "end_turn" };
};

export const failure = defineFailure({
  name: "context-rot",
  title: "context rot",
  symptom: "The window is full of what was read, and half a sentence passes for the answer.",
  catches: [{ file: "patterns/agent.ts", code: "status: stopReason" }],
  leaves:
    "A model gets worse long before its window is full, and nothing here sees that. Keep results narrow, and start anew from a brief in good time.",
  run: async (catching) => {
    const llm = playedBy(play, ...(catching ? [] : [nameless]));
    const first = await runAgent(TASK, { tools: [readLog], llm });
    if (first.status === "answered") return { first };
    const notes = notesIn(first.transcript).join("\n");
    const brief = `${TASK}\n\nNoted already, and not to be read again:\n${notes}`;
    return { first, brief, second: await runAgent(brief, { tools: [readLog], llm }) };
  },
  tell: ({ first, brief = "", second }) => {
    const sum = `${first.status} after ${first.turns} turns`;
    if (first.status === "answered") return [`${sum}: ${first.answer}`];
    const anew = `${second?.status} after ${second?.turns} turns`;
    const answer = second?.status === "answered" ? second.answer.split("\n") : [];
    return [`${sum}; from a brief of ${brief.length} characters, ${anew}`, ...answer];
  },
});
