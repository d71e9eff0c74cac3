/**
 * A job is what a runner shows: one pattern at work on one realistic input.
 *
 * From effective-agents 0.1.0: runners/shared/job.ts
 */
import type Anthropic from "@anthropic-ai/sdk";
import type { Ask } from "../../patterns/approve.ts";
import type { Context, LlmMessage } from "../../patterns/llm-call.ts";
import type { Tool } from "../../patterns/tool.ts";
import type { Mode } from "./source.ts";
import type { Suspension } from "./suspension.ts";

/** What a job is run with: for a workflow the pattern's own, and what an agent needs beside it. */
export interface JobContext extends Context {
  /** Where its replies come from, and whether they are kept. */
  readonly mode: Mode;
  readonly llmMessage: LlmMessage;
  /** For what makes its calls with the SDK's client: they are seen, limited and recorded as the door's. */
  readonly client: Anthropic;
  /** What there is left to spend, in US dollars; `Infinity` where there is no limit. */
  readonly left: () => number;
  /** The model that was asked for. Default: the pattern's own. */
  readonly model: string | undefined;
  /** The tools as the run may use them: in a replay they give what they gave when it was recorded. */
  readonly recorded: (tools: readonly Tool[]) => readonly Tool[];
  /** The `ask` for this run, given the one whose answers were recorded: live, a terminal is asked. */
  readonly asking: (script: Ask) => Ask;
  /** Where the run is kept while it waits, if it was asked to be suspended. */
  readonly suspension: Suspension | undefined;
  /** Whether a script plays the API. */
  readonly isScripted: boolean;
  /** How long a line of what is said may be, in characters. Default: that isn't known. */
  readonly columns?: number | undefined;
}

/** What a runner exports. */
export interface Job {
  /** What happens, in a line. */
  readonly title: string;
  /** The input that the recording was made with. */
  readonly input: string;
  /** What it is recorded with by default, where that isn't the door's default. */
  readonly model?: string;
  /** Whether it asks a person, and can be suspended until there's an answer. */
  readonly suspends?: boolean;
  /** Whether it takes an input in place of its own. Default true. */
  readonly takesInput?: boolean;
  /** Plays the API where there is no recording to replay. Its token counts are none. */
  readonly scripted?: () => Anthropic;
  /** Runs the pattern; gives its result, and the result in words, the status last. */
  readonly run: (input: string, context: JobContext) => Promise<JobResult>;
}

export interface JobResult {
  readonly result: unknown;
  readonly words: string;
}

/** Makes a job of one pattern call and of the words for its result. */
export function defineJob<Result>(job: {
  readonly title: string;
  readonly input: string;
  readonly model?: string;
  readonly suspends?: boolean;
  readonly takesInput?: boolean;
  readonly scripted?: () => Anthropic;
  readonly run: (input: string, context: JobContext) => Promise<Result>;
  /** Says the result in words; `columns` is how long a line may be, 0 where that isn't known. */
  readonly tell: (result: Result, columns: number) => string;
}): Job {
  const { run, tell, ...rest } = job;
  return {
    ...rest,
    run: async (given, context) => {
      const result = await run(given, context);
      return { result, words: tell(result, context.columns ?? 0) };
    },
  };
}
