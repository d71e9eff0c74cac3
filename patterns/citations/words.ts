/**
 * Reads an answer word by word, for paths that have lines behind them or before them.
 *
 *     (see src/a.ts:3)    lines 3-5 of src/a.ts    src/a.ts(12,5): error    https://…/blob/main/a.ts#L3
 *
 * From effective-agents 0.1.0: patterns/citations/words.ts
 */
import { isFile, isSurely, type KindOf, mayBePath } from "./names.ts";
import {
  compilerLinesAt,
  type Lines,
  type LinesStart,
  linesBefore,
  listFrom,
  type Range,
  startBehind,
} from "./ranges.ts";
import { urlAt } from "./urls.ts";

/** A path with all its ranges. */
export interface Mention {
  readonly path: string;
  readonly ranges: readonly Range[];
  /** Where it ends in the answer. */
  readonly end: number;
}

/** A character of a path that may stand among other words. */
const CHAR = String.raw`[\p{L}\p{M}\p{N}\p{So}\u200c\u200d._~+@$%&^\\/()[\]{}-]`;
/** Of a glob: `{a,b}`, and a star in the midst, where it isn't Markdown's. */
const GLOB = "\\{[^{}\\s`:,]*,[^{}\\s`:]*\\}|(?<=[A-Za-z0-9/\\\\])\\*{1,2}(?=[A-Za-z0-9./\\\\-])";
/** The drive's letter belongs to it, and so does `file://`. */
const START = String.raw`(?<!${CHAR})\]?[([{]{0,9}(?:file:\/\/(?:localhost)?(?=\/)(?:\/[A-Za-z]:(?=\/))?|[A-Za-z]:(?=[\\/](?!\/)))`;
const WORD = new RegExp(`(?:${START})?(?:${GLOB}|${CHAR})+`, "gu");
/** What is no part of a path in a `file:` URL. */
const FILE_SCHEME = /^file:\/\/(?:localhost)?(?:\/(?=[A-Za-z]:))?/;
/** No blank, and nothing else for which a path needs code ticks. */
const PLAIN = new RegExp(`^(?:${CHAR}|:)+$`, "u");

/** What may stand right before a path: a script without blanks, a dash, the `@` of a mention, a star. */
const BEFORE_PATH =
  /^.*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{So}]|^[@~-]+|^(?:[^/\\*]|[/\\](?=\*))*\*+/u;

/** What ends a sentence behind a path without lines. */
const SENTENCE_END = /(?<![.)\]}])[.)\]}]+$/;

/** Gives every path with lines that begins between two places, which are asked for in order. */
export type ReadWords = (from: number, to: number) => Generator<Mention>;

/** Makes a reader of one answer. */
export function createReader(answer: string, kindOf: KindOf): ReadWords {
  const findAhead = linesAhead(answer);

  return function* read(from, to) {
    let at = from;
    const text = answer.slice(from, to);
    for (;;) {
      WORD.lastIndex = at - from;
      const match = at < to ? WORD.exec(text) : null;
      if (!match) break;
      const [word] = match;
      const start = from + match.index;
      at = start + word.length;
      if (answer.startsWith("://", at)) {
        const { end, cited } = urlAt(answer, at, kindOf);
        if (cited) yield { ...cited, end };
        at = end;
        continue;
      }
      const isCited = citedBy(answer, start, at, kindOf);
      const behind = startBehind(answer, at);
      const isItalic = behind !== undefined && word.startsWith("_") && isClosed(answer, behind);
      const path = pathIn(word, isItalic, kindOf);
      if (behind && isCited(path, behind.isLoose)) {
        const lines = listFrom(answer, behind);
        yield { path, ...lines };
        at = lines.end;
        continue;
      }
      if (behind && !behind.isLoose) {
        at = listFrom(answer, behind).end;
        continue;
      }
      const compiled = readCompiled(answer, word, start, kindOf);
      if (compiled && isCited(compiled.path, true)) {
        yield compiled;
        at = compiled.end;
        continue;
      }
      const ahead = findAhead(word, start);
      if (ahead && ahead.end > start) at = ahead.end;
      else if (ahead) {
        const bare = pathIn(word.replace(SENTENCE_END, ""), false, kindOf);
        const cited = [path, bare].find((path) => isCited(path, true));
        if (cited !== undefined) yield { path: cited, ranges: ahead.ranges, end: at };
      }
    }
  };
}

/** Whether it's read word by word: inside code ticks too it's no more than that. */
export const isPlain = (text: string): boolean => PLAIN.test(text);

/** The test for a path that is the word from `start` to `end`. */
function citedBy(answer: string, start: number, end: number, kindOf: KindOf) {
  const before = answer.slice(Math.max(0, start - 5), start);
  const isCode = before.endsWith("`") && answer[end] === "`";
  return (path: string, isLoose: boolean): boolean => {
    if (!mayBePath(path) || before.endsWith("::") || before.endsWith("node:")) return false;
    if (isSurely(path, kindOf)) return true;
    // Behind a colon there may be a path (`error:src/a.ts:3`), but no other word (`a:b:3`).
    if (before.endsWith(":")) return false;
    return (!isLoose || isCode || /[./\\]/.test(path)) && isFile(path, kindOf);
  };
}

/** Finds lines whose path follows them, and gives them until the word where it begins has been read. */
function linesAhead(answer: string) {
  let ahead: Lines | undefined;
  let read = 0;
  return (word: string, start: number): Lines | undefined => {
    const at = start + (/^[([{]*(?=(?:lines?$|L\d))/i.exec(word)?.[0].length ?? Infinity);
    if (at < Infinity && at >= read) {
      const lines = linesBefore(answer, at);
      read = lines?.end ?? at;
      ahead = lines?.isOfPath ? lines : undefined;
    }
    return ahead && ahead.end >= start ? ahead : undefined;
  };
}

/** `src/a.ts(12,5)`. Without a slash it may be a call (`res.json(404)`), if there is no such file. */
function readCompiled(
  answer: string,
  word: string,
  start: number,
  kindOf: KindOf,
): Mention | undefined {
  const open = word.lastIndexOf("(");
  const lines = open > 0 ? compilerLinesAt(answer, start + open) : undefined;
  if (!lines) return undefined;
  const path = pathIn(word.slice(0, open), false, kindOf);
  const isCall = !/[\\/]/.test(path) && answer[lines.end] !== ":" && !isFile(path, kindOf);
  return isCall ? undefined : { path, ...lines };
}

const isClosed = (answer: string, first: LinesStart) => answer[listFrom(answer, first).end] === "_";

/** The path in a word, without what stands around it. */
function pathIn(word: string, isItalic: boolean, kindOf: KindOf): string {
  const bare = withoutScheme(withoutBrackets(word));
  const path = isItalic ? bare.replace(/^_+/, "") : bare;
  if (isFile(path, kindOf)) return path;
  const emphasized = /^(_{1,3})([^_][\s\S]*[^_])\1$/u.exec(path)?.[2];
  if (emphasized !== undefined) return emphasized;
  const inner = path.replace(BEFORE_PATH, "");
  return inner !== path && isFile(inner, kindOf) ? inner : path;
}

/** `(src/a.ts`, `src/a.ts)` and `(src/a.ts)` are src/a.ts, and app/(shop)/[id].ts stays as it is. */
function withoutBrackets(word: string): string {
  const open: number[] = [];
  const tail = word.search(/(?<![)\]}])[)\]}]+$/);
  let from = 0;
  for (const { index, 0: bracket } of word.matchAll(/[()[\]{}]/g)) {
    if ("([{".includes(bracket)) open.push(index + 1);
    else {
      const inside = open.pop();
      if (inside === from + 1 && index === word.length - 1) return word.slice(inside, -1);
      if (inside === undefined && tail >= 0 && index >= tail) return word.slice(from, index);
      if (inside === undefined) from = index + 1;
    }
  }
  return word.slice(open.at(-1) ?? from);
}

/** A path of a `file:` URL. */
export const withoutScheme = (path: string): string => path.replace(FILE_SCHEME, "");
