/**
 * Watches the bodies of a call's responses: one that falls silent, is lost, or has said all it had to say.
 *
 *     headers ── bytes ── bytes ─┬────── nothing for idleMs ──► APIConnectionTimeoutError
 *                                ├────── reset ───────────────► APIConnectionError
 *                                └────── message_stop ────────► the end, whatever comes after it
 *
 * The SDK's own timeout ends with the headers, and its streams swallow the server's pings; a stalled
 * reply would wait for ever. So the raw bytes are counted here, in a middleware below both, whether
 * the reply streams or not. The waits between the SDK's retries don't count: they have no response.
 *
 * From effective-agents 0.1.0: patterns/door/silence.ts
 */
import {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  type Middleware,
} from "@anthropic-ai/sdk";

type Body = ReadableStream<Uint8Array>;

/** The watch over one call. */
export interface BodyWatch {
  readonly middleware: Middleware;
  /** The last body that was read to its end: whole, or 100 kB of what was to be a stream and has no
   * event in it. `undefined` for a stream of events, and where the response didn't come this way. */
  readonly body: () => string | undefined;
  /** Whether a request has come as far as this, and goes on: before, nothing has been sent. */
  readonly reached: () => boolean;
  /** Whether the last response was a success: whatever is thrown after it, it's paid for. */
  readonly succeeded: () => boolean;
}

/** How much of a body is kept that was to be a stream, in bytes. */
const MAX_KEPT = 100_000;
/** How long the end of a body may take after `message_stop`, in milliseconds. */
const MAX_LINGER_MS = 1000;

/** Makes the watch. `idleMs` is how long no byte may come, in milliseconds. */
export function watchBody(idleMs: number): BodyWatch {
  let read: string | undefined;
  let reached = false;
  let ok = false;
  const keep = (text: string | undefined) => {
    read = text;
  };
  const middleware: Middleware = async (request, next, ctx) => {
    reached = !("replayed" in ctx);
    const response = await next(request);
    const { body } = response;
    ok = response.ok;
    keep(body ? undefined : "");
    if (!body) return response;
    if (ctx.options?.stream && response.ok) {
      return new Response(stream(body, idleMs, keep), response);
    }
    // The SDK reads any other reply whole. Reading for it costs a tenth of wrapping its body.
    // Not `body`: whoever cloned the response meanwhile has put another stream in its place.
    const text = () => readAll(response.body ?? body, idleMs, keep);
    return Object.assign(response, { text, json: () => text().then(JSON.parse) });
  };
  return { middleware, body: () => read, reached: () => reached, succeeded: () => ok };
}

async function readAll(body: Body, idleMs: number, keep: (text: string) => void): Promise<string> {
  const { read } = watch(body, idleMs);
  const chunks: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await read();
    if (done) break;
    chunks.push(value);
  }
  const [first] = chunks;
  const text = decoder.decode(first && chunks.length === 1 ? first : Buffer.concat(chunks));
  keep(text);
  return text;
}

const decoder = new TextDecoder();

function stream(body: Body, idleMs: number, keep: (text: string | undefined) => void): Body {
  const { read, cancel, leave } = watch(body, idleMs);
  const events = followEvents();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await read();
      if (!done) controller.enqueue(value);
      if (done) keep(events.none());
      else if (!events.haveEnded(value)) return;
      else void leave();
      controller.close();
    },
    cancel,
  });
}

/** Follows a stream of events by its lines, which no text can hold: in JSON there are none. */
function followEvents() {
  let line = "";
  let begun = false;
  let stopping = false;
  let kept = Buffer.alloc(0);

  /** Whether the last event is over with these bytes. */
  const haveEnded = (bytes: Uint8Array): boolean => {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lines = (line + chunk.toString("latin1")).split("\n");
    // Of a line that is still to be ended no more is needed than tells it from the last event's.
    line = lines.pop()?.slice(0, 40) ?? "";
    for (const whole of lines) {
      if (stopping && /^\r?$/.test(whole)) return true;
      begun ||= /^(event|data):/.test(whole);
      stopping ||= /^event: ?message_stop\r?$/.test(whole);
    }
    if (!begun) kept = Buffer.concat([kept, chunk.subarray(0, MAX_KEPT - kept.length)]);
    return false;
  };
  /** What came instead of events. */
  const none = () => (begun ? undefined : decoder.decode(kept));
  return { haveEnded, none };
}

function watch(body: Body, idleMs: number) {
  const reader = body.getReader();
  let timer: NodeJS.Timeout | undefined;
  let silent = false;
  const cancel = (reason?: unknown) => {
    clearTimeout(timer);
    return reader.cancel(reason);
  };
  const fallSilent = () => {
    silent = true;
    // The read under way ends with it, and that is where the error is thrown.
    cancel().catch(() => {});
  };
  const heard = (result: Awaited<ReturnType<typeof reader.read>>) => {
    if (silent) throw new APIConnectionTimeoutError({ message: `No byte came for ${idleMs} ms` });
    if (result.done) clearTimeout(timer);
    return result;
  };
  const lost = (error: unknown) => {
    clearTimeout(timer);
    throw asSdkError(error);
  };
  const read = () => {
    timer = timer?.refresh() ?? setTimeout(fallSilent, idleMs);
    // Each `async` function would make two promises more, at every piece of every reply.
    return reader.read().then(heard, lost);
  };
  /** Reads on to the end, since only then the connection can be used again; hangs up if none comes. */
  const leave = async () => {
    clearTimeout(timer);
    timer = setTimeout(fallSilent, Math.min(idleMs, MAX_LINGER_MS));
    try {
      while (!(await reader.read()).done);
    } catch {
      // Nobody waits for these bytes any more.
    } finally {
      clearTimeout(timer);
    }
  };
  return { read, cancel, leave };
}

function asSdkError(error: unknown): unknown {
  const isAbort = error instanceof Error && error.name === "AbortError";
  if (isAbort || error instanceof APIError || !(error instanceof Error)) return error;
  return new APIConnectionError({ message: "The connection was lost", cause: error });
}
