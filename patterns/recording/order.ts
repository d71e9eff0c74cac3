/**
 * Hands out recorded replies in the order of the tape, one at a time.
 *
 *     asked for:  3   1   2          handed out:  1 ─ settle ─ 2 ─ settle ─ 3
 *                                                      └ what reply 1 starts or cancels, happens here
 *
 * Timers can't keep near-simultaneous replies apart, so the order of the lines does. A reply has been
 * delivered once its body was read and the event loop has turned a few times with nothing new asked
 * for: whatever it decides (a vote that cancels the rest) is done before the next one goes out.
 *
 * After a failed attempt nothing goes out until the recorded next one is asked for. The SDK waits by a
 * timer, and else it would depend on the machine's load what comes first: the next attempt, or a reply
 * that cancels it.
 *
 * While the recorded time of a reply passes, or the wait before a retry, all is under way. A line
 * that nobody asks for would hold up all after it. So when somebody waits, and nothing at all
 * has moved for `quietMs`, the line is passed over; it can still be asked for later. The same quiet
 * ends a cancelled call that nobody cancels, and lets live calls go that wait for the tape's end.
 *
 * From effective-agents 0.1.0: patterns/recording/order.ts
 */
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";

/** Who may go next. */
export interface Order {
  /** Somebody asks for line `rank`: it holds up no other any more, but waits for its own turn. */
  asked(rank: number): void;
  /** Resolves when it's the turn of line `rank`, which then is under way until `delivered(rank)`. */
  turn(rank: number, signal: AbortSignal | undefined): Promise<void>;
  delivered(rank: number): void;
  /** Line `rank` is the next attempt of a call that has failed, and will be asked for after `ms`: no other
   * goes before that, unless the signal fires. */
  retry(rank: number, ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** Resolves after `ms`, or when the signal fires. Until then nothing counts as quiet. */
  pause(ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** Resolves when every line that is asked for has been delivered: a live call may go. */
  live(signal: AbortSignal | undefined): Promise<void>;
  /** Resolves when all is quiet, and `notBefore` (of `performance.now()`) is past: nobody cancels. */
  hold(signal: AbortSignal | undefined, notBefore: number): Promise<void>;
}

interface Waiter {
  /** Its line. Live calls come after all lines, held ones have no turn. */
  readonly rank: number;
  readonly kind: "line" | "live" | "held";
  readonly notBefore: number;
  readonly go: () => void;
}

/** A timer that is set to more fires at once. */
export const MAX_TIMER_MS = 2_147_483_647;

/** How often the event loop turns before a reply's consequences are taken to be complete. */
const SETTLING_TURNS = 3;

/** Resolves when what has just been handed out has had its consequences. */
export async function settled(): Promise<void> {
  for (let i = 0; i < SETTLING_TURNS; i++) await turn();
}

/** @param expected The lines that hold up those after them until they are asked for. Here it only shrinks. */
export function createOrder(expected: Set<number>, quietMs: number): Order {
  const waiters = new Set<Waiter>();
  const retries = new Set<number>();
  let underWay: number | undefined;
  /** No line before this one is expected any more. */
  let reached = 0;
  let moves = 0;
  let pauses = 0;
  let settling = false;
  let timer: NodeJS.Timeout | undefined;

  function stir(): void {
    moves++;
    clearTimeout(timer);
    if (!settling) void settle();
  }

  async function settle(): Promise<void> {
    settling = true;
    for (let seen = -1; seen !== moves; ) {
      seen = moves;
      await settled();
    }
    settling = false;
    proceed();
  }

  /** Lets go who may go now; else waits for quiet. */
  function proceed(): void {
    const first = firstLine();
    const isFree = underWay === undefined && retries.size === 0;
    if (isFree && first && isNext(first)) {
      underWay = first.rank;
      release(first);
    } else if (isFree && !first && expected.size === 0) {
      releaseAll("live");
    }
    if (waiters.size > 0 && pauses === 0) {
      let latest = 0;
      if (!first && underWay === undefined) {
        for (const { notBefore } of waiters) latest = Math.max(latest, notBefore);
      }
      const wait = Math.max(quietMs, latest - performance.now());
      timer = setTimeout(checkQuiet, Math.min(wait, MAX_TIMER_MS));
    }
  }

  /** Time alone proves nothing on a busy machine: the loop has to turn without a move as well. */
  async function checkQuiet(): Promise<void> {
    const seen = moves;
    await settled();
    if (seen !== moves) return;
    const first = firstLine();
    const live = [...waiters].some((waiter) => waiter.kind === "live");
    if (underWay !== undefined) underWay = undefined;
    else if (retries.size > 0) retries.clear();
    else if (first) for (const rank of expected) rank < first.rank && expected.delete(rank);
    else if (live) expected.clear();
    else return releaseAll("held");
    proceed();
  }

  function isNext({ rank }: Waiter): boolean {
    while (reached < rank && !expected.has(reached)) reached++;
    return reached >= rank;
  }

  function firstLine(): Waiter | undefined {
    let first: Waiter | undefined;
    for (const waiter of waiters) {
      if (waiter.kind === "line" && waiter.rank < (first?.rank ?? Infinity)) first = waiter;
    }
    return first;
  }

  function release(waiter: Waiter): void {
    waiters.delete(waiter);
    waiter.go();
  }

  function releaseAll(kind: Waiter["kind"]): void {
    for (const waiter of [...waiters]) if (waiter.kind === kind) release(waiter);
  }

  function wait(signal: AbortSignal | undefined, who: Omit<Waiter, "go">): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        waiters.delete(waiter);
        stir();
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const waiter = { ...who, go };
      if (signal?.aborted) return onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      waiters.add(waiter);
      stir();
    });
  }

  async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (ms > 0) {
      pauses++;
      stir();
      // The caller knows whether its signal has fired.
      await sleep(Math.min(ms, MAX_TIMER_MS), undefined, signal && { signal }).catch(() => {});
      pauses--;
    }
    stir();
  }

  return {
    asked(rank) {
      expected.delete(rank);
      retries.delete(rank);
    },
    turn: (rank, signal) => wait(signal, { rank, kind: "line", notBefore: 0 }),
    delivered(rank) {
      if (underWay === rank) underWay = undefined;
      stir();
    },
    pause,
    async retry(rank, ms, signal) {
      retries.add(rank);
      await pause(ms, signal);
      if (signal?.aborted) retries.delete(rank);
    },
    live: (signal) => wait(signal, { rank: Infinity, kind: "live", notBefore: 0 }),
    hold: (signal, notBefore) => wait(signal, { rank: Infinity, kind: "held", notBefore }),
  };
}
