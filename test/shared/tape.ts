/**
 * A place for a recording, which goes away with the test.
 *
 * From effective-agents 0.1.0: test/shared/tape.ts
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A tape's file in a folder of its own, as yet absent unless there's a content. */
export async function tapeFile(content?: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "recording-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "tape.jsonl");
  if (content !== undefined) await writeFile(file, content);
  return file;
}
