/**
 * Folders for tests.
 *
 * From effective-agents 0.1.0: test/shared/folder.ts
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder that goes when the test under way ends. */
export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "runners-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}
