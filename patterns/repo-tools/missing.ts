/**
 * What to say of a path that doesn't exist: how far it goes, and what there is instead.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/missing.ts
 */
import { ToolError } from "../tool.ts";
import type { Entry } from "./sandbox.ts";
import { quoted } from "./text.ts";

/**
 * Follows the path down to where it ends.
 *
 * @param list What is in a folder and may be shown. Its own `ToolError` explains as well.
 */
export function explainMissing(
  path: string,
  parts: readonly string[],
  list: (folder: string) => readonly Entry[],
): ToolError {
  let folder = ".";
  for (const part of parts) {
    const entries = list(folder);
    const found = entries.find((entry) => nameOf(entry) === part);
    if (!found)
      return new ToolError(`${quoted(path)} doesn't exist. ${hint(part, folder, entries)}`);
    folder = found.path;
  }
  return new ToolError(`${quoted(path)} is a link to nothing.`);
}

/** How many names a hint shows at most, how many it looks at, and how long those may be: what it may take
 * without a pause depends on that. */
const SHOWN = 10;
const LOOKED_AT = 500;
const LONGEST = 80;

function hint(wanted: string, folder: string, entries: readonly Entry[]): string {
  const distances = entries.slice(0, LOOKED_AT).map((entry) => distance(wanted, nameOf(entry)));
  const nearest = Math.min(...distances);
  if (nearest <= wanted.length / 3) {
    const close = entries.filter((_, index) => distances[index] === nearest).slice(0, 3);
    return `Did you mean ${close.map(marked).join(" or ")}?`;
  }
  if (entries.length === 0) return `${quoted(folder)} is empty.`;
  const more = entries.length > SHOWN ? `, … (${entries.length} in all)` : "";
  return `In ${quoted(folder)} there is ${entries.slice(0, SHOWN).map(marked).join(", ")}${more}.`;
}

const nameOf = ({ path }: Entry) => path.slice(path.lastIndexOf("/") + 1);

const marked = ({ path, kind }: Entry) => quoted(kind === "folder" ? `${path}/` : path);

/** Levenshtein's distance without regard to case, row by row; endless where lengths differ much. */
function distance(wanted: string, name: string): number {
  const a = wanted.toLowerCase();
  const b = name.toLowerCase();
  if (Math.abs(a.length - b.length) > a.length / 3 || a.length > LONGEST) return Infinity;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
