/**
 * A folder that goes with what needs it, and at the latest with the process: where a reader has seen enough
 * (`npm start | head`), the process ends without coming back to it.
 *
 * From effective-agents 0.1.0: runners/shared/temporary.ts
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What the threads get at the process's end, in milliseconds. */
const LINGER_MS = 20;

/** A folder that is removed, with all that is in it, when it's disposed of. */
export interface Temporary extends Disposable {
  readonly path: string;
}

/** Makes a folder whose name begins with `prefix`. At once, so that nothing comes in between. */
export function temporaryFolder(prefix: string): Temporary {
  const path = mkdtempSync(join(tmpdir(), prefix));
  const remove = () => rmSync(path, { recursive: true, force: true });
  const removeLast = () => {
    // What the file system was asked for before this is still done, by threads, and might make it anew.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LINGER_MS);
    remove();
  };
  process.once("exit", removeLast);
  return {
    path,
    [Symbol.dispose]: () => {
      process.off("exit", removeLast);
      remove();
    },
  };
}
