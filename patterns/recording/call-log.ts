/**
 * Writes a line for every call that ends, however it ends.
 *
 *     call()  ─ sent ─── replied, broken ─► line
 *                    └── cancelled ───────► line
 *     watch() ─ waits in a queue, or between two attempts ─ cancelled ─► line, without a request
 *
 * A call that is cancelled before it is sent never reaches the client's middleware; only a layer
 * around the door sees it begin and end. It is on the tape all the same, so that a replay knows it.
 *
 * The log is closed when no call waits for its reply any more: what was paid for is on the tape. A stream
 * is its reader's, who may have left it; whoever reads on later gets an error in place of its end.
 *
 * From effective-agents 0.1.0: patterns/recording/call-log.ts
 */
import { RecordingError } from "../errors.ts";
import { createScope, currentPath } from "../step.ts";
import type { Ending } from "./live.ts";
import type { ApiRequest, CanonicalRequest } from "./request.ts";
import { withoutSecrets } from "./secrets.ts";
import type { Tape, TapeLine } from "./tape.ts";

/** What is going on, and where it is written when it ends. */
export interface CallLog {
  /**
   * Sends a call. `send` gets a function that writes how it ended.
   *
   * @throws {RecordingError} The log was closed before the call began.
   */
  call<T>(
    asked: CanonicalRequest,
    request: ApiRequest,
    send: (end: (ending: Ending) => Promise<void>) => Promise<T>,
  ): Promise<T>;
  /** Runs a call, and writes that it was cancelled where nobody else does. */
  watch<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T>;
  /** Resolves once no call waits for its reply, everything is written, and others may write the tape. */
  close(): Promise<void>;
}

/** A call whose end isn't written yet. */
interface OpenCall {
  readonly path: string;
  readonly whole: WatchedCall | undefined;
  readonly signal: ApiRequest["signal"];
  /** Its caller has the reply, of which a stream may still go on. */
  answered: boolean;
}

/** A call as the layer sees it: with all its attempts, and what comes before them. */
interface WatchedCall {
  /** One of its attempts has been sent. */
  begun: boolean;
  /** Its end is on the tape. */
  written: boolean;
}

/** The call under way: two may have the same path. */
const watching = createScope<WatchedCall>();

/** Makes the log of a tape. Its clock goes on where the tape ends. */
export function createCallLog(tape: Tape): CallLog {
  const tapeEnd = tape.lines.reduce((end, { begin, ms }) => Math.max(end, begin + ms), 0);
  const startedAt = performance.now() - tapeEnd;
  const open = new Set<OpenCall>();
  /** The calls that go through the layer: between two attempts, none is open. */
  const watched = new Set<WatchedCall>();
  const closing = new Set<() => void>();
  let closed = false;

  const now = () => Math.round((performance.now() - startedAt) * 1000) / 1000;

  const timed = (path: string, begin: number) => ({
    path,
    begin,
    ms: Math.round((now() - begin) * 1000) / 1000,
  });

  /** Lets those who close go on, if nothing is left to be written. */
  function look(): void {
    if ([...watched].some(({ begun }) => begun)) return;
    // A cancelled stream is over too, but its caller may know it before its line is written.
    if ([...open].some(({ answered, signal }) => !answered || signal?.aborted)) return;
    closed ||= closing.size > 0;
    for (const goOn of closing) goOn();
  }

  return {
    async call(asked, request, send) {
      if (closed) throw new RecordingError("The recording is closed: no more calls can be made");
      tape.check();
      const begin = now();
      const whole = watching.getStore();
      if (whole) whole.begun = true;
      const { signal } = request;
      const call: OpenCall = { path: currentPath(), whole, signal, answered: false };
      open.add(call);
      const end = async (ending: Ending) => {
        try {
          if (!ending || (closed && ending.outcome === "cancelled")) return;
          if (closed) {
            throw new RecordingError("The recording was closed before this reply's end");
          }
          const { outcome, ...rest } = ending;
          const times = timed(call.path, begin);
          const line: TapeLine = { ...times, outcome, request: asked, ...rest };
          if (whole && isFinal(line)) whole.written = true;
          await tape.append(withoutSecrets(line, request));
        } finally {
          open.delete(call);
          look();
        }
      };
      try {
        return await send(end);
      } finally {
        call.answered = true;
        look();
      }
    },

    async watch(send, signal) {
      const path = currentPath();
      const begin = now();
      const whole = { begun: false, written: false };
      watched.add(whole);
      try {
        return await watching.run(whole, send);
      } catch (error) {
        const isSent = [...open].some((call) => call.whole === whole);
        if (signal?.aborted && !whole.written && !isSent && !closed) {
          await tape.append({ ...timed(path, begin), outcome: "cancelled" });
        }
        throw error;
      } finally {
        watched.delete(whole);
        look();
      }
    },

    async close() {
      await new Promise<void>((resolve) => {
        closing.add(resolve);
        look();
      });
      await tape.close();
    },
  };
}

/** Whether this ends a call: after a failed attempt the SDK may wait to try again. */
function isFinal({ outcome, reply }: TapeLine): boolean {
  return outcome === "cancelled" || (outcome === "replied" && (reply?.status ?? 500) < 400);
}
