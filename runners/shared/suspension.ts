/**
 * A run that waits for a person's answer, in a file between two processes.
 *
 *     --suspend run.json                 ask ─► SuspendError ─► run.json
 *     --resume run.json --answer yes     run.json ─► the same question ─► yes ─► run.2.json, or the end
 *
 * An answer is for the question that was shown: if it's another by now, the run is suspended again. Each
 * question has a file of its own, so that the same command, given twice, doesn't answer the next one.
 *
 * From effective-agents 0.1.0: runners/shared/suspension.ts
 */
import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { AgentResult, SuspendedRun } from "../../patterns/agent.ts";
import type { ApprovalRequest, Ask } from "../../patterns/approve.ts";
import { SuspendError } from "../../patterns/errors.ts";
import { writeAtomically } from "./atomic-file.ts";
import { UsageError } from "./explain.ts";

/** What the file holds. */
export interface SavedRun {
  /** What the person was asked, and hasn't answered. */
  readonly asked: ApprovalRequest;
  readonly run: SuspendedRun;
}

/** A run that can be suspended. */
export interface Suspension {
  /** What it goes on from; nothing at its first start. */
  readonly saved: SavedRun | undefined;
  /** Gives the answer to the question that it was given to, and suspends the run at any other. */
  readonly ask: Ask;
  /** A file of the run's own, beside its file: `run.orders.json`. It stays when the run has ended. Throws
   * a `UsageError` where the run begins and the file is there, or goes on and it isn't. */
  readonly beside: (name: string) => string;
  /** Saves a run that is suspended, and removes the file that it went on from. */
  readonly keep: (result: AgentResult) => Promise<void>;
  /** How to go on, in a line, if it's suspended. */
  readonly next: () => string | undefined;
}

/** What the command line says of it. */
export interface SuspensionFlags {
  readonly suspend?: string | undefined;
  readonly resume?: string | undefined;
  readonly answer?: string | undefined;
}

/**
 * Opens a run's file.
 *
 * @param command The command that goes on with it, without its flags: `npm start refund`.
 * @throws {UsageError} The flags don't go together, the file to begin with is there, or the one to go on
 *   with isn't, or holds something else.
 */
export function openSuspension(
  { suspend, resume, answer }: SuspensionFlags,
  command: string,
): Suspension {
  if (suspend !== undefined && resume !== undefined)
    throw new UsageError("--suspend begins a run, and --resume goes on with one: use one of them");
  if (answer !== undefined && resume === undefined)
    throw new UsageError("--answer goes with --resume: nothing was asked yet");
  if (resume !== undefined && answer === undefined)
    throw new UsageError("--resume needs the answer: --answer yes, or anything else to decline");
  const file = suspend ?? resume ?? "";
  if (!file.endsWith(".json"))
    throw new UsageError(`A suspended run is kept in a .json file, not in "${file}"`);
  if (suspend !== undefined && existsSync(file))
    throw new UsageError(
      `${file} is there already: go on with it by --resume, or name another file`,
    );
  const saved = resume === undefined ? undefined : readRun(file);
  const next = resume === undefined ? file : fileAfter(file);
  let waiting: ApprovalRequest | undefined;

  return {
    saved,
    ask: (request) => {
      if (answer !== undefined && isDeepStrictEqual({ ...request }, saved?.asked)) return answer;
      waiting ??= request;
      throw new SuspendError("waits for an answer");
    },
    beside: (name) => {
      const other = `${baseOf(file)}.${name}.json`;
      if (saved && !existsSync(other))
        throw new UsageError(`${other} isn't there, and the run in ${file} can't go on without it`);
      if (!saved && existsSync(other))
        throw new UsageError(
          `${other} is there already, of an earlier run: remove it, or name another file`,
        );
      return other;
    },
    keep: async (result) => {
      if (result.status === "suspended")
        await writeAtomically(
          next,
          `${JSON.stringify({ asked: waiting, run: result }, null, 2)}\n`,
        );
      if (result.status !== "suspended" || next !== file) await rm(file, { force: true });
    },
    next: () =>
      waiting &&
      `yes runs ${waiting.call}, any other answer declines\ngo on with: ${command} -- --resume ${inShell(next)} --answer yes`,
  };
}

/** `run` of `run.json` and of `run.2.json`. */
function baseOf(file: string): string {
  return file.replace(/(\.\d+)?\.json$/, "");
}

/** The file of the question after that in `file`: `run.2.json`, `run.3.json`, and so on. */
function fileAfter(file: string): string {
  const [, number = "1"] = /\.(\d+)\.json$/.exec(file) ?? [];
  return `${baseOf(file)}.${Number(number) + 1}.json`;
}

function readRun(file: string): SavedRun {
  if (!existsSync(file)) throw new UsageError(`There is no suspended run in ${file}`);
  try {
    // What `keep` has written; `runAgent` checks the run.
    const saved = JSON.parse(readFileSync(file, "utf8")) as Partial<SavedRun> | null;
    const { asked, run } = saved ?? {};
    if (asked?.callId && run?.status === "suspended") return { asked, run };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  throw new UsageError(`${file} holds no suspended run`);
}

/** A path as a shell takes it. */
function inShell(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
