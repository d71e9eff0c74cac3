/**
 * OpenTelemetry's spans as a trace: the JSON of OTLP, as exporters and the collector write it.
 *
 *     {"resourceSpans":[{"scopeSpans":[{"scope":{…},"spans":[{…}, …]}]}]}
 *
 * A span of ours is a step, and its name is the step's path. A span of a model call (the SDK's
 * `anthropic.messages.create`, or whoever else follows the conventions for `gen_ai`) is a call of the
 * step around it. Any other span is a step too, named by its name. Prompts and replies are there if the
 * SDK was told to write them, by its `contentMode: "content"`.
 */
import { groupedBy } from "../../patterns/trace-file/grouped.ts";
import type { TraceFile, TraceStep } from "../../patterns/trace-file.ts";
import { callOf, isCall } from "./otlp-call.ts";
import { endingOf, type Span, spansIn, timesOf } from "./otlp-spans.ts";
import { FormatError, isRecord } from "./trace-shape.ts";

/** Whether a value is an export. */
export function isExport(value: unknown): boolean {
  const { resourceSpans } = isRecord(value) ? value : {};
  return Array.isArray(resourceSpans);
}

/**
 * The traces whose spans are in one or more exports, in the order of their beginnings.
 *
 * @throws {FormatError} There is no span in them, one has no times, or a trace has none that is outermost.
 */
export function readExports(exports: readonly unknown[]): TraceFile[] {
  const spans = exports
    .flatMap(spansIn)
    .sort((a, b) => (a.start < b.start ? -1 : Number(a.start > b.start)));
  if (spans.length === 0) throw new FormatError("The export holds no spans");
  return [...groupedBy(spans, ({ traceId }) => traceId).values()].map(traceOf);
}

/** Makes a trace of its spans, the earliest first. */
function traceOf(spans: readonly Span[]): TraceFile {
  const origin = spans[0]?.start ?? 0n;
  const ids = new Set(spans.map(({ id }) => id));
  // What is under a span that wasn't exported is outermost.
  const children = groupedBy(spans, ({ id, parent }) =>
    ids.has(parent) && parent !== id ? parent : "",
  );
  const steps = stepsUnder(children, origin);
  if (steps.length === 0) throw new FormatError("The export holds no span that is outermost");
  return {
    format: "effective-agents/trace",
    version: 1,
    name: steps[0]?.path ?? "",
    origin: "live",
    startedAt: new Date(Number(origin / 1_000_000n)).toISOString(),
    steps,
  };
}

/** Deeper than this, steps are shown beside each other. */
const MAX_DEPTH = 50;

function stepsUnder(children: ReadonlyMap<string, readonly Span[]>, origin: bigint): TraceStep[] {
  const steps: TraceStep[] = [];
  const used = new Map<string, number>();
  const unused = (path: string): string => {
    const count = (used.get(path) ?? 0) + 1;
    used.set(path, count);
    return count === 1 ? path : unused(`${path}#${count}`);
  };
  // Those to come, the next one last: a chain of spans may be deeper than the language's own stack.
  const open: Place[] = [];
  const push = (spans: readonly Span[], around: string, depth: number) => {
    for (const span of spans.toReversed()) open.push({ span, around, depth });
  };
  push(children.get("") ?? [], "", 0);
  for (let next = open.pop(); next; next = open.pop()) {
    const { span, around, depth } = next;
    const path = unused(around === "" ? outermostName(span) : `${around}/${nameIn(span)}`);
    const inside = children.get(span.id) ?? [];
    // A model call that is in no step is one of its own.
    const calls = (isCall(span) ? [span] : inside.filter(isCall)).map((one) => callOf(one, origin));
    // A span of ours doesn't tell a step that was cancelled from one that ended well.
    const isCancelled = calls.at(-1)?.outcome === "cancelled" && span.error === undefined;
    const ending = isCancelled ? { outcome: "cancelled" as const } : endingOf(span);
    steps.push({ path, ...timesOf(span, origin), ...ending, calls });
    // What a client does inside of a call, such as HTTP, isn't told.
    if (isCall(span)) continue;
    const others = inside.filter((one) => !isCall(one));
    push(others, depth < MAX_DEPTH ? path : around, depth + 1);
  }
  return steps;
}

/** A span that is to become a step: of which step it's inside, and how deep. */
interface Place {
  readonly span: Span;
  readonly around: string;
  readonly depth: number;
}

/** Of ours the whole path, in case the step around it wasn't exported. */
function outermostName(span: Span): string {
  return span.isOurs ? span.name : nameIn(span);
}

/** A name that can stand in a path. */
function nameIn({ name, isOurs }: Span): string {
  if (isOurs) return name.slice(name.lastIndexOf("/") + 1);
  return name.replace(/[/#\s]+/g, " ").trim() || "span";
}
