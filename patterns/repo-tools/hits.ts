/**
 * The matches in one file's lines, and how they are shown with the lines around them.
 *
 *     src/app.ts-11- function main() {
 *     src/app.ts:12:   const port = readPort();
 *     --
 *     src/app.ts:40: function readPort(): number {
 *
 * From effective-agents 0.1.0: patterns/repo-tools/hits.ts
 */
import type { Pattern } from "./pattern.ts";
import type { Pause } from "./pause.ts";
import { clip, visible } from "./text.ts";

/** How many characters of a line are shown. */
const MAX_SHOWN = 300;
/** How many characters of a line are searched: what the longest stretch without a pause depends on. */
export const MAX_SEARCHED = 10_000;

/** The indices of the first `most` lines that match. */
export async function findHits(
  lines: readonly string[],
  pattern: Pattern,
  most: number,
  pause: Pause,
): Promise<number[]> {
  const hits: number[] = [];
  for (const [index, line] of lines.entries()) {
    if (pattern.test(line.slice(0, MAX_SEARCHED))) hits.push(index);
    if (hits.length === most) break;
    // Most lines take no time, and even an await of nothing takes some.
    const wait = pause();
    if (wait) await wait;
  }
  return hits;
}

/** The matching lines and those around them, each once, for as long as somebody takes them. */
export async function* linesAround(
  path: string,
  lines: readonly string[],
  hits: readonly number[],
  context: number,
  pattern: Pattern,
  pause: Pause,
): AsyncGenerator<string> {
  const isHit = new Set(hits);
  let next = 0;
  for (const hit of hits) {
    const first = Math.max(next, hit - context);
    if (context > 0 && first > next && hit !== hits[0]) yield "--";
    next = Math.max(next, Math.min(lines.length, hit + context + 1));
    for (const [offset, line] of lines.slice(first, next).entries()) {
      const index = first + offset;
      const mark = isHit.has(index) ? ":" : "-";
      // What is shown of a long line begins a little before the match, which takes as long as finding it.
      const isCut = mark === ":" && line.length > MAX_SHOWN;
      const found = isCut ? pattern.indexIn(line.slice(0, MAX_SEARCHED)) : 0;
      const start = Math.max(0, found - 50);
      yield `${visible(path)}${mark}${index + 1}${mark} ${clip(line, MAX_SHOWN, line.length, start)}`;
      if (isCut) await pause();
    }
  }
}
