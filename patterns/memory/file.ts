/**
 * A file of the memory: where it is, how much may be in it, and a text in it replaced.
 *
 * From effective-agents 0.1.0: patterns/memory/file.ts
 */
import { randomUUID } from "node:crypto";
import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import type { BetaMemoryTool20250818Command as Command } from "@anthropic-ai/sdk/resources/beta/messages";
import { ToolError } from "../tool.ts";

/** The most of a file, in bytes. */
const MAX_BYTES = 100_000;

/** A file that is there. */
export interface File {
  readonly name: string;
  readonly text: string;
}

/** The file at a path. `undefined` for a folder, and for nothing: of these the SDK says what there is to say. */
export async function fileAt(folder: string, path: string): Promise<File | undefined> {
  const root = await realpath(join(folder, "memories"));
  const name = await realpath(join(folder, path)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return root;
    throw error;
  });
  if (name !== root && !name.startsWith(root + sep)) {
    throw new ToolError(`${path} leads out of /memories via symlink.`);
  }
  const stats = await stat(name);
  if (!stats.isFile()) return undefined;
  checkSize(path, stats.size);
  return { name, text: await readFile(name, "utf8") };
}

/** Throws a `ToolError` where a file has, or would have, too many bytes. */
export function checkSize(path: string, bytes: number): void {
  if (bytes <= MAX_BYTES) return;
  throw new ToolError(
    `${path} comes to ${bytes.toLocaleString("en")} bytes, and a file has at most ${MAX_BYTES.toLocaleString("en")}: keep less, or use several files.`,
  );
}

/** Throws a `ToolError` unless the lines are in the file. */
export function checkRange([first, final]: readonly number[] = [1, -1], { text }: File): void {
  const { length } = text.split("\n");
  const [from = 1, to = -1] = [first, final];
  if (from >= 1 && from <= length && (to === -1 || to >= from)) return;
  throw new ToolError(
    `There is no such view_range: the file has ${length} lines. Give the first line, from 1 on, and the last, or -1 for the end.`,
  );
}

/** Replaces a text that is in the file once. Its results are worded as the API's documentation has them. */
export async function replace({ name, text }: File, input: Replacement): Promise<string> {
  const { path, old_str, new_str } = input;
  const places: number[] = [];
  for (let at = text.indexOf(old_str); at >= 0; at = text.indexOf(old_str, at + 1)) places.push(at);
  const [at, ...others] = places;
  const lineOf = (place: number) => text.slice(0, place).split("\n").length;
  if (at === undefined) {
    throw new ToolError(
      `No replacement was performed, old_str \`${old_str}\` did not appear verbatim in ${path}.`,
    );
  }
  if (others.length > 0) {
    const lines = places.slice(0, 20).map(lineOf).join(", ");
    throw new ToolError(
      `No replacement was performed. Multiple occurrences of old_str \`${old_str}\` in lines: ${lines}. Please ensure it is unique`,
    );
  }
  const changed = text.slice(0, at) + new_str + text.slice(at + old_str.length);
  checkSize(path, Buffer.byteLength(changed));
  await write(name, changed);
  const [first, count] = [Math.max(1, lineOf(at) - 2), new_str.split("\n").length + 4];
  const lines = changed.split("\n").slice(first - 1, first - 1 + count);
  const snippet = lines.map((line, index) => `${String(first + index).padStart(6)}\t${line}`);
  return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${snippet.join("\n")}`;
}

type Replacement = Extract<Command, { readonly command: "str_replace" }>;

/** The file is the old one or the new one, whatever happens. */
async function write(name: string, text: string): Promise<void> {
  const beside = join(dirname(name), `.tmp-${randomUUID()}`);
  try {
    await writeFile(beside, text, { flag: "wx", mode: 0o600, flush: true });
    await rename(beside, name);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}
