/**
 * A model calls tools in a loop until it has an answer.
 *
 *     task ─► model ─► tool_use ─► run all calls at once ─┐
 *               ▲                                         │  at most maxTurns
 *               └──────────── one message of results ◄────┘
 *               └─► end_turn ─► answer
 *
 * Use when the path can't be known beforehand: how many files to read, what to look up next. It costs
 * most and is hardest to test; where the steps are known, one of the workflows does it.
 *
 * Costs a call a turn, twelve turns at the most by default, and each turn sends the whole history. The
 * repeated part is cached, since no turn changes anything that was sent before it.
 *
 * In Anthropic's "Building effective agents": agents.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, suspend.ts, tool.ts, tool-calls.ts,
 * transcript.ts, door/
 */
import type { Message, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { BudgetError, checkCount, LlmOutputError } from "./errors.ts";
import { type LlmMessage, type LlmParams, llmMessage } from "./llm-call.ts";
import { runPattern, step, type Usage } from "./step.ts";
import { beginningOf, type OpenTurn, type SuspendedRun } from "./suspend.ts";
import type { Tool } from "./tool.ts";
import { checkToolChoice, definitionsOf, prepareTools, toolCalls } from "./tool-calls.ts";
import { addUsage, remember } from "./transcript.ts";

export type { SuspendedRun } from "./suspend.ts";

/** What an agent works with, and its limits. The API's own parameters are passed on. */
export interface AgentOptions extends Omit<LlmParams, "tools" | "max_tokens"> {
  /** What the model may call. */
  readonly tools: readonly Tool[];
  /** The most calls to the model. Default 12. */
  readonly maxTurns?: number | undefined;
  /** Output tokens of a turn. Default 16,000; doubled, twice at most, when it cuts off a tool call. */
  readonly max_tokens?: number | undefined;
  /** How often the same calls with the same results come in a row before the run is over. Default 3,
   * at least 2; 0 for no limit. */
  readonly maxRepeats?: number | undefined;
  /** How much of a tool's output the model gets, in characters. Default 30,000. */
  readonly maxOutputChars?: number | undefined;
  /** Gets the text of every turn as it comes. */
  readonly onText?: ((text: string) => void) | undefined;
  /** Makes the calls. Default: the shared door. */
  readonly llm?: LlmMessage | undefined;
  /** Cancels everything, tools too; the agent then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How the run ended, and all that is needed to go on from there. */
export type AgentResult = Ending & {
  /** How many calls to the model it took. */
  readonly turns: number;
  /** Token counts of all turns together. */
  readonly usage: Usage;
  /** The whole conversation, plain JSON. Pass it to `runAgent` to go on; a suspended result as it is. */
  readonly transcript: readonly MessageParam[];
};

/** Why a run is over. */
type Ending =
  | { readonly status: "answered"; readonly answer: string; readonly stopSequence: string | null }
  /** No answer: the turns are used up, or the same calls came back again and again. */
  | { readonly status: "max_turns" | "repeating" }
  /** No answer: the model refused, ran out of `max_tokens`, or out of its context window. What it
   * had said until then is in `text`; `stopDetails` says why it refused, where the API does. */
  | {
      readonly status: "refusal" | "max_tokens" | "model_context_window_exceeded";
      readonly text: string;
      readonly stopDetails: Message["stop_details"];
    }
  /** The budget ended after at least one turn. */
  | { readonly status: "budget"; readonly error: BudgetError }
  /** Calls of the last turn wait for an answer that comes later; those that don't have a result. */
  | Pick<SuspendedRun, "status" | "results">;

/**
 * Runs the loop on a task, or goes on from a transcript or from a run that was suspended.
 *
 * @throws {TypeError} The task is empty, the transcript ends in a tool call, a suspended run isn't as it
 *   was, a tool's name or schema is bad, or a tool is forced while thinking is on.
 * @throws {RangeError} A limit is out of range.
 * @throws {LlmOutputError} Twice no answer after tool results, a tool call cut off with the most
 *   tokens, two calls under one id, or an unknown stop reason.
 *
 * @example
 * const result = await runAgent("Where is the retry limit set?", { tools: createRepoTools(".") });
 * // { status: "answered", answer: "In src/http.ts:42 …", turns: 3, … }
 */
export async function runAgent(
  task: string | readonly MessageParam[] | SuspendedRun,
  options: AgentOptions,
): Promise<AgentResult> {
  const { tools, maxTurns = 12, max_tokens = 16_000, maxRepeats = 3, ...more } = options;
  const { maxOutputChars = 30_000, onText, llm = llmMessage, signal, ...given } = more;
  const { model = "claude-opus-5-5", cache_control = { type: "ephemeral" }, ...params } = given;
  const { transcript, usage, turn: first, open } = beginningOf(task);
  checkCount("maxTurns", maxTurns, first + 1);
  checkCount("max_tokens", max_tokens, 1);
  if (maxRepeats !== 0) checkCount("maxRepeats", maxRepeats, 2);
  checkCount("maxOutputChars", maxOutputChars, 100);
  checkToolChoice(params);
  const runTools = prepareTools(tools, maxOutputChars);
  const definitions = definitionsOf(tools);
  let room = max_tokens;
  let askedToGoOn = false;
  let paused = "";
  let lastRound = "";
  let repeats = 0;

  const callTools = async ({ content, results: done }: OpenTurn): Promise<Ending | undefined> => {
    const calls = toolCalls(content);
    // A run that ends in here leaves a transcript without the turn, since its calls have no results.
    const results = await runTools(calls, signal, done);
    paused = "";
    remember(transcript, { content });
    if (results.length < calls.length) return { status: "suspended", results };
    transcript.push({ role: "user", content: results });
    const round = JSON.stringify([
      calls.map(({ name, input }) => [name, input]),
      results.map(({ content }) => content),
    ]);
    repeats = round === lastRound ? repeats + 1 : 1;
    lastRound = round;
    return repeats === maxRepeats ? { status: "repeating" } : undefined;
  };

  const takeTurn = async (): Promise<Ending | undefined> => {
    const reply = await llm(
      {
        model,
        cache_control,
        ...params,
        max_tokens: room,
        messages: [...transcript],
        tools: definitions,
      },
      { signal, onText },
    );
    addUsage(usage, reply.usage);
    const text = paused + textOf(reply);
    const calls = toolCalls(reply.content);
    switch (reply.stop_reason) {
      case "tool_use":
        if (calls.length === 0) throw unusable("The turn stopped for a tool and calls none", reply);
        return callTools(reply);
      case "end_turn":
      case "stop_sequence":
      case "pause_turn":
        if (calls.length > 0) throw unusable("The turn ended beside a tool call", reply);
        remember(transcript, reply);
        paused = text;
        if (reply.stop_reason === "pause_turn") return undefined;
        if (text.trim())
          return { status: "answered", answer: text, stopSequence: reply.stop_sequence };
        if (askedToGoOn) throw unusable("Twice the turn ended without an answer", reply);
        askedToGoOn = true;
        transcript.push({ role: "user", content: "Please continue, and give your answer." });
        return undefined;
      case "max_tokens":
        if (calls.length === 0) return { status: "max_tokens", text, stopDetails: null };
        // The call's input was cut off and looks whole. Nothing of this turn is run or remembered.
        if (room >= 4 * max_tokens)
          throw unusable(`A tool call was cut off at ${room} tokens`, reply);
        room *= 2;
        return undefined;
      case "refusal":
      case "model_context_window_exceeded":
        return { status: reply.stop_reason, text, stopDetails: reply.stop_details ?? null };
      default:
        throw unusable(`Unknown stop reason ${JSON.stringify(reply.stop_reason)}`, reply);
    }
  };

  const runLoop = async (): Promise<AgentResult> => {
    for (let turn = first; turn < maxTurns; turn += 1) {
      const evidence = { turns: turn + 1, usage, transcript };
      const isOpen = open && turn === first;
      try {
        const ending = await step(`turn[${turn}]`, isOpen ? () => callTools(open) : takeTurn);
        if (ending) return { ...ending, ...evidence };
      } catch (error) {
        if (!(error instanceof BudgetError) || turn === 0) throw error;
        return { status: "budget", error, ...evidence, turns: turn };
      }
    }
    return { status: "max_turns", turns: maxTurns, usage, transcript };
  };
  return runPattern("agent", runLoop, signal);
}

function textOf({ content }: Message): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

function unusable(message: string, reply: Message): LlmOutputError {
  return new LlmOutputError(message, { text: textOf(reply), stopReason: reply.stop_reason });
}
