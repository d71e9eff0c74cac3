/**
 * `read_file`: a range of lines of one text file, numbered, so that they can be cited as `path:N`.
 *
 *     src/app.ts lines 1-2 of 40
 *     1| export function main() {
 *     2|   listen(readPort());
 *     [truncated at line 2; ask for start_line 3]
 *
 * Lines end in LF or CRLF and in nothing else. The file is read in pieces and never held whole; a
 * range costs as much as the file up to its end, and in files of up to 10 MB as much as the file, to
 * know how many lines there are.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/read-file.ts
 */
import { defineTool, type Tool, ToolError } from "../tool.ts";
import { createPause, type Pause } from "./pause.ts";
import { type OpenFile, type Sandbox, withFile } from "./sandbox.ts";
import { clip, createResult, encodingOf, quoted, visible } from "./text.ts";

/** How many lines come back at most. */
const MAX_LINES = 400;
/** How many characters of a line are shown. */
const MAX_LINE = 2_000;
/** Up to which size the lines of a file are counted, in bytes. */
const MAX_COUNTED = 10_000_000;
/** From which length on nobody looks for a line's end. */
const ENDLESS = 1_000_000;
/** How much is read at a time, in bytes. */
const PIECE = 65_536;

/** What `read_file` takes. */
export interface ReadFileInput {
  readonly path: string;
  readonly start_line?: number;
  readonly end_line?: number;
}

/** Makes the tool. */
export function readFileTool(sandbox: Sandbox): Tool {
  return defineTool<ReadFileInput>({
    name: "read_file",
    description:
      "Read lines of one text file of the repo. Use it when you know the path; find paths with " +
      "list_files, and lines with search. Returns a header `path lines a-b of n` and then each line " +
      `as \`N| text\`: cite it as path:N. At most ${MAX_LINES} lines and 20,000 characters come ` +
      "back; a note [truncated …] then says which start_line to ask for next. Ask for a narrow " +
      "range when you know the line. Files that may hold secrets, binary files and paths outside " +
      "the repo are refused.",
    input_schema: {
      type: "object",
      properties: {
        path: {
          type: "string",
          description: "The file, relative to the repo root, such as src/app.ts",
        },
        start_line: { type: "integer", description: "The first line, from 1. Default 1" },
        end_line: {
          type: "integer",
          description: `The last line, included. Default start_line + ${MAX_LINES - 1}`,
        },
      },
      required: ["path"],
      additionalProperties: false,
    },
    run: async ({ path, start_line = 1, end_line = Infinity }, { signal }) => {
      checkRange(start_line, end_line);
      const excerpt = await readExcerpt(sandbox, path, start_line, end_line, signal);
      if (excerpt.last < start_line && excerpt.total !== 0) throw beyondEnd(excerpt, start_line);
      return excerpt.text;
    },
  });
}

/** What there is of a range of lines. */
export interface Excerpt {
  /** The file that the path leads to. */
  readonly path: string;
  /** As the tool shows it: a header, the lines, and a note if they are not all. */
  readonly text: string;
  /** The last line shown; before the first one asked for if the file ends before it. */
  readonly last: number;
  /** How many lines the file has, or `undefined` if there are more and it's too big to count them. */
  readonly total: number | undefined;
}

/**
 * Reads lines `start` to `end`, as far as the tool shows them.
 *
 * @param start A whole number from 1 on.
 * @throws {ToolError} As `withFile`; or the file is binary.
 */
export function readExcerpt(
  sandbox: Sandbox,
  path: string,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Excerpt> {
  const pause = createPause(signal);
  return withFile(sandbox, path, (file) => readLines(file, start, end, pause));
}

function checkRange(start: number, end: number): void {
  const isWhole = Number.isSafeInteger(start) && (end === Infinity || Number.isSafeInteger(end));
  if (!isWhole || start < 1) {
    const got = `start_line ${start}${end === Infinity ? "" : ` and end_line ${end}`}`;
    throw new ToolError(`Lines are whole numbers from 1 on, got ${got}.`);
  }
  if (end < start) {
    const hint = "Give the first line as start_line and the last as end_line.";
    throw new ToolError(`end_line ${end} lies before start_line ${start}. ${hint}`);
  }
}

function beyondEnd({ path, total }: Excerpt, start: number): ToolError {
  const has = total === 1 ? "1 line" : `${total} lines`;
  return new ToolError(
    `${quoted(path)} has ${has}, so start_line ${start} is beyond its end. Ask for a start_line ` +
      `from 1 to ${total}.`,
  );
}

async function readLines(
  file: OpenFile,
  start: number,
  wantedEnd: number,
  pause: Pause,
): Promise<Excerpt> {
  const path = visible(file.path);
  const result = createResult(path.length + 150);
  const end = Math.min(wantedEnd, start + MAX_LINES - 1);
  let last = start - 1;
  let hasMore = false;
  for await (const { number, text, length, isEndless } of linesFrom(file, start, pause)) {
    hasMore = number > end || !result.add(`${number}| ${clip(text, MAX_LINE, length)}`);
    if (hasMore) break;
    last = number;
    hasMore = isEndless;
  }
  const isNone = last < start;
  let total: number | undefined = last;
  if (isNone || (hasMore && file.size <= MAX_COUNTED)) total = await countLines(file, pause);
  else if (hasMore) total = undefined;
  const isShort = hasMore && last < wantedEnd;
  const text = result.text(
    `${path} lines ${isNone ? "0-0" : `${start}-${last}`} of ${total ?? "many"}`,
    isShort && `[truncated at line ${last}; ask for start_line ${last + 1}]`,
    total === 0 && "[the file is empty]",
  );
  return { path: file.path, text, last, total };
}

interface Line {
  readonly number: number;
  /** Without its LF or CRLF, as far as it's kept: a little more than is shown. */
  readonly text: string;
  /** Of the whole line, in characters, its CR included; of an endless one, at least that. */
  readonly length: number;
  /** Its end wasn't looked for. It's the last that is given. */
  readonly isEndless: boolean;
}

/** The lines from `start` on, as far as somebody asks for them; none if the file ends before. */
async function* linesFrom(file: OpenFile, start: number, pause: Pause): AsyncGenerator<Line> {
  let number = 1;
  let text = "";
  let length = 0;
  for await (const piece of piecesOf(file, pause)) {
    for (let from = 0; from < piece.length; ) {
      const newline = piece.indexOf("\n", from);
      const to = newline < 0 ? piece.length : newline;
      length += to - from;
      const kept = Math.min(to, from + MAX_LINE + 2 - text.length);
      if (number >= start) text += piece.slice(from, kept);
      from = to + 1;

      const isEndless = newline < 0 && number >= start && length > ENDLESS;
      if (newline < 0 && !isEndless) continue;
      if (number >= start) yield { number, text: text.replace(/\r$/, ""), length, isEndless };
      if (isEndless) return;
      number += 1;
      text = "";
      length = 0;
    }
  }
  if (length > 0 && number >= start) yield { number, text, length, isEndless: false };
}

async function countLines(file: OpenFile, pause: Pause): Promise<number> {
  let count = 0;
  let last = "\n";
  for await (const piece of piecesOf(file, pause)) {
    for (let at = piece.indexOf("\n"); at >= 0; at = piece.indexOf("\n", at + 1)) count += 1;
    last = piece.at(-1) ?? last;
  }
  return last === "\n" ? count : count + 1;
}

/** The file's text, piece by piece. */
async function* piecesOf(file: OpenFile, pause: Pause): AsyncGenerator<string> {
  const bytes = new Uint8Array(PIECE);
  let piece = bytes.subarray(0, file.read(bytes, 0));
  const decoder = new TextDecoder(encodingOf(piece) ?? refuseBinary(file));
  for (let position = piece.length; piece.length > 0; position += piece.length) {
    yield decoder.decode(piece, { stream: true });
    await pause();
    piece = bytes.subarray(0, file.read(bytes, position));
  }
  yield decoder.decode();
}

function refuseBinary({ path, size }: OpenFile): never {
  throw new ToolError(
    `${quoted(path)} is a binary file of ${size} bytes, which has no lines to read.`,
  );
}
