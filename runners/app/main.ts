/**
 * Starts the app.
 *
 *     npm run app                          replays a ticket: no key, no network
 *     ANTHROPIC_API_KEY=… npm run app      calls the API
 *
 * PORT is 3000 by default, and PACE, the multiple of the recorded time that a replay takes, 1. With an
 * OTEL_EXPORTER_OTLP_ENDPOINT it sends its traces there.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createLlm } from "../../patterns/llm-call.ts";
import { job } from "../route.ts";
import { openSource } from "../shared/source.ts";
import { createTicketServer } from "./server.ts";
import { startTelemetry } from "./telemetry.ts";

const { ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_MODEL, PACE, PORT } = process.env;
const isLive = Boolean(ANTHROPIC_API_KEY || ANTHROPIC_AUTH_TOKEN);
const stopTelemetry = startTelemetry(process.env);

// A budget reserves what a call may cost at most, and no answer to a ticket is long.
const llm = createLlm({ model: ANTHROPIC_MODEL || undefined, max_tokens: 4_000 });
const file = fileURLToPath(new URL("../recordings/route.jsonl", import.meta.url));
const pace = Number(PACE ?? 1);
// A recording is played once, so each request opens it anew.
const replay = async () => (await openSource({ mode: "replay", file, pace })).door;

const page = await readFile(new URL("page.html", import.meta.url), "utf8");
const ticket = job.input.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const server = createTicketServer(page.replace("{{ticket}}", ticket), isLive ? () => llm : replay);

// For this machine alone: whoever reaches it spends your money.
server.listen(Number(PORT ?? 3000), "127.0.0.1");
await once(server, "listening");
const address = server.address();
const port = typeof address === "object" ? address?.port : undefined;
const mode = isLive ? "calls the API" : "replays one ticket; set ANTHROPIC_API_KEY for your own";
console.log(`http://localhost:${port}  ${mode}`);

const [signal] = await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
server.close();
server.closeAllConnections();
await stopTelemetry();
// At once, whatever a collector still keeps waiting for.
process.exit(signal === "SIGINT" ? 130 : 143);
