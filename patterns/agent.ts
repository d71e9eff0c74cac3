/**
 * A model calls tools in a loop until it has an answer.
 *
 *     task ─► model ─┬─► end_turn ─► answer
 *               ▲    └─► tool_use ─► run all calls at once ─┐  at most maxTurns
 *               └────────────── one message of results ◄────┘
 *
 * Use when each step depends on what the one before it found: which files to read, what to look up next.
 * It costs most and is hardest to test; where the steps are known, one of the workflows does it.
 *
 * Costs a call a turn, twelve turns at the most by default, and each turn sends the whole history. The
 * repeated part is read from the API's prompt cache, at a fraction of the price, since no turn changes
 * what was sent before it.
 *
 * In Anthropic's "Building effective agents": agents.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, steer.ts, step.ts, suspend.ts, tool.ts,
 * tool-calls.ts, tool-input.ts, transcript.ts, usage.ts, door/
 * From effective-agents 0.1.0: patterns/agent.ts
 */
import type { Message, MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { asMessage, isSilent, joined } from "./door/reply.ts";
import { BudgetError, checkCount, checkFunction, LlmOutputError } from "./errors.ts";
import { type LlmMessage, type LlmParams, llmMessage } from "./llm-call.ts";
import type { Ending, Halted, Standing, Steering, TurnEnding } from "./steer.ts";
import { runPattern, step, type Usage } from "./step.ts";
import { beginningOf, type OpenTurn, type SuspendedRun } from "./suspend.ts";
import type { Tool } from "./tool.ts";
import { checkToolChoice, definitionsOf, moreRoom, prepareTools, toolCalls } from "./tool-calls.ts";
import { countRepeats, remember, rememberSummary, speak } from "./transcript.ts";
import { addUsage } from "./usage.ts";

export type { Ending, Standing, Steering, TurnEnding } from "./steer.ts";
export type { SuspendedRun } from "./suspend.ts";

/** What an agent works with, and its limits. The API's own parameters are passed on. Three have defaults of
 * the agent's own, whatever the door's are: `model` ("claude-opus-5-5"), `max_tokens`, and `cache_control`
 * ({ type: "ephemeral" }; null for a server that doesn't know it). */
export interface AgentOptions extends Omit<LlmParams, "tools" | "max_tokens"> {
  /** What the model may call. */
  readonly tools: readonly Tool[];
  /** The most calls to the model. Default 12. */
  readonly maxTurns?: number | undefined;
  /** The most output tokens of a turn. Default 16,000. A turn whose tool call was cut off is asked again
   * with twice as many, then with four times, but with 128,000 at the most. */
  readonly max_tokens?: number | undefined;
  /** How often the same calls with the same results come in a row before the run is over. Default 3,
   * at least 2; 0 for no limit. */
  readonly maxRepeats?: number | undefined;
  /** How much of a tool's output the model gets, in characters. Default 30,000. */
  readonly maxOutputChars?: number | undefined;
  /** Is asked before each turn, and after the last, how to go on. Default: as the loop does by itself. */
  readonly steer?: ((standing: Standing) => Steering | undefined) | undefined;
  /** Gets the text of every turn as it comes. */
  readonly onText?: ((text: string) => void) | undefined;
  /** Makes the calls: a door's `llmMessage`. Default: the shared door's. */
  readonly llm?: LlmMessage | undefined;
  /** Cancels everything, tools too; when those have ended, the agent rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How the run ended (`Ending` in steer.ts has each status), and all that is needed to go on from there. */
export type AgentResult = Ending & {
  /** How many calls to the model it took. */
  readonly turns: number;
  /** Token counts of all turns together. */
  readonly usage: Usage;
  /** The whole conversation, plain JSON. Pass it to `runAgent` with something more said, to go on; of a
   * suspended run pass the result as it is. */
  readonly transcript: readonly MessageParam[];
};

/**
 * Runs the loop on a task, or goes on from a transcript or from a run that was suspended.
 *
 * @throws {TypeError} The task is empty, the transcript ends in a tool call, a suspended run isn't as it
 *   was, a tool's name or schema is bad, a function is none, or a tool is forced while thinking is on.
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
  const { tools, maxTurns = 12, max_tokens = 16_000, maxRepeats = 3, steer, ...more } = options;
  const { maxOutputChars = 30_000, onText, llm = llmMessage, signal, ...given } = more;
  const { model = "claude-opus-5-5", cache_control = { type: "ephemeral" }, ...params } = given;
  const { transcript, usage, turn: first, open } = beginningOf(task);
  checkCount("maxTurns", maxTurns, first + 1);
  checkCount("max_tokens", max_tokens, 1);
  if (maxRepeats !== 0) checkCount("maxRepeats", maxRepeats, 2);
  checkCount("maxOutputChars", maxOutputChars, 100);
  checkFunction("steer", steer, true);
  checkFunction("onText", onText, true);
  checkToolChoice(params);
  const runTools = prepareTools(tools, maxOutputChars);
  const definitions = definitionsOf(tools);
  const repeatsOf = countRepeats();
  let room = max_tokens;
  let askedToGoOn = false;
  /** What a turn has said that is paused. */
  let paused: string | undefined;

  const callTools = async ({ content, results: done }: OpenTurn) => {
    const calls = toolCalls(content);
    // A run that ends in here leaves a transcript without the turn, since its calls have no results.
    const { results, budget } = await runTools(calls, signal, done);
    remember(transcript, { content });
    if (results.length < calls.length) return { status: "suspended", results } as const;
    transcript.push({ role: "user", content: results });
    if (budget) return { status: "budget", error: budget } as const;
    const isRepeating = repeatsOf(calls, results) === maxRepeats;
    return isRepeating ? ({ status: "repeating" } as const) : undefined;
  };

  const takeTurn = async (
    own: Pick<LlmParams, "tool_choice">,
  ): Promise<TurnEnding | Halted | undefined> => {
    checkToolChoice({ ...params, ...own });
    const reply = await llm(
      {
        model,
        cache_control,
        ...params,
        ...own,
        max_tokens: room,
        messages: [...transcript],
        tools: definitions,
      },
      { signal, onText },
    );
    addUsage(usage, asMessage(reply).usage);
    const text = (paused ?? "") + joined([reply]);
    // The beta API has one more reason.
    const stopReason: string | null = reply.stop_reason;
    const hasCalls = toolCalls(reply.content).length > 0;
    if (stopReason === "max_tokens" && hasCalls) {
      // The call's input was cut off and looks whole. Nothing of what it says is run or remembered.
      const more = moreRoom(room, max_tokens);
      if (more === undefined) throw unusable(`A tool call was cut off at ${room} tokens`, reply);
      room = more;
      rememberSummary(transcript, reply);
      return undefined;
    }
    room = max_tokens;
    paused = undefined;
    switch (stopReason) {
      case "tool_use":
        if (!hasCalls) throw unusable("The turn stopped for a tool and calls none", reply);
        return callTools(reply);
      case "end_turn":
      case "stop_sequence":
      case "pause_turn":
      case "compaction":
        if (hasCalls) throw unusable("The turn ended beside a tool call", reply);
        remember(transcript, reply);
        paused = stopReason === "pause_turn" || stopReason === "compaction" ? text : undefined;
        if (paused !== undefined) return undefined;
        if (askedToGoOn && isSilent(text, reply.stop_sequence))
          throw unusable("Twice the turn ended without an answer", reply);
        return { status: "answered", answer: text, stopSequence: reply.stop_sequence };
      case "max_tokens":
      case "refusal":
      case "model_context_window_exceeded":
        rememberSummary(transcript, reply);
        return { status: stopReason, text, stopDetails: reply.stop_details ?? null };
      default:
        throw unusable(`Unknown stop reason ${JSON.stringify(stopReason)}`, reply);
    }
  };

  const steered = (standing: Standing): Steering => {
    const steering = steer?.(standing) ?? {};
    const { ending } = standing;
    const isMute = ending?.status === "answered" && isSilent(ending.answer, ending.stopSequence);
    if (!isMute || steering.say || steering.stop) return steering;
    askedToGoOn = true;
    return { ...steering, say: "Please continue, and give your answer." };
  };

  const runLoop = async (): Promise<AgentResult> => {
    let ending: TurnEnding | Halted | undefined;
    for (let turn = first; ; turn += 1) {
      const run = { turns: turn, usage, transcript };
      if (ending?.status === "suspended" || ending?.status === "budget")
        return { ...ending, ...run };
      const isPaused = paused !== undefined;
      const standing = { turn, left: maxTurns - turn, ending, isPaused, transcript };
      const begun = turn === first ? open : undefined;
      const { stop, say, tool_choice } = begun ? {} : steered(standing);
      if (stop) return { status: "stopped", ...run };
      if (say) speak(transcript, say);
      else if (ending) return { ...ending, ...run };
      if (say) paused = undefined;
      if (turn === maxTurns) return { status: "max_turns", ...run };
      try {
        const own = tool_choice ? { tool_choice } : {};
        ending = await step(`turn[${turn}]`, () => (begun ? callTools(begun) : takeTurn(own)));
      } catch (error) {
        if (!(error instanceof BudgetError) || turn === 0) throw error;
        return { status: "budget", error, ...run };
      }
    }
  };
  return runPattern("agent", runLoop, signal);
}

function unusable(message: string, reply: Message): LlmOutputError {
  return new LlmOutputError(message, { text: joined([reply]), stopReason: reply.stop_reason });
}
