/**
 * A level: one of three ways to have the same question answered, each with less left to keep.
 *
 * From effective-agents 0.1.0: runners/levels/level.ts
 */
import type { JobContext } from "../shared/job.ts";
import type { Totals } from "../shared/trace.ts";

/** One of the three. */
export interface Level {
  /** Its step on the path, and the name of its file. */
  readonly name: string;
  readonly title: string;
  /** What it does when a run gets too long or too dear. */
  readonly limits: string;
  /** What it does when a tool call goes wrong. */
  readonly errors: string;
  /** Whether its calls are made by another process, where no recording sees them. Default: no. */
  readonly isApart?: boolean;
  readonly ask: (question: string, context: JobContext) => Promise<Outcome>;
}

/** What came of asking. */
export interface Outcome {
  /** Missing where there is none. */
  readonly answer?: string;
  /** How it ended, in words. */
  readonly status: string;
  /** Of another process: what it says of its own calls. */
  readonly totals?: Totals;
}

/** How many turns each may take. */
export const MAX_TURNS = 12;
