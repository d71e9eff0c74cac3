/**
 * A reply on its way to the tape and back.
 *
 *     Response ─► { status, headers, body: { json } | { events } | { text } | { base64 } } ─► Response
 *
 * JSON is kept as JSON, so that a tape can be read and compared; a stream as the texts of its events,
 * which put together are the stream as it came; anything else as text, or as base64 where the bytes
 * aren't text (a body cut inside a character). Of the headers only four are kept, by an allow-list:
 * the rest names the account, the request, or an encoding that is undone by then.
 *
 * A reply that broke off replays as one: the same events, then the same kind of error.
 *
 * From effective-agents 0.1.0: patterns/recording/reply.ts
 */
import { APIConnectionError, APIConnectionTimeoutError } from "@anthropic-ai/sdk";
import { inWords } from "../errors.ts";
import { MAX_TIMER_MS } from "./order.ts";
import { isRecord } from "./shape.ts";

/** What came back over HTTP. */
export interface RecordedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: RecordedBody;
}

/** A reply's body. */
export type RecordedBody =
  | { readonly json: unknown }
  | { readonly events: readonly string[] }
  | { readonly text: string }
  | { readonly base64: string };

/** How a connection failed. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
}

/** How a reply is given out. */
export interface Playing {
  readonly signal: AbortSignal | undefined;
  /** How much of the recorded time passes; a recorded `retry-after` is scaled by it. */
  readonly pace: number;
  /** Passes a share of the time that the body takes, from 0 to 1, before a piece is given out. */
  readonly pass: (share: number) => Promise<void>;
  /** The last piece was taken, or the reader has gone. */
  readonly onTaken: () => void;
  /** What comes after the pieces: the body ends, fails, or stays open for as long as this takes. */
  readonly ending: () => Promise<void>;
}

const KEPT_HEADERS = ["content-type", "retry-after", "retry-after-ms", "x-should-retry"];

/** The statuses with which a `Response` can't have a body. */
const BODILESS = [204, 205, 304];

/** What is kept of a reply. */
export function recordedReply(response: Response, bytes: Buffer): RecordedReply {
  const headers: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = response.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const type = headers["content-type"] ?? "";
  return { status: response.status, headers, body: recordedBody(bytes, type) };
}

/** Whether it is a success that came whole: neither an error, nor a stream or a JSON cut off. */
export function isWhole({ status, headers, body }: RecordedReply): boolean {
  if (status < 200 || status > 299) return false;
  if ("json" in body) return !isError(body.json);
  if ("events" in body) return body.events.some(isLast) && !body.events.some(isErrorEvent);
  return !/json|html/.test(headers["content-type"] ?? "");
}

/** Whether it is a whole message, as far as it isn't cut off: any page can come with status 200. */
export function holdsMessage(body: RecordedBody): boolean {
  if ("events" in body) return body.events.some((event) => /^event: ?message_start/m.test(event));
  if (!("json" in body) || !isRecord(body.json)) return false;
  const { type, content, usage } = body.json;
  return type === "message" && Array.isArray(content) && isRecord(usage);
}

/** Whether this text has a stream's last event in it. */
export function isLast(text: string): boolean {
  return /^event: ?message_stop/m.test(text);
}

/** The reply as a response again, once the first share of its time has passed. */
export async function playedResponse(reply: RecordedReply, playing: Playing): Promise<Response> {
  const headers = new Headers(reply.headers);
  if (reply.status >= 400) {
    // The SDK prefers this header, and ignores one that is not above 0: its own wait would be real.
    headers.set("retry-after-ms", String(retryAfterMs(reply, playing.pace)));
  }
  const pieces = BODILESS.includes(reply.status) ? [] : piecesOf(reply.body);
  await playing.pass(1 / Math.max(1, pieces.length));
  if (playing.signal?.aborted || pieces.length === 0) playing.onTaken();
  playing.signal?.throwIfAborted();
  const body = pieces.length > 0 ? playedBody(pieces, playing) : null;
  return new Response(body, { status: reply.status, headers });
}

/** How long the SDK is told to wait before it tries again, in milliseconds. */
export function retryAfterMs({ headers }: RecordedReply, pace: number): number {
  const recorded = Number(headers["retry-after-ms"] ?? Number(headers["retry-after"]) * 1000);
  const wait = (recorded > 0 ? recorded : 500) * pace;
  return Math.min(Math.max(1, wait), MAX_TIMER_MS);
}

/** A body that can't be read. */
export function brokenBody(error: unknown): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.error(error) });
}

/** What is kept of an error that `fetch`, or the reading of a body, has thrown. */
export function recordedError(error: unknown): RecordedError {
  if (!(error instanceof Error)) return { name: "Error", message: inWords(error) };
  const { message } = error;
  // The SDK's own errors have no names, and its timeout shows as an abort here.
  if (error.name === "AbortError") return recordedError(new APIConnectionTimeoutError());
  if (error instanceof APIConnectionTimeoutError) {
    return { name: "APIConnectionTimeoutError", message };
  }
  if (error instanceof APIConnectionError) return { name: "APIConnectionError", message };
  return { name: error.name, message };
}

/** The error again: before the headers one that the SDK retries, inside the body as it was. */
export function playedError(recorded: RecordedError | undefined, where: "call" | "body"): Error {
  const { name, message } = recorded ?? { name: "Error", message: "terminated" };
  if (name === "APIConnectionTimeoutError") return new APIConnectionTimeoutError({ message });
  if (name === "APIConnectionError") return new APIConnectionError({ message });
  const error = name === "TypeError" ? new TypeError(message) : new Error(message);
  error.name = name;
  return where === "call" ? new APIConnectionError({ cause: error }) : error;
}

function recordedBody(bytes: Buffer, type: string): RecordedBody {
  const text = bytes.toString("utf8");
  if (!Buffer.from(text).equals(bytes)) return { base64: bytes.toString("base64") };
  if (/^text\/event-stream/.test(type)) return { events: text.split(/(?<=\n\r?\n)/).map(unnamed) };
  if (!/[/+]json/.test(type)) return { text };
  try {
    const json: unknown = JSON.parse(text);
    return { json: isError(json) ? { ...json, request_id: undefined } : json };
  } catch {
    return { text };
  }
}

function isError(json: unknown): json is { type: "error" } {
  return typeof json === "object" && json !== null && "type" in json && json.type === "error";
}

function isErrorEvent(text: string): boolean {
  return /^event: ?error/m.test(text);
}

/** An error event without the id of the request. */
function unnamed(event: string): string {
  return isErrorEvent(event) ? event.replace(/,\s*"request_id"\s*:\s*"[^"]*"/, "") : event;
}

function piecesOf(body: RecordedBody): readonly Uint8Array[] {
  if ("events" in body) return body.events.map((event) => Buffer.from(event));
  if ("base64" in body) return [Buffer.from(body.base64, "base64")];
  return [Buffer.from("json" in body ? JSON.stringify(body.json) : body.text)];
}

/** A body that gives out a piece when it is read, and none ahead. */
function playedBody(
  pieces: readonly Uint8Array[],
  { signal, pass, onTaken, ending }: Playing,
): ReadableStream<Uint8Array> {
  let next = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (next > 0 && next < pieces.length) await pass(1 / pieces.length);
        const piece = pieces[next++];
        if (signal?.aborted || !piece) onTaken();
        signal?.throwIfAborted();
        if (piece) return controller.enqueue(piece);
        await ending();
        controller.close();
      },
      cancel: onTaken,
    },
    { highWaterMark: 0 },
  );
}
