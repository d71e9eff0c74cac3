/**
 * A job is what a runner shows: one pattern at work on one realistic input.
 */
import type { Context } from "../../patterns/llm-call.ts";

/** What a runner exports. */
export interface Job {
  /** What happens, in a line. */
  readonly title: string;
  /** The input that the recording was made with. */
  readonly input: string;
  /** Runs the pattern; gives its result, and the result in words, the status last. */
  readonly run: (input: string, context: Context) => Promise<JobResult>;
}

export interface JobResult {
  readonly result: unknown;
  readonly words: string;
}

/** Makes a job of one pattern call and of the words for its result. */
export function defineJob<Result>(job: {
  readonly title: string;
  readonly input: string;
  readonly run: (input: string, context: Context) => Promise<Result>;
  readonly tell: (result: Result) => string;
}): Job {
  const { title, input, run, tell } = job;
  return {
    title,
    input,
    run: async (given, context) => {
      const result = await run(given, context);
      return { result, words: tell(result) };
    },
  };
}
