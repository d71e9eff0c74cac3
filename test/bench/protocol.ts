/** What the bench asks of its workers, ours and the bare ones, and what they answer. */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Ours, the bare SDK, or the bare SDK in a process that has an AsyncLocalStorage. */
export type Who = "ours" | "bare" | "scoped";

export type Order =
  /** Do a named piece of work once, and say which prompts it sent. */
  | { readonly do: "trace"; readonly work: string }
  /** Do it so many times, one after the other or in several lanes, by its name or by its prompts: those
   * of a group go out together. */
  | {
      readonly do: "repeat";
      readonly work: string | readonly Group[];
      readonly times: number;
      readonly lanes: number;
    }
  /** Make so many calls, so many of them in flight. */
  | { readonly do: "load"; readonly calls: number; readonly inFlight: number };

export type Group = readonly string[];

export interface Outcome {
  /** CPU time of the process, user and system, in microseconds. */
  readonly cpu: number;
  /** In milliseconds. */
  readonly wall: number;
  /** The most memory that the process has had so far, in bytes. */
  readonly peak: number;
  readonly groups?: readonly Group[];
}

export interface Worker {
  readonly ask: (order: Order) => Promise<Outcome>;
  readonly end: () => void;
}

/** Starts workers and the server from compiled code. */
export interface Launcher {
  /** Starts a worker in a process of its own, with the address of the server. */
  readonly worker: (who: Who, url: string) => Worker;
  /** Starts a script of this folder in a process of its own. */
  readonly start: (name: string, ...args: readonly string[]) => ChildProcess;
  readonly remove: () => Promise<void>;
}

/**
 * Compiles this folder and what it imports. Not run by tsx, since it gives each function that is made
 * its name anew at run time, which costs ours a twentieth, and holds memory of its own.
 */
export async function createLauncher(): Promise<Launcher> {
  const folder = await mkdtemp(join(tmpdir(), "bench-"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const flags = ["--noEmit", "false", "--outDir", folder, "--rewriteRelativeImportExtensions"];
  const settings = { extends: join(ROOT, "tsconfig.json"), include: [join(ROOT, "test/bench")] };
  const compiler = { rootDir: ROOT, typeRoots: [join(ROOT, "node_modules/@types")] };
  const project = join(folder, "tsconfig.json");
  await writeFile(project, JSON.stringify({ ...settings, compilerOptions: compiler }));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const remove = () => rm(folder, { recursive: true });
  try {
    await promisify(execFile)(process.execPath, [tsc, "-p", project, ...flags]);
  } catch (error) {
    await remove();
    throw error;
  }

  const start = (name: string, ...args: readonly string[]) =>
    fork(join(folder, "test/bench", `${name}.js`), args, { execArgv: [] });
  const worker = (who: Who, url: string): Worker => {
    const child = start(who === "ours" ? "ours" : "bare", url, who);
    const ask = (order: Order) =>
      new Promise<Outcome>((resolve, reject) => {
        const fail = () => reject(new Error(`The worker "${who}" has ended`));
        child.once("exit", fail);
        child.once("message", (outcome: Outcome) => {
          child.off("exit", fail);
          resolve(outcome);
        });
        child.send(order);
      });
    return { ask, end: () => child.kill() };
  };
  return { worker, start, remove };
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** In a worker: does so many pieces of work, so many of them at once. */
export async function inLanes(
  times: number,
  lanes: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < times) await work(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** In a worker: does what it's asked. */
export function obey(work: (order: Order) => Promise<readonly Group[] | undefined>): void {
  process.on("message", async (order: Order) => {
    const from = { cpu: process.cpuUsage(), wall: performance.now() };
    const groups = await work(order);
    const { user, system } = process.cpuUsage(from.cpu);
    process.send?.({
      cpu: user + system,
      wall: performance.now() - from.wall,
      peak: process.resourceUsage().maxRSS * 1024,
      ...(groups && { groups }),
    } satisfies Outcome);
  });
  process.on("disconnect", () => process.exit());
}
