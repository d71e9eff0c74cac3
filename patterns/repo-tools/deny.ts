/**
 * What the caller says is never shown, beside secrets: globs as in a .gitignore.
 *
 *     "customers/"  " ./customers// "  "/customers/**"  "*.csv"  "*.{csv,tsv}"
 *
 * A slip must not show what was to stay hidden. So blanks around a glob, doubled slashes and `.` don't
 * count, upper and lower case and look-alike letters are the same, and what would deny nothing is refused.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/deny.ts
 */
import { sep } from "node:path";
import { inspect } from "node:util";
import { ToolError } from "../tool.ts";
import { createFilter } from "./filter.ts";
import type { Entry } from "./sandbox.ts";
import { folded } from "./secrets.ts";

/** Whether it's denied, or in a folder that is. */
export type Denies = (parts: readonly string[]) => boolean;

/**
 * Makes a test for paths in the folder `root`.
 *
 * @throws {TypeError} It's no list of globs, or one of them denies nothing.
 */
export function createDeny(globs: readonly string[], root: string): Denies {
  if (!Array.isArray(globs) || !globs.every((glob) => typeof glob === "string")) {
    throw new TypeError(`deny must be a list of globs, got ${inspect(globs)}`);
  }
  const filters = globs.map((glob) => filterOf(glob, root));
  return (parts) => {
    const names = parts.map(folded);
    return names.some((_, index) => {
      // What's asked for may be a folder, and counts as one.
      const path = names.slice(0, index + 1).join("/");
      return filters.some((fits) => fits({ path, kind: "folder" }));
    });
  };
}

function filterOf(glob: string, root: string): (entry: Entry) => boolean {
  const invalid = (why: string) => new TypeError(`deny: ${JSON.stringify(glob)} ${why}`);
  const text = glob.trim();
  if (text.endsWith("\\")) throw invalid("ends in a backslash, which stands for nothing there");
  if (text === root || text.startsWith(root + sep)) throw invalid("must be relative to the root");
  const names = text.split("/").filter((name) => name !== "" && name !== ".");
  if (names.length === 0) throw invalid("names no file or folder in the root");
  const start = /^\.?\//.test(text) ? "/" : "";
  try {
    return createFilter(start + names.map(folded).join("/"));
  } catch (error) {
    if (error instanceof ToolError) throw new TypeError(`deny: ${error.message}`, { cause: error });
    throw error;
  }
}
