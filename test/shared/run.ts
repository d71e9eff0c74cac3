/**
 * Runs the runners' command line in this process, and keeps what it prints.
 *
 *     const { code, stdout } = await run(["replay", "route"]);
 */
import { PassThrough } from "node:stream";
import type { TerminalInput } from "../../patterns/ask-terminal.ts";
import { main } from "../../runners/shared/cli.ts";
import { Kept } from "./kept.ts";

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

/** Runs a command line in this process: by default the runners'. */
export async function run(
  argv: readonly string[],
  { env = {}, columns, stdin = new PassThrough() as TerminalInput }: Where = {},
  command: typeof main = main,
): Promise<Ran> {
  const [stdout, stderr] = [new Kept(columns), new Kept(columns)];
  const code = await command(argv, env, { stdout, stderr }, stdin);
  return { code, stdout: stdout.text, stderr: stderr.text };
}
