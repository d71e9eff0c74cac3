/**
 * Runs the runners' command line, inside the test or as a process of its own.
 *
 *     const { code, stdout } = await run(["replay", "route"]);
 *     const child = start(["live", "route"], { ANTHROPIC_BASE_URL: server.url });
 *     const { code, signal } = await child.ended;
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";
import type { TerminalInput } from "../../patterns/ask-terminal.ts";
import { main } from "../../runners/shared/cli.ts";
import { Kept } from "./kept.ts";

/** The project's folder. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What is known of where it runs: nothing, so it's a pipe. */
export interface Where {
  readonly env?: NodeJS.ProcessEnv;
  /** A terminal of that width, 24 lines high. */
  readonly columns?: number;
  /** Where a person types. Default: nobody. */
  readonly stdin?: TerminalInput;
}

/** Runs a command line in this process. */
export async function run(
  argv: readonly string[],
  { env = {}, columns, stdin = new PassThrough() as TerminalInput }: Where = {},
): Promise<Ran> {
  const [stdout, stderr] = [new Kept(columns), new Kept(columns)];
  const code = await main(argv, env, { stdout, stderr }, stdin);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

export interface Started {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves as soon as `text` is on stdout. */
  readonly printed: (text: string) => Promise<void>;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Reads no more, as `head` does when it has enough. */
  readonly stopReading: () => void;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts a command in a process of its own, which has only these environment variables. */
export function start(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Started {
  const child = spawn(process.execPath, [inject("compiled"), ...argv], {
    cwd: ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  const looks = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
    for (const look of looks) look();
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    printed: (text) =>
      new Promise((resolve) => {
        const look = () => stdout.includes(text) && resolve();
        looks.add(look);
        look();
      }),
    kill: (signal) => child.kill(signal),
    stopReading: () => child.stdout.destroy(),
    ended: once(child, "close").then(([code, signal]) => ({ code, signal })),
  };
}
