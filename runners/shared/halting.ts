/**
 * Tools for a loop that isn't ours, such as the SDK's tool runner, which tells a model whatever they throw.
 *
 *     tool ─► HaltError ─► signal, with it as the reason ─► no further call, and the run ends with it
 *
 * From effective-agents 0.1.0: runners/shared/halting.ts
 */
import { HaltError } from "../../patterns/errors.ts";
import type { Tool } from "../../patterns/tool.ts";

/** Tools, and the signal for the loop to run under. */
export interface Halting {
  readonly tools: readonly Tool[];
  /** Fires when `signal` does, or a tool throws a `HaltError`. Look at it in the end: the loop's own error
   * says less. */
  readonly signal: AbortSignal;
}

/** Makes tools that end the run with a `HaltError`. */
export function halting(tools: readonly Tool[], signal: AbortSignal | undefined): Halting {
  const halt = new AbortController();
  const run = async (tool: Tool, ...call: Parameters<Tool["run"]>) => {
    try {
      return await tool.run(...call);
    } catch (error) {
      if (error instanceof HaltError) halt.abort(error);
      throw error;
    }
  };
  return {
    tools: tools.map((tool) => ({ ...tool, run: (...call) => run(tool, ...call) })),
    // It leaks some bytes on a signal that lives long, which a command line can bear.
    signal: AbortSignal.any(signal ? [signal, halt.signal] : [halt.signal]),
  };
}
