/**
 * One failure policy for everything that runs at once.
 *
 *     start ─┬─ job ── ok ──────────┐
 *            ├─ job ── fails ─┐     ├─ all ended ── results, or the first failure
 *            └─ job ◄─ abort ─┘─────┘
 *
 * A fan-out returns only after every job that it started has ended. With `onError: "abort"` the first
 * failure cancels the siblings and is thrown; with `"settle"` each job's outcome is kept. Three things
 * are never settled: the caller's abort; a `HaltError`, which cancels the siblings; and its kind
 * `BudgetError`, which lets the siblings end, since they are paid for, and is handed back.
 */
import { BudgetError, HaltError } from "./step.ts";

/** What a fan-out does when one of its jobs fails: cancel the rest and throw, or keep each outcome. */
export type OnError = "abort" | "settle";

/** Every job's outcome in the order of the jobs, and the budget's error if the money ended. */
export interface FanOut<T> {
  readonly results: readonly PromiseSettledResult<T>[];
  readonly budget?: BudgetError;
}

/**
 * Runs all jobs at once, under one policy for failures.
 *
 * @param jobs Each gets the signal that cancels it.
 * @throws The first failure under `"abort"`, a `HaltError` other than `BudgetError`, or the reason
 *   of `signal`; always after every job has ended.
 */
export async function fanOut<T>(
  jobs: readonly ((signal: AbortSignal) => Promise<T>)[],
  {
    onError = "abort",
    signal,
  }: { onError?: OnError | undefined; signal?: AbortSignal | undefined },
): Promise<FanOut<T>> {
  const { controller, release } = follow(signal);
  let budget: BudgetError | undefined;
  let fatal: { readonly error: unknown } | undefined;
  const run = async (job: (signal: AbortSignal) => Promise<T>) => {
    try {
      return await job(controller.signal);
    } catch (error) {
      if (error instanceof BudgetError) budget ??= error;
      else if (onError === "abort" || error instanceof HaltError) {
        fatal ??= { error };
        controller.abort(error);
      }
      throw error;
    }
  };
  try {
    const results = await Promise.allSettled(jobs.map(run));
    signal?.throwIfAborted();
    if (fatal) throw fatal.error;
    return { results, ...(budget && { budget }) };
  } finally {
    release();
  }
}

/** A controller that follows another signal until it's released. */
export interface Follower {
  readonly controller: AbortController;
  readonly release: () => void;
}

/**
 * Makes a controller that is aborted when `signal` is, with the same reason.
 *
 * However many follow a signal, it has one listener: at the eleventh Node warns of a leak, and
 * `AbortSignal.any` does leak on a long-lived signal (Node 20: about 1.2 kB a call).
 */
export function follow(signal: AbortSignal | undefined): Follower {
  const controller = new AbortController();
  if (!signal) return { controller, release() {} };
  if (signal.aborted) controller.abort(signal.reason);
  const set = followers.get(signal) ?? listen(signal);
  set.add(controller);
  return { controller, release: () => set.delete(controller) };
}

const followers = new WeakMap<AbortSignal, Set<AbortController>>();

function listen(signal: AbortSignal): Set<AbortController> {
  const set = new Set<AbortController>();
  followers.set(signal, set);
  const abortAll = () => {
    for (const controller of set) controller.abort(signal.reason);
  };
  signal.addEventListener("abort", abortAll, { once: true });
  return set;
}
