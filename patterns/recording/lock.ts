/**
 * Who writes a tape: one process at a time.
 *
 *     tape.jsonl.lock ─┬─ isn't there ─────────► made: the tape is ours until it's released
 *                      ├─ of a living process ─► RecordingError
 *                      └─ of a dead process ───► removed, by one at a time, and tried again
 *
 * Two that append to one tape would cut off each other's lines, and pay twice. A process that was killed
 * leaves its lock, so the lock says whose it is: the process's id and, on Linux, when it started, since
 * an id is used again. Elsewhere a lock whose id has been used again counts as held, until it's deleted by
 * hand. A process on another machine, or in another container, can't be seen from here: its lock counts
 * as left behind.
 *
 * From effective-agents 0.1.0: patterns/recording/lock.ts
 */
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { RecordingError } from "../errors.ts";

/** Gives a tape back. */
export type Release = () => Promise<void>;

/** A lock without an id is about to be written; from this age on, its process was killed before. */
const UNWRITTEN_MS = 10_000;

/** Holds the tape at `file`, in a folder that is made for it. Throws a `RecordingError` where it's held. */
export async function holdTape(file: string): Promise<Release> {
  try {
    await mkdir(dirname(file), { recursive: true });
    return await take(file, `${file}.lock`);
  } catch (error) {
    throw namedError(file, error);
  }
}

/** What the system says against a tape, with the tape's name. Any other error stays what it is. */
export function namedError(
  file: string,
  error: unknown,
  what: "opened" | "written" = "opened",
): unknown {
  const why = refusal(error);
  return why === undefined ? error : new RecordingError(`${file} can't be ${what}: ${why}`);
}

/** Why the system refuses a file, in words, if it does. */
export function refusal(error: unknown): string | undefined {
  if (!(error instanceof Error && "syscall" in error && "code" in error)) return undefined;
  return REASONS.get(String(error.code)) ?? error.message;
}

const REASONS = new Map([
  ["ENOENT", "its folder is gone"],
  ["EISDIR", "it's a folder"],
  ["ENOTDIR", "what should be its folder is a file"],
  ["EEXIST", "what should be its folder is a file"],
  ["EACCES", "it's forbidden"],
  ["EPERM", "it's forbidden"],
  ["EROFS", "nothing can be written there"],
  ["ENOSPC", "the disk is full"],
]);

async function take(file: string, lock: string): Promise<Release> {
  while (!(await isMade(lock))) {
    if (!(await isLeft(file, lock))) continue;
    // Else one could remove the lock that another has made in place of the one left behind.
    const release = await take(file, `${lock}.lock`);
    try {
      if (await isLeft(file, lock)) await rm(lock);
    } finally {
      await release();
    }
  }
  let released: Promise<void> | undefined;
  return () => {
    // Once: later it may be another's.
    released ??= rm(lock, { force: true });
    return released;
  };
}

async function isMade(lock: string): Promise<boolean> {
  const start = await startOf(process.pid);
  try {
    await writeFile(lock, `${process.pid} ${start ?? ""}\n`, { flag: "wx" });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Whether the lock's process has ended. Throws where it's running; where there is no lock, it isn't left. */
async function isLeft(file: string, lock: string): Promise<boolean> {
  try {
    const [, pid, start] = /^([1-9]\d*) (\d*)\n$/.exec(await readFile(lock, "utf8")) ?? [];
    const isHeld = pid
      ? await isRunning(Number(pid), start)
      : Date.now() - (await stat(lock)).mtimeMs < UNWRITTEN_MS;
    if (!isHeld) return true;
    throw new RecordingError(
      Number(pid) === process.pid
        ? `${file} is being written by this process: close that recording first`
        : `${file} is being written by ${pid ? `process ${pid}` : "another process"}: let it end first, or delete ${lock} if that isn't a recording`,
    );
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

async function isRunning(pid: number, start: string | undefined): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Another user's process may not be asked, but is there.
    if (!hasCode(error, "EPERM")) return false;
  }
  const present = await startOf(pid);
  return !start || present === undefined || present === start;
}

/** When a process started, as Linux counts it: "ended" where it only waits to be cleared away, and nothing
 * where that isn't known. */
async function startOf(pid: number): Promise<string | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  // The name comes first, in parentheses, and may hold anything.
  return status && (/^[\s\S]*\) [^ZX] (?:\S+ ){18}(\d+)/.exec(status)?.[1] ?? "ended");
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
