/**
 * Writes a line for every call that ends, however it ends.
 *
 *     begin() ─ sent ─── replied, broken ─► line
 *                    └── cancelled ───────► line
 *     watch() ─ waits in a queue, or between two attempts ─ cancelled ─► line, without a request
 *
 * A call that is cancelled before it is sent never reaches the client's middleware; only a layer
 * around the door sees it begin and end. It is on the tape all the same, so that a replay knows it.
 *
 * From effective-agents 0.1.0: patterns/recording/call-log.ts
 */
import { currentPath } from "../step.ts";
import type { Ending } from "./live.ts";
import type { ApiRequest, CanonicalRequest } from "./request.ts";
import { withoutSecrets } from "./secrets.ts";
import type { Tape, TapeLine } from "./tape.ts";

/** What is going on, and where it is written when it ends. */
export interface CallLog {
  /** A call is about to be sent. The function that comes back writes how it ended. */
  begin(asked: CanonicalRequest, request: ApiRequest): (ending: Ending) => Promise<void>;
  /** Runs a call, and writes that it was cancelled where nobody else does. */
  watch<T>(send: () => Promise<T>, signal: AbortSignal | undefined): Promise<T>;
  /** Resolves once everything is written, and the tape may be written by others. */
  close(): Promise<void>;
}

/** Makes the log of a tape. Its clock goes on where the tape ends. */
export function createCallLog(tape: Tape): CallLog {
  const tapeEnd = tape.lines.reduce((end, { begin, ms }) => Math.max(end, begin + ms), 0);
  const startedAt = performance.now() - tapeEnd;
  const open = new Set<{ readonly path: string; readonly signal: ApiRequest["signal"] }>();
  const closing = new Set<() => void>();

  const now = () => Math.round((performance.now() - startedAt) * 1000) / 1000;

  const timed = (path: string, begin: number) => ({
    path,
    begin,
    ms: Math.round((now() - begin) * 1000) / 1000,
  });

  return {
    begin(asked, request) {
      const begin = now();
      const call = { path: currentPath(), signal: request.signal };
      open.add(call);
      return async (ending) => {
        try {
          if (!ending) return;
          const { outcome, ...rest } = ending;
          const times = timed(call.path, begin);
          const line: TapeLine = { ...times, outcome, request: asked, ...rest };
          await tape.append(withoutSecrets(line, request));
        } finally {
          open.delete(call);
          for (const look of closing) look();
        }
      };
    },

    async watch(send, signal) {
      const path = currentPath();
      const begin = now();
      const before = tape.lines.length;
      try {
        return await send();
      } catch (error) {
        const written = tape.lines
          .slice(before)
          .some((line) => line.path === path && isFinal(line));
        const isSent = [...open].some((call) => call.path === path);
        if (signal?.aborted && !written && !isSent) {
          await tape.append({ ...timed(path, begin), outcome: "cancelled" });
        }
        throw error;
      }
    },

    async close() {
      // A cancelled call may reject before its line is written.
      await new Promise<void>((resolve) => {
        const look = () => {
          if (![...open].some((call) => call.signal?.aborted)) resolve();
        };
        closing.add(look);
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
