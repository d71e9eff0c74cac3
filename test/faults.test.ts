/**
 * The door and a failing server: each fault of the network is an error, and no reply is lost or made up.
 *
 * From effective-agents 0.1.0: test/faults.test.ts
 */
import { setImmediate } from "node:timers/promises";
import Anthropic, {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  type ClientOptions,
  type Middleware,
} from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { LlmOutputError } from "../patterns/errors.ts";
import { createLlm, type LlmOptions } from "../patterns/llm-call.ts";
import { step } from "../patterns/step.ts";
import {
  type Answer,
  cut,
  drip,
  type Exchange,
  event,
  eventsOf,
  fails,
  hold,
  lose,
  message,
  partly,
  rejection,
  reply,
  silent,
  startServer,
  ways,
} from "./shared/server.ts";

const TEXT = "Hello there";

/** A door to a local server with these answers. */
async function open(
  answers: Answer | readonly Answer[],
  options: ClientOptions = {},
  llm: LlmOptions = {},
) {
  const [first = hold, ...more] = typeof answers === "function" ? [answers] : answers;
  const server = await startServer(first, ...more);
  return { server, ...createLlm({ client: server.client(options), ...llm }) };
}

/** Loses the connection with a reset. */
const reset: Answer = ({ response }) => {
  response.socket?.resetAndDestroy();
};

/** Sends the rest of what `partly` began. */
const finish: Answer = ({ response, body }) => {
  const whole = { ...message(""), content: [{ type: "text", text: TEXT }] };
  const json = JSON.stringify(whole);
  response.end(body.stream ? eventsOf(whole).slice(3).join("") : json.slice(json.length / 2));
};

/** Sends a sign of life a few times, and then goes on. */
function after(times: number, everyMs: number, sign: string, then: Answer): Answer {
  return (exchange) => {
    let left = times;
    const timer = setInterval(() => {
      left -= 1;
      if (left >= 0) exchange.response.write(sign);
      else then(exchange);
      if (left < 0) clearInterval(timer);
    }, everyMs);
    exchange.response.on("close", () => clearInterval(timer));
  };
}

for (const { way, onText } of ways) {
  test.for([
    { status: 400, kind: Anthropic.BadRequestError, type: "invalid_request_error", requests: 1 },
    { status: 401, kind: Anthropic.AuthenticationError, type: "authentication_error", requests: 1 },
    { status: 404, kind: Anthropic.NotFoundError, type: "not_found_error", requests: 1 },
    { status: 413, kind: Anthropic.ContentTooLargeError, type: "request_too_large", requests: 1 },
    { status: 429, kind: Anthropic.RateLimitError, type: "rate_limit_error", requests: 3 },
    { status: 500, kind: Anthropic.InternalServerError, type: "api_error", requests: 3 },
    { status: 529, kind: Anthropic.OverloadedError, type: "overloaded_error", requests: 3 },
  ])(
    `rejects with the SDK's own error for status $status, and only the SDK retries, ${way}`,
    async ({ status, kind, type, requests }) => {
      const answer = fails(status, { "retry-after-ms": "1" });
      const { server, llmCall } = await open(answer, { maxRetries: 2 });
      const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject({ status, type });
      expect(server.requests).toHaveLength(requests);
    },
  );

  test(`makes one request where the client retries nothing, ${way}`, async () => {
    const { server, llmCall } = await open(fails(529), { maxRetries: 0 });
    expect(await rejection(llmCall("Hi", { onText }))).toBeInstanceOf(Anthropic.OverloadedError);
    expect(server.requests).toHaveLength(1);
  });

  test.for([
    ["retry-after-ms", "1"],
    ["retry-after", "0.001"],
  ] as const)(
    `gives the reply that comes after a 429 with %s and a 529, ${way}`,
    async ([header, value]) => {
      const answers = [
        fails(429, { [header]: value }),
        fails(529, { [header]: value }),
        reply(TEXT),
      ];
      const { server, llmCall } = await open(answers, { maxRetries: 2 });
      expect(await llmCall("Hi", { onText })).toBe(TEXT);
      expect(server.requests).toHaveLength(3);
    },
  );

  test(`gives the reply that comes after a 429 without retry-after, a reset and a timeout, ${way}`, async () => {
    // At once, since after each of them the SDK waits for half a second.
    const faults = [fails(429), reset, hold];
    const replies = faults.map(async (fault) => {
      const { server, llmCall } = await open([fault, reply(TEXT)], { timeout: 300, maxRetries: 1 });
      return [await llmCall("Hi", { onText }), server.requests.length];
    });
    expect(await Promise.all(replies)).toEqual([
      [TEXT, 2],
      [TEXT, 2],
      [TEXT, 2],
    ]);
  });

  test(`rejects with a connection error for a reset before the headers, ${way}`, async () => {
    const { server, llmCall } = await open(reset);
    const error = await rejection(llmCall("Hi", { onText }));
    expect(error).toBeInstanceOf(APIConnectionError);
    expect(error).not.toBeInstanceOf(APIConnectionTimeoutError);
    expect(error).toHaveProperty("cause", expect.any(Error));
    expect(server.requests).toHaveLength(1);
  });

  test(`rejects with a connection error where nobody listens, ${way}`, async () => {
    const { llmCall } = await open(hold, { baseURL: "http://127.0.0.1:1" });
    expect(await rejection(llmCall("Hi", { onText }))).toBeInstanceOf(APIConnectionError);
  });

  test.for([
    ["lost", partly(TEXT, lose)],
    ["reset", partly(TEXT, reset)],
    ["lost after the headers", lostAfterHeaders],
    ["lost before the length that was promised", shorterThanSaid],
  ] as const)(
    `rejects with a connection error and asks no second time when the body is %s, ${way}`,
    async ([, answer]) => {
      const { server, llmCall } = await open(answer, { maxRetries: 2 });
      const error = await rejection(llmCall("Hi", { onText }));
      expect(error).toBeInstanceOf(APIConnectionError);
      expect(error).not.toBeInstanceOf(APIConnectionTimeoutError);
      expect(error).toMatchObject({ message: "The connection was lost", cause: expect.any(Error) });
      expect(server.requests).toHaveLength(1);
    },
  );

  test(`rejects for a body that is cut off cleanly, with the text so far, ${way}`, async () => {
    const whole = JSON.stringify({ ...message(""), content: [{ type: "text", text: TEXT }] });
    const half = whole.slice(0, whole.length / 2);
    const { server, llmCall } = await open(partly(TEXT, cut), { maxRetries: 2 });
    const error = await rejection(step("ask", () => llmCall("Hi", { onText })));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({
      path: "ask",
      stopReason: null,
      text: onText ? "Hello " : half,
      cause: expect.any(Error),
    });
    expect(String(error)).toContain("not a whole message");
    expect(server.requests).toHaveLength(1);
  });

  test(`rejects with a timeout when no headers come in the client's timeout, ${way}`, async () => {
    const { server, llmCall } = await open(hold, { timeout: 30 });
    const error = await rejection(llmCall("Hi", { onText }));
    expect(error).toBeInstanceOf(APIConnectionTimeoutError);
    await server.requests[0]?.gone;
  });

  test.for([
    ["after the headers", silent],
    ["in the middle of the body", partly(TEXT, hold)],
  ] as const)(
    `rejects with a timeout when nothing more comes %s, and hangs up, ${way}`,
    async ([, answer]) => {
      const { server, llmCall } = await open(answer, { maxRetries: 2 }, { idleMs: 40 });
      const error = await rejection(llmCall("Hi", { onText }));
      expect(error).toBeInstanceOf(APIConnectionTimeoutError);
      expect(String(error)).toContain("No byte came for 40 ms");
      await server.requests[0]?.gone;
      expect(server.requests).toHaveLength(1);
    },
  );

  test(`rejects with the status when the body of an error falls silent, ${way}`, async () => {
    const answer: Answer = ({ response }) => {
      response.writeHead(400, { "content-type": "application/json" }).write('{"type":"er');
    };
    const { server, llmCall } = await open(answer, {}, { idleMs: 40 });
    const error = await rejection(llmCall("Hi", { onText }));
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    await server.requests[0]?.gone;
  });

  test(`takes its silence from the door that the call goes through, ${way}`, async () => {
    const { with: change } = await open(partly(TEXT, hold));
    const { llmCall } = change({ idleMs: 40 });
    expect(await rejection(llmCall("Hi", { onText }))).toBeInstanceOf(APIConnectionTimeoutError);
  });

  test(`doesn't count the wait for the headers and between retries as silence, ${way}`, async () => {
    const late: Answer = (exchange) => {
      setTimeout(() => reply(TEXT)(exchange), 100);
    };
    const answers = [fails(429, { "retry-after-ms": "100" }), late];
    const { server, llmCall } = await open(answers, { maxRetries: 1 }, { idleMs: 50 });
    expect(await llmCall("Hi", { onText })).toBe(TEXT);
    expect(server.requests).toHaveLength(2);
  });

  test(`waits for a body that drips longer than idleMs in all, and reads it right, ${way}`, async () => {
    const text = `${TEXT}: déjà vu, 日本, 🙂🙃`;
    const { llmCall } = await open(drip(text, 10, 40), {}, { idleMs: 300 });
    expect(await llmCall("Hi", { onText })).toBe(text);
  });

  test(`reads a body right that comes in single bytes, ${way}`, async () => {
    const text = "é日🙂 ü";
    const { llmCall } = await open(bytewise(text));
    expect(await llmCall("Hi", { onText })).toBe(text);
  });

  test.for([
    ["that ended well", reply(TEXT)],
    ["whose connection was lost", partly(TEXT, lose)],
    ["whose body was cut off", partly(TEXT, cut)],
  ] as const)(`leaves no timer behind a call %s, ${way}`, async ([, answer]) => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout");
    const { llmCall } = await open(answer, {}, { idleMs: 123_456 });
    const before = timers().length;
    for (let i = 0; i < 20; i++) await llmCall("Hi", { onText }).catch(() => {});
    // A few are fetch's own, however many calls there were.
    expect(timers().length - before).toBeLessThan(10);
  });

  test(`reads a reply that the client's middleware has read a copy of, and ends its silence, ${way}`, async () => {
    const read: Middleware = async (request, next, { parse }) => {
      const response = await next(request);
      if (!onText) void parse(response).catch(() => {});
      else response.clone();
      return response;
    };
    const options = { middleware: [read] };
    const { llmCall } = await open([reply(TEXT), partly(TEXT, hold)], options, { idleMs: 100 });
    expect(await llmCall("Hi", { onText })).toBe(TEXT);
    expect(await rejection(llmCall("Hi", { onText }))).toBeInstanceOf(APIConnectionTimeoutError);
  });
}

test.for([
  ["the API's pings", event("ping", {})],
  ["comments", ": still here\n\n"],
])("keeps a stream open that has only %s for longer than idleMs", async ([, sign = ""]) => {
  const answer = partly(TEXT, after(10, 40, sign, finish));
  const { llmCall } = await open(answer, {}, { idleMs: 300 });
  const pieces: string[] = [];
  expect(await llmCall("Hi", { onText: (text) => pieces.push(text) })).toBe(TEXT);
  expect(pieces).toEqual(["Hello ", "there"]);
});

test("ends a stream that falls silent after its pings", async () => {
  const answer = partly(TEXT, after(3, 20, event("ping", {}), hold));
  const { server, llmCall } = await open(answer, {}, { idleMs: 200 });
  const error = await rejection(llmCall("Hi", { onText: () => {} }));
  expect(error).toBeInstanceOf(APIConnectionTimeoutError);
  await server.requests[0]?.gone;
});

test("rejects with the API's error that comes in the middle of a stream, and asks no second time", async () => {
  const overloaded = { error: { type: "overloaded_error", message: "Overloaded" } };
  const answer = partly(TEXT, ({ response }) => void response.end(event("error", overloaded)));
  const { server, llmCall } = await open(answer, { maxRetries: 2 });
  const error = await rejection(llmCall("Hi", { onText: () => {} }));
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status: undefined, type: "overloaded_error" });
  expect(server.requests).toHaveLength(1);
});

test("rejects wherever a stream is cut off, with the text so far", async () => {
  const events = eventsOf({ ...message(TEXT) });
  const texts = ["", "", "", "Hello ", TEXT, TEXT, TEXT];
  expect(texts).toHaveLength(events.length);
  for (const [count, text] of texts.entries()) {
    const { llmCall } = await open(({ response }) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(events.slice(0, count).join(""));
    });
    const error = await rejection(llmCall("Hi", { onText: () => {} }));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ text, stopReason: null });
  }
});

test("rejects wherever a body in one piece is cut off", async () => {
  const json = JSON.stringify(message(TEXT));
  for (let length = 0; length < json.length; length += 20) {
    const { llmCall } = await open(({ response }) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(json.slice(0, length));
    });
    const error = await rejection(llmCall("Hi"));
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ text: json.slice(0, length) });
  }
});

test.for([
  ["stays open", hold],
  ["is lost", lose],
  ["goes on with pings", after(1000, 10, event("ping", {}), hold)],
] as const)("gives a reply whose stream is complete though the connection %s", async ([, then]) => {
  const { server, llmCall } = await open(complete("\n", then), {}, { idleMs: 300 });
  const pieces: string[] = [];
  expect(await llmCall("Hi", { onText: (text) => pieces.push(text) })).toBe(TEXT);
  expect(pieces).toEqual(["Hello ", "there"]);
  await server.requests[0]?.gone;
  expect(server.requests).toHaveLength(1);
});

test.for([
  ["by line feeds", "\n", 1],
  ["by line feeds, cut anywhere", "\n", 7],
  ["by carriage returns and line feeds, cut anywhere", "\r\n", 7],
  ["by carriage returns and line feeds, byte by byte", "\r\n", 1000],
] as const)("finds the end of a stream whose lines are ended %s", async ([, newline, pieces]) => {
  const { llmCall } = await open(complete(newline, hold, pieces), {}, { idleMs: 1000 });
  expect(await llmCall("Hi", { onText: () => {} })).toBe(TEXT);
});

test("doesn't take a stream whose pieces don't fit together for a reply", async () => {
  const misplaced: Answer = ({ response }) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = eventsOf({ ...message(TEXT) }).join("");
    response.end(events.replace(/("content_block_delta","index":)0/, "$17"));
  };
  const { llmCall } = await open(misplaced);
  const error = await rejection(llmCall("Hi", { onText: () => {} }));
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toMatchObject({ path: "call", text: expect.any(String) });
});

test("doesn't take a text about a stream's end for its end", async () => {
  const text = "event: message_stop\ndata: {}\n\nevent: message_stop\n\n goes on";
  const { llmCall } = await open(reply(text));
  expect(await llmCall("Hi", { onText: () => {} })).toBe(text);
});

test("uses a connection again whose stream has come to its end", async () => {
  const sockets = new Set<unknown>();
  const answer: Answer = (exchange) => {
    sockets.add(exchange.response.socket);
    reply(TEXT)(exchange);
  };
  const { llmCall } = await open(answer);
  for (let i = 0; i < 5; i += 1) {
    await llmCall("Hi", { onText: () => {} });
    await setImmediate();
  }
  expect(sockets.size).toBeLessThan(5);
});

/** Where a call can be when it's aborted: what the server does, and when that moment has come. */
const moments: readonly {
  readonly moment: string;
  readonly answers: readonly Answer[];
  readonly come: (seen: Seen) => Promise<unknown>;
  /** The request whose connection is closed by it, if one is open. */
  readonly closes: boolean;
}[] = [
  {
    moment: "while it waits for the headers",
    answers: [hold],
    come: ({ request }) => request,
    closes: true,
  },
  {
    moment: "during the wait before a retry",
    answers: [fails(429, { "retry-after": "60" })],
    come: ({ retry }) => retry,
    closes: false,
  },
  {
    moment: "during the wait before a retry that the server didn't set",
    answers: [fails(529)],
    come: ({ retry }) => retry,
    closes: false,
  },
  {
    moment: "while it waits for the headers of a retry",
    answers: [fails(429, { "retry-after-ms": "1" }), hold],
    come: ({ second }) => second,
    closes: true,
  },
  {
    moment: "after the headers",
    answers: [silent],
    come: ({ headers }) => headers,
    closes: true,
  },
  {
    moment: "in the middle of the body",
    answers: [partly(TEXT, hold)],
    come: ({ piece }) => piece,
    closes: true,
  },
  {
    moment: "in the body of an error",
    answers: [({ response }) => void response.writeHead(400).write('{"type":"er')],
    come: ({ headers }) => headers,
    closes: true,
  },
];

/** What the call has come to, as promises. */
interface Seen {
  readonly request: Promise<unknown>;
  readonly second: Promise<unknown>;
  /** The client has got the headers. */
  readonly headers: Promise<unknown>;
  /** It has got a piece of the body: in a stream the first text, else what came with the headers. */
  readonly piece: Promise<unknown>;
  /** It waits before it tries again. */
  readonly retry: Promise<unknown>;
}

const reasons = [
  { kind: "an error", reason: new Error("enough") },
  { kind: "a text", reason: "enough" },
  { kind: "null", reason: null },
  { kind: "no reason", reason: undefined },
];

for (const { way, onText } of ways) {
  for (const { moment, answers, come, closes } of moments) {
    test.for(reasons)(
      `rejects with the reason of an abort ${moment}: $kind, ${way}`,
      async ({ reason }) => {
        const headers = defer();
        const text = defer();
        const retry = defer();
        const { server, llmCall } = await open(answers, {
          maxRetries: 2,
          logLevel: "debug",
          logger: spy((line) => {
            if (/retrying, \d attempts remaining\)/.test(line)) retry.resolve();
          }),
          fetch: async (url, init) => {
            const response = await fetch(url, init);
            headers.resolve();
            return response;
          },
        });
        const controller = new AbortController();
        const call = rejection(
          llmCall("Hi", {
            signal: controller.signal,
            onText: onText && text.resolve,
          }),
        );
        await come({
          request: server.received(1),
          second: server.received(2),
          headers: headers.promise,
          piece: onText ? text.promise : headers.promise,
          retry: retry.promise,
        });
        await setImmediate();
        controller.abort(reason);
        const error = await call;
        expect(error).toBe(controller.signal.reason);
        if (reason === undefined) expect(error).toBeInstanceOf(DOMException);
        expect(server.requests).toHaveLength(answers.length);
        if (closes) await server.requests.at(-1)?.gone;
      },
    );
  }

  test.for(reasons)(
    `makes no request under a signal that has fired: $kind, ${way}`,
    async ({ reason }) => {
      const { server, llmCall } = await open(reply(TEXT));
      const signal = AbortSignal.abort(reason);
      expect(await rejection(llmCall("Hi", { signal, onText }))).toBe(signal.reason);
      expect(server.requests).toEqual([]);
    },
  );

  test(`bounds the whole call, retries and all, with a signal that times out, ${way}`, async () => {
    const { server, llmCall } = await open(fails(429, { "retry-after-ms": "20" }), {
      maxRetries: 1000,
    });
    // As AbortSignal.timeout() does it, but after the first retry, however busy the machine is.
    const controller = new AbortController();
    const ended = rejection(llmCall("Hi", { signal: controller.signal, onText }));
    await server.received(2);
    const timeout = new DOMException("The operation was aborted due to timeout", "TimeoutError");
    controller.abort(timeout);
    expect(await ended).toBe(timeout);
  });

  test(`aborts the one call and leaves another beside it alone, ${way}`, async () => {
    const { server, llmCall } = await open(hold);
    const controller = new AbortController();
    const aborted = rejection(llmCall("a", { signal: controller.signal, onText }));
    const first = await server.received(1);
    const kept = llmCall("b", { onText });
    const second = await server.received(2);
    controller.abort("enough");
    expect(await aborted).toBe("enough");
    await first.gone;
    reply(TEXT)(second);
    expect(await kept).toBe(TEXT);
  });
}

test("rejects with the reason when onText itself aborts, on the last piece too", async () => {
  for (const at of ["Hello ", "there"]) {
    const { llmCall } = await open(reply(TEXT));
    const controller = new AbortController();
    const onText = (text: string) => {
      if (text === at) controller.abort("enough");
    };
    expect(await rejection(llmCall("Hi", { signal: controller.signal, onText }))).toBe("enough");
  }
});

/** A complete stream, in so many pieces, and then what comes after it. */
function complete(newline: string, then: Answer, pieces = 1): Answer {
  return async (exchange) => {
    const { response } = exchange;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const text = eventsOf({ ...message(TEXT) }).join("");
    const bytes = Buffer.from(text.replaceAll("\n", newline));
    const size = Math.ceil(bytes.length / pieces);
    for (let at = 0; at < bytes.length; at += size) {
      response.write(bytes.subarray(at, at + size));
      await setImmediate();
    }
    then(exchange);
  };
}

/** The headers, and then the connection is gone. */
function lostAfterHeaders(exchange: Exchange): void {
  silent(exchange);
  globalThis.setImmediate(() => lose(exchange));
}

/** A body that ends before its content-length. */
function shorterThanSaid({ response, body }: Exchange): void {
  const type = body.stream ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type, "content-length": "1000" });
  response.write("{", () => response.socket?.end());
}

/** A whole reply, every byte written by itself. */
function bytewise(text: string): Answer {
  return async ({ response, body }) => {
    const type = body.stream ? "text/event-stream" : "application/json";
    response.writeHead(200, { "content-type": type });
    const whole = { ...message(text) };
    const bytes = Buffer.from(body.stream ? eventsOf(whole).join("") : JSON.stringify(whole));
    for (const byte of bytes) {
      response.write(Buffer.of(byte));
      await setImmediate();
    }
    response.end();
  };
}

function defer() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** A logger that hands on each line. */
function spy(onLine: (line: string) => void) {
  const log = (line: string) => onLine(line);
  return { error: log, warn: log, info: log, debug: log };
}
