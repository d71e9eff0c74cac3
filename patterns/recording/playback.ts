/**
 * Finds the recorded call that a request asks for, and plays it.
 *
 *     path + request ─► the first unused line that holds the same ─► its turn ─► Response
 *                    └► none: an error that says what changed
 *
 * Lines of one path are used in the order in which their calls began, each once. A line that was
 * cancelled before it was sent holds no request and stands for whatever that path asks next. A cancelled
 * call plays what had come until then and stays open until it is cancelled again; its line holds up no
 * other.
 *
 * From effective-agents 0.1.0: patterns/recording/playback.ts
 */
import { annotate, currentPath } from "../step.ts";
import { type RecordedCall, timedCalls } from "./clock.ts";
import { createOrder } from "./order.ts";
import { playedError, playedResponse, retryAfterMs } from "./reply.ts";
import {
  type ApiRequest,
  type CanonicalRequest,
  difference,
  missError,
  pathError,
  requestKey,
} from "./request.ts";
import type { TapeHeader, TapeLine } from "./tape.ts";

/** The lines of a tape, ready to be played. */
export interface Playback {
  /**
   * The line to play for this request, or `undefined` where this path has no line left.
   *
   * @throws {RecordingError} It has one, but for another request.
   */
  find(request: CanonicalRequest): Playable | undefined;
  /** Waits for the line's turn and gives its reply. `cancelled` is the whole call's signal: the request's own
   * ends with its attempt. */
  play(
    playable: Playable,
    request: ApiRequest,
    cancelled: AbortSignal | undefined,
  ): Promise<Response>;
  /** Resolves once a live call may go: all lines that are asked for have been delivered. */
  live(signal: AbortSignal | undefined): Promise<void>;
  /** Runs a call that, cancelled before it was sent, ends when its line says so. */
  watch<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T>;
  /** Throws the error of a request that `find` has nothing for. */
  miss(): never;
  /** The paths of the lines that nobody has asked for, cancelled ones apart. */
  unused(): readonly string[];
}

/** A line that can be played once. */
export interface Playable {
  readonly line: TapeLine;
  readonly call: RecordedCall;
  /** Its place in the order in which the replies are handed out. */
  readonly rank: number;
  readonly key: string | undefined;
  used: boolean;
}

/** The lines of one path, in the order in which their calls began. */
interface Track {
  readonly playables: Playable[];
  /** All before this one have been used. */
  from: number;
}

/** Prepares lines to be played. */
export function createPlayback(
  lines: readonly TapeLine[],
  origin: TapeHeader["origin"],
  { pace, quietMs }: { readonly pace: number; readonly quietMs: number },
): Playback {
  const playables = inOrder(lines, origin);
  const byPath = new Map<string, Track>();
  for (const playable of playables.toSorted((a, b) => begunAt(a) - begunAt(b))) {
    const { path } = playable.line;
    const track = byPath.get(path) ?? { playables: [], from: 0 };
    track.playables.push(playable);
    byPath.set(path, track);
  }
  const due = playables.filter(({ line }) => line.outcome !== "cancelled");
  const order = createOrder(new Set(due.map(({ rank }) => rank)), quietMs);
  const openedAt = performance.now();
  /** When the first attempt of each path's call began. */
  const callBegins = new Map<string, number>();
  /** The replies that were asked for, and haven't come to their end. */
  const underWay = new Set<number>();
  let playedUntil = 0;

  function find(request: CanonicalRequest): Playable | undefined {
    const path = currentPath();
    const key = requestKey(request);
    const found = firstLeft(path, (playable) => playable.key === undefined || playable.key === key);
    const other = firstLeft(path, () => true)?.line.request;
    if (!found && other) {
      throw pathError(`has changed since it was recorded: ${difference(other, request)}`);
    }
    if (!found) return undefined;
    found.used = true;
    order.asked(found.rank);
    return found;
  }

  /** The first line of a path that nobody has asked for yet, and that fits. */
  function firstLeft(path: string, fits: (playable: Playable) => boolean): Playable | undefined {
    const track = byPath.get(path);
    if (!track) return undefined;
    const { playables } = track;
    while (playables[track.from]?.used) track.from++;
    for (let i = track.from; i < playables.length; i++) {
      const playable = playables[i];
      if (playable && !playable.used && fits(playable)) return playable;
    }
    return undefined;
  }

  async function play(
    playable: Playable,
    request: ApiRequest,
    cancelled: AbortSignal | undefined,
  ): Promise<Response> {
    const { line, call, rank } = playable;
    const signal = request.signal ?? undefined;
    // Made here, where the path is known.
    const stuck = pathError("was cancelled when it was recorded, and now nobody cancels it");
    const end = call.begin + call.ms;
    const hold = async () => {
      try {
        // What a clock cancelled (`AbortSignal.timeout`) is cancelled by it again, in its own time.
        await order.hold(signal, openedAt + end);
      } catch (reason) {
        // With replies before it still to come, it's not what was recorded that cancels it.
        if ([...underWay].some((other) => other < rank)) annotate({ sent: false });
        await inTurn(rank);
        throw reason;
      }
      throw stuck;
    };
    const retries = Number(request.headers.get("x-stainless-retry-count"));
    const begin = (retries > 0 ? callBegins.get(line.path) : undefined) ?? call.begin;
    callBegins.set(line.path, begin);
    // One that is cancelled in replay was never sent; one that was cancelled then may have been billed.
    const sent = line.outcome === "cancelled";
    annotate({ recorded: { begin, ms: end - begin, estimated: call.estimated }, sent });
    if (line.outcome === "cancelled" && !line.reply) return hold();

    underWay.add(rank);
    await order.turn(rank, signal);
    const ms = Math.max(0, end - playedUntil) * pace;
    playedUntil = Math.max(playedUntil, end);
    const pass = (share: number) => order.pause(ms * share, signal);
    const onTaken = () => {
      const next = nextAttempt(playable);
      if (next) void order.retry(next.rank, retryMs(line, retries, pace), cancelled);
      underWay.delete(rank);
      order.delivered(rank);
    };
    if (!line.reply) {
      await pass(1);
      onTaken();
      throw playedError(line.error, "call");
    }
    return playedResponse(line.reply, {
      signal,
      pace,
      pass,
      onTaken,
      async ending() {
        if (line.outcome === "cancelled") await hold();
        if (line.outcome === "broken") throw playedError(line.error, "body");
      },
    });
  }

  /** Where the attempt failed, the next one of the same call that the tape has. */
  function nextAttempt({ line, key }: Playable): Playable | undefined {
    if (line.reply && line.reply.status < 400) return undefined;
    return firstLeft(line.path, (other) => other.key === key);
  }

  /** Cancelled calls end in the order of the tape too. */
  async function inTurn(rank: number): Promise<void> {
    await order.turn(rank, undefined);
    order.delivered(rank);
  }

  async function watch<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const path = currentPath();
    try {
      return await send();
    } catch (error) {
      const left = firstLeft(path, ({ key }) => key === undefined);
      if (signal?.aborted && left) {
        left.used = true;
        await inTurn(left.rank);
      }
      throw error;
    }
  }

  return {
    find,
    play,
    watch,
    miss() {
      throw missError(byPath.get(currentPath())?.playables.length ?? 0, [...byPath.keys()]);
    },
    async live(signal) {
      annotate({ sent: false });
      await order.live(signal);
      annotate({ sent: true });
    },
    unused: () => due.filter(({ used }) => !used).map(({ line }) => line.path),
  };
}

/** Where it stands among the calls of its path. One that was never sent stands where it ended. */
function begunAt({ line }: Playable): number {
  return line.request ? line.begin : line.begin + line.ms;
}

/** How long the SDK waits before the next attempt; without a reply, its own longest wait (`client.ts`). */
function retryMs({ reply }: TapeLine, retries: number, pace: number): number {
  return reply ? retryAfterMs(reply, pace) : Math.min(500 * 2 ** retries, 8_000);
}

/** With estimated times, the order is that of the estimated ends. */
function inOrder(lines: readonly TapeLine[], origin: TapeHeader["origin"]): Playable[] {
  const calls = timedCalls(lines, origin);
  const rows = lines.flatMap((line, i) => {
    const call = calls[i];
    return call ? [{ line, call, end: call.begin + call.ms }] : [];
  });
  if (origin === "transcribed") rows.sort((a, b) => a.end - b.end);
  return rows.map(({ line, call }, rank) => {
    const key = line.request && requestKey(line.request);
    return { line, call, rank, key, used: false };
  });
}
