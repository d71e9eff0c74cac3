/**
 * Ctrl-C, as a signal that calls can be cancelled with.
 *
 * From effective-agents 0.1.0: runners/shared/interrupt.ts
 */

/** Runs `work` under a signal that Ctrl-C fires. A second Ctrl-C, later, ends the process as ever. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onInterrupt = () => {
    if (interrupt.signal.aborted) return;
    interrupt.abort(new Error("interrupted"));
    // npm and tsx pass one Ctrl-C on again.
    setTimeout(() => process.off("SIGINT", onInterrupt), 1_000).unref();
  };
  process.on("SIGINT", onInterrupt);
  try {
    return await work(interrupt.signal);
  } finally {
    if (!interrupt.signal.aborted) process.off("SIGINT", onInterrupt);
  }
}
