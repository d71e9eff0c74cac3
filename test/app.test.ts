/** The app: its page, a ticket as a request, who leaves, what it spends, and the trace that it sends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestOptions, request, type Server } from "node:http";
import { connect } from "node:net";
import { json } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createLlm, type Llm } from "../patterns/llm-call.ts";
import { createTicketServer } from "../runners/app/server.ts";
import { job } from "../runners/route.ts";
import { ROOT } from "./shared/runner.ts";
import { fails, hold, reply, startServer } from "./shared/server.ts";

const LABEL = reply("<label>other</label>");

/** Starts the app's server, or any other, and gives its address. */
async function listen(server: Server): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

const start = (llm: Llm) => listen(createTicketServer("<p>the page</p>", () => llm));

/** Posts a ticket, and gives the events that come back. */
async function post(url: string, ticket: string) {
  const response = await fetch(url, { method: "POST", body: ticket });
  const events = (await response.text()).trimEnd().split("\n\n");
  return {
    status: response.status,
    type: response.headers.get("content-type"),
    events: events.map((event) => {
      const [, name, data = ""] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      return [name, JSON.parse(data)] as const;
    }),
  };
}

test("shows the page", async () => {
  const model = await startServer(LABEL);
  const response = await fetch(await start(createLlm({ client: model.client() })));
  expect(response.headers.get("content-type")).toContain("text/html");
  expect(await response.text()).toBe("<p>the page</p>");
});

test.for<[string, RequestOptions, number]>([
  ["another site's page", { method: "POST", headers: { origin: "http://evil.example" } }, 403],
  [
    "a name that leads here",
    { method: "POST", headers: { host: "evil.example", origin: "http://evil.example" } },
    403,
  ],
  ["another path", { method: "POST", path: "/tickets" }, 404],
  ["another method", { method: "PUT" }, 405],
])("refuses %s", async ([, options, status]) => {
  const model = await startServer(LABEL);
  const url = await start(createLlm({ client: model.client() }));
  const [response] = await once(request(url, options).end("Hi"), "response");
  expect([response.statusCode, model.requests.length]).toEqual([status, 0]);
});

test("sends each step as it starts and ends, then the result and what it cost", async () => {
  const model = await startServer(LABEL);
  const { status, type, events } = await post(
    await start(createLlm({ client: model.client() })),
    "Hi",
  );
  expect([status, type]).toEqual([200, "text/event-stream"]);
  const ended = (path: string) => ["end", { path, ms: expect.any(Number) }];
  expect(events).toEqual([
    ["start", { path: "route" }],
    ["start", { path: "route/classify" }],
    ended("route/classify"),
    ["start", { path: "route/other" }],
    ended("route/other"),
    ended("route"),
    [
      "result",
      {
        route: "other",
        output: { queue: "first level" },
        fellBack: false,
        usd: expect.closeTo(54e-6),
      },
    ],
  ]);
});

test("sends an error as an event", async () => {
  const model = await startServer(fails(400));
  const { events } = await post(await start(createLlm({ client: model.client() })), "Hi");
  expect(events.at(-1)).toEqual(["error", { message: expect.stringContaining("400") }]);
});

test("pays no more for a request than its budget, and the next has its own", async () => {
  const model = await startServer(LABEL);
  // What one call may cost at most is the larger part of the budget, or more than it.
  const [little, much] = [20_000, 30_000].map((max_tokens) =>
    start(createLlm({ client: model.client(), max_tokens })),
  );
  const dear = await post(await (much ?? ""), "Hi");
  expect(dear.events.at(-1)).toEqual([
    "error",
    { message: expect.stringContaining("BudgetError") },
  ]);
  expect(model.requests).toEqual([]);
  const url = await (little ?? "");
  for (const _ of [1, 2]) expect((await post(url, "Hi")).events.at(-1)?.[0]).toBe("result");
});

test.for(["", " \n", "x".repeat(20_001), "x".repeat(2 ** 20)])(
  "refuses no ticket, and too much of one, unasked (%#)",
  async (ticket) => {
    const model = await startServer(LABEL);
    const { status, events } = await post(
      await start(createLlm({ client: model.client() })),
      ticket,
    );
    expect(status).toBe(400);
    expect(events).toEqual([["error", { message: expect.stringContaining("1 to 20000") }]]);
    expect(model.requests).toEqual([]);
  },
);

test("cancels the calls of a reader who leaves", async () => {
  const model = await startServer(hold);
  const url = await start(createLlm({ client: model.client() }));
  const leave = new AbortController();
  const response = fetch(url, { method: "POST", body: "Hi", signal: leave.signal });
  const { gone } = await model.received(1);
  await response;
  leave.abort();
  await gone;
});

test("takes no harm from a reader who leaves in the middle of the request", async () => {
  const model = await startServer(LABEL);
  const server = createTicketServer("", () => createLlm({ client: model.client() }));
  const url = await listen(server);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const [request] = await Promise.all([
    once(server, "request").then(([request]) => request),
    socket.write("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nHi"),
  ]);
  const closed = new Promise((resolve) => request.on("close", resolve));
  socket.destroy();
  await closed;
  expect((await post(url, "Hi")).events.at(-1)?.[0]).toBe("result");
});

/** Starts the app as `npm run app` does, and gives the first line that it prints. */
async function startApp(env: Record<string, string>) {
  const args = ["--import", "@anthropic-ai/sdk", "--import", "tsx", "runners/app/main.ts"];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PORT: "0", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  return { child, line: String(line), url: String(line).split(" ")[0] ?? "" };
}

async function ended(child: ChildProcess): Promise<number | null> {
  const closed = once(child, "close");
  child.kill("SIGTERM");
  const [code] = await closed;
  return code;
}

/** What the exporter sends, as far as it matters here. */
interface Spans {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly object[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
      }[];
    }[];
  }[];
}

test("without a key it replays its ticket, again and again, and traces it", async () => {
  const exported: Spans[] = [];
  const collector = await listen(
    createServer(async (request, response) => {
      exported.push((await json(request)) as Spans);
      response.end("{}");
    }),
  );
  const { child, line, url } = await startApp({
    PACE: "0",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector,
    OTEL_SERVICE_NAME: "tickets",
  });
  expect(line).toMatch(/^http:\/\/localhost:\d+ {2}replays one ticket; set ANTHROPIC_API_KEY/);
  const page = await (await fetch(url)).text();
  expect(page).toContain(job.input.slice(0, 80));
  for (const _ of [1, 2]) {
    const { events } = await post(url, job.input);
    expect(events.at(-1)).toEqual(["result", expect.objectContaining({ route: "bug", usd: 0 })]);
  }
  expect((await post(url, "Another")).events.at(-1)?.[1].message).toContain("has changed since");
  expect(await ended(child)).toBe(143);

  // The last of them before it ended.
  const resourceSpans = exported.flatMap(({ resourceSpans }) => resourceSpans);
  expect(resourceSpans[0]?.resource.attributes).toContainEqual({
    key: "service.name",
    value: { stringValue: "tickets" },
  });
  const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
  const route = spans.find(({ name }) => name === "route");
  const classify = spans.find(({ name }) => name === "route/classify");
  const call = spans.find(({ name }) => name === "anthropic.messages.create");
  expect(classify?.parentSpanId).toBe(route?.spanId);
  expect(call?.parentSpanId).toBe(classify?.spanId);
});

test("with a key it asks the API", async () => {
  const model = await startServer(LABEL);
  const { child, line, url } = await startApp({
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "none",
    ANTHROPIC_MODEL: "claude-opus-5-5",
  });
  expect(line).toContain("calls the API");
  expect((await post(url, "Hi")).events.at(-1)?.[1]).toMatchObject({ route: "other" });
  expect(model.requests[0]?.body.model).toBe("claude-opus-5-5");
  expect(await ended(child)).toBe(143);
});
