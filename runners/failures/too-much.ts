/**
 * A tool that returns too much: one careless call, and the log of a whole day is in the history for good.
 *
 * A result is cut to a length, and says how much is missing and what to do: the model asks for less.
 */
import { runAgent } from "../../patterns/agent.ts";
import { defineTool } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const FOUND = "02:17 payment of A-1017 failed\n";
/** As long as a novel. */
const DAY = FOUND + "paid\n".repeat(80_000);

const readLog = defineTool<{ hours: string }>({
  name: "read_log",
  description: "Read the shop's log. Returns the log, a payment a line.",
  input_schema: takes({ hours: { type: "string", description: "Such as 7-9, or all" } }),
  run: ({ hours }) => (hours === "all" ? DAY : FOUND),
});

const play: Play = ({ messages }) => {
  const last = resultsIn(messages).at(-1)?.content;
  if (last === undefined) return { calls: [["read_log", { hours: "all" }]] };
  const isCut = String(last).includes("ask for less at a time");
  if (isCut) return { calls: [["read_log", { hours: "2-3" }]] };
  return { text: "The payment of A-1017 failed." };
};

export const failure = defineFailure({
  name: "too-much",
  title: "a tool that returns too much",
  symptom:
    "One call puts the log of a day into the history, and every turn after it pays for that.",
  catches: [{ file: "patterns/tool-calls.ts", code: "more characters; ask for less at a time" }],
  run: (catching) =>
    runAgent("Which payment failed in the night?", {
      tools: [readLog],
      llm: playedBy(play),
      // Without an end, or as good as that.
      ...(!catching && { maxOutputChars: 1_000_000_000 }),
    }),
  tell: ({ status, usage, transcript }) => {
    const got = String(resultsIn(transcript)[0]?.content);
    const [length, all, sent] = [got.length, DAY.length, usage.input_tokens].map((count) =>
      count.toLocaleString("en"),
    );
    const note = got.trimEnd().split("\n").at(-1) ?? "";
    return [
      `${status}; the model got ${length} of ${all} characters, ${sent} tokens in all`,
      `the result's last line: ${note}`,
    ];
  },
});
