/**
 * Words that a line follows, and which of them are paths.
 *
 *     src/a.ts  a.ts  .env  ./run  Makefile      a path, whether it exists or not
 *     Total  node  TS2345  example.com           a path if there is such a file
 *     12  3:1  127.0.0.1  localhost  foo::bar    never
 */
import { type Range, rangesAt } from "./ranges.ts";

/** Whether there is a file of that path. Asked where a text alone can't tell. */
export type IsFile = (path: string) => boolean;

/** A path with all the ranges behind it. */
export interface Mention {
  readonly path: string;
  readonly ranges: readonly Range[];
  /** Where it ends in the answer. */
  readonly end: number;
}

/** A character of a path that may stand among other words. */
const CHAR = String.raw`[\p{L}\p{M}\p{N}\p{So}\u200c\u200d._~+@$%&^\\/()[\]{}-]`;
/** The drive's letter belongs to it. */
const WORD = new RegExp(String.raw`(?:(?<!${CHAR})[A-Za-z]:(?=[\\/](?!/)))?${CHAR}+`, "gu");
/** No blank, and nothing else for which a path needs code ticks. */
const PLAIN = new RegExp(`^(?:${CHAR}|:)+$`, "u");
const URL_REST = /:\/\/[^\s<>"'`*|,)\]]*/y;

/** What may stand right before a path: a script without blanks, a sign, the `@` of a mention. */
const BEFORE_PATH =
  /^.*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{So}]|^[@~]+/u;

const EXTENSION = /[^.\\/]\.(?:[A-Za-z][a-z0-9_+-]*|[A-Z][A-Z0-9]*)$/;
/** Files that repos have, without an extension. */
const USUAL =
  /^(?:(?:Docker|Container|Make|Gem|Rake|Proc|Vagrant|Jenkins|Pod|Brew)file|[mj]akefile|[Jj]ustfile|LICEN[CS]E|COPYING|NOTICE|README|CHANGELOG|CONTRIBUTING|AUTHORS|CODEOWNERS)$/;
/** `example.com`, and what begins with it. The endings are those that ports and images are seen with. */
const HOST =
  /^[^/\\]*\.(?:com|org|net|edu|gov|io|dev|app|ai|co|uk|de|eu|local|internal|lan)(?=[/\\]|$)/i;

/** Every path with lines behind it that begins between two places in the answer. */
export function* mentionsIn(
  answer: string,
  from: number,
  to: number,
  isFile: IsFile,
): Generator<Mention> {
  let at = from;
  for (const { index, 0: word } of answer.slice(from, to).matchAll(WORD)) {
    const start = from + index;
    if (start < at) continue;
    at = start + word.length;
    if (answer.startsWith("://", at) && !word.endsWith("file")) {
      URL_REST.lastIndex = at;
      if (URL_REST.test(answer)) at = URL_REST.lastIndex;
      continue;
    }
    const { ranges, end } = rangesAt(answer, at);
    if (ranges.length === 0) continue;
    at = end;
    const before = answer.slice(Math.max(0, start - 5), start);
    if (before.endsWith("::") || before.endsWith("node:")) continue;
    const path = pathIn(word, answer[end] === "_", isFile);
    if (!mayBePath(path)) continue;
    // Behind a colon there may be a path (`error:src/a.ts:3`), but no other word (`a:b:3`).
    if (isSurely(path) || (!before.endsWith(":") && isFile(path))) yield { path, ranges, end };
  }
}

/** Whether it's read word by word: inside code ticks too it's no more than that. */
export const isPlain = (text: string): boolean => PLAIN.test(text);

/** Whether it's no time, ratio or address. */
export const mayBePath = (path: string): boolean => /\p{L}/u.test(path) && path !== "localhost";

/** Whether it looks like a path, be it there or not. */
function isSurely(path: string): boolean {
  const hasExtension = EXTENSION.test(path);
  if (HOST.test(path)) return hasExtension && /[\\/]/.test(path);
  return hasExtension || /[\\/]|^\./.test(path) || USUAL.test(path);
}

/** The path in a word, without what stands around it. */
function pathIn(word: string, isItalic: boolean, isFile: IsFile): string {
  const bare = withoutBrackets(word);
  const path = isItalic ? bare.replace(/^_+/, "") : bare;
  const inner = path.replace(BEFORE_PATH, "");
  return inner !== path && !isFile(path) && isFile(inner) ? inner : path;
}

/** `(src/a.ts` and `(src/a.ts)` are src/a.ts, and app/(shop)/[id].ts stays as it is. */
function withoutBrackets(word: string): string {
  const open: number[] = [];
  let from = 0;
  for (const { index, 0: bracket } of word.matchAll(/[()[\]{}]/g)) {
    if ("([{".includes(bracket)) open.push(index + 1);
    else {
      const inside = open.pop();
      if (inside === undefined) from = index + 1;
      else if (inside === from + 1 && index === word.length - 1) return word.slice(inside, -1);
    }
  }
  return word.slice(open.at(-1) ?? from);
}
