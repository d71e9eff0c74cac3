/**
 * URLs of files at GitHub and the like.
 *
 *     https://github.com/o/r/blob/main/packages/x/src/a.ts?plain=1#L12-L20
 *                                 ref └── the longest tail that is a file here ─► src/a.ts
 *
 * A tail is all that stands behind the ref, or at least a folder and a name, since an index.ts is nearly
 * everywhere. Where none is there, it's the file of some other repository, and cites nothing.
 *
 * From effective-agents 0.1.0: patterns/citations/urls.ts
 */
import { isFile, type KindOf } from "./names.ts";
import { type Lines, linesBehind } from "./ranges.ts";

/** From `://` on. Brackets belong to it in pairs. */
const REST = /:\/\/(?:[^\s<>"'`*|,()[\]]|\([^\s()]{0,99}\)|\[[^\s[\]]{0,99}\])*/y;
const FILE =
  /^:\/\/[^/]+\/.{0,200}?(?:\/|^)(?:blob|blame|raw|src\/(?:branch|commit|tag))\/([^?#:]+)(?:\?[^#]*)?/;
/** Longer ones are not looked up, in characters. */
const MAX_LENGTH = 2_000;

/** A URL that begins with a scheme right before `at`: where it ends, and what it cites. */
export interface Url {
  readonly end: number;
  readonly cited?: Lines & { readonly path: string };
}

/** The URL with `://` at `at`. */
export function urlAt(text: string, at: number, kindOf: KindOf): Url {
  REST.lastIndex = at;
  const rest = REST.exec(text)?.[0] ?? "";
  const end = at + rest.length;
  const file = rest.length <= MAX_LENGTH ? FILE.exec(rest) : null;
  if (!file) return { end };
  const lines = linesBehind(text, at + file[0].length);
  const path = lines.ranges.length > 0 && tailThere(unescaped(file[1] ?? ""), kindOf);
  return path ? { end: Math.max(end, lines.end), cited: { ...lines, path } } : { end };
}

function tailThere(refAndPath: string, kindOf: KindOf): string | undefined {
  const parts = refAndPath.split("/");
  for (let from = 1; from === 1 || from < parts.length - 1; from += 1) {
    const tail = parts.slice(from).join("/");
    if (tail !== "" && isFile(tail, kindOf)) return tail;
  }
  return undefined;
}

/** Without percent-encoding, if it was right. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
