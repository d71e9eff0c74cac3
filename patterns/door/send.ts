/**
 * One request to the model: waits for a slot, calls the SDK, and gives back a whole message.
 *
 *     wait for a slot ── create ─────────────► body, watched ── is it a message?
 *                     └─ stream ── text, text ┘
 *
 * It streams where somebody listens to the text, and where the SDK asks for it: from 21,334
 * `max_tokens` on, since a reply that long could outlive a connection. The same bad reply is the same
 * error either way. What the transport does wrong is the SDK's own error, and the SDK has retried it.
 *
 * From effective-agents 0.1.0: patterns/door/send.ts
 */
import { setImmediate } from "node:timers";
import { type Anthropic, AnthropicError, APIError } from "@anthropic-ai/sdk";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { HaltError, LlmOutputError } from "../errors.ts";
import { lend } from "../fan-out.ts";
import type { CallOptions, Params } from "../llm-call.ts";
import { annotate, noted, reportText } from "../step.ts";
import { apart, charge, isUnpaid } from "./bill.ts";
import { asMessage, checkEvent, joined, notMessage, textIn } from "./reply.ts";
import { type BodyWatch, watchBody } from "./silence.ts";

type Api = Pick<Anthropic["messages"], "create" | "stream">;

/** What is needed of an SDK client. Anthropic's own, Bedrock's, Vertex's and Foundry's have it. */
export interface MessagesClient {
  readonly messages: Api;
  readonly beta: { readonly messages: Pick<Anthropic["beta"]["messages"], "create" | "stream"> };
}

/** From here on the SDK refuses to wait for a reply in one piece (its `calculateNonstreamingTimeout`). */
const STREAM_FROM_TOKENS = 21_334;

/** Makes one request. Throws the SDK's own errors, `LlmOutputError`, or the signal's reason. */
export async function request(
  client: MessagesClient,
  params: Params,
  { signal, onText }: CallOptions,
  slots: Slots,
  idleMs: number,
): Promise<Message> {
  // The beta API takes and gives a superset; only its types are apart.
  const api = params.betas ? (client.beta.messages as unknown as Api) : client.messages;
  const streams = onText !== undefined || params.max_tokens >= STREAM_FROM_TOKENS;
  const { signal: own, release } = lend(signal);
  const watch = watchBody(idleMs);
  const options = { signal: own, middleware: [watch.middleware] };
  try {
    const turn = slots.take(own);
    // Not awaited where there is a place: each promise costs the call a hundredth of its time.
    if (turn) await turn;
    const bill = charge();
    let isRefused = false;
    let message: Message | undefined;
    try {
      // Displays ask for it: what was cancelled before this has cost nothing.
      annotate({ sent: true, recorded: undefined });
      const reply = streams
        ? await streamed(api, params, options, onText, watch)
        : await api.create(Object.assign({}, params, { stream: false as const }), options);
      message = asMessage(reply, watch.body());
      return message;
    } catch (error) {
      isRefused = !own?.aborted && !watch.succeeded() && isUnpaid(error);
      throw error;
    } finally {
      // A client that runs middleware has sent nothing before it comes to ours: no key, an abort, a replay.
      const isUnsent = "middleware" in client && !watch.reached();
      if (isUnsent && noted("recorded") === undefined) annotate({ sent: false });
      if (isUnsent || isRefused) bill.takeBack();
      else if (message) bill.settle(message);
      else bill.lose();
      slots.release();
    }
  } catch (error) {
    own?.throwIfAborted();
    // Half a JSON text; in a stream such an error is the caller's own, thrown by onText.
    if (error instanceof SyntaxError && !streams) throw notWhole(error, watch.body() ?? "");
    throw error;
  } finally {
    release?.();
  }
}

async function streamed(
  api: Api,
  params: Params,
  options: Parameters<Api["stream"]>[1],
  onText: CallOptions["onText"],
  watch: BodyWatch,
): Promise<Message> {
  const stream = api.stream({ ...params, stream: true }, options);
  let text = "";
  let answered = false;
  let thrown: { readonly error: unknown } | undefined;
  stream.on("connect", () => {
    answered = true;
  });
  stream.on("streamEvent", (event) => {
    checkEvent(event);
    const piece = textIn(event);
    // What has arrived together still comes, one by one, after an abort.
    if (piece === "" || stream.controller.signal.aborted) return;
    text += piece;
    reportText(piece);
    try {
      if (onText) apart(() => onText(piece));
    } catch (error) {
      thrown = { error };
      stream.abort();
    }
  });
  try {
    const message = await stream.finalMessage();
    if (joined([message]) === text) return message;
    // The SDK leaves out what comes for a block that isn't there.
    throw new AnthropicError("its pieces don't fit together");
  } catch (error) {
    if (thrown) throw thrown.error;
    if (!(error instanceof AnthropicError) || error instanceof APIError) throw error;
    // The stream helper wraps whatever isn't the SDK's own, an unmade call too.
    if (error.cause instanceof HaltError) throw error.cause;
    if (!answered) throw error;
    const body = watch.body();
    throw body ? notMessage(body, body, "a stream of events") : notWhole(error, text);
  }
}

function notWhole(cause: Error, text: string): LlmOutputError {
  return new LlmOutputError(`The reply is not a whole message: ${cause.message}`, { text, cause });
}

/** A semaphore: a bounded number of places. */
export interface Slots {
  /** Takes a place. Where none is free, it gives a promise that waits for one, in order. Throws the
   * reason of a signal that has fired, or fires meanwhile. */
  readonly take: (signal: AbortSignal | undefined) => Promise<void> | undefined;
  /** Gives a place back. The first that waits gets it when what the call has led to is done: a vote that it
   * decides cancels those that wait, and none of them goes out. */
  readonly release: () => void;
}

/** Makes `count` slots. */
export function createSlots(count: number): Slots {
  let free = count;
  const waiting = new Set<() => void>();
  const wait = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      const enter = () => {
        waiting.delete(enter);
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        waiting.delete(enter);
        reject(signal?.reason);
      };
      waiting.add(enter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  const take = (signal: AbortSignal | undefined) => {
    signal?.throwIfAborted();
    if (free === 0 || waiting.size > 0) return wait(signal);
    free -= 1;
    return undefined;
  };
  const handOver = () => {
    for (const enter of waiting) {
      if (free === 0) return;
      free -= 1;
      enter();
    }
  };
  const release = () => {
    free += 1;
    if (waiting.size > 0) setImmediate(handOver);
  };
  return { take, release };
}
