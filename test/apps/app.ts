/**
 * An app in a folder of its own, to which patterns are added as a stranger does: by shadcn.
 *
 *     const app = createApp("node");
 *     test("…", async () => {
 *       await app.run("npx tsc");
 *       const url = await app.serve("npm start", { ANTHROPIC_BASE_URL: model.url });
 *     });
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, inject, onTestFinished } from "vitest";
import { reply, startServer, type TestServer } from "../shared/server.ts";

/** What vitest says of route's copied test: all of it is there, and passes. */
export const ROUTE_PASSES = /Tests .*67 passed/;

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The version that these tests were written against. */
export const SHADCN = "npx --yes shadcn@4.23.1";

type Env = Readonly<Record<string, string>>;

export interface App {
  /** Runs a command, and gives what it prints. Rejects with that if it fails. */
  readonly run: (command: string, env?: Env) => Promise<string>;
  /** Starts a server, which ends with the test, and gives the address that it prints. */
  readonly serve: (command: string, env?: Env) => Promise<string>;
  /** Adds items of the registry, and gives what shadcn prints. */
  readonly add: (...items: readonly string[]) => Promise<string>;
  /** Sets a flag in tsconfig.json, as the items' docs say. */
  readonly setFlag: (name: string) => Promise<void>;
  readonly read: (path: string) => Promise<string>;
}

/**
 * Makes an app before the file's tests, and removes it after them.
 *
 * @param fixture The folder in fixtures/ that it's a copy of. Default: an empty folder.
 * @param template A command that fills the folder first; the fixture is then put over it.
 */
export function createApp(fixture?: string, template?: string): App {
  let folder = "";
  const at = (path: string) => join(folder, "app", path);
  const run = (command: string, env?: Env) => runIn(at(""), command, env);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "app-"));
    await mkdir(at(""));
    if (template) await run(template);
    if (fixture) await cp(join(ROOT, "test/apps/fixtures", fixture), at(""), { recursive: true });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  return {
    run,
    serve: async (command, env) => {
      const child = start(at(""), command, env);
      onTestFinished(() => stop(child));
      return new Promise((resolve, reject) => {
        let text = "";
        const look = (chunk: string) => {
          text += chunk;
          const [address] = /http:\/\/localhost:\d+/.exec(text) ?? [];
          if (address) resolve(address);
        };
        child.stdout?.setEncoding("utf8").on("data", look);
        child.stderr?.setEncoding("utf8").on("data", look);
        child.on("close", () => reject(new Error(`${command} ended:\n${text}`)));
      });
    },
    add: (...items) => {
      const files = items.map((item) => join(inject("registry"), `${item}.json`));
      return run(`${SHADCN} add --yes ${files.join(" ")}`);
    },
    setFlag: async (name) => {
      const text = await readFile(at("tsconfig.json"), "utf8");
      const start = /"compilerOptions": \{/;
      await writeFile(at("tsconfig.json"), text.replace(start, `$&\n    "${name}": true,`));
    },
    read: (path) => readFile(at(path), "utf8"),
  };
}

/** A model that takes every ticket for one about money, and what an app needs to call it. */
export async function startModel(): Promise<{ readonly model: TestServer; readonly env: Env }> {
  const model = await startServer((exchange) => {
    const asksForLabel = String(exchange.body.messages[0]?.content).startsWith("Decide");
    reply(asksForLabel ? "<label>billing</label>" : "We are sorry.")(exchange);
  });
  return { model, env: { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none" } };
}

/** Runs a command in a folder. */
export async function runIn(folder: string, command: string, env?: Env): Promise<string> {
  const child = start(folder, command, env);
  let text = "";
  const keep = (chunk: string) => {
    text += chunk;
  };
  child.stdout?.setEncoding("utf8").on("data", keep);
  child.stderr?.setEncoding("utf8").on("data", keep);
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${text}`);
  return text;
}

/** A process group of its own, so that what a command has started can be stopped with it. */
function start(folder: string, command: string, env: Env = {}): ChildProcess {
  return spawn(command, { cwd: folder, env: { ...OWN, ...env }, shell: true, detached: true });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const closed = once(child, "close");
  process.kill(-child.pid, "SIGTERM");
  await closed;
}

/** What Vitest and npm have put into the environment for this project, and anybody's key. */
const FOREIGN =
  /^(NODE_ENV|NODE_OPTIONS|VITEST|TEST|DEV|PROD|MODE|SSR|BASE_URL|INIT_CWD|npm_|ANTHROPIC_)/;
/** How npm reaches the registry is the machine's own setting. */
const KEPT = /^npm_config_(registry|cafile|cache|userconfig|globalconfig|.*proxy)$/;

const { PATH = "" } = process.env;

const OWN = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => KEPT.test(name) || !FOREIGN.test(name)),
  ),
  // Else a command that an app lacks is found in this project.
  PATH: PATH.split(delimiter)
    .filter((at) => !at.includes("node_modules"))
    .join(delimiter),
  NEXT_TELEMETRY_DISABLED: "1",
};
