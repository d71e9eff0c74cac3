/**
 * The regular expression of a search. It comes from a model, so it runs on RE2, which takes a time
 * linear in the text whatever the pattern, and which has no lookaround and no backreferences.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/pattern.ts
 */
import { RE2JS } from "re2js";
import { ToolError } from "../tool.ts";
import { quoted } from "./text.ts";

/** How long a pattern may be, in characters. */
const MAX_LENGTH = 1_000;
/** How many instructions it may compile to: linear in the text is still their number times its length. */
const MAX_SIZE = 1_000;

/** What other dialects have and RE2 hasn't, by what its message quotes, and what to do instead. */
const FOREIGN: readonly (readonly [RegExp, string])[] = [
  [
    /`\(\?<?[=!]/,
    "Lookahead and lookbehind aren't supported. Match a longer text, and judge it yourself.",
  ],
  [/`\\([1-9]|k)/, "Backreferences aren't supported. Write the alternatives out."],
  [/`\(\?[>#x|P&(R]/, "That kind of group isn't supported. Use (…), (?:…), (?P<name>…) or (?i)."],
  [/`\\[uc]/, "Write a character by its code as \\x{20AC}."],
  [/`\\[ZGKbBR]/, "Matches lie within one line. Use ^ and $ for its start and its end."],
  [/nested repetition/, "Possessive and doubled quantifiers aren't supported. Use one."],
  [/repeat count/, "A repeat count is at most 1000, nested ones multiplied."],
];

/** A compiled pattern. */
export interface Pattern {
  /** Whether it's found in a line. */
  readonly test: (line: string) => boolean;
  /** Where it's found first, or 0. */
  readonly indexIn: (line: string) => number;
}

/**
 * Compiles a pattern in RE2's syntax.
 *
 * @throws {ToolError} It is empty, too long, too large, or not in RE2's syntax.
 */
export function compilePattern(pattern: string): Pattern {
  const invalid = (why: string) =>
    new ToolError(`Invalid regular expression ${quoted(pattern)}: ${why}`);
  if (pattern === "") throw invalid("it is empty. Give a text or a pattern to look for.");
  if (pattern.length > MAX_LENGTH) throw invalid(`it is longer than ${MAX_LENGTH} characters.`);
  for (const [pair] of pattern.matchAll(/\\[\s\S]/g)) {
    if (pair !== "\\A" && pair !== "\\z") continue;
    const [edge, sign] = pair === "\\A" ? ["start", "^"] : ["end", "$"];
    throw invalid(
      `${pair} is the ${edge} of a file, but the search goes line by line. Use ${sign} for the ` +
        `${edge} of a line.`,
    );
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const [, hint] = FOREIGN.find(([sign]) => sign.test(message)) ?? [];
    const why = message.replace(/^error parsing regexp: /, "");
    throw invalid(
      `${why}. ${hint ?? "The syntax is RE2's; put a \\ before a character meant as it is, such as \\( or \\[."}`,
    );
  }
  if (compiled.programSize() > MAX_SIZE) {
    throw invalid("its repeats make it too large. Use + or * in place of large counts.");
  }
  const indexIn = (line: string) => {
    const matcher = compiled.matcher(line);
    return matcher.find() ? matcher.start() : 0;
  };
  return { test: (line) => compiled.test(line), indexIn };
}
