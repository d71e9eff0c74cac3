/**
 * What makes two model calls the same call, and what to say when they aren't.
 *
 *     POST …/v1/messages?beta=true ─► { endpoint, beta, body } ─► compared whole with the recorded one
 *
 * The canonical request is the endpoint from `/v1/` on, of its query what is known to tell calls apart,
 * the `anthropic-beta` header and the body with sorted keys. Left out are `metadata` and the fields that
 * say who serves or pays for the call and not what is asked: `service_tier`, `inference_geo`, `speed`,
 * `billing_policy`, `user_profile_id`; and `stream: false`, which is the default. No other header is read,
 * and nothing else of the URL: there are the keys.
 *
 * A request that differs is never matched to the nearest one: `difference` finds the first place
 * where they part and shows both texts around it.
 *
 * From effective-agents 0.1.0: patterns/recording/request.ts
 */
import type { MiddlewareNext } from "@anthropic-ai/sdk";
import { RecordingError } from "../errors.ts";
import { currentPath } from "../step.ts";

/** A request as the SDK's middleware gets it. */
export type ApiRequest = Parameters<MiddlewareNext>[0];

/** A request without everything that may differ between two runs of the same call. */
export interface CanonicalRequest {
  /** E.g. `/v1/messages?beta=true`; other methods than POST are named: `GET /v1/models`. */
  readonly endpoint: string;
  /** The `anthropic-beta` header, sorted. */
  readonly beta?: string;
  readonly body: unknown;
}

const ROUTING_AND_BILLING = new Set([
  "metadata",
  "service_tier",
  "inference_geo",
  "speed",
  "billing_policy",
  "user_profile_id",
]);

/** Of a URL's query: a variant of the API, a page of a list. Anything else may be a key. */
const IDENTIFYING_QUERY = new Set(["beta", "limit", "page", "before_id", "after_id"]);

/** Whether a parameter of the query is a part of the call's identity. */
export function identifies(parameter: string): boolean {
  return IDENTIFYING_QUERY.has(parameter);
}

/** The canonical form of a request. Throws a `RecordingError` where the body isn't JSON. */
export function canonicalRequest({ url, method, headers, body }: ApiRequest): CanonicalRequest {
  const { pathname, searchParams } = new URL(url);
  const query = new URLSearchParams([...searchParams].filter(([name]) => identifies(name)));
  query.sort();
  const path = pathname.slice(Math.max(0, pathname.indexOf("/v1/")));
  const endpoint = query.size > 0 ? `${path}?${query}` : path;
  const verb = (method ?? "GET").toUpperCase();
  const betas = headers.get("anthropic-beta")?.split(",") ?? [];
  const beta = betas.map((name) => name.trim()).sort();
  return {
    endpoint: verb === "POST" ? endpoint : `${verb} ${endpoint}`,
    ...(beta.length > 0 && { beta: beta.join(", ") }),
    body: canonicalBody(body),
  };
}

/** One text per canonical request: the same text, the same call. */
export function requestKey(request: CanonicalRequest): string {
  return JSON.stringify(sorted(request));
}

/** Where `present` first parts from `recorded`, and both texts around that place. */
export function difference(recorded: CanonicalRequest, present: CanonicalRequest): string {
  const found =
    firstDifference(recorded.endpoint, present.endpoint, "endpoint") ??
    firstDifference(recorded.beta, present.beta, "anthropic-beta") ??
    firstDifference(recorded.body, present.body, "");
  if (!found) return "nothing that can be told";
  const { at, was, is } = found;
  if (typeof was !== "string" || typeof is !== "string") return show(at || "body", was, is);
  let index = 0;
  while (was[index] === is[index]) index++;
  const lineStart = was.lastIndexOf("\n", index - 1) + 1;
  const line = was.slice(0, index).split("\n").length;
  return show(
    `${at || "body"}, line ${line}`,
    excerpt(was, lineStart, index),
    excerpt(is, lineStart, index),
  );
}

/** A `RecordingError` whose message is a sentence about the path: `vote/voter[0] has changed …`. */
export function pathError(what: string): RecordingError {
  const error = new RecordingError(what);
  error.message = `${currentPath() || "A call outside of any step"} ${what}`;
  Error.captureStackTrace(error, pathError);
  // The SDK retries an error whose String() looks like a timeout, and a prompt quoted in the message
  // may well do ("the request timed out"). A word joiner in the middle keeps it from matching.
  const string = `${error.name}: ${error.message}`.replace(/(time)(d? ?out)/gi, "$1\u2060$2");
  Object.defineProperty(error, "toString", { value: () => string });
  return error;
}

/** The error of a request that a recording of these paths has nothing, or nothing more, for. */
export function missError(times: number, paths: readonly string[]): RecordingError {
  if (times > 0) {
    const recorded = times === 1 ? "once" : `${times} times`;
    return pathError(`was recorded ${recorded}, and is asked for again`);
  }
  const shown = paths.slice(0, 10).join(", ");
  const more = paths.length > 10 ? ` and ${paths.length - 10} more` : "";
  return pathError(`is not in the recording, which has ${shown ? shown + more : "no calls"}`);
}

function canonicalBody(body: ApiRequest["body"]): unknown {
  if (body === undefined || body === null) return null;
  try {
    if (typeof body !== "string") throw new TypeError("not a string");
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
      return sorted(parsed);
    const kept = Object.entries(parsed).filter(
      ([key, value]) => !ROUTING_AND_BILLING.has(key) && !(key === "stream" && value === false),
    );
    return sorted(Object.fromEntries(kept));
  } catch {
    throw pathError("can't be recorded or replayed: its body is not JSON");
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

interface Difference {
  readonly at: string;
  readonly was: unknown;
  readonly is: unknown;
}

function firstDifference(was: unknown, is: unknown, at: string): Difference | undefined {
  if (Array.isArray(was) && Array.isArray(is)) {
    for (let i = 0; i < Math.max(was.length, is.length); i++) {
      const found = firstDifference(was[i], is[i], `${at}[${i}]`);
      if (found) return found;
    }
    return undefined;
  }
  if (isRecord(was) && isRecord(is)) {
    for (const key of [...new Set([...Object.keys(was), ...Object.keys(is)])].sort()) {
      const found = firstDifference(was[key], is[key], at ? `${at}.${key}` : key);
      if (found) return found;
    }
    return undefined;
  }
  return was === is ? undefined : { at, was, is };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function show(at: string, was: unknown, is: unknown): string {
  return `${at}:\n  recorded: ${brief(was)}\n  now:      ${brief(is)}`;
}

function brief(value: unknown): string {
  if (value === undefined) return "(absent)";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

/** The text around `index`, from the start of its line at the earliest, on one line. */
function excerpt(text: string, lineStart: number, index: number): string {
  const from = Math.max(lineStart, index - 40);
  const to = Math.min(text.length, index + 60);
  const cut = text.slice(from, to).replaceAll("\r", "\\r").replaceAll("\n", "\\n");
  return `${from > lineStart ? "…" : ""}${cut}${to < text.length ? "…" : ""}`;
}
