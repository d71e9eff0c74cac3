/**
 * Globs, in the syntax of .gitignore: `*.ts` at any depth, `src/*.ts` from the start, `**` for any
 * number of folders, `?`, `[a-z]`, `[!a-z]`, and `\` before a character meant as it is.
 *
 * They come from a model and from files of any repo, so they are matched without regular expressions:
 * a star that doesn't fit is never tried against more than what is left (see `fits`).
 *
 * From effective-agents 0.1.0: patterns/repo-tools/glob.ts
 */

const STAR: unique symbol = Symbol("any number of them");
type Star = typeof STAR;

/** Fits one character. */
type Token = (character: string) => boolean;
/** Fits one part of a path. */
type Part = readonly (Token | Star)[];

/** A glob, ready to be matched. */
export interface Glob {
  readonly parts: readonly (Part | Star)[];
  /** It ended in `/`. */
  readonly foldersOnly: boolean;
}

/** Reads a glob. Every text is one: a `[` without its `]` is just that. */
export function parseGlob(text: string): Glob {
  const foldersOnly = text.endsWith("/");
  const bare = foldersOnly ? text.slice(0, -1) : text;
  const isAnchored = bare.includes("/");
  const parts = bare.replace(/^\//, "").split("/").map(parsePart);
  // `src/**` is all that is in src, not src itself.
  if (parts.at(-1) === STAR) parts.push([STAR]);
  return { parts: isAnchored ? parts : [STAR, ...parts], foldersOnly };
}

/**
 * Whether a path fits.
 *
 * @param path The parts of the path, relative to where the glob counts from.
 */
export function matches(glob: Glob, path: readonly string[], isFolder: boolean): boolean {
  if (glob.foldersOnly && !isFolder) return false;
  return fits(glob.parts, path, (part, name) => fits(part, [...name], (token, c) => token(c)));
}

/**
 * All globs that one with braces stands for: `*.{ts,tsx}` for `*.ts` and `*.tsx`.
 * Nothing if they are more than `most`.
 */
export function expandBraces(text: string, most: number): readonly string[] | undefined {
  const done: string[] = [];
  const open = [text];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [braces, inner = ""] = /\{([^{}]*,[^{}]*)\}/.exec(next) ?? [];
    if (braces === undefined) done.push(next);
    else {
      const [before = "", ...after] = next.split(braces);
      open.push(...inner.split(",").map((choice) => before + choice + after.join(braces)));
    }
    if (done.length + open.length > most) return undefined;
  }
  return [...new Set(done)];
}

/**
 * Whether the items fit the pattern, where a star stands for any number of them. It only ever goes
 * back to the last star, so it takes at most as many steps as pattern times items.
 */
function fits<P, T>(
  pattern: readonly (P | Star)[],
  items: readonly T[],
  one: (expected: P, item: T) => boolean,
): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < items.length; ) {
    const expected = pattern[at];
    // Within the bounds, as the loop's condition and the `undefined` check say.
    const item = items[index] as T;
    if (expected === STAR) {
      star = at;
      resume = index;
      at += 1;
    } else if (expected !== undefined && one(expected, item)) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      at = star + 1;
      resume += 1;
      index = resume;
    } else return false;
  }
  return pattern.slice(at).every((expected) => expected === STAR);
}

function parsePart(text: string): Part | Star {
  if (text === "**") return STAR;
  const characters = [...text];
  const part: (Token | Star)[] = [];
  for (let index = 0; index < characters.length; index += 1) {
    const character = characters[index] ?? "";
    const set = character === "[" ? parseSet(characters, index + 1) : undefined;
    if (set) {
      part.push(set.token);
      index = set.end;
    } else if (character === "*") part.push(STAR);
    else if (character === "?") part.push(() => true);
    else {
      if (character === "\\" && index + 1 < characters.length) index += 1;
      const literal = characters[index];
      part.push((other) => other === literal);
    }
  }
  return part;
}

/** The set that begins after its `[`, and where its `]` stands; `undefined` if there is none. */
function parseSet(characters: readonly string[], start: number) {
  const isNegated = characters[start] === "!" || characters[start] === "^";
  const first = start + (isNegated ? 1 : 0);
  const ranges: (readonly [string, string])[] = [];
  for (let index = first; index < characters.length; index += 1) {
    if (characters[index] === "]" && index > first) {
      const isIn = (other: string) => ranges.some(([low, high]) => low <= other && other <= high);
      return { end: index, token: (other: string) => isIn(other) !== isNegated };
    }
    if (characters[index] === "\\") index += 1;
    const low = characters[index] ?? "";
    const isRange = characters[index + 1] === "-" && (characters[index + 2] ?? "]") !== "]";
    if (isRange) index += characters[index + 2] === "\\" ? 3 : 2;
    ranges.push([low, characters[index] ?? ""]);
  }
  return undefined;
}
