/**
 * Finds what an answer cites.
 *
 *     (src/http.ts:42).   `src/http.ts:42–50`   **src/http.ts**:L42   src/http.ts:3, 17-20 and 30
 *     [http.ts:42](./src/http.ts#L42-L50)       [retries](<my docs/http.md#L7>)
 *     src/http.ts, lines 42 to 50               line 42 of `src/http.ts`      src/http.ts(42,7): error
 *     ```42:50:src/http.ts                      https://github.com/o/r/blob/main/src/http.ts#L42
 *
 * The lines may be written as ranges.ts lists it. A citation that isn't found goes unchecked, and one too
 * many is only a complaint. So:
 *
 * - A path is a word with an extension of code, documents or data, one of the names that repos use
 *   without one (Makefile, .gitignore), and one that begins with `./`, `../`, `~/`, `C:\`, a dot-folder
 *   or a folder of the machine's own (/etc/). It's cited wherever a line follows, whether it exists or
 *   not. So is any word with a slash if its first folder exists. names.ts has the lists.
 * - Any other word is a path if there is such a file: `Total:3`, `n/a:3`, `process.env:3`, `Node.js:20`,
 *   `example.com:443`. Outside of code ticks and without a dot or a slash it then needs its line right
 *   behind it: `run:3`, but not "run, line 3".
 * - `src/*.ts:3` and `src/{a,b}.ts:3` are cited as they stand, for whoever looks them up to complain.
 *   `*.ts:3` is not.
 * - Nothing is cited by what has no letter before the colon (12:30, 3:1, John 3:16, 127.0.0.1:80),
 *   stands behind `::` or `node:`, or goes on behind the number (web:80/x, opacity:0.5, top:10px); nor
 *   by localhost, nor by a URL, but for that of a file at GitHub or the like (urls.ts).
 * - Blanks and signs such as `,` and `#` are in a path only inside code ticks and link targets, and only
 *   if there is such a file: `npx tsx src/a.ts:3` cites src/a.ts. Targets may be percent-encoded.
 * - A link's text that names the end of the target's path means the target.
 *
 * Unread, since the text can't tell what they are: numbers alone ("src/a.ts 12", "src/a.ts (12)",
 * src/a.ts#12, and a cell of its own in a table); a number before another word ("src/a.ts: 3 retries",
 * "src/a.ts:12 and 20 set it"); lines away from their path ("In src/a.ts the limit is set on line 12",
 * "line 12 (src/a.ts)", and on the next line of text); `a.ts(12)` without a slash and with no colon behind
 * it, if there is no such file; and all of a URL whose file isn't there.
 *
 * The time is linear in the length of the answer.
 *
 * From effective-agents 0.1.0: patterns/citations/find.ts
 */
import { isFile, isSurely, type KindOf, mayBePath } from "./names.ts";
import { lineOf, linesBehind, type Range } from "./ranges.ts";
import { unescaped, urlAt } from "./urls.ts";
import { createReader, isPlain, type Mention, withoutScheme } from "./words.ts";

/** Lines of a file, as an answer cites them. Nothing is checked yet. */
export interface Citation {
  /** The plain form, whatever the answer's is: `src/http.ts:42` or `src/http.ts:42-50`. */
  readonly text: string;
  /** Without `./` in front. */
  readonly path: string;
  /** The first line. May be 0. */
  readonly start: number;
  /** The last line, included. Lies before the first where the answer has it so. */
  readonly end: number;
}

/**
 * All different citations, in the order in which they first appear.
 *
 * @param kindOf What there is at a path: asked where the text alone can't tell. Default: always a file.
 *
 * @example
 * findCitations("Retries are capped (`src/http.ts:42`), see [the test](./test/http.test.ts#L7-L9).");
 * // [{ text: "src/http.ts:42", path: "src/http.ts", start: 42, end: 42 },
 * //  { text: "test/http.test.ts:7-9", path: "test/http.test.ts", start: 7, end: 9 }]
 */
export function findCitations(answer: string, kindOf: KindOf = () => "file"): readonly Citation[] {
  const read = createReader(answer, kindOf);
  const mentions: Mention[] = [];
  let at = 0;
  const readTo = (to: number) => {
    for (const mention of read(at, to)) mentions.push(mention);
    at = Math.max(at, to, mentions.at(-1)?.end ?? 0);
  };
  const cite = (mention: Mention) => {
    mentions.push(mention);
    at = Math.max(at, mention.end);
  };

  for (const { start, end, text, isLink, range } of enclosedIn(answer)) {
    if (end <= at) continue;
    readTo(start);
    if (range) {
      if (isCited(text, isPlain(text), kindOf)) cite({ path: text, ranges: [range], end });
      readTo(end);
      continue;
    }
    const inside = readWhole(text, kindOf);
    const label = mentions.at(-1);
    if (isLink && label && isLabel(answer, label, start, inside.path)) {
      mentions.splice(-1, 1, { ...label, path: inside.path });
    }
    const hasLines = inside.ranges.length > 0;
    const isOne = isLink || !isPlain(text);
    if (isOne && isCited(inside.path, isPlain(text) && !hasLines, kindOf)) {
      const lines = hasLines ? { ...inside, end } : linesBehind(answer, end);
      if (lines.ranges.length > 0) cite({ ...lines, path: inside.path });
    }
    readTo(end);
  }
  readTo(answer.length);

  const citations = mentions.flatMap(({ path, ranges }) =>
    ranges.map((range) => toCitation(path, range)),
  );
  return [...new Map(citations.map((citation) => [citation.text, citation])).values()];
}

/** What stands between code ticks, or is a link's target. */
interface Enclosed {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly isLink: boolean;
  /** Its lines where they stand in front: `12:20:src/a.ts`, in ticks and where a code block opens. */
  readonly range?: Range;
}

/** A code span or a block's opening; or a link from its `](` on. Brackets in a target have partners. */
const ENCLOSED =
  /(?<!`)`+(?:(?<=```)[\w+#-]{1,20}[ :])?(\d+):(\d+):([^`\n]+)`*|(?<!`)`+([^`\n]+)`+|\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*){0,9})\)/g;

function* enclosedIn(answer: string): Generator<Enclosed> {
  for (const {
    index: start,
    0: whole,
    1: first,
    2: last,
    3: path,
    4: code,
    5: target,
  } of answer.matchAll(ENCLOSED)) {
    const place = { start, end: start + whole.length };
    if (path !== undefined) {
      const range = [lineOf(first), lineOf(last)] as const;
      yield { ...place, text: path.trim(), isLink: false, range };
    } else if (code !== undefined) yield { ...place, text: code, isLink: false };
    else yield { ...place, text: targetOf(target ?? ""), isLink: true };
  }
}

/** A link's target without its title, `<>` and percent-encoding. */
function targetOf(text: string): string {
  const [bare = ""] = text.trim().split(/ ["']/, 1);
  return unescaped(bare.startsWith("<") && bare.endsWith(">") ? bare.slice(1, -1) : bare);
}

/** From where on there may be lines in what is enclosed, in words. */
const WORDED = /[ ,(]+(?:lines?|L)\b ?\d/i;

/** What is enclosed as one path, and its ranges if there is nothing else behind it. */
function readWhole(enclosed: string, kindOf: KindOf): Pick<Mention, "path" | "ranges"> {
  const scheme = /^https?(?=:)/.exec(enclosed)?.[0];
  if (scheme) return urlAt(enclosed, scheme.length, kindOf).cited ?? { path: "", ranges: [] };
  const text = withoutScheme(enclosed);
  const colon = text.indexOf(":", /^[A-Za-z]:[\\/]/.test(text) ? 2 : 0);
  const words = text.search(WORDED);
  const places = [colon, words, colon < 0 ? text.lastIndexOf("#") : -1].filter((at) => at >= 0);
  for (const at of places) {
    const { ranges, end } = linesBehind(text, at);
    if (ranges.length > 0 && /^\)?$/.test(text.slice(end)))
      return { path: text.slice(0, at), ranges };
  }
  return { path: text, ranges: [] };
}

/** Whether all that is enclosed is a path. With blanks it may be a command, if there is no such file. */
function isCited(path: string, isPlain: boolean, kindOf: KindOf): boolean {
  return mayBePath(path) && (isFile(path, kindOf) || (isPlain && isSurely(path, kindOf)));
}

/** Whether a mention is in the text of the link that goes on at `close`, and names its target's end. */
function isLabel(answer: string, { path, end }: Mention, close: number, target: string): boolean {
  return target.endsWith(`/${path}`) && !/[[\]\n]/.test(answer.slice(end, close));
}

function toCitation(written: string, [start, end]: Range): Citation {
  const path = written.replace(/^(?:\.\/+)+/, "");
  return { text: `${path}:${start}${end === start ? "" : `-${end}`}`, path, start, end };
}
