/**
 * Text on its way from a file to the model: decoded, made visible, and cut to what a result may hold.
 *
 *     bytes ─► encodingOf ─► TextDecoder ─► lines ─► clip, visible ─► createResult ─► text
 *
 * From effective-agents 0.1.0: patterns/repo-tools/text.ts
 */

/** The most that one result holds, in characters, notes included. */
export const MAX_CHARACTERS = 20_000;

/** How a file's text is encoded, by its first 8 kB or more; `undefined` if it's binary. */
export function encodingOf(head: Uint8Array): "utf-8" | "utf-16le" | "utf-16be" | undefined {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  // As git does it.
  return head.subarray(0, 8_000).includes(0) ? undefined : "utf-8";
}

/**
 * The text with every character that can't be seen written as its code: `<U+001B>`. A terminal's
 * escapes, a lone CR, directional overrides, tag characters and U+2028 then do nothing and hide
 * nothing. The tab stays, and so do the joiners of emoji and scripts.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
    if ("\t\u200c\u200d".includes(character)) return character;
    const code = character.codePointAt(0) ?? 0;
    return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/**
 * The text made visible, at most `most` characters of it, with a note of how long it is if it's cut.
 *
 * @param length How long the whole text is, of which `text` may be the beginning.
 * @param start Where the part that is shown begins.
 */
export function clip(text: string, most: number, length: number = text.length, start = 0): string {
  if (text.length <= most) return visible(text);
  const part = cut(visible(cut(text.slice(start), most)), most);
  const isEnd = start + most >= length;
  return `${start > 0 ? "…" : ""}${part}${isEnd ? "" : "…"} [line cut, ${length} characters]`;
}

/** A path or a pattern for a sentence to the model. */
export function quoted(text: string): string {
  const shown = visible(cut(text, 300));
  return `'${cut(shown, 300)}${Math.max(text.length, shown.length) > 300 ? "…" : ""}'`;
}

/** The first characters, without half of a pair at the end. */
function cut(text: string, most: number): string {
  return text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
}

/** A result that is filled line by line. */
export interface Result {
  /** Adds a line; `false`, and nothing is added, if there is no room left for it. */
  readonly add: (line: string) => boolean;
  /** The lines between a header and notes, of which those that are no text are left out. */
  readonly text: (header: string | false, ...notes: readonly (string | false)[]) => string;
}

/** A result of at most `MAX_CHARACTERS`, of which `reserved` are kept for header and notes. */
export function createResult(reserved: number): Result {
  const lines: string[] = [];
  let room = MAX_CHARACTERS - reserved;
  return {
    add: (line) => {
      if (line.length + 1 > room) return false;
      room -= line.length + 1;
      lines.push(line);
      return true;
    },
    text: (header, ...notes) =>
      [header, ...lines, ...notes].filter((line) => line !== false).join("\n"),
  };
}

/** What a result leaves out, and why. */
export interface Notes {
  readonly add: (why: string, path: string) => undefined;
  /** A note for each reason, which names three paths at most. */
  readonly all: () => string[];
}

/** Collects paths by what there is to say of them. */
export function createNotes(): Notes {
  const notes = new Map<string, string[]>();
  return {
    add: (why, path) => {
      const paths = notes.get(why) ?? [];
      notes.set(why, paths);
      paths.push(path);
    },
    all: () =>
      [...notes].map(([why, paths]) => {
        const more = paths.length > 3 ? ` and ${paths.length - 3} more` : "";
        return `[${why}: ${paths.slice(0, 3).map(quoted).join(", ")}${more}]`;
      }),
  };
}
