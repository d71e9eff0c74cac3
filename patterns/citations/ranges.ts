/**
 * The line ranges behind a path, in the forms that editors, compilers and GitHub use.
 *
 *     :42   :42-50   :42–50   :L42   #L42-L50   :42:7   :42:7-50:3   #L42C5-L50C7   :3, 17-20 and 30
 *
 * After the first range, another one, or a number that ends a list, is one of the same path. A number
 * with a word behind it isn't ("src/a.ts:3, 5 retries"), and nor is a date.
 */

/** From the first line to the last, included. Neither has been checked. */
export type Range = readonly [start: number, end: number];

/** First line and column, last line and column; then nothing that makes it another thing. */
const LINES = String.raw`(\d+)(?:C\d+|(:\d+))?(?:(?:[-\u2010-\u2015\u2212]|\.\.\.?)[Ll]?(\d+)(?:C\d+|(:\d+))?)?(?:ff?)?(?!_*[A-Za-z0-9]|\.\d|[/@])`;
/** Code ticks or stars may close before the colon. */
const FIRST = new RegExp(`[\`*]{0,3}(:[Ll]?|#[Ll])${LINES}`, "y");
const NEXT = new RegExp(`[\`*]{0,3}(?:,? (?:and|&) |, ?)[\`*]{0,3}(:?[Ll]?)${LINES}(?!-\\d)`, "y");
const LIST_END = /[`*)\]},;|"'\n]|$|\.(?:\s|$)| (?:and|&) /y;

/** All ranges behind a path that ends at `at`, and where they end themselves. */
export function rangesAt(text: string, at: number): { ranges: readonly Range[]; end: number } {
  const ranges: Range[] = [];
  let end = at;
  for (let pattern = FIRST; ; pattern = NEXT) {
    pattern.lastIndex = end;
    const match = pattern.exec(text);
    if (!match) break;
    const [whole, mark, first, column, last, lastColumn] = match;
    LIST_END.lastIndex = end + whole.length;
    if (!mark && last === undefined && !LIST_END.test(text)) break;
    const start = lineOf(first);
    // 42:7-12 is a part of line 42, while 42:7-50:3 ends in line 50.
    const isOneLine = last === undefined || (column !== undefined && lastColumn === undefined);
    ranges.push([start, isOneLine ? start : lineOf(last)]);
    end += whole.length;
  }
  return { ranges, end };
}

/** Numbers too big to be told apart are one and the same line, which no file has. */
const lineOf = (digits = "") => Math.min(Number(digits), Number.MAX_SAFE_INTEGER);
