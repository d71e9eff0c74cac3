/**
 * Asks a person on a terminal whether a tool may run: the `ask` of approve.ts for a command line.
 *
 *     refund({ "order": "17", "cents": 950 })
 *     Pays 9.50 EUR back to Ada for order 17. It can't be undone.
 *     Type yes to run it, anything else to decline: █
 *
 * Only a terminal will do: what is piped in was written before the question was. What was typed ahead
 * doesn't count for the same reason. The end of input (Ctrl-D) is no answer.
 *
 * Not with `node:readline`: on Node 20 its question never settles at the end of input, takes a line
 * that ends there without a line's end, and loses or keeps lines that came too early.
 *
 * Copy along: approve.ts, approve/, errors.ts, repo-tools/text.ts, step.ts, tool.ts
 * From effective-agents 0.1.0: patterns/ask-terminal.ts
 */
import { setImmediate } from "node:timers/promises";
import type { Ask } from "./approve.ts";

/** Where answers come from: `process.stdin`. */
export type TerminalInput = NodeJS.ReadableStream & {
  readonly isTTY?: boolean | undefined;
  readonly destroyed?: boolean;
  readonly readableEnded?: boolean;
};

/**
 * Makes an `ask` for a terminal.
 *
 * @param output Where the question is shown: `process.stderr`, so that a result can be piped elsewhere.
 *
 * @example
 * const approve = createApproval({ ask: askOnTerminal(process.stdin, process.stderr) });
 */
export function askOnTerminal(input: TerminalInput, output: NodeJS.WritableStream): Ask {
  return ({ call, effect }, { signal }) => {
    if (!input.isTTY) throw new Error("there is no terminal to ask on");
    return nextLine(input, signal, () => {
      // The effect last: a long call, whose text may come from outside, must not push it out of sight.
      output.write(`\n${call}\n${effect}\nType yes to run it, anything else to decline: `);
    });
  };
}

/** The first line that comes after `show`, or `undefined` if the input ends or fails before its end. */
async function nextLine(
  input: TerminalInput,
  signal: AbortSignal,
  show: () => void,
): Promise<string | undefined> {
  let text = "";
  let isShown = false;
  let settle = (_line: string | undefined) => {};
  const line = new Promise<string | undefined>((resolve) => {
    settle = resolve;
  });
  const onData = (chunk: unknown) => {
    if (!isShown) return;
    text += String(chunk);
    const [first, ...more] = text.split("\n");
    if (more.length > 0) settle(first);
  };
  const onEnd = () => settle(undefined);
  input.on("data", onData).resume();
  for (const event of ENDS) input.on(event, onEnd);
  signal.addEventListener("abort", onEnd);
  try {
    // What was typed ahead is read, and dropped, in one turn of the event loop; one more, to be sure.
    await setImmediate();
    await setImmediate();
    isShown = true;
    show();
    // An input that ended before says so no more.
    if (input.readableEnded || input.destroyed || signal.aborted) return undefined;
    return await line;
  } finally {
    signal.removeEventListener("abort", onEnd);
    for (const event of ENDS) input.off(event, onEnd);
    input.off("data", onData);
    // Else it would keep the process from ending.
    input.pause();
  }
}

const ENDS = ["end", "close", "error"];
