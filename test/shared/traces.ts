/**
 * Traces for the page's tests, written as what happened when.
 */

import type { TraceCall, TraceFile, TraceStep } from "../../patterns/trace-file.ts";
import { readTraces } from "../../runners/gallery/read-trace.ts";

/** A step, and the call that it makes. `false` for one that makes none. */
export interface Told extends Partial<Omit<TraceStep, "path" | "begin" | "ms" | "calls">> {
  readonly at: readonly [begin: number, end: number];
  readonly call?: false | Partial<TraceCall>;
}

/** Makes a trace of steps in order. What is the parent of another one makes no call unless told to. */
export function traceOf(
  steps: Readonly<Record<string, Told>>,
  facts: Partial<TraceFile> = {},
): TraceFile {
  const paths = Object.keys(steps);
  return {
    format: "effective-agents/trace",
    version: 1,
    name: paths[0]?.split("/")[0] ?? "run",
    origin: "live",
    startedAt: "2026-12-01T10:00:00.000Z",
    steps: Object.entries(steps).map(([path, { at, call, ...step }]): TraceStep => {
      const isParent = paths.some((other) => other.startsWith(`${path}/`));
      const [begin, ms] = [at[0], at[1] - at[0]];
      const outcome = step.outcome ?? "ok";
      const isCalling = call !== false && (call !== undefined || !isParent);
      const made = { ...callAt(begin, ms, outcome), ...(call || {}) };
      return { path, begin, ms, ...step, outcome, calls: isCalling ? [made] : [] };
    }),
    ...facts,
  };
}

/** A call with a prompt and a reply. */
export function callAt(begin: number, ms: number, outcome: TraceCall["outcome"] = "ok"): TraceCall {
  const asked = {
    model: "claude-sonnet-5-5",
    max_tokens: 16_000,
    messages: [{ role: "user", content: "Is it?" }],
  };
  const call = { begin, ms, outcome, estimated: false, sent: true, request: asked };
  if (outcome !== "ok") return call;
  const usage = { input_tokens: 100, output_tokens: 20 };
  return {
    ...call,
    reply: {
      role: "assistant",
      content: [{ type: "text", text: "It is." }],
      stop_reason: "end_turn",
      usage,
    },
    model: "claude-sonnet-5-5",
    usage,
    usd: 0.0004,
  };
}

/** Two calls at once, of which the slower one decides, a third that is cancelled, and one after them. */
export const FAN_OUT = traceOf({
  plan: { at: [0, 1000], value: { status: "completed" } },
  "plan/worker[0]": { at: [0, 400], value: "one" },
  "plan/worker[1]": { at: [0, 600], value: "two" },
  "plan/worker[2]": { at: [0, 600], outcome: "cancelled" },
  "plan/combine": { at: [600, 1000], value: "all" },
});

/** As many calls as a page must bear, in waves of eight, nested. */
export function longTrace(calls: number): TraceFile {
  const steps: Record<string, Told> = { run: { at: [0, (calls / 8) * 100] } };
  for (let index = 0; index < calls; index += 1) {
    const begin = Math.floor(index / 8) * 100;
    const outcome = index % 50 === 49 ? "failed" : "ok";
    steps[`run/ticket[${index}]`] = { at: [begin, begin + 60 + (index % 8) * 5], outcome };
  }
  return traceOf(steps, { title: `${calls} tickets` });
}

/** The trace in a file that holds one. */
export function onlyTrace(text: string): TraceFile {
  const [trace, ...others] = readTraces(text);
  if (!trace || others.length > 0) throw new Error(`The file holds ${others.length + 1} traces`);
  return trace;
}

/** As many steps in waves of eight, of which no two have the same name. */
export function variedTrace(count: number): TraceFile {
  const steps: Record<string, Told> = { run: { at: [0, (count / 8) * 100] } };
  for (let index = 0; index < count; index += 1) {
    const begin = Math.floor(index / 8) * 100;
    steps[`run/topic-${index}`] = { at: [begin, begin + 60 + (index % 8) * 5] };
  }
  return traceOf(steps, { title: `${count} topics` });
}
