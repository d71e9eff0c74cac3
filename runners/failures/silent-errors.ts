/**
 * Silent errors: a database that is down looks like one that is empty, and half a call like a whole one.
 *
 * What a tool throws is told to the model, as the result of its call and marked as an error, with what
 * to do instead. A call that `max_tokens` cut off is never run: its input parses, and its end is missing.
 */
import { runAgent } from "../../patterns/agent.ts";
import type { Layer } from "../../patterns/llm-call.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

/** So few that a note doesn't fit. */
const MAX_TOKENS = 100;

const play: Play = ({ messages, max_tokens }) => {
  const results = resultsIn(messages);
  switch (results.length) {
    case 0: {
      const isCut = max_tokens <= MAX_TOKENS;
      const text = isCut ? "Call Inês bef" : "Call Inês before noon, not after";
      return { calls: [["write_note", { text }]], stop: isCut ? "max_tokens" : "tool_use" };
    }
    case 1:
      return { calls: [["open_orders", {}]] };
    case 2:
      if (results[1]?.is_error) return { calls: [["read_export", {}]] };
      return { text: "No order is open." };
    default:
      return { text: "A-1017 was open last night; the database of today doesn't answer." };
  }
};

/** What a loop sees that looks at the calls and never at the stop reason. */
const blind: Layer = (next) => async (params, call) => {
  const message = await next(params, call);
  return message.stop_reason === "max_tokens" ? { ...message, stop_reason: "tool_use" } : message;
};

export const failure = defineFailure({
  name: "silent-errors",
  title: "silent errors",
  symptom: "A sure answer from a tool that never worked, and a note that ends in the middle.",
  catches: [
    { file: "patterns/tool-calls.ts", code: "is_error: true" },
    { file: "patterns/agent.ts", code: "room = more" },
  ],
  leaves:
    "A tool that swallows its own errors, as the one without the catch does: its empty result is told as such, and no loop can know better.",
  run: async (catching) => {
    const notes: string[] = [];
    const writeNote = defineTool<{ text: string }>({
      name: "write_note",
      description: "Write a note for whoever has the next shift. Returns nothing of interest.",
      input_schema: takes({ text: { type: "string" } }),
      run: ({ text }) => `Note ${notes.push(text)} is written.`,
    });
    const openOrders = defineTool({
      name: "open_orders",
      description: "List the open orders. Returns a line for each.",
      input_schema: takes({}),
      run: () => {
        // The kind of tool that means well: catch (error) { return ""; }
        if (!catching) return "";
        throw new Error("connect ECONNREFUSED 10.0.0.5:5432");
      },
    });
    const readExport = defineTool({
      name: "read_export",
      description: "Read last night's export of the open orders. Returns a line for each.",
      input_schema: takes({}),
      run: () => "A-1017 paid, not sent",
    });
    const result = await runAgent("Leave a note to call Inês, and list what is open.", {
      tools: [writeNote, openOrders, readExport],
      max_tokens: MAX_TOKENS,
      llm: playedBy(play, ...(catching ? [] : [blind])),
    });
    return { ...result, notes };
  },
  tell: (result) => [
    result.status === "answered" ? `${result.status}: ${result.answer}` : result.status,
    `note: ${result.notes.join(", ")}`,
    `told: ${resultsIn(result.transcript)[1]?.content}`,
  ],
});
