/**
 * Long work in slices, between which the event loop runs and the caller's signal is looked at.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/pause.ts
 */
import { setImmediate } from "node:timers/promises";

/** How long a slice lasts before others get their turn, in milliseconds. */
const SLICE = 10;

/** To be awaited often. */
export type Pause = () => Promise<void> | undefined;

/**
 * Makes a function that gives way once a slice is over, and else costs next to nothing.
 *
 * @throws The signal's reason, once it has fired.
 */
export function createPause(signal: AbortSignal | undefined): Pause {
  signal?.throwIfAborted();
  let began = performance.now();
  const giveWay = async () => {
    await setImmediate();
    signal?.throwIfAborted();
    began = performance.now();
  };
  return () => (performance.now() - began < SLICE ? undefined : giveWay());
}
