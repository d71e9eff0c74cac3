/**
 * Reads a file with runs in it: traces of ours, or an OpenTelemetry export in OTLP's JSON.
 *
 * It runs in the page too, where a file is dropped on it. What a file holds may be anything, so all that
 * a page relies on is checked here, and the first thing that is wrong is told in a line.
 */
import { plain } from "../../patterns/trace-file/plain.ts";
import { inTreeOrder } from "../../patterns/trace-file/tree.ts";
import type { TraceFile } from "../../patterns/trace-file.ts";
import { isExport, readExports } from "./otlp.ts";
import { checkTrace, FormatError, isRecord } from "./trace-shape.ts";

const VERSION = 1;
const MAKE_ONE = "npm run live route -- --trace run.json makes a trace";

/**
 * Reads the traces that a file holds, one or more.
 *
 * @throws {FormatError} It holds something else; the message says what, and what to do.
 */
export function readTraces(text: string): TraceFile[] {
  const content = text.replace(/^\uFEFF/, "").trim();
  if (content === "") throw new FormatError(`The file is empty. ${MAKE_ONE}`);
  const values = parseAll(content).flat();
  const wrong = values.findIndex((value) => !isExport(value) && !isOurs(value));
  if (values.length === 0 || wrong >= 0) {
    const where = values.length > 1 ? `. That is value ${wrong + 1} of ${values.length}` : "";
    throw new FormatError(whatElse(values[wrong]) + where);
  }
  const exports = values.filter(isExport);
  return [...values.filter(isOurs).map(ours), ...(exports.length > 0 ? readExports(exports) : [])];
}

function isOurs(value: unknown): value is Readonly<Record<string, unknown>> {
  const { format } = isRecord(value) ? value : {};
  return format === "effective-agents/trace";
}

/** The file as one JSON text, or else as one a line. */
function parseAll(content: string): readonly unknown[] {
  try {
    return [JSON.parse(content)];
  } catch (whole) {
    // In JSON it would be written in another way.
    if (content.includes("\0")) throw new FormatError("The file is no text in UTF-8");
    const values: unknown[] = [];
    for (const [index, line] of content.split("\n").entries()) {
      try {
        if (line.trim() !== "") values.push(JSON.parse(line));
      } catch (error) {
        // Of a text that begins with no line of JSON, where the whole breaks off says more.
        const [where, why] = index === 0 ? ["", whole] : [` in line ${index + 1}`, error];
        throw new FormatError(`The file isn't JSON${where}: ${messageOf(why)}`);
      }
    }
    return values;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function ours(value: Readonly<Record<string, unknown>>): TraceFile {
  const { version } = value;
  if (version !== VERSION) {
    const isNewer = typeof version === "number" && version > VERSION;
    const advice = isNewer ? ": this gallery is older than the file, so update it" : "";
    throw new FormatError(
      `The trace has version ${JSON.stringify(version)}, and version ${VERSION} is read here${advice}`,
    );
  }
  // Copied, so that nothing in it is deeper than a page can show.
  const trace = plain(value);
  checkTrace(trace);
  if (trace.steps.length === 0) throw new FormatError("The trace holds no steps");
  return { ...trace, steps: inTreeOrder(trace.steps, false) };
}

/** What a file is that is neither, as far as it's one of ours. */
function whatElse(value: unknown): string {
  const fields = isRecord(value) ? value : {};
  if ("origin" in fields && "concurrency" in fields) {
    return "This is a recording: npm start route -- --recording <file> --trace run.json makes a trace of it";
  }
  if ("asked" in fields && "run" in fields) {
    return "This is a suspended run: npm start refund -- --resume <file> --answer yes goes on with it";
  }
  if ("pattern" in fields && "totals" in fields) {
    return `This is what --json prints, without prompts and replies. ${MAKE_ONE}`;
  }
  return `The file holds JSON, but neither a trace nor an OTLP export. ${MAKE_ONE}`;
}

export { FormatError };
