/**
 * Recordings: a tape of model calls that a run can be played from again, or gone on from.
 *
 *     SDK client ─► middleware ─┬─ replay: the tape's reply, or an error
 *                               ├─ record: the API's reply, written first
 *                               └─ resume: the tape's reply if it succeeded, else the API's
 *
 * It is a middleware of the SDK's client, so that whatever uses the client is recorded: the door, the
 * tool runner, a plain `create`. A call is found by its path (step.ts) and its whole request; several
 * under one path (retries, a tool runner's turns) are used in the order in which they began, each once. A
 * request that the tape doesn't hold is a `RecordingError` that shows what changed, never a nearest match,
 * and in replay nothing ever goes out. Replies are handed out in the order of the tape
 * (recording/order.ts), so that a race ends as it ended when it was recorded. (A tape is what others call
 * a cassette.)
 *
 * Copy along: errors.ts, step.ts, recording/
 * From effective-agents 0.1.0: patterns/recording.ts
 */
import { fileURLToPath } from "node:url";
import Anthropic, {
  type ClientOptions,
  type Middleware,
  type MiddlewareNext,
} from "@anthropic-ai/sdk";
import { RecordingError, shown } from "./errors.ts";
import { createCallLog } from "./recording/call-log.ts";
import { type RecordedCall, timedCalls } from "./recording/clock.ts";
import { callLive } from "./recording/live.ts";
import { createPlayback } from "./recording/playback.ts";
import { type ApiRequest, canonicalRequest } from "./recording/request.ts";
import {
  openTape,
  succeeded,
  type Tape,
  type TapeHeader,
  type TapeLine,
} from "./recording/tape.ts";

export type { RecordedCall, TapeHeader };

/**
 * Replay goes by the tape alone, record by the API alone, resume by the tape as far as it goes. An older
 * tape is replaced by `record` once a call has succeeded, and not before; one without a success, once a
 * call has ended.
 */
export type RecordingMode = "replay" | "record" | "resume";

/** How to open a recording. */
export interface RecordingOptions {
  readonly mode: RecordingMode;
  /** For the header of a new tape: the model that the run is made with. */
  readonly model?: string | undefined;
  /** For the header of a new tape: how many calls are in flight at most. */
  readonly concurrency?: number | undefined;
  /** For the header of a new tape: where the replies come from. Default `api`. */
  readonly origin?: TapeHeader["origin"] | undefined;
  /** How much of the recorded time passes in replay: 0 (the default) none, 1 all of it. */
  readonly pace?: number | undefined;
  /**
   * After how many milliseconds without any move a replay concludes that nobody asks for the next
   * line, or cancels a call. Default 300.
   */
  readonly quietMs?: number | undefined;
}

/** An open recording. */
export interface Recording extends AsyncDisposable {
  readonly mode: RecordingMode;
  readonly header: TapeHeader;
  /** The calls on the tape so far. */
  readonly calls: readonly RecordedCall[];
  /** For the client's `middleware`, as the first one; `recordedClient` does it. */
  readonly middleware: Middleware;
  /** For the door's `layers`: it records calls that were cancelled before they were sent. */
  layer<P, C extends { readonly signal?: AbortSignal | undefined }, R>(
    next: (params: P, call: C) => Promise<R>,
  ): (params: P, call: C) => Promise<R>;
  /** The paths of recorded calls that were not asked for, cancelled ones apart. */
  unused(): readonly string[];
  /**
   * Resolves once the calls that wait for a reply have got it (with the `layer`, those too that are between
   * two attempts), and everything is written. Until then nobody else can record to this tape, and afterwards this recording makes no call. A stream that is still read
   * isn't awaited; read on, it fails in place of its end.
   *
   * @throws {RecordingError} Something couldn't be written.
   */
  close(): Promise<void>;
}

/**
 * Opens a recording.
 *
 * @throws {TypeError} The mode is none of the three.
 * @throws {RangeError} `pace` or `quietMs` is negative or not a number.
 * @throws {RecordingError} There is no tape to replay, it isn't one of this version, somebody else is
 *   writing it, or the system refuses it.
 *
 * @example
 * await using recording = await openRecording("vote.jsonl", { mode: "replay" });
 * const client = recordedClient(recording);
 */
export async function openRecording(
  file: string | URL,
  options: RecordingOptions,
): Promise<Recording> {
  const { mode, model, concurrency, origin = "api", pace = 0, quietMs = 300 } = options;
  checkOptions({ mode, pace, quietMs });
  const tape = await openTape(typeof file === "string" ? file : fileURLToPath(file), mode, {
    version: 1,
    origin,
    ...(model !== undefined && { model }),
    ...(concurrency !== undefined && { concurrency }),
    date: new Date().toISOString(),
  });
  try {
    return recordingOn(tape, mode, { pace, quietMs });
  } catch (error) {
    await tape.close();
    throw error;
  }
}

function recordingOn(
  tape: Tape,
  mode: RecordingMode,
  { pace, quietMs }: { readonly pace: number; readonly quietMs: number },
): Recording {
  const { header } = tape;
  const recorded = mode === "record" ? [] : tape.lines;
  const playback = createPlayback(recorded, header.origin, { pace, quietMs });
  const log = createCallLog(tape);

  const middleware: Middleware = async (request, next, context) => {
    const { options: call } = context;
    if (!call) return exchangeToken(request, next, mode);
    const asked = canonicalRequest(request);
    const found = playback.find(asked);
    if (found) {
      const response = await playback.play(found, request, call.signal ?? undefined);
      return isUseless(found.line) ? throughOwn(response, request, context) : response;
    }
    if (mode === "replay") return playback.miss();

    try {
      if (mode === "resume") await playback.live(request.signal ?? undefined);
    } catch (error) {
      await log.call(asked, request, (end) => end({ outcome: "cancelled" }));
      throw error;
    }
    return log.call(asked, request, (end) => callLive(request, next, call.signal, end));
  };

  return {
    mode,
    header,
    middleware,
    get calls() {
      return timedCalls(tape.lines, header.origin);
    },
    layer: (next) => (params, call) => {
      const { watch } = mode === "replay" ? playback : log;
      return watch(() => next(params, call), call.signal);
    },
    unused: playback.unused,
    close: log.close,
    [Symbol.asyncDispose]: log.close,
  };
}

/**
 * A client whose calls are recorded or replayed.
 *
 * In replay it needs no key, and nothing in the environment or in a profile has a say in what it
 * asks for. Else it is the SDK's ordinary client: `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, … A
 * client of another kind, or one with headers of its own, takes `recording.middleware` instead.
 */
export function recordedClient(
  recording: Recording,
  options: Omit<ClientOptions, "defaultHeaders"> = {},
): Anthropic {
  const middleware = [recording.middleware, ...(options.middleware ?? [])];
  if (recording.mode !== "replay") return new Anthropic({ ...options, middleware });
  return new Anthropic({
    ...options,
    middleware,
    apiKey: "replay",
    authToken: null,
    credentials: null,
    config: null,
    profile: null,
    baseURL: "http://replay.invalid",
    // The one header that is part of a request's identity: ANTHROPIC_CUSTOM_HEADERS may set it. As a
    // list it comes after those, whatever their case.
    defaultHeaders: [["anthropic-beta", null]],
    fetch: async () => {
      throw new RecordingError("A replay never calls the API");
    },
  });
}

function checkOptions({
  mode,
  ...numbers
}: {
  mode: unknown;
  pace: number;
  quietMs: number;
}): void {
  if (mode !== "replay" && mode !== "record" && mode !== "resume") {
    const rule = `A recording's mode must be "replay", "record" or "resume"`;
    throw new TypeError(`${rule}, got ${shown(mode)}`);
  }
  for (const [name, value] of Object.entries(numbers)) {
    if (Number.isFinite(value) && value >= 0) continue;
    throw new RangeError(`${name} must be a number of at least 0, got ${shown(value)}`);
  }
}

/** A success on the face of it, and no answer: a proxy's page, a text cut off. */
function isUseless(line: TapeLine): boolean {
  return line.outcome === "replied" && (line.reply?.status ?? 500) < 400 && !succeeded(line);
}

/** A reply by way of the middleware of the call itself: the door's keeps the text of what is no answer. */
async function throughOwn(
  response: Response,
  request: ApiRequest,
  context: Parameters<Middleware>[2],
): Promise<Response> {
  // So that it doesn't take the request for sent.
  const replayed = { ...context, replayed: true };
  let next: MiddlewareNext = async () => response;
  for (const own of context.options?.middleware?.toReversed() ?? []) {
    const inner = next;
    next = async (asked) => own(asked, inner, replayed);
  }
  return next(request);
}

/** A client that logs in sends credentials through its middleware: they are no part of a recording. */
async function exchangeToken(
  request: ApiRequest,
  next: (request: ApiRequest) => Promise<Response>,
  mode: RecordingMode,
): Promise<Response> {
  if (mode === "replay") throw new RecordingError("A replay needs no login: use recordedClient");
  return next(request);
}
