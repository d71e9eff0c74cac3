/**
 * How an agent's run is steered: what its loop may be told between two turns, and how it ends.
 *
 *     turn ─► steer(standing) ─┬─ nothing ─► as the loop does
 *       ▲                      ├─ stop ────► status "stopped"
 *       └── say, tool_choice ◄─┘
 *
 * The loop alone goes on while the model calls tools, and ends when it says something instead. That is
 * too early for an agent that has to end in its own way, such as by a certain tool, or too late for
 * one that has it. `steer` sees where the run stands and says otherwise. It never changes what was sent:
 * what it says is a new message, so that the cache holds.
 *
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, suspend.ts, tool.ts, tool-calls.ts,
 * tool-input.ts, transcript.ts, usage.ts, door/
 * From effective-agents 0.1.0: patterns/steer.ts
 */
import type { Message, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { BudgetError } from "./errors.ts";
import type { LlmParams } from "./llm-call.ts";
import type { Suspended } from "./suspend.ts";

/** Where a run stands between two turns. */
export interface Standing {
  /** The index of the turn to come. */
  readonly turn: number;
  /** How many turns are left, the one to come included; 0 after the last. */
  readonly left: number;
  /** How the run ends unless something is said; none where it goes on. The answer may be empty here. */
  readonly ending: TurnEnding | undefined;
  /** Whether the last turn was paused, by the API's own tools or a compaction: it goes back as it is, to
   * be gone on with. Saying something gives it up; choosing a tool doesn't. */
  readonly isPaused: boolean;
  /** The conversation until now. */
  readonly transcript: readonly MessageParam[];
}

/** How a run goes on. */
export interface Steering {
  /** Ends the run, with the status `stopped`. Default false. */
  readonly stop?: boolean | undefined;
  /** Said to the model in a message of its own. The run goes on with it, whatever would have ended it. */
  readonly say?: string | undefined;
  /** For the turn to come alone. It costs the cache: the API reads all messages anew. Default: as in the
   * options. */
  readonly tool_choice?: LlmParams["tool_choice"];
}

/** Why a turn ends the run. */
export type TurnEnding =
  | { readonly status: "answered"; readonly answer: string; readonly stopSequence: string | null }
  /** No answer: the same calls came back again and again. */
  | { readonly status: "repeating" }
  /** No answer: the model refused, ran out of `max_tokens`, or out of its context window. What it
   * had said until then is in `text`; `stopDetails` says why it refused, where the API does. */
  | {
      readonly status: "refusal" | "max_tokens" | "model_context_window_exceeded";
      readonly text: string;
      readonly stopDetails: Message["stop_details"];
    };

/** Why a run can't go on, whatever is said. */
export type Halted =
  /** The budget ended after at least one turn, or for a call of its tools, which says so as its result. */
  { readonly status: "budget"; readonly error: BudgetError } | Suspended;

/** Why a run is over. */
export type Ending =
  | TurnEnding
  /** No answer: the turns are used up, or `steer` ended it. */
  | { readonly status: "max_turns" | "stopped" }
  | Halted;
