/**
 * The spans in an OTLP export.
 */
import type { TraceStep } from "../../patterns/trace-file.ts";
import { FormatError, isRecord } from "./trace-shape.ts";

/** A span, as far as it's shown. */
export interface Span {
  readonly traceId: string;
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  readonly isOurs: boolean;
  /** In nanoseconds since the Unix epoch. */
  readonly start: bigint;
  /** Missing where it hasn't ended. */
  readonly end: bigint | undefined;
  readonly attributes: ReadonlyMap<string, unknown>;
  readonly error: TraceStep["error"] | undefined;
}

/** Reads the spans of an export. Throws a `FormatError` for one that can't be placed. */
export function spansIn(value: unknown): Span[] {
  return partsOf(value, "resourceSpans").flatMap((resource) =>
    [
      ...partsOf(resource, "scopeSpans"),
      ...partsOf(resource, "instrumentationLibrarySpans"),
    ].flatMap((group) => {
      const { scope } = group;
      const { name } = isRecord(scope) ? scope : {};
      return partsOf(group, "spans").map((span) => spanOf(span, name === "effective-agents"));
    }),
  );
}

function spanOf(span: Readonly<Record<string, unknown>>, isOurs: boolean): Span {
  const { name, traceId = "", spanId, parentSpanId, startTimeUnixNano, endTimeUnixNano } = span;
  const start = nanosIn(startTimeUnixNano);
  if (typeof name !== "string" || typeof spanId !== "string" || start === undefined) {
    const which = typeof name === "string" ? `"${name}"` : "without a name";
    throw new FormatError(`The export's span ${which} has no name, spanId or startTimeUnixNano`);
  }
  return {
    traceId: String(traceId),
    id: `${traceId}/${spanId}`,
    parent: `${traceId}/${parentSpanId ?? ""}`,
    name,
    isOurs: isOurs && name !== "",
    start,
    end: nanosIn(endTimeUnixNano),
    attributes: attributesIn(span),
    error: errorIn(span),
  };
}

/** As a text or a number; 0 is none. */
function nanosIn(value: unknown): bigint | undefined {
  if (typeof value === "number" && Number.isSafeInteger(Math.trunc(value / 1e6)) && value > 0)
    return BigInt(Math.trunc(value));
  if (typeof value !== "string" || !/^\d{1,20}$/.test(value)) return undefined;
  return BigInt(value) || undefined;
}

function errorIn(span: Readonly<Record<string, unknown>>): TraceStep["error"] | undefined {
  const { status } = span;
  const { code, message } = isRecord(status) ? status : {};
  if (code !== 2 && code !== "STATUS_CODE_ERROR") return undefined;
  const exception = partsOf(span, "events").find(({ name }) => name === "exception");
  const said = exception ? attributesIn(exception) : new Map();
  return {
    name: String(said.get("exception.type") ?? attributesIn(span).get("error.type") ?? "Error"),
    message: String(said.get("exception.message") ?? message ?? ""),
  };
}

function attributesIn(part: Readonly<Record<string, unknown>>): ReadonlyMap<string, unknown> {
  return new Map(
    partsOf(part, "attributes").map(({ key, value }) => [String(key), held(value)] as const),
  );
}

/** `{"stringValue": "x"}`, and so on: a 64-bit integer comes as a text. */
function held(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  const { intValue, arrayValue, stringValue, doubleValue, boolValue } = value;
  if (intValue !== undefined) return Number(intValue);
  if (isRecord(arrayValue)) return partsOf(arrayValue, "values").map(held);
  return stringValue ?? doubleValue ?? boolValue;
}

/** The objects in a list of that name, if there is one. */
function partsOf(value: unknown, name: string): readonly Readonly<Record<string, unknown>>[] {
  const list = isRecord(value) ? value[name] : undefined;
  return Array.isArray(list) ? list.filter(isRecord) : [];
}

/** When it was, in milliseconds since `origin`. */
export function timesOf(
  { start, end = start }: Span,
  origin: bigint,
): Pick<TraceStep, "begin" | "ms"> {
  const ms = Number(end - start) / 1e6;
  return { begin: Number(start - origin) / 1e6, ms: Math.max(0, ms) };
}

/** How it ended. */
export function endingOf({ end, error, attributes }: Span): Pick<TraceStep, "outcome" | "error"> {
  if (end === undefined) return { outcome: "unfinished" };
  if (!error) return { outcome: "ok" };
  const isAbort = /abort|cancel/i.test(String(attributes.get("error.type") ?? error.name));
  return { outcome: isAbort ? "cancelled" : "failed", error };
}
