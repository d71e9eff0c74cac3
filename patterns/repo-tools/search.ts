/**
 * `search`: the lines that match a regular expression, in all files or in those that fit a glob.
 *
 *     src/app.ts-11- function main() {
 *     src/app.ts:12:   const port = readPort();
 *     --
 *     src/port.ts:3: export function readPort(): number {
 *     [truncated; there are more matches: narrow the pattern or the glob]
 *
 * The pattern is tried on each line alone, without its LF or CRLF. The time is linear in the text, and
 * the event loop runs in between: no stretch is longer than what a file of 5 MB takes to be decoded, or
 * a line of 10,000 characters to be searched (0.5 s for the worst pattern known). How long the whole may
 * take is for the caller's signal to say.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/search.ts
 */
import { defineTool, type Tool, ToolError } from "../tool.ts";
import { createFilter } from "./filter.ts";
import { findHits, linesAround, MAX_SEARCHED } from "./hits.ts";
import { compilePattern } from "./pattern.ts";
import { createPause, type Pause } from "./pause.ts";
import { type Entry, type Sandbox, withEntry } from "./sandbox.ts";
import { createNotes, createResult, encodingOf, type Notes, quoted } from "./text.ts";
import { walk } from "./walk.ts";

/** How many matching lines come back at most, and how many lines around each. */
const MAX_MATCHES = 200;
const MAX_CONTEXT = 20;
/** The biggest file that is searched, in bytes. */
const MAX_FILE = 5_000_000;
/** In characters: notes of what wasn't searched, for three reasons, name three paths each. */
const ROOM_FOR_NOTES = 3_500;

/** What `search` takes. */
export interface SearchInput {
  readonly pattern: string;
  readonly glob?: string;
  readonly context?: number;
}

/** Makes the tool. */
export function searchTool(sandbox: Sandbox): Tool {
  return defineTool<SearchInput>({
    name: "search",
    description:
      "Search the repo's text files for a regular expression, line by line. Use it to find where " +
      "something is defined, used or mentioned; then read around a hit with read_file. The syntax " +
      "is RE2's: (?i) ignores case, \\b is a word's edge; there is no lookaround and no " +
      "backreference, and \\ stands before a character meant as it is, such as \\( or \\[. Returns " +
      "`path:line: text` for each match and `path-line- text` for the context, with paths that " +
      `read_file takes. At most ${MAX_MATCHES} matches come back, with a note [truncated …] if there ` +
      "are more. Not searched are what .gitignore names, binary files, links, and files that may " +
      "hold secrets.",
    input_schema: {
      type: "object",
      properties: {
        pattern: { type: "string", description: "What to look for, such as function \\w+Price\\(" },
        glob: {
          type: "string",
          description:
            "Searches only the files that fit: *.ts by name at any depth, src/**/*.{ts,tsx} by path " +
            "from the repo root on. Default: all",
        },
        context: {
          type: "integer",
          description: `How many lines to show before and after each match, 0 to ${MAX_CONTEXT}. Default 0`,
        },
      },
      required: ["pattern"],
      additionalProperties: false,
    },
    run: (input, { signal }) => search(sandbox, input, createPause(signal)),
  });
}

async function search(
  sandbox: Sandbox,
  { pattern: source, glob, context = 0 }: SearchInput,
  pause: Pause,
): Promise<string> {
  if (!Number.isInteger(context) || context < 0 || context > MAX_CONTEXT) {
    throw new ToolError(`context must be a whole number from 0 to ${MAX_CONTEXT}, got ${context}.`);
  }
  const pattern = compilePattern(source);
  const isWanted = glob === undefined ? () => true : createFilter(glob);
  const bytes = new Uint8Array(MAX_FILE + 1);
  const notes = createNotes();
  const result = createResult(ROOM_FOR_NOTES);
  let searched = 0;
  let matches = 0;
  let isFull = false;

  const onUnread = (entry: Entry) => notes.add("can't be read", entry.path);
  for await (const entry of walk(sandbox, ROOT, { pause, onUnread })) {
    if (entry.kind !== "file" || !isWanted(entry)) continue;
    const lines = await readLines(sandbox, entry, bytes, notes);
    if (!lines) continue;
    searched += 1;
    if (lines.some(({ length }) => length > MAX_SEARCHED)) notes.add(LONG, entry.path);
    const room = MAX_MATCHES - matches;
    const hits = await findHits(lines, pattern, room + 1, pause);
    matches += hits.length;
    const shown = linesAround(entry.path, lines, hits.slice(0, room), context, pattern, pause);
    for await (const line of shown) {
      isFull = !result.add(line);
      if (isFull) break;
    }
    isFull ||= hits.length > room;
    if (isFull) break;
  }

  const nothing =
    glob !== undefined && searched === 0
      ? `No file fits ${quoted(glob)}.`
      : `No match for ${quoted(source)} in ${searched} files.${hintFor(source)}`;
  return result.text(
    matches === 0 && nothing,
    isFull && "[truncated; there are more matches: narrow the pattern or the glob]",
    ...notes.all(),
  );
}

const ROOT: Entry = { path: ".", kind: "folder" };
const LONG = `only the first ${MAX_SEARCHED} characters of a line were searched`;

function hintFor(pattern: string): string {
  if (pattern.includes("\\n")) return " The search goes line by line, so \\n matches nothing.";
  return pattern.startsWith("(?i") ? "" : " Begin it with (?i) to ignore case.";
}

/** The lines of a text file; nothing if it's binary or too big, or can't be read. */
async function readLines(
  sandbox: Sandbox,
  entry: Entry,
  bytes: Uint8Array,
  notes: Notes,
): Promise<readonly string[] | undefined> {
  try {
    return await withEntry(sandbox, entry, async ({ read }) => {
      let size = 0;
      for (let count = -1; count !== 0; size += count) count = read(bytes.subarray(size), size);
      if (size > MAX_FILE) return notes.add(`over ${MAX_FILE} bytes, not searched`, entry.path);
      const encoding = encodingOf(bytes.subarray(0, size));
      if (!encoding) return undefined;
      const lines = new TextDecoder(encoding).decode(bytes.subarray(0, size)).split(/\r?\n/);
      if (lines.at(-1) === "") lines.pop();
      return lines;
    });
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return notes.add("can't be read", entry.path);
  }
}
