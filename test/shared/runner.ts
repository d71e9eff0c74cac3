/**
 * Starts the runners' command line as a process of its own.
 *
 *     const child = start(["live", "route"], { ANTHROPIC_BASE_URL: server.url });
 *     const { code, signal } = await child.ended;
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { inject } from "vitest";

export { run } from "./run.ts";

/** The project's folder. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

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
  script = inject("compiled"),
): Started {
  const child = spawn(process.execPath, [script, ...argv], {
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
