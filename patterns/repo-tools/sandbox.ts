/**
 * The one place that opens anything. The real path decides, and the opened file confirms it.
 *
 *     path ─► inside, by its text? ─► real path inside, no secret? ─► file or folder?
 *                                                                        │
 *             used ◄─ still that real path, as the handle says? ◄─ opened, links refused
 *
 * `..` is resolved by the text, before any link is. Links inside the root may be followed; what leads
 * out is refused, and so are secrets (secrets.ts), devices, pipes, sockets and all of /proc, /sys and
 * /dev, whatever the root is. The type is looked at before the opening, and the file is opened without
 * waiting, since a pipe would block the process. On Linux the kernel then says where the opened file
 * really is, so a folder that was swapped for a link in between is found out. Elsewhere path and inode
 * are looked at again, which leaves a race to whoever can swap it there and back within microseconds;
 * so it is everywhere with the names in a folder, which Node can only read by its path.
 *
 * Not seen: a hard link to a file outside, which is no different from any file (npm stores are full of
 * them), and what is mounted inside the root. All calls are synchronous and short: on a local disk
 * that is three times as fast as Node's thread pool, and nothing can happen between two of them here.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/sandbox.ts
 */
import * as fs from "node:fs";
import { join, relative, sep } from "node:path";
import { inspect } from "node:util";
import { ToolError } from "../tool.ts";
import { createDeny, type Denies } from "./deny.ts";
import { explainMissing } from "./missing.ts";
import { leadsOut, partsInside } from "./path.ts";
import { isSecret } from "./secrets.ts";
import { quoted } from "./text.ts";

/** A root under which the tools may read. */
export interface Sandbox {
  /** Its real path. */
  readonly root: string;
  /** What is never shown, beside secrets. */
  readonly denies: Denies;
  /** Where the kernel lists this process's open files. Elsewhere than on Linux there is no such folder. */
  readonly openFiles: string;
}

/** Something that may be shown. */
export interface Entry {
  /** Relative to the root, with `/` between its parts; `"."` is the root. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
}

/** Where a path leads. */
export interface Place extends Entry {
  readonly kind: "file" | "folder";
  /** In bytes, as the file system has it. */
  readonly size: number;
}

/** A file that is open, for as long as `withFile` runs. */
export interface OpenFile {
  readonly path: string;
  readonly size: number;
  /** Fills the buffer from `position` on, and says how many bytes there were; 0 at the end. */
  readonly read: (buffer: Uint8Array, position: number) => number;
}

/** What a sandbox can be made with. */
export interface SandboxOptions {
  /** Globs, such as `customers/` or `*.csv`, of what is never shown, beside secrets. Default none. */
  readonly deny?: readonly string[] | undefined;
  /** For tests. Default `/proc/self/fd`. */
  readonly openFiles?: string | undefined;
}

/**
 * Makes a sandbox of a folder, which may be given by a link.
 *
 * @throws {TypeError} There is no such folder, it lies in /proc, /sys or /dev, or a glob of `deny` is
 *   none.
 */
export function createSandbox(root: string, options: SandboxOptions = {}): Sandbox {
  const { deny = [], openFiles = "/proc/self/fd" } = options;
  const real =
    typeof root === "string" && root !== "" && attempt(() => fs.realpathSync.native(root));
  if (!real || !fs.statSync(real).isDirectory() || isKernels(real)) {
    throw new TypeError(`The root must be a folder of files, got ${inspect(root)}`);
  }
  return { root: real, denies: createDeny(deny, real), openFiles };
}

/**
 * Where a path really leads, if every rule allows it.
 *
 * @throws {ToolError} A rule is broken, or there is nothing.
 */
export function locate(sandbox: Sandbox, path: string): Place {
  const parts = partsInside(sandbox.root, path);
  checkShown(sandbox, path, parts);
  let real: string;
  try {
    real = fs.realpathSync.native(join(sandbox.root, ...parts));
  } catch (error) {
    throw unreachable(sandbox, path, parts, error);
  }
  const inside = relative(sandbox.root, real);
  const realParts = inside.split(sep).filter(Boolean);
  if (leadsOut(inside)) {
    throw new ToolError(
      `${quoted(path)} points outside the repo root. It's a link, and no tool follows one out.`,
    );
  }
  checkShown(sandbox, path, realParts);
  const stats = attempt(() => fs.lstatSync(real));
  if (!stats || isKernels(real) || !(stats.isFile() || stats.isDirectory())) {
    throw new ToolError(`${quoted(path)} is neither a file nor a folder, so it can't be read.`);
  }
  const kind = stats.isFile() ? "file" : "folder";
  return { path: realParts.join("/") || ".", kind, size: stats.size };
}

/**
 * Opens a file for as long as `use` runs.
 *
 * @throws {ToolError} As `locate`; it's a folder; or it was swapped while it was opened.
 */
export async function withFile<T>(
  sandbox: Sandbox,
  path: string,
  use: (file: OpenFile) => Promise<T>,
): Promise<T> {
  const place = locate(sandbox, path);
  if (place.kind === "file") return withEntry(sandbox, place, use);
  throw new ToolError(`${quoted(path)} is a folder. See what is in it with list_files.`);
}

/** As `withFile`, for a file that `locate` or `readFolder` gave: its path is a real path. */
export async function withEntry<T>(
  sandbox: Sandbox,
  { path }: Entry,
  use: (file: OpenFile) => Promise<T>,
): Promise<T> {
  const real = join(sandbox.root, path);
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  const isFile = attempt(() => fs.lstatSync(real))?.isFile();
  const handle = isFile && attempt(() => fs.openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (typeof handle !== "number") throw new ToolError(`${quoted(path)} can't be opened.`);
  try {
    const stats = fs.fstatSync(handle);
    if (!stats.isFile() || !isStillAt(sandbox, handle, real)) {
      throw new ToolError(`${quoted(path)} changed while it was opened. Ask again.`);
    }
    const read = (buffer: Uint8Array, position: number) =>
      fs.readSync(handle, buffer, 0, buffer.length, position);
    return await use({ path, size: stats.size, read });
  } finally {
    fs.closeSync(handle);
  }
}

/**
 * What is in a folder and may be shown, sorted by name. Links are not followed.
 *
 * @throws {ToolError} As `locate`; it's a file; or it can't be read.
 */
export function readFolder(sandbox: Sandbox, path: string): readonly Entry[] {
  const place = locate(sandbox, path);
  if (place.kind === "file") {
    throw new ToolError(`${quoted(path)} is a file. Read it with read_file.`);
  }
  const real = join(sandbox.root, place.path);
  const found = attempt(() => fs.readdirSync(real, { withFileTypes: true }));
  if (!found || attempt(() => fs.realpathSync.native(real)) !== real) {
    throw new ToolError(`${quoted(path)} can't be read.`);
  }
  const prefix = place.path === "." ? "" : `${place.path}/`;
  const entries = found.flatMap((item): Entry[] => {
    const kind = kindOf(item);
    const path = prefix + item.name;
    const hidden = isHidden(sandbox, path.split("/"));
    return !kind || hidden || isKernels(join(real, item.name)) ? [] : [{ path, kind }];
  });
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Whether it's the kernel's: no files, though they look like it (/proc/self/environ holds keys). */
const isKernels = (real: string) => /^\/(proc|sys|dev(?!\/shm\/))(\/|$)/.test(real);

function isHidden({ denies }: Sandbox, parts: readonly string[]): boolean {
  return isSecret(parts) || denies(parts);
}

function checkShown(sandbox: Sandbox, path: string, parts: readonly string[]): void {
  if (!isHidden(sandbox, parts)) return;
  const why = isSecret(parts) ? "may hold secrets" : "is on the list of what is to stay hidden";
  throw new ToolError(`${quoted(path)} ${why}, so no tool shows it. Go on without it.`);
}

function unreachable(
  sandbox: Sandbox,
  path: string,
  parts: readonly string[],
  error: unknown,
): ToolError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT" || code === "ENOTDIR" || code === "ENAMETOOLONG") {
    return explainMissing(path, parts, (folder) => readFolder(sandbox, folder));
  }
  if (code === "ELOOP") return new ToolError(`${quoted(path)} is a link that leads to itself.`);
  return new ToolError(`${quoted(path)} can't be reached (${code}).`, { cause: error });
}

/** Whether the opened file has that real path. */
function isStillAt({ openFiles }: Sandbox, handle: number, real: string): boolean {
  const place = attempt(() => fs.readlinkSync(`${openFiles}/${handle}`));
  if (place !== undefined) return place === real;
  const opened = fs.fstatSync(handle, { bigint: true });
  const found = attempt(() => fs.lstatSync(fs.realpathSync.native(real), { bigint: true }));
  const isSame = found?.ino === opened.ino && found.dev === opened.dev;
  return isSame && attempt(() => fs.realpathSync.native(real)) === real;
}

function kindOf(item: fs.Dirent): Entry["kind"] | undefined {
  if (item.isFile()) return "file";
  if (item.isDirectory()) return "folder";
  return item.isSymbolicLink() ? "link" : undefined;
}

/** The result, or `undefined` where the file system says no. */
function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
