/**
 * The one door to the model: every call of every pattern goes through it.
 *
 *     llmCall ──┐                                       ┌─ slot ─ SDK ─► API
 *               ├─ path ── defaults ── layers ── queue ─┼─ slot ─ SDK ─► API
 *     llmMessage┘                                       └─ (8 in flight)
 *
 * `llmCall` gives a reply's text, and throws on any reply that isn't a whole answer. `llmMessage` gives
 * the whole `Message`, for agents, to whom a stop reason is news and not a failure. Parameters are the
 * API's own, under their own names, and go through as they are. Ours are three: the call's `name` on
 * the path, `signal`, and `onText`.
 *
 * Retries are the SDK's alone (2 by default: set `maxRetries` on the client). A budget, a cache or a
 * log is a layer: a function around the call. Layers come before the queue, so that a slot is held
 * for one request only, and nested patterns can't lock each other out.
 *
 * Copy along: errors.ts, fan-out.ts, step.ts, door/
 * From effective-agents 0.1.0: patterns/llm-call.ts
 */
import Anthropic from "@anthropic-ai/sdk";
import type { MessageCreateParamsNonStreaming as BetaMessageCreateParams } from "@anthropic-ai/sdk/resources/beta/messages";
import type {
  ContentBlockParam,
  Message,
  MessageCreateParamsNonStreaming,
  MessageParam,
} from "@anthropic-ai/sdk/resources/messages";
import { newCall } from "./door/bill.ts";
import { asMessage, checkStopReason, textOf } from "./door/reply.ts";
import { createSlots, type MessagesClient, request, type Slots } from "./door/send.ts";
import { checkCount, checkFunction, checkPrompt, shown } from "./errors.ts";
import { follow } from "./fan-out.ts";
import { callStep, reportCall } from "./step.ts";

/** What a call takes beside the API's parameters. */
export interface CallOptions {
  /** The call's name on the path. Default: it has the path of the step that makes it. */
  readonly name?: string | undefined;
  /** Cancels the call, also while it waits; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Gets the text as it comes, provisional until the call has ended. Makes the call a stream. It is
   * called synchronously, and a promise that it returns isn't awaited. */
  readonly onText?: ((text: string) => void) | undefined;
}

/** A request, complete. Fields of the beta API count when `betas` is given. */
export type Params = MessageCreateParamsNonStreaming &
  Omit<BetaMessageCreateParams, keyof MessageCreateParamsNonStreaming>;

type Partly<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The API's parameters without the messages, all optional. Default model `claude-sonnet-5-5`, default
 * `max_tokens` 16,000. `llmMessage` also takes 0, which writes the prompt to the cache and asks for no
 * reply. An agent has defaults of its own. */
export type LlmParams = Partly<Omit<Params, "messages" | "stream">>;

/** One prompt in, the reply's text out. */
export type LlmCall = (
  prompt: string | readonly ContentBlockParam[],
  options?: LlmParams & CallOptions,
) => Promise<string>;

/** Messages in, one whole message out. */
export type LlmMessage = (
  params: LlmParams & Pick<Params, "messages">,
  options?: CallOptions,
) => Promise<Message>;

/** How a request goes out. Defaults have been filled in. */
export type Send = (params: Params, call: CallOptions) => Promise<Message>;

/** Middleware of the door: wraps every request, each part of a paused turn too. The first of several is
 * the outermost. */
export type Layer = (next: Send) => Send;

/** What a door is made with. The API's parameters given here are defaults of every call. */
export interface LlmOptions extends LlmParams {
  /** An SDK client; Bedrock's, Vertex's and Foundry's fit. Default: `new Anthropic()`. */
  readonly client?: MessagesClient | undefined;
  /** How many requests may be in flight at once. Default 8; the rest wait in order. */
  readonly concurrency?: number | undefined;
  /** How long a response may be silent, from its headers on, in milliseconds. Default 60,000. */
  readonly idleMs?: number | undefined;
  /** Wrapped around every request. Default none. */
  readonly layers?: readonly Layer[] | undefined;
}

/** A door to the model. */
export interface Llm {
  readonly llmCall: LlmCall;
  readonly llmMessage: LlmMessage;
  /** A door with other settings that shares the slots. Its layers come inside of this one's. */
  readonly with: (options: Omit<LlmOptions, "concurrency">) => Llm;
}

/** What every pattern takes. */
export interface PatternOptions {
  /** Makes the calls. Default: the shared door. */
  readonly llm?: LlmCall | undefined;
  /** Cancels everything; the pattern then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What every function handed to a pattern gets. Both reach all that is done through them. */
export interface Context {
  readonly llm: LlmCall;
  readonly signal: AbortSignal | undefined;
}

/** What is handed to a pattern: a chain's step, a route, a section, a worker, a draft. */
export type Work<Input, Output> = (input: Input, context: Context) => Output | PromiseLike<Output>;

const MODEL = "claude-sonnet-5-5";
const MAX_TOKENS = 16_000;
const IDLE_MS = 60_000;
/** A timer that is set to more fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The API pauses a long turn of its own tools, such as web search (`pause_turn`), and goes on when it's
 * sent back: how often that is done. */
const MAX_PAUSES = 5;

/**
 * Makes a door to the model. The client is made at the first call, from the environment
 * (`ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL`) unless one is given.
 *
 * @throws {RangeError} `concurrency` or `idleMs` is not a whole number of at least 1.
 *
 * @example
 * const { llmCall } = createLlm({ model: "claude-opus-5-5", concurrency: 4 });
 * await llmCall("What is 2 + 2? Answer with the number."); // "4"
 */
export function createLlm(options: LlmOptions = {}): Llm {
  const { concurrency = 8 } = options;
  checkCount("concurrency", concurrency, 1);
  let client: MessagesClient | undefined;
  return openDoor(options, createSlots(concurrency), () => {
    client ??= makeClient();
    return client;
  });
}

function openDoor(options: LlmOptions, slots: Slots, ownClient: () => MessagesClient): Llm {
  const { client, concurrency: _, idleMs = IDLE_MS, layers = [], ...defaults } = options;
  checkCount("idleMs", idleMs, 1, MAX_TIMER_MS);
  checkClient(client);
  if (!Array.isArray(layers)) throw new TypeError(`layers must be a list, got ${shown(layers)}`);
  for (const [index, layer] of layers.entries()) checkFunction(`layers[${index}]`, layer);
  let send: Send = (params, call) => request(client ?? ownClient(), params, call, slots, idleMs);
  for (const layer of layers.toReversed()) {
    const layered = layer(send);
    // What one layer gives is read by the next.
    send = async (params, call) => asMessage(await layered(params, call));
  }

  const ready = { model: MODEL, max_tokens: MAX_TOKENS, ...given(defaults) };
  const ask = async (
    messages: Params["messages"],
    params: LlmParams,
    call: CallOptions,
    leastTokens: number,
  ) => {
    // Not by spreading: on Node 20 each `{ ...a, b }` is of a new hidden class, and slow to read.
    const complete = Object.assign({}, ready, given(params), { messages });
    checkCount("max_tokens", complete.max_tokens, leastTokens);
    const message = await reportCall(
      complete,
      () => newCall(() => send(complete, call)),
      call.signal,
    );
    checkStopReason(message, complete);
    return message;
  };

  return {
    llmMessage: ({ messages, ...params }, call = {}) =>
      callStep(call.name, () => ask(messages, params, call, 0), call.signal),

    llmCall: (prompt, { name, signal, onText, ...params } = {}) => {
      const answer = async () => {
        checkPrompt(prompt);
        const content = typeof prompt === "string" ? prompt : [...prompt];
        const start: MessageParam = { role: "user", content };
        const turns: Message[] = [];
        while (turns.length <= MAX_PAUSES) {
          const resumed = turns.map(({ content }) => ({ role: "assistant" as const, content }));
          const message = await ask([start, ...resumed], params, { signal, onText }, 1);
          turns.push(message);
          if (message.stop_reason !== "pause_turn") break;
        }
        return textOf(turns);
      };
      return callStep(name, answer, signal);
    },

    with: ({ layers: more = [], ...rest }) =>
      openDoor({ ...options, ...given(rest), layers: [...layers, ...more] }, slots, ownClient),
  };
}

const shared = createLlm();

/**
 * Sends one prompt, a string or content blocks, and gives the reply's text.
 *
 * @throws {TypeError} The prompt is empty, or neither a string nor a list.
 * @throws {RangeError} `max_tokens` is not a whole number of at least 1.
 * @throws {LlmOutputError} The reply is no whole answer: cut off, refused, empty, not a message, …
 * @throws {HaltError} The call was not made: the budget ended, or a recording doesn't match.
 *   The SDK's own errors and the signal's reason come through as they are.
 *
 * @example
 * await llmCall("What is 2 + 2? Answer with the number."); // "4"
 */
export const llmCall: LlmCall = shared.llmCall;

/** Sends messages and gives the whole reply, whatever its stop reason. Throws as `llmCall` does. */
export const llmMessage: LlmMessage = shared.llmMessage;

/** `llm` with every call under `signal`, beside a signal that the call itself is given. */
export function withSignal(signal: AbortSignal | undefined, llm: LlmCall = llmCall): LlmCall {
  checkFunction("llm", llm);
  if (!signal) return llm;
  const underBoth = async (own: AbortSignal, ...[prompt, options]: Parameters<LlmCall>) => {
    const { controller, release } = follow(signal, own);
    try {
      return await llm(prompt, { ...options, signal: controller.signal });
    } finally {
      release();
    }
  };
  return (prompt, options) => {
    const own = options?.signal;
    if (own && own !== signal) return underBoth(own, prompt, options);
    return llm(prompt, { ...options, signal });
  };
}

/** Says nothing of what it got: that may hold a key. */
function checkClient(client: MessagesClient | undefined): void {
  if (client === undefined || typeof client?.messages?.create === "function") return;
  throw new TypeError("client must be an SDK client: what was given has no messages.create");
}

function makeClient(): MessagesClient {
  if ("window" in globalThis && "document" in globalThis) {
    throw new Error("The model is called from the server only: a browser would give the key away");
  }
  return new Anthropic();
}

/** What was given, so that an option passed through as `undefined` doesn't hide a default. */
function given<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept: Partial<T> = { ...options };
  for (const key in kept) {
    if (kept[key] === undefined) delete kept[key];
  }
  // What is left has no undefined in it, which the type can't follow.
  return kept as { [K in keyof T]: Exclude<T[K], undefined> };
}
