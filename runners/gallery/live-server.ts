/**
 * Serves the gallery on this computer, and runs patterns for its pages.
 *
 *     GET /route.html                      the page, with a panel to run the pattern
 *     POST /api/run {pattern, input}  ─►   events: run, step, text, spent, end
 *     POST /api/stop {run}            ─►   stops it; so does closing the connection
 *     GET /api/spent?pattern=route    ─►   what was spent, as the event of that name tells it
 *
 * It listens on 127.0.0.1 alone. Any page that is open in the browser could send requests there, and any
 * name could be made to lead there, so Host and Origin must be its own. The key stays in this process.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BudgetError } from "../../patterns/errors.ts";
import type { Budget } from "../../patterns/layers/budget.ts";
import type { RunEvent } from "../../patterns/step.ts";
import { plain } from "../../patterns/trace-file/plain.ts";
import { collectTrace } from "../../patterns/trace-file.ts";
import { explain } from "../shared/explain.ts";
import type { Job } from "../shared/job.ts";
import { type LoadJob, runJob } from "../shared/perform.ts";
import type { Source } from "../shared/source.ts";
import { dollars } from "../shared/words.ts";
import type { Site } from "./site.ts";
import { createSpending, type Spending } from "./spending.ts";

export interface LiveSettings {
  readonly site: Site;
  /** What may be run, by name. */
  readonly jobs: ReadonlyMap<string, LoadJob>;
  readonly source: Source;
  /** What all runs together may spend: the source's. */
  readonly budget: Budget;
  /** How much that is, in US dollars. */
  readonly capUsd: number;
  /** 0 for any that is free. */
  readonly port: number;
  /** Ends the server, and all that it runs. */
  readonly signal: AbortSignal;
}

export interface LiveServer {
  readonly url: string;
  /** Resolves when it has ended, and all that it ran. */
  readonly closed: Promise<void>;
}

/** The longest request that is read, in bytes. */
const MAX_BODY = 200_000;

/** What requests are answered from. */
interface Served extends LiveSettings {
  /** What stops the runs under way, by their ids. */
  readonly runs: Map<string, AbortController>;
  readonly spending: Spending;
}

/** What a request is answered with instead of what it asks for. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Starts the server. Throws what Node does where the port is taken. */
export async function startLiveServer(settings: LiveSettings): Promise<LiveServer> {
  const { port, signal, budget, capUsd } = settings;
  const runs = new Map<string, AbortController>();
  const served = { ...settings, runs, spending: createSpending(budget, capUsd) };
  const server = createServer((request, response) => {
    answer(request, response, served).catch((error: unknown) => {
      const { status, message } =
        error instanceof Refusal ? error : new Refusal(500, explain(error));
      if (!response.headersSent)
        response.writeHead(status, { "content-type": "text/plain; charset=utf-8" });
      response.end(message);
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  signal.addEventListener(
    "abort",
    () => {
      for (const run of runs.values()) run.abort(signal.reason);
      server.close();
      server.closeIdleConnections();
    },
    { once: true },
  );
  const { port: taken } = server.address() as AddressInfo; // it listens on a port, not on a pipe
  return {
    url: `http://127.0.0.1:${taken}/`,
    closed: once(server, "close").then(() => {}),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  served: Served,
): Promise<void> {
  const { pathname, searchParams } = checkAddress(request);
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("cache-control", "no-store");
  response.setHeader("cross-origin-resource-policy", "same-origin");
  response.setHeader("content-security-policy", "frame-ancestors 'none'");
  if (request.method === "GET" && pathname === "/api/spent") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(served.spending.of(searchParams.get("pattern") ?? "")));
    return;
  }
  if (request.method === "GET" || request.method === "HEAD") {
    const page = served.site.get(pathname === "/" ? "index.html" : pathname.slice(1));
    if (page === undefined) throw new Refusal(404, "There is no such page");
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(request.method === "GET" ? page : undefined);
    return;
  }
  if (request.method !== "POST") throw new Refusal(405, "GET and POST are answered");
  if (pathname === "/api/run") return run(await readBody(request), response, served);
  if (pathname === "/api/stop") {
    const { run } = await readBody(request);
    served.runs.get(String(run))?.abort(new Error("stopped"));
    response.writeHead(204).end();
    return;
  }
  throw new Refusal(404, "There is no such address");
}

/** Throws unless the request is meant for this server, and a post comes from one of its own pages. */
function checkAddress({ headers, method, socket, url = "/" }: IncomingMessage): URL {
  const { host = "", origin } = headers;
  const own = [`127.0.0.1:${socket.localPort}`, `localhost:${socket.localPort}`];
  if (!own.includes(host)) throw new Refusal(403, "This server answers on 127.0.0.1 only");
  const isOwn = origin === `http://${host}`;
  const mustTell = method !== "GET" && method !== "HEAD";
  if (!isOwn && (mustTell || origin !== undefined))
    throw new Refusal(403, "This page is not the server's own");
  if (!URL.canParse(url, `http://${host}`)) throw new Refusal(400, "That is no address");
  return new URL(url, `http://${host}`);
}

/** The fields of a body in JSON. */
async function readBody(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? "")) {
    throw new Refusal(415, "A request's body must be JSON");
  }
  const body = await textOf(request);
  try {
    return Object(JSON.parse(body));
  } catch {
    throw new Refusal(400, "The body isn't JSON");
  }
}

/** The text of a body. What is beyond the limit is let go by, so that its sender gets to hear of it. */
async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size <= MAX_BODY) chunks.push(chunk);
  }
  if (size > MAX_BODY)
    throw new Refusal(413, `The input is longer than ${MAX_BODY.toLocaleString("en")} bytes`);
  return Buffer.concat(chunks).toString();
}

async function run(
  { pattern, input }: Readonly<Record<string, unknown>>,
  response: ServerResponse,
  served: Served,
): Promise<void> {
  const name = String(pattern);
  const load = served.jobs.get(name);
  if (!load) throw new Refusal(404, `There is no pattern "${name}" to run here`);
  if (typeof input !== "string" || input.trim() === "")
    throw new Refusal(400, "The input is empty");
  const { job } = await load();
  const id = randomUUID();
  const stop = new AbortController();
  served.runs.set(id, stop);
  // Whoever has left is answered no more, and nothing more is spent for them.
  response.on("close", () => stop.abort(new Error("the page was closed")));
  // Not kept for a next request: the server's end would wait for it.
  response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
  const send = (event: string, data: unknown) => {
    if (!response.writableEnded)
      response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  send("run", { run: id });
  try {
    send("end", await runTold(name, job, input, served, stop.signal, send));
  } catch (error) {
    const isOver = error instanceof BudgetError;
    const why = isOver
      ? `A call may cost more than is left of ${dollars(served.capUsd)}: start it again with --budget`
      : explain(error);
    send("end", { error: stop.signal.aborted ? "Stopped" : why });
  } finally {
    served.runs.delete(id);
    response.end();
  }
}

/** Runs a job, and tells of each step as it changes. */
async function runTold(
  name: string,
  job: Job,
  input: string,
  { source, spending }: Served,
  signal: AbortSignal,
  send: (event: string, data: unknown) => void,
) {
  const trace = collectTrace();
  const sendSpent = () => send("spent", spending.of(name));
  const onEvent = (event: RunEvent) => {
    if (event.type === "text") return send("text", { path: event.path, text: event.text });
    trace.onEvent(event);
    spending.notice(name, event);
    const step = trace.steps().find(({ path }) => path === event.path);
    if (step) send("step", plain(step));
    if (event.type === "end") sendSpent();
  };
  sendSpent();
  // A job that asks a person isn't run here.
  const asking = () => () => "no";
  const left = () => spending.of(name).leftUsd;
  const around = { mode: "live", left, asking, suspension: undefined, signal, onEvent } as const;
  const { result, words } = await runJob(job, input, source, around);
  sendSpent();
  return { result: plain(result), words };
}
