/**
 * Does different work on one input, all at the same time.
 *
 *     input ─┬─► security ────┐
 *            ├─► performance ─┼─► a record of the same names
 *            └─► size ────────┘
 *
 * Use when parts of a task don't need each other: each gets a prompt of its own and looks at one thing
 * only, and the whole takes as long as the slowest. If one prompt sees it all, use one prompt. If each
 * part needs what the one before found, it's a chain.
 *
 * Costs what the sections cost, all at once: a call each, as a rule. A section may also be plain code,
 * or another pattern.
 *
 * In Anthropic's "Building effective agents": parallelization, by sectioning.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, door/
 * From effective-agents 0.1.0: patterns/section.ts
 */
import { BudgetError, checkFunction } from "./errors.ts";
import { type FanOutOptions, fanOut, type OnError } from "./fan-out.ts";
import { type Work, withSignal } from "./llm-call.ts";
import { checkName, step } from "./step.ts";

/** Work on one input, by name. */
export type Sections<Input> = Readonly<Record<string, Work<Input, unknown>>>;

/** What `section` takes beside its input. */
export interface SectionOptions<S, E extends OnError> extends FanOutOptions<E> {
  /** The work to do on the input, by name. */
  readonly sections: S;
}

/** Each section's output under its own name, or its outcome with `onError: "settle"`. */
export type SectionOutputs<S extends Sections<never>, E extends OnError> = {
  readonly [Name in keyof S]: E extends "settle"
    ? PromiseSettledResult<Awaited<ReturnType<S[Name]>>>
    : Awaited<ReturnType<S[Name]>>;
};

/** What the sections gave, by name. */
export type SectionResult<S extends Sections<never>, E extends OnError> =
  | { readonly status: "completed"; readonly outputs: SectionOutputs<S, E> }
  | {
      /** The budget ended; at least one section was done. */
      readonly status: "budget";
      readonly error: BudgetError;
      readonly outputs: Partial<SectionOutputs<S, E>>;
    };

/**
 * Gives one input to every section at once.
 *
 * @throws {TypeError} There are no sections, one is no function, or a name can't be part of a path.
 * @throws The first section's failure, after the others were cancelled, with `onError: "abort"`.
 *
 * @example
 * const result = await section(diff, {
 *   sections: {
 *     security: (diff, { llm }) => llm(`Review for security: ${diff}`),
 *     size: (diff) => diff.split("\n").length,
 *   },
 * });
 * // { status: "completed", outputs: { security: "…", size: 42 } }
 */
export async function section<Input, const S extends Sections<Input>, E extends OnError = "abort">(
  input: Input,
  options: SectionOptions<S, E>,
): Promise<SectionResult<S, E>> {
  const { sections, onError, signal } = options;
  const all = Object.entries(sections ?? {});
  if (all.length === 0) throw new TypeError("At least one section is needed, got none");
  for (const [name, work] of all) {
    checkName(name);
    checkFunction(`section "${name}"`, work);
  }
  const jobs = all.map(([name, work]) => ({ signal: own }: AbortController) => {
    const llm = withSignal(own, options.llm);
    return step(name, () => work(input, { llm, signal: own }), own);
  });

  const run = async () => {
    const { results, budget } = await fanOut(jobs, { onError, signal });
    if (budget && !results.some(({ status }) => status === "fulfilled")) throw budget;
    const outputs = new Map<string, unknown>();
    for (const [index, result] of results.entries()) {
      if (result.status === "rejected" && result.reason instanceof BudgetError) continue;
      const output = result.status === "rejected" || onError === "settle" ? result : result.value;
      outputs.set(all[index]?.[0] ?? "", output);
    }
    const ending = budget ? { status: "budget", error: budget } : { status: "completed" };
    // The record has the sections' names and outputs; its type can't be followed through a loop.
    return { ...ending, outputs: Object.fromEntries(outputs) } as SectionResult<S, E>;
  };
  return step("section", run, signal);
}
