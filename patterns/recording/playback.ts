/**
 * Finds the recorded call that a request asks for, and plays it.
 *
 *     path + request ─► the first unused line that holds the same ─► its turn ─► Response
 *                    └► none: an error that says what changed
 *
 * Lines of one path are used in order, each once. A line that was cancelled before it was sent holds
 * no request and stands for whatever that path asks next. A cancelled call plays what had come until
 * then and stays open until it is cancelled again; its line holds up no other.
 */
import { annotate, currentPath } from "../step.ts";
import { type RecordedCall, timedCalls } from "./clock.ts";
import { createOrder } from "./order.ts";
import { playedError, playedResponse } from "./reply.ts";
import {
  type ApiRequest,
  type CanonicalRequest,
  difference,
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
  /** Waits for the line's turn and gives its reply. */
  play(playable: Playable, request: ApiRequest): Promise<Response>;
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

/** Prepares lines to be played. */
export function createPlayback(
  lines: readonly TapeLine[],
  origin: TapeHeader["origin"],
  { pace, quietMs }: { readonly pace: number; readonly quietMs: number },
): Playback {
  const playables = inOrder(lines, origin);
  const byPath = new Map<string, Playable[]>();
  for (const playable of playables) {
    const { path } = playable.line;
    byPath.set(path, [...(byPath.get(path) ?? []), playable]);
  }
  const due = playables.filter(({ line }) => line.outcome !== "cancelled");
  const order = createOrder(new Set(due.map(({ rank }) => rank)), quietMs);
  const openedAt = performance.now();
  /** When the first attempt of each path's call began. */
  const callBegins = new Map<string, number>();
  let playedUntil = 0;

  function find(request: CanonicalRequest): Playable | undefined {
    const left = byPath.get(currentPath())?.filter(({ used }) => !used) ?? [];
    const key = requestKey(request);
    const found = left.find((playable) => playable.key === undefined || playable.key === key);
    const other = left[0]?.line.request;
    if (!found && other) {
      throw pathError(`has changed since it was recorded: ${difference(other, request)}`);
    }
    if (found) found.used = true;
    return found;
  }

  async function play({ line, call, rank }: Playable, request: ApiRequest): Promise<Response> {
    const signal = request.signal ?? undefined;
    // Made here, where the path is known.
    const stuck = pathError("was cancelled when it was recorded, and now nobody cancels it");
    const end = call.begin + call.ms;
    const hold = async () => {
      try {
        // What a clock cancelled (`AbortSignal.timeout`) is cancelled by it again, in its own time.
        await order.hold(signal, openedAt + end);
      } catch (reason) {
        await inTurn(rank);
        throw reason;
      }
      throw stuck;
    };
    const isRetry = Number(request.headers.get("x-stainless-retry-count")) > 0;
    const begin = (isRetry ? callBegins.get(line.path) : undefined) ?? call.begin;
    callBegins.set(line.path, begin);
    annotate({ recorded: { begin, ms: end - begin, estimated: call.estimated } });
    if (line.outcome === "cancelled" && !line.reply) return hold();

    await order.turn(rank, signal);
    const ms = Math.max(0, end - playedUntil) * pace;
    playedUntil = Math.max(playedUntil, end);
    if (!line.reply) {
      order.delivered(rank);
      throw playedError(line.error, "call");
    }
    return playedResponse(line.reply, {
      signal,
      ms,
      pace,
      onPiece: order.stir,
      onTaken: () => order.delivered(rank),
      async ending() {
        if (line.outcome === "cancelled") await hold();
        if (line.outcome === "broken") throw playedError(line.error, "body");
      },
    });
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
      const left = byPath.get(path)?.find(({ used, key }) => !used && key === undefined);
      if (signal?.aborted && left) {
        left.used = true;
        await inTurn(left.rank);
      }
      throw error;
    }
  }

  function miss(): never {
    const path = currentPath();
    const times = byPath.get(path)?.length ?? 0;
    if (times > 0) {
      throw pathError(
        `was recorded ${times === 1 ? "once" : `${times} times`}, and is asked for again`,
      );
    }
    const paths = [...byPath.keys()];
    const shown = paths.slice(0, 10).join(", ");
    const more = paths.length > 10 ? ` and ${paths.length - 10} more` : "";
    throw pathError(`is not in the recording, which has ${shown ? shown + more : "no calls"}`);
  }

  return {
    find,
    play,
    watch,
    miss,
    live: order.live,
    unused: () => due.filter(({ used }) => !used).map(({ line }) => line.path),
  };
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
