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
 */
import { appendFile, mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { RecordingError } from "../errors.ts";
import { settled } from "./order.ts";
import { isWhole, type RecordedError, type RecordedReply } from "./reply.ts";
import type { CanonicalRequest } from "./request.ts";

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
  /** Adds a line. `secrets` are struck out wherever they stand in it. */
  append(line: TapeLine, secrets?: readonly string[]): Promise<void>;
  /** Resolves once all lines are written. */
  flush(): Promise<void>;
}

/** Whether the call succeeded: a resumed run takes this reply and asks for all others again. */
export function succeeded(line: TapeLine): boolean {
  return line.outcome === "replied" && line.reply !== undefined && isWhole(line.reply);
}

/** Opens the tape at `file`, in mode `record` from fresh. */
export async function openTape(
  file: string,
  mode: "replay" | "record" | "resume",
  fresh: TapeHeader,
): Promise<Tape> {
  const found = mode === "record" ? undefined : await readTape(file, mode);
  if (!found && mode === "replay") {
    throw new RecordingError(
      `There is no recording at ${file}. Make one with mode "record", against the API`,
    );
  }
  const lines = [...(found?.lines ?? [])];
  const add = (text: string) => appendFile(file, `${text}\n`);
  if (!found) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${JSON.stringify(fresh)}\n`);
  } else if (mode === "resume") {
    await truncate(file, found.bytes);
    if (found.unended) await appendFile(file, "\n");
    if (!lines.every(succeeded)) await add(JSON.stringify({ resumed: fresh.date }));
    lines.splice(0, lines.length, ...lines.filter(succeeded));
  }
  // One write after the other, in the order of the calls. After a failed one, all fail.
  let written = Promise.resolve();
  return {
    header: found?.header ?? fresh,
    lines,
    append(line, secrets = []) {
      lines.push(line);
      let text = JSON.stringify(line);
      for (const secret of secrets) text = text.replaceAll(escaped(secret), "[struck out]");
      const done = written.then(() => add(text));
      // The next call's end comes after this one's consequences, as it will in replay.
      written = done.then(settled);
      // The caller sees a failure, and so does `flush`; here it mustn't count as unhandled.
      written.catch(() => {});
      return done;
    },
    flush: () => written,
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

async function readTape(file: string, mode: "replay" | "resume"): Promise<Found | undefined> {
  const content = await readFile(file).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!content) return undefined;
  const texts = content.toString("utf8").split("\n");
  const unended = texts.at(-1) !== "";
  if (!unended) texts.pop();
  const values = texts.map(parse);
  const torn = values.length > 0 && values.at(-1) === undefined;
  if (torn) values.pop();
  // A run killed while it wrote the header has recorded nothing yet.
  if (values.length === 0 && mode === "resume") return undefined;
  const [header, ...rest] = values;
  checkHeader(file, header);
  let lines: TapeLine[] = [];
  for (const [i, value] of rest.entries()) {
    if (isLine(value)) lines.push(value);
    else if (isObject(value) && "resumed" in value) lines = lines.filter(succeeded);
    else throw new RecordingError(`${file}, line ${i + 2}: this is not a recorded call`);
  }
  const end = unended ? content.length : content.length - 1;
  const bytes = torn ? content.lastIndexOf(0x0a, end - 1) + 1 : content.length;
  return { header, lines, bytes, unended: unended && !torn };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function checkHeader(file: string, value: unknown): asserts value is TapeHeader {
  if (!isObject(value) || !("version" in value)) {
    throw new RecordingError(`${file}, line 1: this is not a recording's header`);
  }
  if (value.version !== 1) {
    const got = JSON.stringify(value.version);
    throw new RecordingError(`${file}, line 1: the recording's version must be 1, got ${got}`);
  }
  if (!("origin" in value) || (value.origin !== "api" && value.origin !== "transcribed")) {
    throw new RecordingError(`${file}, line 1: its origin must be "api" or "transcribed"`);
  }
}

function isLine(value: unknown): value is TapeLine {
  return (
    isObject(value) &&
    "path" in value &&
    typeof value.path === "string" &&
    "begin" in value &&
    typeof value.begin === "number" &&
    "ms" in value &&
    typeof value.ms === "number" &&
    "outcome" in value &&
    typeof value.outcome === "string" &&
    ["replied", "broken", "cancelled"].includes(value.outcome)
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** As it stands inside a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
