/**
 * What may stand on a tape: a header, then lines that can be played, or a line that was torn.
 *
 *     line ─┬─ a call ──────────────► played
 *           ├─ the start of a call ─► cut off, where it's the last one and without its newline
 *           └─ anything else ───────► RecordingError, with the number of the line
 *
 * A tape may have been edited, merged or cut by hand, and any file may be named by mistake.
 *
 * From effective-agents 0.1.0: patterns/recording/shape.ts
 */
import { RecordingError } from "../errors.ts";
import type { TapeHeader, TapeLine } from "./tape.ts";

/** Throws a `RecordingError` unless this is a header of this version. */
export function checkHeader(file: string, value: unknown): asserts value is TapeHeader {
  const fail = (what: string) => {
    throw new RecordingError(`${file}, line 1: ${what}`);
  };
  if (!isRecord(value) || !("version" in value)) return fail("this is not a recording's header");
  const { version, origin, model, concurrency } = value;
  if (version !== 1) {
    return fail(`the recording's version must be 1, got ${JSON.stringify(version)}`);
  }
  if (origin !== "api" && origin !== "transcribed") {
    return fail('its origin must be "api" or "transcribed"');
  }
  if (!isOptionalText(model)) return fail("its model must be a string");
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && Number(concurrency) > 0)) {
    return fail("its concurrency must be a whole number of at least 1");
  }
}

/** Whether this is a call that can be played. */
export function isLine(value: unknown): value is TapeLine {
  if (!isRecord(value)) return false;
  const { path, begin, ms, outcome, request, reply, error } = value;
  if (typeof path !== "string" || !isTime(begin) || !isTime(ms)) return false;
  if (request !== undefined && !isRequest(request)) return false;
  if (reply !== undefined && !isReply(reply)) return false;
  if (error !== undefined && !isError(error)) return false;
  if (outcome === "replied") return request !== undefined && reply !== undefined;
  return outcome === "cancelled" || (outcome === "broken" && request !== undefined);
}

/** Whether this is the start of a line, left by a process that was killed while it wrote. */
export function isTorn(text: string, kind: "header" | "line"): boolean {
  const starts = kind === "header" ? ['{"version":1,"origin":"'] : ['{"path":"', '{"resumed":"'];
  return starts.some((start) => start.startsWith(text) || text.startsWith(start));
}

/** Whether this is an object, and neither `null` nor an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isRequest(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { endpoint, beta } = value;
  return typeof endpoint === "string" && isOptionalText(beta) && "body" in value;
}

function isReply(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { status, headers, body } = value;
  if (typeof status !== "number" || !isRecord(headers)) return false;
  const pairs = Object.entries(headers);
  if (!pairs.every((pair): pair is [string, string] => typeof pair[1] === "string")) return false;
  try {
    new Response(null, { status, headers: pairs });
  } catch {
    return false;
  }
  return isBody(body);
}

function isBody(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { events, text, base64 } = value;
  if (Array.isArray(events)) return events.every((event) => typeof event === "string");
  return "json" in value || typeof text === "string" || typeof base64 === "string";
}

function isError(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { name, message } = value;
  return typeof name === "string" && typeof message === "string";
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isTime(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
