/**
 * A run as a file: its steps, its calls with prompts and replies, times, tokens and cost.
 *
 *     const trace = collectTrace();
 *     const result = await observe(trace.onEvent, () => route(ticket, { routes }));
 *     await writeFile("run.json", JSON.stringify(trace.file({ origin: "live", result })));
 *
 * The format is version 1. Times are in milliseconds since the run's start, costs in US dollars; what
 * is absent isn't known. A field may be added within a version, so readers skip what they don't know.
 * The version goes up when a field changes its meaning or goes away.
 *
 * The file holds what was asked and answered, with whatever secrets stand in that: pass it on as you
 * would pass on the prompts. It holds no headers and no keys.
 *
 * Of a replayed run it has the recorded times, not those of the replay.
 *
 * Copy along: cost.ts, step.ts, usage.ts, trace-file/
 * From effective-agents 0.1.0: patterns/trace-file.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { costOf } from "./cost.ts";
import type { EndEvent, RunEvent, StartEvent, Usage } from "./step.ts";
import { createClock, notesOf, type Span, type Timing } from "./trace-file/clock.ts";
import { createHistory } from "./trace-file/history.ts";
import { createNames } from "./trace-file/names.ts";
import { plain } from "./trace-file/plain.ts";
import { toolCallsIn } from "./trace-file/tool-calls.ts";
import { inTreeOrder } from "./trace-file/tree.ts";

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

/** What is known of a run beside its events. */
export interface RunFacts {
  readonly origin: TraceFile["origin"];
  readonly title?: string | undefined;
  /** What the run gave. */
  readonly result?: unknown;
  /** In ISO 8601. Default: when the first event came. */
  readonly startedAt?: string | undefined;
}

/** A run as far as it has come. */
export interface Trace {
  /** For `observe`. */
  readonly onEvent: (event: RunEvent) => void;
  /** All steps so far, as in the file, but that values, requests, replies and errors are the run's own. */
  readonly steps: () => readonly TraceStep[];
  /** The time by the run's clock, for what isn't finished. */
  readonly now: () => number;
  /** What the file is to hold. It may be written before the run has ended, and after it has failed. */
  readonly file: (facts: RunFacts) => TraceFile;
}

/**
 * Makes an empty trace, which grows with the events of `observe`.
 *
 * Of two runs of one name, one after the other, the second gets a number, as `route#2`. Runs that are
 * under way together are told apart by steps of their own: ``step(`ticket[${i}]`, …)``.
 *
 * @example
 * const trace = collectTrace();
 * await observe(trace.onEvent, () => vote(question));
 * trace.file({ origin: "live" }).steps[1]?.path; // "vote/voter[0]"
 */
export function collectTrace(): Trace {
  const clock = createClock();
  const cutHistory = createHistory();
  const noted = new Map<string, NotedStep>();
  /** Steps of the caller's own, in which it began to observe: only their calls are seen. */
  const outer = new Set<string>();
  const toolCalls = new Map<string, string>();
  const pathOf = createNames(noted);

  const newStep = (path: string, { kind, at }: StartEvent | EndEvent): NotedStep => {
    if (kind === "call") outer.add(path);
    const toolCall = toolCalls.get(path);
    const timing = clock.start(at);
    return { path, timing, outcome: "unfinished", ...(toolCall && { toolCall }), calls: [] };
  };

  const startCall = (step: NotedStep, { input, at }: StartEvent): NotedStep => {
    // Of a step's first call alone, so that a path says which one is meant.
    const cut = step.calls.length === 0 ? cutHistory(step.path, input) : {};
    const state = { outcome: "unfinished", estimated: false, sent: false } as const;
    const call = { timing: clock.start(at), ...state, request: input, ...cut };
    return { ...step, calls: [...step.calls, call] };
  };

  const endCall = (step: NotedStep, event: EndEvent): NotedStep => {
    const at = step.calls.findLastIndex(({ outcome }) => outcome === "unfinished");
    const call = step.calls[at];
    if (!call) return step;
    // The value of a call that was answered is its message.
    const reply = event.value as Message | undefined;
    for (const [index, told] of (reply ? toolCallsIn(reply) : []).entries()) {
      toolCalls.set(`${step.path}/tool[${index}]`, told);
    }
    const ended = { ...call, ...endingOf(event), ...answerOf(event), ...sendingOf(event) };
    const timing = clock.end(call.timing, event);
    const calls = step.calls.with(at, { ...ended, timing });
    return outer.has(step.path)
      ? { ...step, outcome: event.outcome, timing: clock.end(step.timing, event), calls }
      : { ...step, calls };
  };

  const endStep = (step: NotedStep, event: EndEvent): NotedStep => {
    const value = event.value !== undefined && { value: event.value };
    return { ...step, timing: clock.end(step.timing, event), ...endingOf(event), ...value };
  };

  const onEvent = (event: RunEvent) => {
    if (event.type === "text") return;
    const path = pathOf(event);
    const step = noted.get(path) ?? newStep(path, event);
    const isCall = event.kind === "call";
    if (event.type === "start") noted.set(path, isCall ? startCall(step, event) : step);
    else noted.set(path, isCall ? endCall(step, event) : endStep(step, event));
  };

  const steps = () => {
    const timed = [...noted.values()].map(({ timing, calls, ...step }) => ({
      ...step,
      ...clock.spanOfStep(timing),
      calls: calls.map(({ timing, ...call }) => ({ ...call, ...clock.spanOfCall(timing) })),
    }));
    return inTreeOrder(timed, clock.isReplay());
  };

  return {
    onEvent,
    steps,
    now: () => clock.timeAt(Date.now()),
    file: ({ title, origin, startedAt, result }) => {
      const inOrder = steps();
      const file = {
        format: "effective-agents/trace",
        version: 1,
        name: inOrder[0]?.path ?? "",
        title,
        origin,
        startedAt: startedAt ?? new Date(clock.startedAt()).toISOString(),
        steps: inOrder,
        result,
      };
      // A copy of a trace is one, but for what JSON can't hold.
      return plain(file) as TraceFile;
    },
  };
}

type Untimed<T> = Omit<T, keyof Span | "calls"> & { readonly timing: Timing };

/** A step as its events tell of it, before it is known when all else happened. */
interface NotedStep extends Untimed<TraceStep> {
  readonly calls: readonly Untimed<TraceCall>[];
}

function endingOf({ outcome, error }: EndEvent): Pick<TraceStep, "outcome" | "error"> {
  if (outcome === "ok") return { outcome };
  // An error is a name and a message, and more that doesn't go into the file.
  if (error instanceof Error) return { outcome, error };
  const message = typeof error === "string" ? error : String(JSON.stringify(plain(error)));
  return { outcome, error: { name: "Error", message } };
}

function answerOf({ value, model, usage }: EndEvent): Partial<TraceCall> {
  const usd = model && usage ? costOf(model, usage) : undefined;
  return {
    ...(value !== undefined && { reply: value }),
    ...(model && { model }),
    ...(usage && { usage }),
    ...(usd !== undefined && { usd }),
  };
}

function sendingOf(event: EndEvent): Pick<TraceCall, "sent" | "estimated"> {
  const { recorded, sent = false } = notesOf(event);
  // In a replay nothing is sent; what was answered or failed had been.
  const wasSent = recorded !== undefined && event.outcome !== "cancelled";
  return { sent: sent || wasSent, estimated: recorded?.estimated ?? false };
}
