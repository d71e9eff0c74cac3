/**
 * A Messages API on 127.0.0.1 with scripted answers and faults. It keeps the requests that it got.
 *
 *     const server = await startServer(fails(529), reply("Hello"));
 *     const { llmCall } = createLlm({ client: server.client({ maxRetries: 1 }) });
 *     await llmCall("Hi"); // "Hello"
 *     server.requests.length; // 2
 *
 * Each request gets the next answer, and the last answer stays. An answer is a function of the
 * exchange: `reply` answers in one piece or as a stream, as the request asks, and so does `partly`,
 * which breaks off after the first word. `hold` leaves the exchange open, to be answered by the test.
 *
 * From effective-agents 0.1.0: test/shared/server.ts
 */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import Anthropic, { type ClientOptions } from "@anthropic-ai/sdk";
import type { Message, MessageCreateParams } from "@anthropic-ai/sdk/resources/messages";
import { onTestFinished } from "vitest";

/** Both ways of a reply: the same call without and with a listener for the text. */
export const ways = [
  { way: "in one piece", onText: undefined },
  { way: "as a stream", onText: () => {} },
];

/** One request, and the response to it. */
export interface Exchange {
  /** Path and query, e.g. `/v1/messages?beta=true`. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: MessageCreateParams;
  readonly response: ServerResponse;
  /** Resolves when the client closes the connection before the response has ended. */
  readonly gone: Promise<void>;
}

/** Answers a request, or does something worse. */
export type Answer = (exchange: Exchange) => void;

export interface TestServer {
  readonly url: string;
  /** In the order in which they came. */
  readonly requests: readonly Exchange[];
  /** Resolves with the request number `count` (from 1) as soon as it's there. */
  readonly received: (count: number) => Promise<Exchange>;
  /** How many exchanges were open at once, at most. */
  readonly peak: () => number;
  /** A real SDK client of this server; quiet, and without retries unless they are asked for. */
  readonly client: (options?: ClientOptions) => Anthropic;
}

/** Starts a server, which closes when the test under way ends. */
export async function startServer(...answers: [Answer, ...Answer[]]): Promise<TestServer> {
  const requests: Exchange[] = [];
  const waiting = new Map<number, (exchange: Exchange) => void>();
  let open = 0;
  let peak = 0;
  const server = createServer(async (request, response) => {
    let raw = "";
    for await (const chunk of request.setEncoding("utf8")) raw += chunk;
    peak = Math.max(peak, ++open);
    const gone = new Promise<void>((resolve) => {
      response.on("close", () => {
        open -= 1;
        if (!response.writableFinished) resolve();
      });
    });
    const { url = "", headers } = request;
    const exchange: Exchange = { url, headers, body: JSON.parse(raw), response, gone };
    requests.push(exchange);
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    answer?.(exchange);
    waiting.get(requests.length)?.(exchange);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    requests,
    received: async (count) =>
      requests[count - 1] ?? new Promise((resolve) => waiting.set(count, resolve)),
    peak: () => peak,
    client: (options) =>
      new Anthropic({ apiKey: "none", baseURL: url, logLevel: "off", maxRetries: 0, ...options }),
  };
}

/** A whole message, by default one that ends its turn. */
export function message(text: string, rest: Partial<Message> = {}): Message {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5-5",
    content: [{ type: "text", text, citations: null }],
    container: null,
    diagnostics: null,
    stop_reason: "end_turn",
    stop_sequence: null,
    stop_details: null,
    usage: {
      input_tokens: 12,
      output_tokens: 3,
      output_tokens_details: null,
      cache_creation: null,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      inference_geo: null,
      server_tool_use: null,
      service_tier: null,
      speed: null,
    },
    ...rest,
  };
}

/** What goes over the wire, where it need not be what the SDK's types say. */
export type Wire = Readonly<Record<string, unknown>>;
type Block = Wire & { readonly type: string };

/** Answers with a text or with content blocks, in one piece or as a stream. */
export function reply(content: string | readonly Block[], rest: Wire = {}): Answer {
  return ({ body, response }) => {
    start(response, body.stream);
    response.end(bodyOf(content, rest, body.stream).join(""));
  };
}

/** Answers with the first word of a text (in one piece: half of the body), and then goes on as told. */
export function partly(text: string, then: Answer): Answer {
  return (exchange) => {
    const { body, response } = exchange;
    start(response, body.stream);
    const pieces = bodyOf(text, {}, body.stream);
    const half = body.stream ? pieces.findIndex((piece) => piece.includes("_delta")) + 1 : 1;
    response.write(pieces.slice(0, half).join(""), () => then(exchange));
  };
}

/** Answers with an error in the API's shape. */
export function fails(status: number, headers: Readonly<Record<string, string>> = {}): Answer {
  const error = { type: ERROR_TYPES[status] ?? "api_error", message: `error ${status}` };
  return raw(JSON.stringify({ type: "error", error }), { status, headers });
}

/** Answers with these bytes, whatever was asked for. */
export function raw(
  body: string,
  { status = 200, headers = {} }: { status?: number; headers?: Readonly<Record<string, string>> },
): Answer {
  return ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  };
}

/** Answers byte by byte (in `pieces` pieces), one every `everyMs`. */
export function drip(text: string, pieces: number, everyMs: number): Answer {
  return ({ body, response }) => {
    start(response, body.stream);
    const bytes = Buffer.from(bodyOf(text, {}, body.stream).join(""));
    const size = Math.ceil(bytes.length / pieces);
    let at = 0;
    const timer = setInterval(() => {
      response.write(bytes.subarray(at, at + size));
      at += size;
      if (at >= bytes.length) response.end();
    }, everyMs);
    response.on("close", () => clearInterval(timer));
    response.on("finish", () => clearInterval(timer));
  };
}

/** Sends nothing more. */
export const hold: Answer = () => {};

/** Sends the headers and nothing more. */
export const silent: Answer = ({ body, response }) => {
  start(response, body.stream);
  response.flushHeaders();
};

/** Ends the response as if it were whole. */
export const cut: Answer = ({ response }) => {
  response.end();
};

/** Loses the connection. */
export const lose: Answer = ({ response }) => {
  response.socket?.destroy();
};

/** The events of a streamed message as they go over the wire, with a text's words one by one. */
export function eventsOf(reply: Wire): string[] {
  const { stop_reason, stop_sequence, stop_details, usage } = reply;
  const { content } = reply as { readonly content?: readonly Block[] }; // the wire's JSON has no types
  const open = { ...reply, content: [], stop_reason: null, stop_details: null };
  return [
    event("message_start", { message: open }),
    ...(content ?? []).flatMap((block, index) => [
      event("content_block_start", { index, content_block: { ...block, ...emptied(block) } }),
      ...deltasOf(block).map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ]),
    event("message_delta", { delta: { stop_reason, stop_sequence, stop_details }, usage }),
    event("message_stop", {}),
  ];
}

/** One server-sent event of the Messages API. */
export function event(type: string, data: Wire): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}

/** What a promise rejects with, for any kind of reason. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([promise]);
  if (outcome.status === "rejected") return outcome.reason;
  throw new Error(`It must reject, but gave ${JSON.stringify(outcome.value)}`);
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

function start(response: ServerResponse, stream: boolean | undefined): void {
  const type = stream ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type, "request-id": "req_1" });
}

function bodyOf(content: string | readonly Block[], rest: Wire, stream?: boolean): string[] {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const whole: Wire = { ...message(""), content: blocks, ...rest };
  if (stream) return eventsOf(whole);
  const json = JSON.stringify(whole);
  return [json.slice(0, json.length / 2), json.slice(json.length / 2)];
}

function emptied({ type }: Block): Wire {
  if (type === "text") return { text: "" };
  if (type === "tool_use" || type === "server_tool_use") return { input: {} };
  return type === "thinking" ? { thinking: "", signature: "" } : {};
}

function deltasOf({ type, text, thinking, signature, input }: Block): Wire[] {
  if (type === "text") {
    const words = String(text).match(/\S+\s*|\s+/g) ?? [];
    return words.map((text) => ({ type: "text_delta", text }));
  }
  if (type === "thinking") {
    return [
      { type: "thinking_delta", thinking },
      { type: "signature_delta", signature },
    ];
  }
  if (input === undefined) return [];
  return [{ type: "input_json_delta", partial_json: JSON.stringify(input) }];
}
