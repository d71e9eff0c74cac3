/**
 * Finds what an answer cites: `path:line` and `path:first-last`, in whatever form it's written.
 *
 *     (src/http.ts:42).   `src/http.ts:42–50`   **src/http.ts**:L42   src/http.ts:3, 17-20 and 30
 *     [http.ts:42](./src/http.ts#L42-L50)       [retries](<my docs/http.md#L7>)
 *
 * A citation that isn't found goes unchecked, and one too many is only a complaint. So:
 *
 * - What has a slash, an extension or a dot in front is a path, and so are names that repos use without
 *   one (Makefile, LICENSE). It's cited wherever a line follows, whether it exists or not.
 * - Any other word (`Total:3`, `node:20`, `TS2345:12`), and what may be a host (`example.com:443`), is a
 *   path if there is such a file.
 * - Nothing is cited by what has no letter before the colon (12:30, 3:1, John 3:16, 127.0.0.1:80),
 *   stands behind `::` or `node:`, or goes on behind the number (web:80/x, opacity:0.5, top:10px); nor
 *   by a URL, nor by localhost.
 * - Blanks and signs such as `,` and `#` are in a path only inside code ticks and link targets, and only
 *   if there is such a file: `npx tsx src/a.ts:3` cites src/a.ts. Targets may be percent-encoded.
 * - A link's text that names the end of the target's path means the target.
 *
 * The time is linear in the length of the answer.
 */
import { type Range, rangesAt } from "./ranges.ts";
import { type IsFile, isPlain, type Mention, mayBePath, mentionsIn } from "./words.ts";

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
 * @param isFile Whether there is such a file: asked where the text alone can't tell. Default: always.
 *
 * @example
 * findCitations("Retries are capped (`src/http.ts:42`), see [the test](./test/http.test.ts#L7-L9).");
 * // [{ text: "src/http.ts:42", path: "src/http.ts", start: 42, end: 42 },
 * //  { text: "test/http.test.ts:7-9", path: "test/http.test.ts", start: 7, end: 9 }]
 */
export function findCitations(answer: string, isFile: IsFile = () => true): readonly Citation[] {
  const mentions: Mention[] = [];
  let at = 0;
  const readTo = (to: number) => {
    for (const mention of mentionsIn(answer, at, to, isFile)) mentions.push(mention);
    at = Math.max(at, to, mentions.at(-1)?.end ?? 0);
  };

  for (const { start, end, text, isLink } of enclosedIn(answer)) {
    readTo(start);
    const inside = readWhole(text);
    const label = mentions.at(-1);
    if (isLink && label && isLabel(answer, label, start, inside.path)) {
      mentions.splice(-1, 1, { ...label, path: inside.path });
    }
    const isCited = inside.ranges.length > 0 && mayBePath(inside.path);
    if (isCited && (isLink || !isPlain(text)) && isFile(inside.path)) {
      mentions.push({ ...inside, end });
      at = Math.max(at, end);
    } else readTo(end);
  }
  readTo(answer.length);

  const citations = mentions.flatMap(({ path, ranges }) =>
    ranges.map((range) => toCitation(path, range)),
  );
  return [...new Map(citations.map((citation) => [citation.text, citation])).values()];
}

/** A code span, or a link from its `](` on; brackets in a target have partners, and are few. */
const ENCLOSED = /(?<!`)`+([^`\n]+)`+|\]\(([^()\n]*(?:\([^()\n]*\)[^()\n]*){0,9})\)/g;

function* enclosedIn(answer: string) {
  for (const { index: start, 0: whole, 1: code, 2: target = "" } of answer.matchAll(ENCLOSED)) {
    const isLink = code === undefined;
    yield { start, end: start + whole.length, isLink, text: code ?? targetOf(target) };
  }
}

/** A link's target without its title, `<>` and percent-encoding. */
function targetOf(text: string): string {
  const [bare = ""] = text.trim().split(/ ["']/, 1);
  const target = bare.startsWith("<") && bare.endsWith(">") ? bare.slice(1, -1) : bare;
  try {
    return decodeURIComponent(target);
  } catch {
    return target;
  }
}

/** What is enclosed as one path, and its ranges if there is nothing else behind it. */
function readWhole(text: string): Omit<Mention, "end"> {
  const colon = text.indexOf(":", /^[A-Za-z]:[\\/]/.test(text) ? 2 : 0);
  const at = colon >= 0 ? colon : text.lastIndexOf("#");
  const path = at >= 0 ? text.slice(0, at) : text;
  const { ranges, end } = rangesAt(text, path.length);
  return { path, ranges: end === text.length ? ranges : [] };
}

/** Whether a mention is in the text of the link that goes on at `close`, and names its target's end. */
function isLabel(answer: string, { path, end }: Mention, close: number, target: string): boolean {
  return target.endsWith(`/${path}`) && !/[[\]\n]/.test(answer.slice(end, close));
}

function toCitation(written: string, [start, end]: Range): Citation {
  const path = written.replace(/^(?:\.\/+)+/, "");
  return { text: `${path}:${start}${end === start ? "" : `-${end}`}`, path, start, end };
}
