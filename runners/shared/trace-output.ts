/**
 * Where a run's trace is written to: `--trace run.json`.
 *
 * From effective-agents 0.1.0: runners/shared/trace-output.ts
 */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { RunFacts, Trace } from "../../patterns/trace-file.ts";
import { writeAtomically } from "./atomic-file.ts";
import { UsageError, whyUnread } from "./explain.ts";

/** Writes a trace to its file. */
export type WriteTrace = (trace: Trace, facts: RunFacts) => Promise<void>;

/** What a trace's file begins with. */
const BEGINNING = '{"format":"effective-agents/trace"';

/**
 * Sees to it, before anything is paid, that a trace can be written to `file`.
 *
 * @throws {UsageError} Its folder isn't there, or the file holds something else than a trace.
 */
export async function openTraceOutput(file: string): Promise<WriteTrace> {
  const folder = await stat(dirname(file)).catch(() => undefined);
  if (!folder?.isDirectory()) throw new UsageError(`--trace: there is no folder ${dirname(file)}`);
  const old = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return BEGINNING;
    throw new UsageError(`--trace: ${file} can't be read: ${whyUnread(error)}`);
  });
  if (!old.startsWith(BEGINNING)) {
    throw new UsageError(`--trace: ${file} is there and holds no trace: name another file`);
  }
  return async (trace, facts) => {
    try {
      await writeAtomically(file, `${JSON.stringify(trace.file(facts))}\n`);
    } catch (error) {
      throw new UsageError(`--trace: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
}
