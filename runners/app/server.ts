/**
 * The router in a web app: a support ticket is posted, each step comes back as it starts and ends, then
 * the result.
 *
 *     page ── POST ticket ─► request ── its signal, its budget ─► sortTicket ─► model
 *       ▲                                                             │
 *       └──────────────── server-sent events ◄── observe ─────────────┘
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createBudget } from "../../patterns/layers/budget.ts";
import type { Llm } from "../../patterns/llm-call.ts";
import { observe } from "../../patterns/step.ts";
import { sortTicket } from "../route.ts";

const MAX_USD = 0.25;
const MAX_CHARACTERS = 20_000;
/** This machine's names. Where the app is served from elsewhere, it's the site's. */
const HOST = /^(localhost|127\.0\.0\.1)(:\d+)?$/;

type OpenDoor = () => Llm | Promise<Llm>;

/** GET the page, POST a ticket. One door for the process caps the calls in flight. */
export function createTicketServer(page: string, openDoor: OpenDoor) {
  return createServer((request, response) => {
    const { origin, host = "" } = request.headers;
    // Another site's page that is open in the same browser, or a name of its own that leads here.
    const isOwn = origin === undefined || origin === `http://${host}`;
    if (!isOwn || !HOST.test(host)) return response.writeHead(403).end();
    if (request.url !== "/") return response.writeHead(404).end();
    if (request.method === "POST") return answer(request, response, openDoor);
    if (request.method !== "GET") return response.writeHead(405, { allow: "GET, POST" }).end();
    return response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
  });
}

async function answer(request: IncomingMessage, response: ServerResponse, openDoor: OpenDoor) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const send = (event: string, data: unknown) =>
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  try {
    const ticket = await readTicket(request);
    response.writeHead(ticket ? 200 : 400, { "content-type": "text/event-stream" });
    if (!ticket) throw new RangeError(`A ticket has 1 to ${MAX_CHARACTERS} characters`);

    // What this request may spend, on the door that all of them share.
    const budget = createBudget({ usd: MAX_USD });
    const { llmCall: llm } = (await openDoor()).with({ layers: [budget.layer] });
    const result = await observe(
      (event) => {
        if (event.type === "text" || event.kind === "call") return;
        send(event.type, { path: event.path, ...(event.type === "end" && { ms: event.ms }) });
      },
      () => sortTicket(ticket, { llm, signal: gone.signal }),
    );
    send("result", { ...result, usd: budget.spent().usd });
  } catch (error) {
    // Who has left gets no answer, and the calls were cancelled with the connection.
    if (!gone.signal.aborted) send("error", { message: String(error) });
  }
  response.end();
}

/** The whole ticket, unless there is none, or too much of it. */
async function readTicket(request: IncomingMessage): Promise<string | undefined> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    if (text.length <= MAX_CHARACTERS) text += chunk;
  }
  return text.trim() && text.length <= MAX_CHARACTERS ? text : undefined;
}
