/**
 * The shape of a trace, checked field by field, so that a page can rely on it.
 */
import type { TraceFile } from "../../patterns/trace-file.ts";

/** A file that can't be shown; the message says why. */
export class FormatError extends Error {
  override readonly name: string = "FormatError";
}

/** Throws a `FormatError` unless the value is a trace, whatever more is in it. */
export function checkTrace(value: unknown): asserts value is TraceFile {
  TRACE(value, "");
  const paths = new Set<string>();
  // Checked in the line before.
  for (const [index, { path }] of (value as TraceFile).steps.entries()) {
    if (paths.has(path)) throw new FormatError(`steps[${index}].path is there twice: "${path}"`);
    paths.add(path);
  }
}

/** Whether a value is an object with fields. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Steps inside each other. */
const DEEPEST = 100;

/** Throws unless the value, which is at that place of the file, is right. */
type Check = (value: unknown, at: string) => void;

function is(what: string, isRight: (value: unknown) => boolean): Check {
  return (value, at) => {
    if (isRight(value)) return;
    const got = value === undefined ? "nothing" : JSON.stringify(value).slice(0, 40);
    throw new FormatError(`${at || "The trace"} must be ${what}, got ${got}`);
  };
}

function fields(needed: Readonly<Record<string, Check>>, optional: typeof needed = {}): Check {
  return (value, at) => {
    RECORD(value, at);
    const found = new Map(Object.entries(Object(value)));
    const inside = (name: string) => (at ? `${at}.${name}` : name);
    for (const [name, check] of Object.entries(needed)) check(found.get(name), inside(name));
    for (const [name, check] of Object.entries(optional)) {
      if (found.has(name)) check(found.get(name), inside(name));
    }
  };
}

function listOf(check: Check): Check {
  return (value, at) => {
    if (!Array.isArray(value)) return LIST(value, at);
    for (const [index, item] of value.entries()) check(item, `${at}[${index}]`);
  };
}

function oneOf(...words: readonly string[]): Check {
  return is(`one of ${words.join(", ")}`, (value) => words.some((word) => word === value));
}

const LIST = is("a list", Array.isArray);
const RECORD = is("an object", isRecord);
const TEXT = is("a text", (value) => typeof value === "string");
const NAME = is("a text that isn't empty", (value) => typeof value === "string" && value !== "");
const PATH = is(`a path of 1 to ${DEEPEST} names`, (value) => {
  return typeof value === "string" && value !== "" && value.split("/").length <= DEEPEST;
});
const YES_OR_NO = is("true or false", (value) => typeof value === "boolean");
/** Thirty years in milliseconds, and more dollars than anybody has. */
const MOST = 1e12;
const AMOUNT = is(`a number from 0 to ${MOST}`, (value) => {
  return Number.isFinite(value) && Number(value) >= 0 && Number(value) <= MOST;
});
const COUNT = is("a count", (value) => Number.isSafeInteger(value) && Number(value) >= 0);
const COUNT_IF_ANY: Check = (value, at) => value === null || COUNT(value, at);
const DATE = is("a date", (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)));
const OUTCOME = oneOf("ok", "failed", "cancelled", "unfinished");

const ERROR = fields({ name: TEXT, message: TEXT });

const CALL = fields(
  { begin: AMOUNT, ms: AMOUNT, outcome: OUTCOME, estimated: YES_OR_NO, sent: YES_OR_NO },
  {
    messagesFrom: fields({ path: NAME, count: COUNT }),
    error: ERROR,
    model: TEXT,
    usage: fields(
      { input_tokens: COUNT, output_tokens: COUNT },
      { cache_creation_input_tokens: COUNT_IF_ANY, cache_read_input_tokens: COUNT_IF_ANY },
    ),
    usd: AMOUNT,
  },
);

const STEP = fields(
  { path: PATH, begin: AMOUNT, ms: AMOUNT, outcome: OUTCOME, calls: listOf(CALL) },
  { error: ERROR, toolCall: TEXT },
);

const TRACE = fields(
  {
    name: TEXT,
    origin: oneOf("api", "transcribed", "scripted", "live"),
    startedAt: DATE,
    steps: listOf(STEP),
  },
  { title: TEXT },
);
