/**
 * A trace as the page works with it: a tree of steps, with when the run ended and what ended it.
 *
 *     TraceFile ─► steps by path ─► tree ─► critical path
 *
 * A scripted run took no time to speak of. Its steps are laid out in their order instead, a beat a
 * call, and the page says that the times mean nothing.
 */
import type { Outcome, TraceCall, TraceFile, TraceStep } from "../../../patterns/trace-file.ts";

/** What has a beginning and an end. */
export interface Span {
  readonly begin: number;
  /** `Infinity` for what goes on, in a run that does. */
  readonly end: number;
  readonly outcome: Outcome;
}

/** One request, at its place in time. */
export interface Call extends Span {
  readonly step: Step;
  readonly trace: TraceCall;
}

export interface Step extends Span {
  readonly path: string;
  /** The last part of the path: `worker[3]`. */
  readonly name: string;
  /** The name without index and number: `worker`. */
  readonly base: string;
  /** Whether the name has an index. */
  readonly isIndexed: boolean;
  /** Its place in the order of the trace. */
  readonly index: number;
  readonly depth: number;
  readonly parent: Step | undefined;
  readonly children: readonly Step[];
  readonly calls: readonly Call[];
  readonly trace: TraceStep;
  /** Whether a call is made in it, or in a step inside it. */
  readonly hasCalls: boolean;
}

export interface Run {
  readonly trace: TraceFile;
  /** Each before the steps inside it. */
  readonly steps: readonly Step[];
  readonly roots: readonly Step[];
  /** The outermost step that came last: how it ended is how the run ended. */
  readonly last: Step | undefined;
  readonly byPath: ReadonlyMap<string, Step>;
  readonly calls: readonly Call[];
  /** When it ended, or of a run that goes on, the newest moment. */
  readonly end: number;
  /** Whether it's under way, and there is more to come. */
  readonly goesOn: boolean;
  /** Whether times show the order only. */
  readonly isInBeats: boolean;
  /** Whether times and tokens are estimates. */
  readonly isEstimated: boolean;
  /** The spans that the run's end waited for: shortening any other one would not have ended it sooner. */
  readonly critical: ReadonlySet<Step>;
}

/** How long a call lasts where times mean nothing, in milliseconds; what makes no call lasts half. */
const BEAT = 1000;

/** Steps that run one after the other although they have an index. */
const LOOPS: ReadonlySet<string> = new Set(["turn", "round"]);

/** Makes a run of a trace, which may be that of a run under way. */
export function runOf(trace: TraceFile, goesOn = false): Run {
  const steps: Draft[] = [];
  const byPath = new Map<string, Draft>();
  for (const step of trace.steps) {
    const parent = parentOf(step.path, byPath);
    const draft = draftOf(step, steps.length, parent, goesOn);
    steps.push(draft);
    byPath.set(step.path, draft);
    parent?.children.push(draft);
  }
  // From the end, so that the steps inside are known.
  for (const step of steps.toReversed()) {
    step.hasCalls = step.calls.length > 0 || step.children.some(({ hasCalls }) => hasCalls);
  }
  const roots = steps.filter(({ parent }) => !parent);
  const isInBeats = trace.origin === "scripted";
  if (isInBeats) inBeats(roots, 0);
  const calls = steps.flatMap(({ calls }) => calls);
  const end = steps.reduce((latest, step) => Math.max(latest, knownEnd(step)), 0);
  const isEstimated = calls.some(({ trace }) => trace.estimated);
  const critical = criticalPath(steps);
  const last = roots.at(-1);
  return {
    trace,
    steps,
    roots,
    last,
    byPath,
    calls,
    end,
    goesOn,
    isInBeats,
    isEstimated,
    critical,
  };
}

/** Of what goes on, until when it's known to. */
function knownEnd({ end, trace }: Step): number {
  return Number.isFinite(end) ? end : trace.begin + trace.ms;
}

/** A step while it's made. */
interface Draft extends Step {
  begin: number;
  end: number;
  readonly children: Draft[];
  readonly calls: (Call & { begin: number; end: number })[];
  hasCalls: boolean;
}

function draftOf(
  trace: TraceStep,
  index: number,
  parent: Draft | undefined,
  goesOn: boolean,
): Draft {
  const { path, begin, outcome } = trace;
  const endOf = ({ begin, ms, outcome }: TraceStep | TraceCall) =>
    goesOn && outcome === "unfinished" ? Number.POSITIVE_INFINITY : begin + ms;
  // A foreign trace may name a step that isn't there.
  const name = parent ? path.slice(parent.path.length + 1) : path;
  const draft: Draft = {
    path,
    name,
    base: baseOf(name),
    isIndexed: /\[\d+\]/.test(name),
    index,
    depth: parent ? parent.depth + 1 : 0,
    begin,
    end: endOf(trace),
    outcome,
    parent,
    children: [],
    calls: [],
    trace,
    hasCalls: false,
  };
  for (const call of trace.calls) {
    const { begin, outcome } = call;
    draft.calls.push({ begin, end: endOf(call), outcome, step: draft, trace: call });
  }
  return draft;
}

/** `worker[3]` and `worker#2` are workers. */
export function baseOf(name: string): string {
  return name.replace(/(\[\d+\]|#\d+)+$/, "");
}

function parentOf(path: string, byPath: ReadonlyMap<string, Draft>): Draft | undefined {
  for (let cut = path.lastIndexOf("/"); cut > 0; cut = path.lastIndexOf("/", cut - 1)) {
    const parent = byPath.get(path.slice(0, cut));
    if (parent) return parent;
  }
  return undefined;
}

/** Whether siblings with such a name ran one after the other, whatever their times say. */
export function isLoop({ base, isIndexed }: Step): boolean {
  return isIndexed && LOOPS.has(base);
}

/** Lays the steps out in their order from `from` on; gives where they end. */
function inBeats(siblings: readonly Draft[], from: number): number {
  let at = from;
  let begin = from;
  for (const [index, step] of siblings.entries()) {
    const before = siblings[index - 1];
    const isBeside = step.isIndexed && !isLoop(step) && before?.base === step.base;
    if (!isBeside) begin = at;
    step.begin = begin;
    let end = begin;
    for (const call of step.calls) {
      call.begin = end;
      end += BEAT;
      call.end = end;
    }
    end = inBeats(step.children, end);
    step.end = end === begin ? begin + BEAT / 2 : end;
    at = Math.max(at, step.end);
  }
  return at;
}

/**
 * From the end back: what ended last, then what ended last before that began, and so on.
 * What was cancelled was waited for by nobody.
 */
function criticalPath(steps: readonly Step[]): ReadonlySet<Step> {
  const spans = steps.flatMap(workIn).sort((a, b) => b.end - a.end || b.begin - a.begin);
  const critical = new Set<Step>();
  let before = Number.POSITIVE_INFINITY;
  for (const { step, begin, end } of spans) {
    if (end > before + SAME_TIME) continue;
    critical.add(step);
    before = begin;
  }
  return critical;
}

/** A step's calls, or itself where it takes time without any, such as a tool. */
function workIn(step: Step): { step: Step; begin: number; end: number }[] {
  const { calls, children, begin, end } = step;
  const isWork = calls.length === 0 && children.length === 0 && end > begin;
  const work: readonly Span[] = isWork ? [step] : calls;
  return work
    .filter(({ outcome }) => outcome !== "cancelled")
    .map(({ begin, end }) => ({ step, begin, end }));
}

/** Clocks of a run may differ by so much, in milliseconds. */
export const SAME_TIME = 0.5;
