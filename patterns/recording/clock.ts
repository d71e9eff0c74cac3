/**
 * When each recorded call began and how long it took: as measured, or as estimated.
 *
 *     measured    a ▓▓▓▓▓▓▓▓          estimated   a ▓▓▓▓▓▓▓▓▓▓▓▓
 *                 b ▓▓▓                           b ▓▓▓▓
 *                    c ▓▓▓▓▓                          c ▓▓▓▓▓▓▓
 *
 * Where the replies didn't come from the API, the measured times say nothing about a model. Then a
 * call takes as long as its output tokens would at a stated rate, and begins at the latest estimated
 * end among the calls that had really ended before it really began: what caused a call lies before
 * it, what ran side by side still does. A cancelled call ends when all replies have that came before
 * it: it took them to cancel it.
 *
 * From effective-agents 0.1.0: patterns/recording/clock.ts
 */
import type { RecordedReply } from "./reply.ts";
import type { CanonicalRequest } from "./request.ts";
import type { TapeHeader, TapeLine } from "./tape.ts";

/**
 * Output tokens per second of an estimated duration. Our assumption for a mid-sized model, not a
 * measured figure and not Anthropic's.
 */
export const OUTPUT_TOKENS_PER_SECOND = 60;

/** Milliseconds before the first token of an estimated duration. Our assumption, likewise. */
export const FIRST_TOKEN_MS = 500;

/** A call as the recording tells of it. */
export interface RecordedCall {
  readonly path: string;
  /** What was sent; missing where the call was cancelled before. */
  readonly request?: CanonicalRequest;
  readonly outcome: TapeLine["outcome"];
  /** The HTTP status, where a reply came. */
  readonly status?: number;
  /** When it began, in milliseconds since the recording's start. */
  readonly begin: number;
  /** How long it took to the end of the body, in milliseconds. */
  readonly ms: number;
  /** The times are estimated from the output tokens. */
  readonly estimated: boolean;
}

/** The calls in the order of the tape, with their times. */
export function timedCalls(
  lines: readonly TapeLine[],
  origin: TapeHeader["origin"],
): readonly RecordedCall[] {
  const estimated = origin === "transcribed";
  const calls: RecordedCall[] = [];
  const ends: Ends[] = [];
  let repliesEnd = 0;
  for (const line of lines) {
    let { begin, ms } = line;
    if (estimated) {
      begin = ends.findLast(({ real }) => real <= line.begin)?.latest ?? 0;
      ms = line.outcome === "cancelled" ? Math.max(0, repliesEnd - begin) : estimatedMs(line.reply);
      insert(ends, { real: line.begin + line.ms, latest: begin + ms });
    }
    if (line.outcome !== "cancelled") repliesEnd = Math.max(repliesEnd, begin + ms);
    const { path, request, outcome, reply } = line;
    calls.push({
      path,
      ...(request && { request }),
      outcome,
      ...(reply && { status: reply.status }),
      begin,
      ms,
      estimated,
    });
  }
  return calls;
}

/** When a call really ended, and the latest estimated end of all that had ended by then. */
interface Ends {
  readonly real: number;
  latest: number;
}

/** Keeps the order of the real ends, which is nearly always that of the tape. */
function insert(ends: Ends[], added: Ends): void {
  const before = ends.findLastIndex(({ real }) => real <= added.real);
  ends.splice(before + 1, 0, added);
  let latest = ends[before]?.latest ?? 0;
  for (const end of ends.slice(before + 1)) {
    latest = Math.max(latest, end.latest);
    end.latest = latest;
  }
}

function estimatedMs(reply: RecordedReply | undefined): number {
  return Math.round(FIRST_TOKEN_MS + (outputTokens(reply) / OUTPUT_TOKENS_PER_SECOND) * 1000);
}

/** As the reply's usage has it; a stream's last figure counts. */
function outputTokens(reply: RecordedReply | undefined): number {
  if (!reply) return 0;
  if ("json" in reply.body) return tokensIn(reply.body.json) ?? 0;
  if (!("events" in reply.body)) return 0;
  const data = reply.body.events.map((event) => parse(/^data: ?(.*)$/m.exec(event)?.[1] ?? ""));
  return data.map(tokensIn).findLast((tokens) => tokens !== undefined) ?? 0;
}

function tokensIn(value: unknown): number | undefined {
  if (!isPart(value)) return undefined;
  if (isPart(value.message)) return tokensIn(value.message);
  const tokens = isPart(value.usage) ? value.usage.output_tokens : undefined;
  return typeof tokens === "number" ? tokens : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A part of a reply, as far as its usage goes. */
interface Part {
  readonly message?: unknown;
  readonly usage?: unknown;
  readonly output_tokens?: unknown;
}

function isPart(value: unknown): value is Part {
  return typeof value === "object" && value !== null;
}
