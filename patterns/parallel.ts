/**
 * Does several things at once: different work on one input, or one question put several times.
 *
 *     section input ─┬─► security ─┐   vote question ─┬─► voter[0] ─ yes ─┐
 *                    ├─► speed ────┼─► record         ├─► voter[1] ─ yes ─┼─► yes
 *                    └─► style ────┘                  └─► voter[2] (never asked)
 *
 * Use `section` when parts of a task don't need each other: each gets a prompt of its own, and the
 * whole takes as long as the slowest. Use `vote` when one answer is too often wrong and the answers
 * can be counted. If a single call is right often enough, neither pays.
 *
 * Costs a call for each section, all at once. A vote costs up to `voters` calls, and stops as soon as
 * its outcome is certain: the rest is cancelled (which may be billed) or, as needed, never started.
 *
 * In Anthropic's "Building effective agents": parallelization (sectioning and voting).
 * Copy along: errors.ts, fan-out.ts, fold.ts, llm-call.ts, step.ts, xml.ts, door/
 */

import { BudgetError, checkCount, checkText, HaltError, LlmOutputError } from "./errors.ts";
import { type FanOutOptions, fanOut, type Job, type OnError } from "./fan-out.ts";
import { fold } from "./fold.ts";
import { type LlmCall, under, type Work } from "./llm-call.ts";
import { checkName, step } from "./step.ts";
import { readTag } from "./xml.ts";

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
 * @throws {TypeError} There are no sections, or a name can't be part of a path.
 *   With `onError: "abort"` the first section's failure, after the others were cancelled.
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
  const all = Object.entries(sections);
  if (all.length === 0) throw new TypeError("At least one section is needed, got none");
  for (const [name] of all) checkName(name);
  const jobs = all.map(([name, work]) => ({ signal }: AbortController) => {
    const llm = under(signal, options.llm);
    return step(name, () => work(input, { llm, signal }), signal);
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

/** What `vote` takes beside the question. */
export interface VoteOptions extends FanOutOptions {
  /** How many voters get the one question, from 1 to 100. Default 5. Not with a list of questions. */
  readonly voters?: number | undefined;
  /** Votes that an answer needs. Default: a majority of the planned voters. At half of them or less
   * two answers could get there, so then all voters are awaited. */
  readonly threshold?: number | undefined;
  /** Start only as many voters as could still decide it, instead of all at once. Default false. */
  readonly asNeeded?: boolean | undefined;
}

/** What became of one voter. A reply that can't be used (no vote in it, refused, cut off) abstains. */
export type Ballot =
  | { readonly status: "voted"; readonly answer: string; readonly reply: string }
  | { readonly status: "abstained"; readonly error: LlmOutputError }
  | { readonly status: "failed"; readonly error: unknown }
  | { readonly status: "cancelled" | "not started" };

/** How the vote ended, and on what evidence. */
export type VoteResult = {
  /** The answers in order of their votes, each as its first voter wrote it. */
  readonly counts: readonly { readonly answer: string; readonly votes: number }[];
  /** What became of each voter: `ballots[2]` is `voter[2]`. */
  readonly ballots: readonly Ballot[];
  /** Votes needed to win. */
  readonly threshold: number;
} & (
  | { readonly status: "decided"; readonly winner: string }
  /** No answer has enough votes, or, at a threshold of half or less, two have equally many. */
  | { readonly status: "undecided" }
  /** The budget ended before the vote was decided. */
  | { readonly status: "budget"; readonly error: BudgetError }
);

/**
 * Puts one question to several voters, or one question each, and counts the answers in code.
 *
 * The voters are told to answer inside `<vote></vote>`. Answers are the same whatever their case,
 * blanks, quotes and trailing punctuation. The vote ends as soon as its outcome is certain, and the
 * voters that can't change it any more are cancelled.
 *
 * @throws {TypeError} A question is empty.
 * @throws {RangeError} `voters`, the length of a list or `threshold` is out of range.
 *   With `onError: "abort"` the first voter's failure; an unreadable reply is an abstention instead.
 *
 * @example
 * const result = await vote("Is 91 a prime number? Answer yes or no.", { voters: 3 });
 * // { status: "decided", winner: "no", counts: [{ answer: "no", votes: 2 }], threshold: 2, … }
 */
export async function vote(
  question: string | readonly string[],
  options: VoteOptions = {},
): Promise<VoteResult> {
  const { onError = "abort", asNeeded = false, signal } = options;
  const { questions, threshold } = checkVote(question, options);
  const ballots = questions.map((): Ballot => ({ status: "not started" }));
  const early = threshold > questions.length / 2;
  let next = 0;
  let inFlight = 0;

  const lead = () => count(ballots)[0]?.votes ?? 0;
  const isCertain = () => {
    const open = inFlight + questions.length - next;
    return early && (lead() >= threshold || lead() + open < threshold);
  };
  const wanted = () => (asNeeded && early ? threshold - lead() : questions.length);

  const askInTurn: Job<void> = async (controller) => {
    while (next < questions.length && inFlight < wanted() && !isCertain()) {
      const index = next++;
      inFlight += 1;
      try {
        const llm = under(controller.signal, options.llm);
        const ask = () => askVoter(questions[index] ?? "", llm);
        ballots[index] = await step(`voter[${index}]`, ask, controller.signal);
      } catch (error) {
        const { aborted, reason } = controller.signal;
        if (aborted && error === reason) ballots[index] = { status: "cancelled" };
        else if (error instanceof HaltError || (onError === "abort" && !aborted)) throw error;
        else ballots[index] = { status: "failed", error };
      } finally {
        inFlight -= 1;
      }
      if (inFlight > 0 && isCertain())
        controller.abort(new DOMException("The vote is decided", "AbortError"));
    }
  };

  const run = async (): Promise<VoteResult> => {
    const jobs = questions.map(() => askInTurn);
    const { budget } = await fanOut(jobs, { onError, signal });
    const counts = count(ballots);
    const [first, second] = counts;
    const evidence = { counts, ballots, threshold };
    const ahead = first && first.votes >= threshold && first.votes !== second?.votes;
    if (budget && !first) throw budget;
    if (budget && !(ahead && early)) return { status: "budget", error: budget, ...evidence };
    if (ahead) return { status: "decided", winner: first.answer, ...evidence };
    return { status: "undecided", ...evidence };
  };
  return step("vote", run, signal);
}

const HOW_TO_VOTE = `Think it through first. Then give your answer, and nothing but the answer, like this: <vote>answer</vote>`;

async function askVoter(question: string, llm: LlmCall): Promise<Ballot> {
  try {
    const reply = await llm(`${question}\n\n${HOW_TO_VOTE}`);
    return { status: "voted", answer: readTag(reply, "vote").trim(), reply };
  } catch (error) {
    if (error instanceof LlmOutputError) return { status: "abstained", error };
    throw error;
  }
}

function count(ballots: readonly Ballot[]): VoteResult["counts"] {
  const counts = new Map<string, { answer: string; votes: number }>();
  for (const ballot of ballots) {
    if (ballot.status !== "voted") continue;
    const key = fold(ballot.answer);
    const counted = counts.get(key) ?? { answer: ballot.answer, votes: 0 };
    counts.set(key, { ...counted, votes: counted.votes + 1 });
  }
  return [...counts.values()].sort((a, b) => b.votes - a.votes);
}

function checkVote(question: string | readonly string[], options: VoteOptions) {
  const isOne = typeof question === "string";
  if (!isOne && options.voters !== undefined) {
    throw new TypeError("voters goes with one question; a list has a voter for each");
  }
  const voters = isOne ? (options.voters ?? 5) : question.length;
  checkCount("voters", voters, 1, 100);
  const questions = isOne ? Array<string>(voters).fill(question) : question;
  for (const text of questions) checkText("question", text);
  const { threshold = Math.floor(voters / 2) + 1 } = options;
  checkCount("threshold", threshold, 1, voters);
  return { questions, threshold };
}
