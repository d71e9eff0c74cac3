/**
 * A failure of the lab: made to happen twice, with the same model and the same tools.
 *
 *     the model fails ─┬─ the pattern as it is ──────► what caught it, and the line that does
 *                      └─ with the catch taken out ──► what you'd see
 *
 * So what is said of a failure is what came of its runs, and nothing that somebody typed.
 */
import { observe } from "../../patterns/step.ts";
import { explain } from "../shared/explain.ts";
import { turnLines } from "../shared/turn-lines.ts";
import type { Excerpt } from "./code-line.ts";

/** What is known of a failure before it's run. */
interface Described {
  /** What it's asked for by: `npm start failures endless-loop`. Its file has the same name. */
  readonly name: string;
  readonly title: string;
  /** What you'd see if nothing caught it. */
  readonly symptom: string;
  /** The lines of code that catch it. */
  readonly catches: readonly Excerpt[];
  /** What they don't catch. Default: nothing to speak of. */
  readonly leaves?: string;
}

/** A failure that can be run. */
export interface Failure extends Described {
  /** Runs it with the catch in place, or taken out; `onTurn` gets a line a turn as it happens. */
  readonly run: (catching: boolean, onTurn?: (line: string) => void) => Promise<Outcome>;
}

/** What came of a run. */
export interface Outcome {
  readonly result: unknown;
  /** The result in words: the first line is the sum. */
  readonly words: readonly string[];
}

/** Makes a failure of a run and of the words for its result. */
export function defineFailure<Result>(
  failure: Described & {
    readonly run: (catching: boolean) => Promise<Result>;
    readonly tell: (result: Result) => readonly string[];
  },
): Failure {
  const { run, tell, ...described } = failure;
  return {
    ...described,
    run: async (catching, onTurn = () => {}) => {
      try {
        const result = await observe(turnLines(onTurn), () => run(catching));
        return { result, words: tell(result) };
      } catch (error) {
        // Without its catch a run may well end in an error, and that is what you'd see.
        if (catching) throw error;
        return { result: error, words: [explain(error)] };
      }
    },
  };
}
