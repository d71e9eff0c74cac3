/**
 * The `glob` of a tool's input: which entries of a walk it means.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/filter.ts
 */
import { ToolError } from "../tool.ts";
import { expandBraces, matches, parseGlob } from "./glob.ts";
import { partsOf } from "./path.ts";
import type { Entry } from "./sandbox.ts";
import { quoted } from "./text.ts";

/** How long a glob may be, in characters, and how many it may stand for with its braces. */
const MAX_LENGTH = 500;
const MAX_GLOBS = 100;

/**
 * Makes a test for entries in a folder, from where the glob counts.
 *
 * @throws {ToolError} The glob is empty, too long, negated, or goes up.
 */
export function createFilter(text: string, folder = "."): (entry: Entry) => boolean {
  const invalid = (why: string) => new ToolError(`Invalid glob ${quoted(text)}: ${why}`);
  if (text.trim() === "") throw invalid("it is empty. Leave it out, or give one such as '*.ts'.");
  if (text.length > MAX_LENGTH) throw invalid(`it is longer than ${MAX_LENGTH} characters.`);
  if (text.startsWith("!")) throw invalid("it can't be negated. Say which files are wanted.");
  if (partsOf(text).includes("..")) throw invalid("it can't go up. Use one such as 'src/**/*.ts'.");
  const texts = expandBraces(text.replace(/^(\.\/)+/, ""), MAX_GLOBS);
  if (!texts) throw invalid(`its braces stand for more than ${MAX_GLOBS} globs.`);
  const globs = texts.map(parseGlob);
  const depth = partsOf(folder).length;
  return ({ path, kind }) => {
    const parts = partsOf(path).slice(depth);
    return globs.some((glob) => matches(glob, parts, kind === "folder"));
  };
}
