/**
 * Ends a response that has fallen silent, and names a connection that was lost while it was read.
 *
 *     headers ── bytes ── bytes ──────── nothing for idleMs ──► APIConnectionTimeoutError
 *                           └─────────── reset ───────────────► APIConnectionError
 *
 * The SDK's own timeout ends with the headers, and its streams swallow the server's pings; a stalled
 * reply would wait for ever. So the raw bytes are counted here, in a middleware below both, whether
 * the reply streams or not. The waits between the SDK's retries don't count: they have no response.
 */
import {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  type Middleware,
} from "@anthropic-ai/sdk";

type Body = ReadableStream<Uint8Array>;

/** Makes the middleware. `idleMs` is how long no byte may come, in milliseconds. */
export function endSilence(idleMs: number): Middleware {
  return async (request, next, ctx) => {
    const response = await next(request);
    const { body } = response;
    if (!body) return response;
    if (ctx.options?.stream && response.ok) return new Response(stream(body, idleMs), response);
    // The SDK reads any other reply whole. Reading for it costs a tenth of wrapping its body.
    const text = () => readAll(response.body ?? body, idleMs);
    return Object.assign(response, { text, json: async () => JSON.parse(await text()) });
  };
}

async function readAll(body: Body, idleMs: number): Promise<string> {
  const { read } = watch(body, idleMs);
  const chunks: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await read();
    if (done) break;
    chunks.push(value);
  }
  const [first] = chunks;
  return decoder.decode(first && chunks.length === 1 ? first : Buffer.concat(chunks));
}

const decoder = new TextDecoder();

function stream(body: Body, idleMs: number): Body {
  const { read, cancel } = watch(body, idleMs);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel,
  });
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
  const read = async () => {
    timer = timer?.refresh() ?? setTimeout(fallSilent, idleMs);
    try {
      const result = await reader.read();
      if (silent) throw new APIConnectionTimeoutError({ message: `No byte came for ${idleMs} ms` });
      if (result.done) clearTimeout(timer);
      return result;
    } catch (error) {
      clearTimeout(timer);
      throw asSdkError(error);
    }
  };
  return { read, cancel };
}

function asSdkError(error: unknown): unknown {
  const isAbort = error instanceof Error && error.name === "AbortError";
  if (isAbort || error instanceof APIError || !(error instanceof Error)) return error;
  return new APIConnectionError({ message: "The connection was lost", cause: error });
}
