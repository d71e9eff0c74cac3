/**
 * Four ways to keep a long run short. Each reads the same log, with the same tool.
 */
import { runAgent } from "../../patterns/agent.ts";
import { manageContext } from "../../patterns/context.ts";
import { runSubagent } from "../../patterns/subagent.ts";
import { counted } from "../shared/words.ts";
import { ending, type Means, RUN, TASK } from "./run.ts";
import { runTwice } from "./two-runs.ts";

/** A way to keep a run short. */
export interface Way {
  /** Its step's name. */
  readonly name: string;
  readonly title: string;
  /** Runs it; gives what came of it in lines, how it ended last. */
  readonly run: (means: Means) => Promise<readonly string[]>;
}

export const WAYS: readonly Way[] = [
  {
    name: "compact",
    title: "the conversation is summed up",
    run: async (means) => {
      const context = manageContext({ compact: { trigger: 50_000 } });
      return [ending(await runAgent(TASK, { ...means, ...RUN, ...context }))];
    },
  },
  {
    name: "clear",
    title: "old tool results are cleared",
    run: async (means) => {
      const context = manageContext({ clear: { trigger: 30_000, keep: 2 } });
      return [ending(await runAgent(TASK, { ...means, ...RUN, ...context }))];
    },
  },
  {
    name: "memory",
    title: "two runs, and files that outlive the first",
    run: runTwice,
  },
  {
    name: "subagent",
    title: "somebody else reads, and delivers a page",
    run: async (means) => {
      const brief = {
        objective: TASK,
        purpose: "The shop's owner writes to these customers.",
        boundaries: "Not the hours after those, and not why a payment failed.",
        context: "The log has a line for each payment, accepted or failed.",
        stopWhen: "Each of these hours has been read once.",
      };
      const { findings, gaps, ...rest } = await runSubagent(brief, { ...means, ...RUN });
      const parts = `${counted(findings.length, "finding")} and ${counted(gaps.length, "gap")}`;
      const [own, given] = [rest.transcript, { findings, gaps }].map(sizeOf);
      return [
        `its caller gets ${parts}, ${given} characters; its own conversation has ${own}`,
        `${rest.status} after ${counted(rest.steps, "step")}`,
      ];
    },
  },
];

function sizeOf(value: unknown): string {
  return JSON.stringify(value).length.toLocaleString("en");
}
