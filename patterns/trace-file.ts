/**
 * A run as a file: its steps, its calls with prompts and replies, times, tokens and cost.
 *
 *     observe(trace.onEvent, run) ─► trace.file({ origin: "live" }) ─► JSON ─► the gallery's page
 *
 * The format is version 1. A field may be added within a version, so readers skip what they don't
 * know; a version goes up when a field changes its meaning or goes away. Times are in milliseconds
 * since the run's start, costs in US dollars. A field that is absent isn't known.
 *
 * The file holds what was asked and answered, with whatever secrets stand in that: pass it on as you
 * would pass on the prompts. It holds no headers and no keys.
 *
 * Copy along: step.ts
 */
import type { Usage } from "./step.ts";

/** What the file holds. */
export interface TraceFile {
  readonly format: "effective-agents/trace";
  readonly version: 1;
  /** The run's outermost step, such as `route`. */
  readonly name: string;
  readonly title?: string;
  /** Where the replies came from; `live` is a run as it happened. */
  readonly origin: "api" | "transcribed" | "scripted" | "live";
  /** In ISO 8601. */
  readonly startedAt: string;
  /** Each before the steps inside it, siblings as they started. */
  readonly steps: readonly TraceStep[];
  readonly result?: unknown;
}

/** How a step or a call ended, or that it hadn't when the file was written. */
export type Outcome = "ok" | "failed" | "cancelled" | "unfinished";

/** What an error says. */
export interface TraceError {
  readonly name: string;
  readonly message: string;
}

/** A step: its own calls, and what it ended with. */
export interface TraceStep {
  readonly path: string;
  readonly begin: number;
  readonly ms: number;
  readonly outcome: Outcome;
  /** What the step ended with: the label read, the gate's verdict. */
  readonly value?: unknown;
  readonly error?: TraceError;
  /** Of a tool's step: the model's call, such as `search({"pattern": "x"})`. */
  readonly toolCall?: string;
  /** Its own requests to the model, in order. Those of the steps inside it are theirs. */
  readonly calls: readonly TraceCall[];
}

/** One request to the model. */
export interface TraceCall {
  readonly begin: number;
  readonly ms: number;
  readonly outcome: Outcome;
  /** Whether times and tokens are estimates. */
  readonly estimated: boolean;
  /** Whether it went out: one that was cancelled while it waited didn't, and costs nothing. */
  readonly sent: boolean;
  /** The API's parameters. */
  readonly request?: unknown;
  /** An agent's turn sends the whole history again. So many of `request.messages` are left out here:
   * they are the first ones of those that the first call at `path` sent. */
  readonly messagesFrom?: { readonly path: string; readonly count: number };
  /** The API's `Message`. */
  readonly reply?: unknown;
  readonly error?: TraceError;
  /** The model that answered. */
  readonly model?: string;
  readonly usage?: Usage;
  /** In US dollars. */
  readonly usd?: number;
}
