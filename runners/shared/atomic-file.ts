/**
 * Writes a file so that a crash at any point leaves the old one or the new one, whole.
 *
 *     text ─► a new file beside it ─► on the disk ─► rename ─► its folder on the disk
 *
 * From effective-agents 0.1.0: runners/shared/atomic-file.ts
 */
import { randomUUID } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes the text in place of what the file held.
 *
 * @throws What the file system says, such as ENOSPC. Unless it was the very last step that failed, the
 *   file is the old one.
 */
export async function writeAtomically(file: string, text: string): Promise<void> {
  // A name of its own, so that two who write at once don't write into one another.
  const beside = `${file}.${randomUUID()}.tmp`;
  try {
    await write(beside, text);
    await rename(beside, file);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  await syncFolder(dirname(file));
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(text);
    // Else a power cut could leave the new name on a file that is empty.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Has the rename survive a power cut too. Windows can't, and needs no telling. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r").catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}
