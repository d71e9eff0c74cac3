/** The gallery's server: who may ask it, what it tells of a run, and that a run ends when it's told to. */

import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { type Live, startLive } from "./shared/live.ts";
import { type Answer, fails, hold, reply } from "./shared/server.ts";

const LABEL = reply("<label>billing</label>");
const PAGES = new Map([
  ["index.html", "the first page"],
  ["route.html", "the page of route"],
]);

const live = (answers: [Answer, ...Answer[]] = [LABEL], capUsd?: number) =>
  startLive(PAGES, answers, capUsd);

/** Posts as the server's own page does, but for what is given. */
function post(
  { url }: Live,
  path: string,
  body: unknown,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
) {
  return fetch(new URL(path, url), {
    method: "POST",
    headers: { origin: new URL(url).origin, "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });
}

interface Told {
  readonly event: string;
  // What a test looks into.
  readonly data: Readonly<Record<string, unknown>>;
}

/** The events of a response as they come. */
async function* eventsOf(response: Response): AsyncGenerator<Told> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const [event = "", data = ""] = block.split("\n").map((line) => line.replace(/^\w+: /, ""));
      yield { event, data: JSON.parse(data) };
    }
  }
}

async function allOf(response: Response): Promise<Told[]> {
  const told: Told[] = [];
  for await (const one of eventsOf(response)) told.push(one);
  return told;
}

/** The answer to a request with such headers, which `fetch` wouldn't send. */
async function raw(port: number, headers: Record<string, string>, method = "GET") {
  const sent = request({ host: "127.0.0.1", port, path: "/", method, headers }).end();
  const [response] = await once(sent, "response");
  response.resume();
  return response.statusCode;
}

// Pages

test("serves the pages, with the first one at the root", async () => {
  const { url } = await live();
  const [first, route, none] = await Promise.all(
    ["", "route.html", "../package.json"].map((path) => fetch(url + path)),
  );
  expect([first?.status, await first?.text()]).toEqual([200, "the first page"]);
  expect([route?.status, await route?.text()]).toEqual([200, "the page of route"]);
  expect(none?.status).toBe(404);
  expect(Object.fromEntries(first?.headers ?? [])).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
  });
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

// Who may ask

test("answers on 127.0.0.1 under its own name only", async () => {
  const { url, port } = await live();
  expect(url).toBe(`http://127.0.0.1:${port}/`);
  expect(await raw(port, { host: `127.0.0.1:${port}` })).toBe(200);
  expect(await raw(port, { host: `localhost:${port}` })).toBe(200);
  for (const host of [
    "evil.example",
    `evil.example:${port}`,
    "127.0.0.1",
    `127.0.0.1:${port + 1}`,
  ]) {
    expect(await raw(port, { host }), host).toBe(403);
  }
});

test.for(["http://evil.example", "null", "https://127.0.0.1", ""])(
  "runs nothing for a page from %j",
  async (origin) => {
    const server = await live();
    for (const path of ["/api/run", "/api/stop"]) {
      const response = await post(
        server,
        path,
        { pattern: "route", input: "Hi" },
        { headers: { origin } },
      );
      expect([response.status, await response.text()]).toEqual([
        403,
        "This page is not the server's own",
      ]);
    }
    expect(server.api.requests).toEqual([]);
  },
);

test("shows no page to another one, and runs nothing without an Origin", async () => {
  const { port, api } = await live();
  const host = `127.0.0.1:${port}`;
  expect(await raw(port, { host, origin: "http://evil.example" })).toBe(403);
  expect(await raw(port, { host }, "POST")).toBe(403);
  expect(await raw(port, { host, origin: `http://localhost:${port}` }, "POST")).toBe(403);
  expect(api.requests).toEqual([]);
});

test.for<[string, unknown, Record<string, string>, number, string]>([
  ["a form", "a=b", { "content-type": "text/plain" }, 415, "A request's body must be JSON"],
  ["no JSON", "{", {}, 400, "The body isn't JSON"],
  ["no input", { pattern: "route", input: " " }, {}, 400, "The input is empty"],
  ["an input of another kind", { pattern: "route", input: 1 }, {}, 400, "The input is empty"],
  [
    "an unknown pattern",
    { pattern: "refund", input: "a" },
    {},
    404,
    'There is no pattern "refund" to run here',
  ],
  [
    "the prototype's pattern",
    { pattern: "constructor", input: "a" },
    {},
    404,
    'There is no pattern "constructor" to run here',
  ],
  ["null", "null", {}, 404, 'There is no pattern "undefined" to run here'],
  [
    "too much",
    { pattern: "route", input: "a".repeat(300_000) },
    {},
    413,
    "The input is longer than 200,000 bytes",
  ],
])("refuses %s", async ([, body, headers, status, message]) => {
  const server = await live();
  const response = await post(server, "/api/run", body, { headers });
  expect([response.status, await response.text()]).toEqual([status, message]);
  expect(server.api.requests).toEqual([]);
});

test("refuses too much that comes piece by piece", async () => {
  const { port, api } = await live();
  const host = `127.0.0.1:${port}`;
  const headers = { host, origin: `http://${host}`, "content-type": "application/json" };
  const sent = request({ host: "127.0.0.1", port, path: "/api/run", method: "POST", headers });
  for (let piece = 0; piece < 30; piece += 1) sent.write("a".repeat(100_000));
  sent.end();
  const [response] = await once(sent, "response");
  expect([response.statusCode, await text(response)]).toEqual([
    413,
    "The input is longer than 200,000 bytes",
  ]);
  expect(api.requests).toEqual([]);
});

// A run

test("tells of each step as it starts and ends, of what was spent, and of the result", async () => {
  const server = await live([LABEL, reply("Dear customer, …")]);
  const told = await allOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  expect(told[0]).toEqual({ event: "run", data: { run: expect.any(String) } });
  const steps = told.filter(({ event }) => event === "step").map(({ data }) => data);
  expect(steps.map(({ path, outcome }) => [path, outcome])).toEqual([
    ["route", "unfinished"],
    ["route/classify", "unfinished"],
    ["route/classify", "unfinished"],
    ["route/classify", "unfinished"],
    ["route/classify", "ok"],
    ["route/billing", "unfinished"],
    ["route/billing", "unfinished"],
    ["route/billing", "unfinished"],
    ["route/billing", "ok"],
    ["route", "ok"],
  ]);
  expect(steps[4]).toMatchObject({
    value: { name: "billing" },
    calls: [{ outcome: "ok", sent: true, usage: { input_tokens: 12, output_tokens: 3 } }],
  });
  const spent = told.filter(({ event }) => event === "spent").map(({ data }) => data);
  expect(spent[0]).toEqual({
    usd: 0,
    reservedUsd: 0,
    unsettledUsd: 0,
    leftUsd: 0.5,
    paysCall: true,
  });
  const usd = (2 * (12 * 2 + 3 * 10)) / 1e6;
  expect(spent.at(-1)).toMatchObject({ usd: expect.closeTo(usd, 12) });
  expect(told.at(-1)).toMatchObject({
    event: "end",
    data: { result: { route: "billing" }, words: expect.stringContaining("Dear customer") },
  });
});

test("never tells the key", async () => {
  const server = await live([fails(401)]);
  const told = await allOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  expect(JSON.stringify(told)).toContain("error 401");
  expect(JSON.stringify(told)).not.toMatch(/test-key|authorization|x-api-key/i);
});

test("says why a run has failed, and goes on serving", async () => {
  const server = await live([fails(400), LABEL]);
  const failed = await allOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  expect(failed.at(-1)).toEqual({
    event: "end",
    data: { error: "The API answered 400: error 400" },
  });
  const next = await allOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  expect(next.at(-1)?.data).toHaveProperty("result");
});

test("spends no more than the cap, over all runs", async () => {
  const server = await live(
    [reply("<label>billing</label>", { usage: { input_tokens: 0, output_tokens: 15_000 } })],
    0.4,
  );
  const one = () => post(server, "/api/run", { pattern: "route", input: "Hello?" }).then(allOf);
  await one();
  const told = await one();
  const error = "A call may cost more than is left of $0.4000: start it again with --budget";
  expect(told.at(-1)).toMatchObject({ data: { error } });
  expect(server.api.requests).toHaveLength(2);
  // A page that is opened later is told what the others have spent.
  const spent = await fetch(new URL("/api/spent", server.url));
  expect(await spent.json()).toMatchObject({
    usd: expect.closeTo(0.3, 5),
    leftUsd: expect.closeTo(0.1, 5),
  });
});

test("answers an address that is none", async () => {
  const { port } = await live([LABEL]);
  const answer = await new Promise<string>((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(`GET // HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: close\r\n\r\n`);
    });
    socket.setEncoding("utf8").on("data", resolve);
  });
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
});

/** The run's events up to one of that kind; the rest stays open. */
async function until(events: AsyncGenerator<Told>, event: string): Promise<Told> {
  for (;;) {
    const { value, done } = await events.next();
    if (done) throw new Error(`The run has ended without ${event}`);
    if (value.event === event) return value;
  }
}

test("a stopped run cancels its calls, and no other run's", async () => {
  const server = await live([hold]);
  const start = async () =>
    eventsOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  const [first, second] = [await start(), await start()];
  const { data } = await until(first, "run");
  await server.api.received(2);
  const stopped = await post(server, "/api/stop", data);
  expect(stopped.status).toBe(204);
  expect((await until(first, "end")).data).toEqual({ error: "Stopped" });
  await Promise.race(server.api.requests.map(({ gone }) => gone));
  const other = await until(second, "run");
  await post(server, "/api/stop", other.data);
  expect((await until(second, "end")).data).toEqual({ error: "Stopped" });
});

test("says what a cancelled call may have cost, and whether what is left pays another", async () => {
  const server = await live([hold], 0.3);
  const events = eventsOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  const { data } = await until(events, "run");
  await server.api.received(1);
  await post(server, "/api/stop", data);
  let spent = {};
  for await (const { event, data } of events) {
    if (event === "spent") spent = data;
  }
  expect(spent).toHaveProperty(
    "unsettledUsd",
    expect.toSatisfy((usd) => usd > 0.16),
  );
  expect(spent).toMatchObject({ usd: 0, paysCall: false });
  // What a pattern's calls may cost isn't known before one was seen.
  const spentFor = async (pattern: string) =>
    (await fetch(new URL(`/api/spent?pattern=${pattern}`, server.url))).json();
  expect(await spentFor("route")).toEqual(spent);
  expect(await spentFor("vote")).toEqual({ ...spent, paysCall: true });
});

test("whoever closes the page cancels the calls", async () => {
  const server = await live([hold]);
  const leave = new AbortController();
  const { signal } = leave;
  await post(server, "/api/run", { pattern: "route", input: "Hello?" }, { signal });
  const call = await server.api.received(1);
  leave.abort();
  await call.gone;
});

test("an end of the server ends all runs, and then it is closed", async () => {
  const server = await live([hold]);
  const events = eventsOf(await post(server, "/api/run", { pattern: "route", input: "Hello?" }));
  const call = await server.api.received(1);
  server.end(new Error("interrupted"));
  await call.gone;
  expect((await until(events, "end")).data).toEqual({ error: "Stopped" });
  await server.closed;
  await expect(fetch(server.url)).rejects.toThrow();
});
