/**
 * What a path says by its text alone, before anything is looked up.
 *
 *     "./src/../lib/a.ts" ─► ["lib", "a.ts"]        "../a.ts", "/etc/passwd" ─► ToolError
 *
 * From effective-agents 0.1.0: patterns/repo-tools/path.ts
 */
import { isAbsolute, relative, sep } from "node:path";
import { ToolError } from "../tool.ts";
import { quoted } from "./text.ts";

const RELATIVE = "Use a path relative to the repo root, such as 'src/app.ts'.";

/** How long a path may be, in characters. Linux takes 4,096 bytes. */
const MAX_LENGTH = 4_096;

/**
 * The path's parts by its text alone, without `.` and `..`.
 *
 * @throws {ToolError} It's absolute, goes up past the root, or holds what no path has.
 */
export function partsInside(root: string, path: string): string[] {
  if (path.length > MAX_LENGTH) {
    throw new ToolError(`${quoted(path)} is longer than ${MAX_LENGTH} characters, as no path is.`);
  }
  if (isAbsolute(path)) {
    const inside = relative(root, path);
    const isInside = inside !== "" && !leadsOut(inside);
    const hint = isInside ? `Use ${quoted(inside)}, relative to the repo root.` : RELATIVE;
    throw new ToolError(`${quoted(path)} is an absolute path, which no tool takes. ${hint}`);
  }
  if (path.includes("\0") || (isWindows && path.includes(":"))) {
    throw new ToolError(`${quoted(path)} holds a character that no path has. ${RELATIVE}`);
  }
  const parts: string[] = [];
  for (const part of path.split(isWindows ? /[\\/]/ : "/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) {
      throw new ToolError(
        `${quoted(path)} points outside the repo root. Use a path relative to it, such as 'src/app.ts'.`,
      );
    }
  }
  return parts;
}

const isWindows = sep === "\\";

/** Whether a path from the root goes up, or to another drive. `..foo` is a name like any other. */
export function leadsOut(path: string): boolean {
  return path.split(sep)[0] === ".." || isAbsolute(path);
}

/** The parts of a path relative to the root; the root has none. */
export function partsOf(path: string): readonly string[] {
  return path === "." ? [] : path.split("/");
}
