/**
 * Makes a call and reports how it ended, before the caller knows.
 *
 *     JSON     next() ─ whole body ─ end() ─► caller
 *     stream   next() ─► caller, chunk by chunk … last event held ─ end() ─► last event, end
 *
 * `end` writes the line, and the caller gets the reply (of a stream, its last event) only when that
 * is done: a process killed at any time has on the tape what it has acted on. The caller gets what it
 * would have got without a recording, errors and the place where they occur included.
 *
 * From effective-agents 0.1.0: patterns/recording/live.ts
 */
import type { MiddlewareNext } from "@anthropic-ai/sdk";
import { HaltError } from "../errors.ts";
import { brokenBody, isLast, recordedError, recordedReply } from "./reply.ts";
import type { ApiRequest } from "./request.ts";
import type { TapeLine } from "./tape.ts";

/** How a call ended; `undefined` if it was never made. */
export type Ending = Pick<TapeLine, "outcome" | "reply" | "error"> | undefined;

/** Makes the call. `end` is awaited once, before the caller gets the reply. */
export async function callLive(
  request: ApiRequest,
  next: MiddlewareNext,
  cancelled: AbortSignal | null | undefined,
  end: (ending: Ending) => Promise<void>,
): Promise<Response> {
  let response: Response;
  try {
    response = await next(request);
  } catch (error) {
    if (error instanceof HaltError) await end(undefined);
    else if (cancelled?.aborted) await end({ outcome: "cancelled" });
    else await end({ outcome: "broken", error: recordedError(error) });
    throw error;
  }
  const type = response.headers.get("content-type") ?? "";
  const body = type.startsWith("text/event-stream")
    ? streamed(request, response, end)
    : await whole(request, response, end);
  const headers = new Headers(response.headers);
  // They speak of the bytes on the wire, and these are decoded.
  for (const name of ["content-encoding", "content-length", "transfer-encoding"])
    headers.delete(name);
  const { status, statusText } = response;
  return new Response(body, { status, statusText, headers });
}

async function whole(
  request: ApiRequest,
  response: Response,
  end: (ending: Ending) => Promise<void>,
): Promise<ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null> {
  let bytes: Buffer<ArrayBuffer>;
  try {
    // By `text()` and not by `body`, since that is what a middleware below (the door's) watches.
    const isText = /json|text/.test(response.headers.get("content-type") ?? "");
    bytes = isText ? Buffer.from(await response.text()) : Buffer.from(await response.arrayBuffer());
  } catch (error) {
    if (request.signal?.aborted) {
      await end({ outcome: "cancelled" });
      throw error;
    }
    const reply = recordedReply(response, Buffer.alloc(0));
    await end({ outcome: "broken", reply, error: recordedError(error) });
    return brokenBody(error);
  }
  await end({ outcome: "replied", reply: recordedReply(response, bytes) });
  // Cancelled by the consequences of another reply that was written first.
  request.signal?.throwIfAborted();
  return bytes.length > 0 ? bytes : null;
}

function streamed(
  request: ApiRequest,
  response: Response,
  end: (ending: Ending) => Promise<void>,
): ReadableStream<Uint8Array> {
  const reader = (response.body ?? new Blob([]).stream()).getReader();
  const chunks: Uint8Array[] = [];
  const held: Uint8Array[] = [];
  let tail = "";
  let ended: Promise<void> | undefined;
  let error: unknown;

  const finish = (ending: Pick<TapeLine, "outcome" | "error">) => {
    ended ??= end({ ...ending, reply: recordedReply(response, Buffer.concat(chunks)) });
    return ended;
  };

  // Also when nobody reads on.
  const cancel = () => finish({ outcome: "cancelled" });
  request.signal?.addEventListener("abort", () => cancel().catch(() => {}), { once: true });

  /** Reads on to a chunk that the caller may have; at the end, nothing. */
  async function read(): Promise<Uint8Array | undefined> {
    try {
      for (;;) {
        const { value } = await reader.read();
        if (!value) break;
        chunks.push(value);
        tail = tail.slice(-40) + Buffer.from(value).toString("latin1");
        if (held.length === 0 && !isLast(tail)) return value;
        held.push(value);
      }
      await finish({ outcome: "replied" });
    } catch (thrown) {
      error = thrown;
      await finish({ outcome: "broken", error: recordedError(thrown) });
    }
    return undefined;
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = (ended ? undefined : await read()) ?? held.shift();
        request.signal?.throwIfAborted();
        if (chunk) controller.enqueue(chunk);
        else if (error !== undefined) controller.error(error);
        else controller.close();
      },
      async cancel(reason) {
        await Promise.all([cancel(), reader.cancel(reason)]);
      },
    },
    { highWaterMark: 0 },
  );
}
