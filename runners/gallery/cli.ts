/**
 * The command line of the gallery.
 *
 *   npm run gallery                     makes the pages and opens them in the browser
 *   npm run gallery -- --out site       writes them into a folder
 *   npm run gallery -- run.json         shows a run of one's own: a trace, or an OpenTelemetry export
 *   npm run gallery:live                serves them, with a panel that runs a pattern for real
 *
 * Exit code 0: made; 1: failed; 2: wrong command.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { priceOf } from "../../patterns/cost.ts";
import { createBudget } from "../../patterns/layers/budget.ts";
import type { TraceFile } from "../../patterns/trace-file.ts";
import { JOBS } from "../shared/cli.ts";
import { explain, UsageError, whyUnread } from "../shared/explain.ts";
import { checkKept, readFlags, readModel, readNumber, readPath } from "../shared/flags.ts";
import { harmlessLine } from "../shared/format.ts";
import { interruptible } from "../shared/interrupt.ts";
import { openSource } from "../shared/source.ts";
import type { Output } from "../shared/view.ts";
import { dollars } from "../shared/words.ts";
import { openBrowser } from "./browser.ts";
import { startLiveServer } from "./live-server.ts";
import { type Gallery, ownPage, readGallery } from "./pages.ts";
import { FormatError, readTraces } from "./read-trace.ts";
import { earlierFiles, makeSite, writeSite } from "./site.ts";
import { ROOT } from "./source.ts";

const FLAGS = {
  out: { type: "string" },
  live: { type: "boolean", default: false },
  port: { type: "string" },
  budget: { type: "string" },
  model: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `npm run gallery [run.json …]     make the pages and open them in the browser; needs no key
npm run gallery:live             serve them on this computer, and run patterns from them for real

Flags go behind --, as in: npm run gallery -- --out site
  --out <folder>      write the pages there and open nothing
  --port <number>     live: the port on 127.0.0.1, default any that is free
  --budget <dollars>  live: the most to spend while the server runs, default 0.50
  --model <id>        live: the model (else ANTHROPIC_MODEL, else each pattern's own)

A run of your own: npm run live route -- --trace run.json, then npm run gallery -- run.json`;

/** Where the pages are if nobody says where. */
const CACHE = fileURLToPath(new URL("node_modules/.cache/effective-agents-gallery", ROOT));
/** In US dollars. */
const BUDGET = 0.5;
/** Of a reply that the page asks for. */
const MAX_TOKENS = 4_000;
const HIGHEST_PORT = 65_535;
/** How many traces of somebody's own get a page each. */
const MOST_OWN = 50;

/** Runs a command line, and gives the exit code. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  output: Output = process,
): Promise<number> {
  try {
    checkKept(FLAGS, env, argv.includes("--live") ? "npm run gallery:live" : "npm run gallery");
    const { values, positionals } = readFlags(argv, FLAGS, "npm run gallery -- --help");
    if (values.help) output.stdout.write(`${HELP}\n`);
    else if (values.live) await serve(values, positionals, env, output);
    else await make(values, positionals, env, output);
    return 0;
  } catch (error) {
    output.stderr.write(`${harmlessLine(explain(error))}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

type Values = ReturnType<typeof readFlags<typeof FLAGS>>["values"];

async function make(
  { out, port, budget, model }: Values,
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout }: Output,
): Promise<void> {
  for (const [flag, value] of Object.entries({ port, budget, model })) {
    if (value !== undefined) throw new UsageError(`--${flag} goes with npm run gallery:live`);
  }
  const folder = out === undefined ? CACHE : readPath(out, env);
  await earlierFiles(folder);
  const own = (await Promise.all(files.map((file) => readOwn(file, env)))).flat();
  if (own.length > MOST_OWN) {
    const held = `${own.length} traces, and ${MOST_OWN} are the most that get a page`;
    throw new UsageError(`There are ${held}: drop the file on any page to choose one of them`);
  }
  const gallery = await withOwn(own);
  await writeSite(await makeSite(gallery, { isLive: false }), folder);
  const first = join(folder, files.length > 0 ? `${ownName(0)}.html` : "index.html");
  const opened =
    out === undefined && stdout.isTTY && (await openBrowser(pathToFileURL(first).href, env));
  const others = own.slice(1).map((_, at) => `${ownName(at + 1)}.html`);
  const beside = others.length > 0 ? ` (beside it: ${others.join(", ")})` : "";
  stdout.write(`${opened ? "Opened" : "Open"} ${first}${beside}\n`);
}

async function serve(
  { out, port, budget, model }: Values,
  files: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout }: Output,
): Promise<void> {
  if (out !== undefined)
    throw new UsageError("--out goes with npm run gallery: a live page needs its server");
  if (files.length > 0)
    throw new UsageError("Drop a run of your own on the page, or: npm run gallery -- run.json");
  const at = readNumber("port", port, 0) ?? 0;
  if (!Number.isInteger(at) || at > HIGHEST_PORT)
    throw new UsageError(`--port must be a port, got ${at}`);
  const usd = readNumber("budget", budget, Number.MIN_VALUE) ?? BUDGET;
  const asked = readModel(model, env);
  if (asked !== undefined && !priceOf(asked)) {
    throw new UsageError(
      `The price of ${asked} isn't known, so no cap on spending could be kept: use another model`,
    );
  }
  await interruptible(async (signal) => {
    const spending = createBudget({ usd });
    // Without a key it ends here, before anything is made.
    await using opened = await openSource({ mode: "live", model: asked, budget: spending });
    // What a cancelled call may have cost stays reserved, and that is mostly its longest reply.
    const source = { ...opened, door: opened.door.with({ max_tokens: MAX_TOKENS }) };
    const gallery = await readGallery();
    const site = await makeSite(gallery, { isLive: true, capUsd: usd });
    const jobs = new Map([...JOBS].filter(([name]) => gallery.runnable.has(name)));
    const server = await startLiveServer({
      site,
      jobs,
      source,
      budget: spending,
      capUsd: usd,
      port: at,
      signal,
    });
    const isOpen = stdout.isTTY && (await openBrowser(server.url, env));
    const said = isOpen ? "Opened" : "Open";
    stdout.write(`${said} ${server.url} (at most ${dollars(usd)} is spent; Ctrl-C ends it)\n`);
    await server.closed;
  });
}

/** The gallery with traces of somebody's own in front. */
async function withOwn(traces: readonly TraceFile[]): Promise<Gallery> {
  const gallery = await readGallery();
  const own = traces.map((trace, at) => ownPage(trace, ownName(at), gallery.pages));
  return { ...gallery, pages: [...own, ...gallery.pages] };
}

function ownName(at: number): string {
  return at === 0 ? "own" : `own-${at + 1}`;
}

async function readOwn(file: string, env: NodeJS.ProcessEnv): Promise<readonly TraceFile[]> {
  const text = await readFile(readPath(file, env), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file} can't be read: ${whyUnread(error)}`);
  });
  try {
    return readTraces(text);
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`${file}: ${error.message}`);
    throw error;
  }
}
