/**
 * What the four runs read: a shop's log, too long an hour to be kept in mind for a day.
 */
import { defineTool } from "../../patterns/tool.ts";

/** The payments that failed, by the hour. */
const FAILED: ReadonlyMap<number, string> = new Map([
  [1, "A-1017"],
  [2, "A-1022"],
  [5, "A-1040"],
]);

/** In lines, an hour. Four hours come to more than 50,000 tokens, the least that a compaction is made for. */
const LENGTH = 1_600;

/** In characters: more than an hour's log has. */
export const MAX_LOG = 60_000;

export const readLog = defineTool<{ hour: number }>({
  name: "read_log",
  description: "Read the shop's log of one hour of yesterday. Returns all of it, a payment a line.",
  input_schema: {
    type: "object",
    properties: { hour: { type: "integer", minimum: 0, maximum: 23 } },
    required: ["hour"],
    additionalProperties: false,
  },
  run: ({ hour }) => {
    const lines = Array.from({ length: LENGTH }, (_, index) => {
      const minute = Math.floor((index * 60) / LENGTH);
      return `${two(hour)}:${two(minute)} payment ${hour * LENGTH + index} accepted`;
    });
    const failed = FAILED.get(hour);
    if (failed) lines[LENGTH / 2] = `${two(hour)}:30 payment of order ${failed} failed`;
    return `log of hour ${hour}\n${lines.join("\n")}`;
  },
});

function two(count: number): string {
  return String(count).padStart(2, "0");
}

/** The task, of hours that come after each other. */
export function taskOf(first: number, last: number, rest = ""): string {
  return `Which orders had a payment that failed, hour ${first} to hour ${last}? Read the log of two hours a turn, and say of each what failed, as "Hour 0: nothing". Logs that you have read may be out of your sight later, so go by what you said.${rest}`;
}
