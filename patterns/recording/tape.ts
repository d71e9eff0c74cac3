/**
 * The tape: a JSON Lines file that only ever grows.
 *
 *     {"version":1,"origin":"api","model":"claude-sonnet-5-5","concurrency":8,"date":"…"}
 *     {"path":"vote/voter[2]","begin":3.1,"ms":812,"outcome":"replied","request":{…},"reply":{…}}
 *     {"path":"vote/voter[0]","begin":3,"ms":1204,"outcome":"cancelled","request":{…}}
 *     {"resumed":"…"}
 *
 * A header, then a line a call in the order in which the calls ended. A line is with the operating
 * system before `append` resolves, so a killed process loses none. A last line that was torn by the
 * kill is left out when reading, and cut off before anything is appended. A `resumed` line takes what
 * didn't succeed before it out of the recording: the run that went on from there has asked again.
 *
 * From effective-agents 0.1.0: patterns/recording/tape.ts
 */
import { appendFile, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { RecordingError } from "../errors.ts";
import { holdTape, namedError, type Release, refusal } from "./lock.ts";
import { settled } from "./order.ts";
import { holdsMessage, isWhole, type RecordedError, type RecordedReply } from "./reply.ts";
import { type CanonicalRequest, pathError } from "./request.ts";
import { checkHeader, isLine, isRecord, isTorn } from "./shape.ts";

/** The tape's first line. */
export interface TapeHeader {
  readonly version: 1;
  /** Where the replies came from: the API, or a transcript of an answer given elsewhere. */
  readonly origin: "api" | "transcribed";
  /** The model that the run was made with. */
  readonly model?: string;
  /** How many calls it had in flight at most. */
  readonly concurrency?: number;
  /** When it was recorded, in ISO 8601. */
  readonly date: string;
}

/** One call, or rather one HTTP attempt of it. */
export interface TapeLine {
  readonly path: string;
  /** When it began, in milliseconds since the recording's start. */
  readonly begin: number;
  /** How long it took to the end of the body, in milliseconds. */
  readonly ms: number;
  /** Replied: the body came to its end, whatever the status. Broken: the connection failed. */
  readonly outcome: "replied" | "broken" | "cancelled";
  /** Missing where the call was cancelled before it was sent. */
  readonly request?: CanonicalRequest;
  /** What came, as far as it came. */
  readonly reply?: RecordedReply;
  readonly error?: RecordedError;
}

/** An open tape. */
export interface Tape {
  readonly header: TapeHeader;
  readonly lines: readonly TapeLine[];
  /**
   * Adds a line.
   *
   * @throws {RecordingError} The system refuses it. So it is with all that come after it, so that what is
   *   on the tape has no gaps.
   */
  append(line: TapeLine): Promise<void>;
  /**
   * For what would have to be written.
   *
   * @throws {RecordingError} The system has refused a line: a call's reply would be paid for, and lost.
   */
  check(): void;
  /** Resolves once all lines are written, and lets others write. */
  close(): Promise<void>;
}

/** Whether the call succeeded: a resumed run takes this reply and asks for all others again. */
export function succeeded({ outcome, request, reply }: TapeLine): boolean {
  if (outcome !== "replied" || !reply || !isWhole(reply)) return false;
  return !/^\/v1\/messages(\?|$)/.test(request?.endpoint ?? "") || holdsMessage(reply.body);
}

/** Opens the tape at `file`, in mode `record` from fresh. It is held by whoever may write to it. */
export async function openTape(
  file: string,
  mode: "replay" | "record" | "resume",
  fresh: TapeHeader,
): Promise<Tape> {
  const release = mode === "replay" ? async () => {} : await holdTape(file);
  try {
    return await openHeld(file, mode, fresh, release);
  } catch (error) {
    await release();
    throw namedError(file, error);
  }
}

async function openHeld(
  file: string,
  mode: "replay" | "record" | "resume",
  fresh: TapeHeader,
  release: Release,
): Promise<Tape> {
  // Read in mode `record` too: only a recording may be replaced by one.
  const old = await readTape(file, mode);
  const found = mode === "record" ? undefined : old;
  if (!found && mode === "replay") {
    throw new RecordingError(
      `There is no recording at ${file}. Make one with mode "record", against the API`,
    );
  }
  const foundLines = found?.lines ?? [];
  const lines = mode === "resume" ? foundLines.filter(succeeded) : [...foundLines];
  const header = found?.header ?? fresh;
  const start = `${JSON.stringify(header)}\n`;
  let begun = true;
  const oldSucceeded = old?.lines.some(succeeded) ?? false;
  if (!found) {
    // A file that can't be written is better known before a call is paid.
    await appendFile(file, "");
    // An older tape stays until there is something to take its place.
    begun = mode === "resume" || (await stat(file)).size === 0;
    if (begun) await writeFile(file, start);
  } else if (mode === "resume") {
    await truncate(file, found.bytes);
    if (found.unended) await appendFile(file, "\n");
    if (lines.length < found.lines.length) await add({ resumed: fresh.date });
  }

  let unwritten = start;
  async function add(value: TapeLine | { readonly resumed: string }): Promise<void> {
    const text = `${JSON.stringify(value)}\n`;
    if (begun) return appendFile(file, text);
    unwritten += text;
    // What holds replies isn't replaced by failures alone, as those of a wrong key.
    if (oldSucceeded && !("path" in value && succeeded(value))) return;
    begun = true;
    await writeFile(file, unwritten);
  }

  // One write after the other, in the order of the calls. After a failed one, all fail.
  let written = Promise.resolve();
  let refused: string | undefined;
  return {
    header,
    lines,
    append(line) {
      lines.push(line);
      const done = written.then(() => add(line));
      // The next call's end comes after this one's consequences, as it will in replay.
      written = done.then(settled);
      // The caller sees a failure, and so does `close`; here it mustn't count as unhandled.
      written.catch(() => {});
      // What came may have been paid for: whoever asked must know that it isn't kept.
      return done.catch((error: unknown) => {
        lines.splice(lines.indexOf(line), 1);
        refused = refusal(error);
        if (refused === undefined) throw error;
        throw pathError(`isn't on the tape: ${file} can't be written: ${refused}`);
      });
    },
    check() {
      if (refused === undefined) return;
      throw pathError(`isn't made: ${file} can't be written: ${refused}`);
    },
    async close() {
      try {
        await written;
      } catch (error) {
        throw namedError(file, error, "written");
      } finally {
        await release();
      }
    },
  };
}

interface Found {
  readonly header: TapeHeader;
  readonly lines: readonly TapeLine[];
  /** How much of the file is whole lines, in bytes. */
  readonly bytes: number;
  /** The last whole line lacks its newline. */
  readonly unended: boolean;
}

async function readTape(
  file: string,
  mode: "replay" | "record" | "resume",
): Promise<Found | undefined> {
  const content = await readFile(file).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!content) return undefined;
  // Editors put a mark before the first line, and blank lines after the last one.
  const texts = content
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .split("\n");
  const last = texts.at(-1) ?? "";
  const torn = parse(last) === undefined && isTorn(last, texts.length > 1 ? "line" : "header");
  if (torn) texts.pop();
  // A run killed while it wrote the header has recorded nothing yet.
  if (texts.length === 0 && mode !== "replay") return undefined;
  const [first = "", ...rest] = texts;
  const header = parse(first);
  checkHeader(file, header);
  let lines: TapeLine[] = [];
  for (const [i, text] of rest.entries()) {
    if (text.trim() === "") continue;
    const value = parse(text);
    if (isLine(value)) lines.push(value);
    else if (isRecord(value) && "resumed" in value) lines = lines.filter(succeeded);
    else throw new RecordingError(`${file}, line ${i + 2}: this is not a recorded call`);
  }
  const bytes = torn ? content.lastIndexOf("\n") + 1 : content.length;
  return { header, lines, bytes, unended: !torn };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
