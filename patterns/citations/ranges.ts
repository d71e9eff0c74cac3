/**
 * The lines that stand by a path, in the forms that people, editors, compilers and GitHub use.
 *
 *     :42   :L42   #L42-L50   #L42C5-L50C7   :42:7   :42:7-50:3   (42,7)   : 42   :1,000
 *     , line 42   (lines 42–50)   on lines 42 to 50   (42-50)   L42   lines 42-50 of
 *     :42-50   :42 – 50   :42..50   :42→50   :42 to 50   :42 through 50   :42`–`50
 *     :3, 17-20 and 30   :3; 17   :3 or 17   :3/17   :3 & 17   :3 and line 17
 *
 * A number behind the first one has a mark (`L17`, `:17`, `line 17`) or ends a list: one with another
 * word behind it is no line ("src/a.ts:3, 5 retries"), and nor is a date. A last line behind blanks may
 * have that word if it lies behind the first ("12 to 20 set it"), but not behind closed code ticks, where
 * a dash begins a remark ("`src/a.ts:12` – 250 ms"). 42:50 is a line and a column. `1,000` and `12,345`
 * are one number, while `120,135`, `3,170,200` and `12,345-400` are lists.
 *
 * From effective-agents 0.1.0: patterns/citations/ranges.ts
 */

/** From the first line to the last, included. Neither has been checked. */
export type Range = readonly [start: number, end: number];

/** The ranges at a place in a text. */
export interface Lines {
  /** None where there are none. */
  readonly ranges: readonly Range[];
  /** Where they end in the text. */
  readonly end: number;
}

/** The first of some ranges. `listFrom` gives all, once it's known that a path has them. */
export interface LinesStart {
  readonly first: Item;
  /** Whether there is more than a mark (`:42`, `#L42`) between the path and it. */
  readonly isLoose: boolean;
}

interface Item {
  readonly range: Range;
  readonly end: number;
  /** Whether nothing behind it can make it another thing: it's marked as a line, or a range. */
  readonly isSure: boolean;
}

const BLANK = String.raw`[ \t\u00a0\u2000-\u200a\u202f]`;
/** Code ticks or emphasis may close and open wherever a number or a mark begins. */
const TICKS = "[`*_]{0,3}";
const THOUSANDS = String.raw`\d{1,2},\d{3}(?!,?\d|[-\u2010-\u2015]\d{1,3}(?![\d,]))`;
/** A line with its column, and nothing behind it that makes it another thing. */
const LINE = String.raw`(?<line>${THOUSANDS}|\d+)(?:C\d+|(?<column>:\d+))?(?:ff?)?(?!_*[A-Za-z0-9]|\.\d|@|\/(?!\d))`;
const LINE_WORD = String.raw`(?:(?:[Ll]ines?|LINES?|[Ll]ns?|ll?\.)(?:${BLANK}?(?:#|:|no\.|numbers?))?${BLANK}?${TICKS}[L:]?|L|第)(?=\d)`;
const MARK = String.raw`(?<mark>(?:(?:on|at) )?${LINE_WORD}|[:#]?[Ll](?=\d)|:(?=\d))?`;

/** What may stand between a path and the word `line`. */
const JOINT = String.raw`[\`*"'”’»)\]>]{0,4}(?:${BLANK}?(?:[,:;([@|/·•†，：\u2013\u2014]|--?|'s))?${BLANK}{0,2}(?:(?:on|at|in|around|near|from|between|see|starting (?:on|at)) (?:the )?)?${TICKS}`;
const sticky = (pattern: string) => new RegExp(pattern, "y");
const TIGHT = sticky(`${TICKS}(?:[:：]${TICKS}[Ll]?|#[Ll])${LINE}`);
const SPACED = sticky(`${TICKS}:[\`*]{0,2}${BLANK}{1,2}${TICKS}${LINE}`);
const WORDED = sticky(
  String.raw`${JOINT}(?:${LINE_WORD}|(?<=[ ([]${TICKS}):[Ll]?(?=\d)|(?<= [([])(?=\d+[-\u2010-\u2015]\d+[)\]]))${LINE}`,
);
const COMPILER = /\((\d+)(?:-(\d+)|,\d+(?:-\d+)?|,\d+[-,](\d+),\d+)?\)/y;

/** Around a word a line may break. */
const GAP = String.raw`(?:${BLANK}{1,3}|\r?\n${BLANK}{0,8})`;
const TO = String.raw`${BLANK}{0,3}(?:\\?[-=\u2010-\u2015]>|\\?[-\u2010-\u2015\u2212~～〜→…至到]|\.\.[.=]?|:(?=L))${BLANK}{0,3}|${GAP}(?:up to|through to|to|through|thru|until|till)${GAP}`;
const LAST = sticky(`(?<close>${TICKS})(?<to>${TO})(?<open>${TICKS})${MARK}${LINE}`);
const AND_WORD = String.raw`(?:and(?: also| then)?|or|plus|then|as well as|vs\.?|versus)`;
const AND = `,?${GAP}${AND_WORD}${GAP}|,?${BLANK}{0,3}[,;&+]${BLANK}{0,3}|[/、，；和及或]`;
const NEXT = sticky(`${TICKS}(?:${AND})${TICKS}${MARK}${LINE}`);

const LIST_END = sticky(
  String.raw`[\`*)\]},;|"'”’»!?。，、；]|${BLANK}*(?:\n|\r|$)|\.(?:\s|$)|:(?!\d)|${BLANK}(?:${AND_WORD}|[&+\u2013\u2014-])${GAP}|[/&+]\d|${BLANK}\(`,
);
const DATE = /-\d/y;
const OF = sticky(
  String.raw`${TICKS}${BLANK}(?:of|in|from)${BLANK}(?:the )?(?:file )?(?:\(|["'\`*]{0,4})(?=\S)`,
);
const SOME_PATH = /[^\s./\\]{0,200}(?:[./\\]\S|`)/y;

/** The first range behind a path that ends at `at`. */
export function startBehind(text: string, at: number): LinesStart | undefined {
  const tight = itemAt(text, at, TIGHT);
  if (tight) return { first: tight, isLoose: false };
  const spaced = itemAt(text, at, SPACED);
  if (spaced && matchAt(LIST_END, text, spaced.end)) return { first: spaced, isLoose: true };
  const worded = itemAt(text, at, WORDED);
  if (worded && !isOfAnother(text, worded.end)) return { first: worded, isLoose: true };
  return undefined;
}

/** All ranges behind a path that ends at `at`. */
export function linesBehind(text: string, at: number): Lines {
  const start = startBehind(text, at);
  return start ? listFrom(text, start) : { ranges: [], end: at };
}

/** Ranges at `at`, before their path if there is one: they end where it begins (`lines 3-5 of a.ts`). */
export function linesBefore(
  text: string,
  at: number,
): (Lines & { readonly isOfPath: boolean }) | undefined {
  const first = itemAt(text, at, WORDED);
  if (!first) return undefined;
  const { ranges, end } = listFrom(text, { first, isLoose: true }, true);
  const of = matchAt(OF, text, end);
  return { ranges, end: end + (of?.[0].length ?? 0), isOfPath: of !== null };
}

/** The lines in the bracket at `at`, as compilers write them: `(12)`, `(12,5)`, `(12,5,14,3)`. */
export function compilerLinesAt(text: string, at: number): Lines | undefined {
  const match = matchAt(COMPILER, text, at);
  if (!match) return undefined;
  const [whole, start, last, lastOfFour] = match;
  const range = [lineOf(start), lineOf(last ?? lastOfFour ?? start)] as const;
  return { ranges: [range], end: at + whole.length };
}

/**
 * A range with those that follow it.
 *
 * @param isBefore Whether they may be those of a path behind them.
 */
export function listFrom(text: string, { first }: LinesStart, isBefore = false): Lines {
  const ranges = [first.range];
  let end = first.end;
  for (;;) {
    const item = itemAt(text, end, NEXT);
    if (!item || matchAt(DATE, text, item.end)) break;
    if (isOfAnother(text, item.end)) {
      if (!isBefore) break;
    } else if (!item.isSure && !matchAt(LIST_END, text, item.end)) break;
    ranges.push(item.range);
    end = item.end;
  }
  return { ranges, end };
}

function itemAt(text: string, at: number, pattern: RegExp): Item | undefined {
  const match = matchAt(pattern, text, at);
  if (!match) return undefined;
  const { line, column, mark } = match.groups ?? {};
  const start = lineOf(line);
  const end = at + match[0].length;
  const last = lastAt(text, end, start, column !== undefined);
  const isSure = mark !== undefined || last !== undefined;
  return { range: [start, last?.line ?? start], end: last?.end ?? end, isSure };
}

/** The last line of a range that goes on at `at`. */
function lastAt(text: string, at: number, start: number, hasColumn: boolean) {
  const match = matchAt(LAST, text, at);
  if (!match) return undefined;
  const { line: digits, column, mark, to = "", close = "", open = "" } = match.groups ?? {};
  const line = lineOf(digits);
  const end = at + match[0].length;
  const isTight = !/[\s—]/.test(to);
  // A dash may also begin a remark: "`src/a.ts:12` – 3 tries".
  const isMarked = mark !== undefined || open !== "";
  const isSure = isTight || isMarked || matchAt(LIST_END, text, end) || isOfAnother(text, end);
  if (!isSure && (close !== "" || line <= start)) return undefined;
  // 42:7-12 is a part of line 42, while 42:7-50:3 ends in line 50.
  const isColumn = hasColumn && column === undefined && mark === undefined;
  return { line: isColumn && (isTight || line <= start) ? start : line, end };
}

/** Whether lines that end at `at` are those of a path that follows: "line 5 of src/b.ts". */
function isOfAnother(text: string, at: number): boolean {
  const of = matchAt(OF, text, at);
  return of !== null && matchAt(SOME_PATH, text, at + of[0].length) !== null;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Numbers too big to be told apart are one and the same line, which no file has. */
export function lineOf(digits = ""): number {
  return Math.min(Number(digits.replace(",", "")), Number.MAX_SAFE_INTEGER);
}
