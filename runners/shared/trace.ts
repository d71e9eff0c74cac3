/**
 * What a run did, as a tree that grows with the events of `observe`.
 *
 *     route ─┬─ classify   answered   ~1.2 s   312 in, 41 out   $0.0010   bug
 *            └─ bug        in flight
 *
 * Of a replayed call it keeps the recorded times, not those of the replay.
 *
 * From effective-agents 0.1.0: runners/shared/trace.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { costOf } from "../../patterns/cost.ts";
import type { EndEvent, RunEvent, Usage } from "../../patterns/step.ts";
import { toolCallsIn } from "./turn-lines.ts";

export type State = "in flight" | "ok" | "failed" | "cancelled";

/** One request to the model. */
export interface Call {
  readonly path: string;
  readonly state: State;
  /** When it began, in milliseconds since the run's start, and how long it took. */
  readonly begin: number;
  readonly ms: number;
  /** Whether the times are estimated from the output tokens. */
  readonly estimated: boolean;
  readonly model?: string;
  readonly usage?: Usage;
  /** In US dollars; missing where it isn't known. */
  readonly usd?: number;
  /** Whether the request went out, or was cancelled while it waited. */
  readonly sent?: boolean;
}

/** A step: its own calls, the steps inside it, and the value it ended with. */
export interface Node {
  readonly path: string;
  readonly depth: number;
  readonly state: State;
  readonly calls: readonly Call[];
  /** Of a tool's step: the model's call, such as `search({"pattern": "x"})`. */
  readonly toolCall?: string;
  readonly value?: unknown;
  readonly error?: unknown;
}

export interface Trace {
  readonly onEvent: (event: RunEvent) => void;
  /** Every step in the order of a tree, each before the steps inside it. */
  readonly nodes: () => readonly Node[];
  readonly calls: () => readonly Call[];
}

/** Makes an empty trace. */
export function createTrace(): Trace {
  const nodes = new Map<string, Node>();
  const toolCalls = new Map<string, string>();
  const startedAt = Date.now();
  /** The latest end of a replayed call. Live calls come after those, when a recording is gone on with. */
  let replayed = 0;

  const onEvent = (event: RunEvent) => {
    if (event.type === "text") return;
    const known = nodes.get(event.path);
    const toolCall = toolCalls.get(event.path);
    const node = known ?? {
      path: event.path,
      depth: event.path.split("/").length - 1,
      state: "in flight",
      calls: [],
      ...(toolCall !== undefined && { toolCall }),
    };
    if (event.kind === "step") {
      const ended = event.type === "end" && {
        state: stateOf(event),
        value: event.value,
        error: event.error,
      };
      nodes.set(event.path, { ...node, ...ended });
      return;
    }
    if (event.type === "end" && event.value) {
      // The value of a call that was answered is its message.
      for (const [index, call] of toolCallsIn(event.value as Message).entries()) {
        toolCalls.set(`${event.path}/tool[${index}]`, call);
      }
    }
    const begin = event.at - startedAt;
    const earlier = node.calls.filter(({ state }) => state !== "in flight");
    const running = node.calls.find(({ state }) => state === "in flight");
    const call: Call =
      event.type === "start"
        ? { path: event.path, state: "in flight", begin, ms: 0, estimated: false }
        : ended(event, replayed + (running?.begin ?? begin - event.ms));
    if (event.type === "end" && recordedTimes(event)) {
      replayed = Math.max(replayed, call.begin + call.ms);
    }
    nodes.set(event.path, { ...node, calls: [...earlier, call] });
  };

  return {
    onEvent,
    nodes: () => inTreeOrder([...nodes.values()]),
    calls: () => [...nodes.values()].flatMap(({ calls }) => calls),
  };
}

function ended(event: EndEvent, startedAt: number): Call {
  const { path, model, usage } = event;
  const usd = model && usage ? costOf(model, usage) : undefined;
  return {
    path,
    state: stateOf(event),
    ...(recordedTimes(event) ?? { begin: startedAt, ms: event.ms, estimated: false }),
    ...(model && { model }),
    ...(usage && { usage }),
    ...(usd !== undefined && { usd }),
    sent: event.notes?.sent === true,
  };
}

function recordedTimes({ notes }: EndEvent): Pick<Call, "begin" | "ms" | "estimated"> | undefined {
  // What recording.ts notes of a call that it replays.
  const recorded = notes?.recorded as Pick<Call, "begin" | "ms" | "estimated"> | undefined;
  return recorded && { begin: recorded.begin, ms: recorded.ms, estimated: recorded.estimated };
}

function stateOf({ outcome }: EndEvent): State {
  return outcome;
}

/** Sorts the steps so that each comes right after the step that it's in, siblings as they started. */
function inTreeOrder(nodes: readonly Node[]): Node[] {
  const inside = (parent: string | undefined): Node[] =>
    nodes
      .filter(({ path }) => parentOf(path) === parent)
      .flatMap((node) => [node, ...inside(node.path)]);
  return inside(undefined);
}

function parentOf(path: string): string | undefined {
  const cut = path.lastIndexOf("/");
  return cut < 0 ? undefined : path.slice(0, cut);
}

/** The sums over all calls. */
export interface Totals {
  readonly answered: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** In US dollars, of the calls whose cost is known. */
  readonly usd: number;
  /** How many answered calls have no known cost. */
  readonly unpriced: number;
  /** From the first call's start to the last call's end, in milliseconds. */
  readonly ms: number;
  /** How much longer the same calls would have taken one after the other, in milliseconds. Cancelled
   * ones don't count: one after the other, they would not have been made. */
  readonly savedMs: number;
  readonly estimated: boolean;
}

/** Adds up the calls. */
export function totalsOf(calls: readonly Call[]): Totals {
  const ended = calls.filter(({ state }) => state !== "in flight");
  const answered = ended.filter(({ usage }) => usage !== undefined);
  const sum = (of: (call: Call) => number) => ended.reduce((total, call) => total + of(call), 0);
  const begin = Math.min(...ended.map(({ begin }) => begin));
  const end = Math.max(...ended.map(({ begin, ms }) => begin + ms));
  const ms = ended.length > 0 ? end - begin : 0;
  return {
    answered: answered.length,
    failed: ended.filter(({ state }) => state === "failed").length,
    cancelled: ended.filter(({ state }) => state === "cancelled").length,
    tokensIn: sum(({ usage }) => tokensIn(usage)),
    tokensOut: sum(({ usage }) => usage?.output_tokens ?? 0),
    usd: sum(({ usd }) => usd ?? 0),
    unpriced: answered.filter(({ usd }) => usd === undefined).length,
    ms,
    savedMs: Math.max(0, sum((call) => (call.state === "cancelled" ? 0 : call.ms)) - ms),
    estimated: ended.some(({ estimated }) => estimated),
  };
}

/** All tokens that went in, from the cache or not. */
export function tokensIn(usage: Usage | undefined): number {
  if (!usage) return 0;
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage;
  return input_tokens + (cache_creation_input_tokens ?? 0) + (cache_read_input_tokens ?? 0);
}
