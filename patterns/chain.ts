/**
 * Runs steps in a row, each on what the one before gave, with a gate in code after each.
 *
 *     input ─► draft ─► gate ─► translate ─► gate ─► output
 *                ▲       │ no
 *                └reason─┴─► stopped (no retries left)
 *
 * Use when a task splits into fixed steps that are each easier than the whole, and a mistake caught
 * early is cheaper than one carried along. If one prompt does it well, use one prompt.
 *
 * Costs as many calls as your steps make, one after the other, and one more for each retry. A gate
 * is code and costs nothing.
 *
 * In Anthropic's "Building effective agents": prompt chaining.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, door/
 * From effective-agents 0.1.0: patterns/chain.ts
 */

import { BudgetError, checkCount, checkFunction, checkText, shown } from "./errors.ts";
import { type Context, type PatternOptions, withSignal } from "./llm-call.ts";
import { checkName, runPattern, step } from "./step.ts";

/** One step of the chain: text in, text out. */
export interface ChainStep<Name extends string = string> {
  /** Its name on the path and in the outputs, unique in the chain. */
  readonly name: Name;
  readonly run: (input: string, context: ChainContext) => string | PromiseLike<string>;
  /** Looks at the output: `true` lets it pass, a string says why not. Default: all pass. */
  readonly gate?: ((output: string) => Verdict | PromiseLike<Verdict>) | undefined;
  /** How often a failed gate sends its reason back to the step, instead of stopping. Default 0. */
  readonly retries?: number | undefined;
}

/** `true`, or the reason why not. */
export type Verdict = true | string;

/** What a step gets beside its input. */
export interface ChainContext extends Context {
  /** On a retry: what the step gave last, and why the gate refused it. */
  readonly rejected?: { readonly output: string; readonly reason: string } | undefined;
}

/** What a chain takes beside its input. */
export interface ChainOptions<Name extends string> extends PatternOptions {
  readonly steps: readonly ChainStep<Name>[];
}

/** How the chain ended, with each finished step's output by name. */
export type ChainResult<Name extends string> =
  | {
      readonly status: "completed";
      /** What the last step gave. */
      readonly output: string;
      readonly outputs: Readonly<Record<Name, string>>;
    }
  | {
      readonly status: "stopped";
      /** The step whose gate failed, what it had given, and why that was refused. */
      readonly step: Name;
      readonly rejected: { readonly output: string; readonly reason: string };
      readonly outputs: Readonly<Partial<Record<Name, string>>>;
    }
  | {
      /** The budget ended in this step, after at least one was done. */
      readonly status: "budget";
      readonly step: Name;
      readonly error: BudgetError;
      /** What this step had given, where that was refused and to be done again. */
      readonly rejected: ChainContext["rejected"];
      readonly outputs: Readonly<Partial<Record<Name, string>>>;
    };

/**
 * Runs the steps in order on `input`.
 *
 * @throws {TypeError} The input is empty, there are no steps, or a step is badly made; later, a step
 *   that gives no text, or a gate that gives neither `true` nor a reason.
 * @throws {RangeError} `retries` is not a whole number of at least 0.
 *
 * @example
 * const result = await chain("Fix: totals were off by one", {
 *   steps: [
 *     { name: "note", run: (log, { llm }) => llm(`Write a release note for: ${log}`) },
 *     { name: "spanish", run: (note, { llm }) => llm(`Translate into Spanish: ${note}`) },
 *   ],
 * });
 * // { status: "completed", output: "Totales corregidos …", outputs: { note: "…", spanish: "…" } }
 */
export async function chain<const Name extends string>(
  input: string,
  options: ChainOptions<Name>,
): Promise<ChainResult<Name>> {
  const { steps = [], signal } = options;
  checkText("input", input);
  checkSteps(steps);
  const llm = withSignal(signal, options.llm);
  const done = new Map<Name, string>();

  const runAll = async (): Promise<ChainResult<Name>> => {
    let text = input;
    for (const current of steps) {
      const { name, retries = 0 } = current;
      let rejected: ChainContext["rejected"];
      try {
        for (let attempt = 0; attempt <= retries; attempt += 1) {
          const context = { llm, signal, rejected };
          const { output, verdict } = await step(name, () => runAndJudge(current, text, context));
          if (verdict === true) {
            done.set(name, output);
            [text, rejected] = [output, undefined];
            break;
          }
          rejected = { output, reason: verdict };
        }
      } catch (error) {
        if (!(error instanceof BudgetError) || done.size === 0) throw error;
        return { status: "budget", step: name, error, rejected, outputs: partly(done) };
      }
      if (rejected) return { status: "stopped", step: name, rejected, outputs: partly(done) };
    }
    return { status: "completed", output: text, outputs: partly(done) as Record<Name, string> };
  };
  return runPattern("chain", runAll, signal);
}

function partly<Name extends string>(done: ReadonlyMap<Name, string>) {
  // Object.fromEntries forgets which keys these were; the map's type has them. After the last step they are
  // all there, hence the cast above.
  return Object.fromEntries(done) as Partial<Record<Name, string>>;
}

async function runAndJudge({ name, run, gate }: ChainStep, input: string, context: ChainContext) {
  const output = await run(input, context);
  checkText(`output of "${name}"`, output);
  if (!gate) return { output, verdict: true as const };
  const verdict = await step("gate", () => gate(output));
  if (verdict !== true) checkText(`gate of "${name}"`, verdict, "must give true or a reason");
  return { output, verdict };
}

function checkSteps(steps: readonly ChainStep[]): void {
  if (!Array.isArray(steps)) throw new TypeError(`steps must be a list, got ${shown(steps)}`);
  if (steps.length === 0) throw new TypeError("A chain needs at least one step, got none");
  const names = new Set<string>();
  for (const current of steps) {
    const { name, run, gate, retries = 0 } = Object(current) as ChainStep;
    checkName(name);
    checkFunction(`run of "${name}"`, run);
    checkFunction(`gate of "${name}"`, gate, true);
    if (names.has(name))
      throw new TypeError(`A chain's steps need names of their own, got two "${name}"`);
    names.add(name);
    checkCount(`retries of "${name}"`, retries, 0);
  }
}
