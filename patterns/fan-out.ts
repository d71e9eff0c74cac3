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
 *
 * From effective-agents 0.1.0: patterns/fan-out.ts
 */
import { setMaxListeners } from "node:events";
import { BudgetError, HaltError, shown } from "./errors.ts";
import type { PatternOptions } from "./llm-call.ts";

/** What a fan-out does when one of its jobs fails: cancel the rest and throw, or keep each outcome. */
export type OnError = "abort" | "settle";

/** What every pattern takes that does several things at once. */
export interface FanOutOptions<E extends OnError = OnError> extends PatternOptions {
  /** Cancel the rest and throw when one fails, or keep each outcome. Default `"abort"`. */
  readonly onError?: E | undefined;
}

/** Runs under the controller's signal, and may abort its siblings with it. */
export type Job<T> = (controller: AbortController) => Promise<T>;

/** Every job's outcome in the order of the jobs, and the budget's error if the money ended. */
export interface FanOut<T> {
  readonly results: readonly PromiseSettledResult<T>[];
  readonly budget?: BudgetError;
}

/**
 * Runs all jobs at once, under one policy for failures.
 *
 * @param jobs A job that ends with the reason of its controller's signal was cancelled, not failed.
 * @throws The first failure under `"abort"`, a `HaltError` other than `BudgetError`, or the reason
 *   of `signal`; always after every job has ended.
 */
export async function fanOut<T>(
  jobs: readonly Job<T>[],
  { onError = "abort", signal }: Pick<FanOutOptions, "onError" | "signal">,
): Promise<FanOut<T>> {
  checkOnError(onError);
  const { controller, release } = follow(signal);
  let budget: BudgetError | undefined;
  let fatal: { readonly error: unknown } | undefined;
  const run = async (job: Job<T>) => {
    try {
      return await job(controller);
    } catch (error) {
      const cancelled = controller.signal.aborted && error === controller.signal.reason;
      if (cancelled) throw error;
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

/** Throws a `TypeError` unless it's one of the two: for patterns that make calls before they fan out. */
export function checkOnError(onError: OnError = "abort"): void {
  if (onError === "abort" || onError === "settle") return;
  throw new TypeError(`onError must be "abort" or "settle", got ${shown(onError)}`);
}

/** A controller that follows another signal until it's released. */
export interface Follower {
  readonly controller: AbortController;
  readonly release: () => void;
}

/**
 * Makes a controller that is aborted as soon as one of the signals is, with the same reason.
 *
 * However many follow a signal, it has one listener: at the eleventh Node warns of a leak, and
 * `AbortSignal.any` does leak on a long-lived signal (Node 20: about 1.2 kB a call).
 */
export function follow(...signals: readonly (AbortSignal | undefined)[]): Follower {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  ours.add(controller.signal);
  const followed: Set<AbortController>[] = [];
  for (const signal of signals) {
    if (!signal) continue;
    if (signal.aborted) controller.abort(signal.reason);
    const set = followers.get(signal) ?? listen(signal);
    followed.push(set.add(controller));
  }
  const release = () => {
    for (const set of followed) set.delete(controller);
  };
  return { controller, release };
}

/**
 * Lends a signal to code that adds a listener at each call, as the SDK does. One that a fan-out made is lent
 * as it is. In place of a caller's, on which listeners would pile up, goes one that follows it until it's
 * released.
 */
export function lend(signal: AbortSignal | undefined): {
  readonly signal: AbortSignal | undefined;
  readonly release?: () => void;
} {
  if (!signal || ours.has(signal)) return { signal };
  const { controller, release } = follow(signal);
  return { signal: controller.signal, release };
}

/** The signals made here, which take any number of listeners. They last no longer than their fan-out. */
const ours = new WeakSet<AbortSignal>();
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
