/**
 * Puts one question several times and counts the answers in code.
 *
 *     question ─┬─► voter[0] ── yes ──┐
 *               ├─► voter[1] ── no    ├─► yes: two of three, and voter[2]
 *               └─► voter[2] ◄ cancel ┘   can't change it any more
 *
 * Use when a single answer is too often wrong, and answers can be compared: a verdict, a label, a
 * number. If one call is right often enough, it doesn't pay; if all err the same way, neither.
 *
 * Costs up to `voters` calls, all at once, and stops as soon as the outcome is certain: the rest is
 * cancelled (which may be billed) or, as needed, never started.
 *
 * In Anthropic's "Building effective agents": parallelization, by voting.
 * Copy along: errors.ts, fan-out.ts, fold.ts, llm-call.ts, step.ts, xml.ts, door/
 * From effective-agents 0.1.0: patterns/vote.ts
 */
import { type BudgetError, checkCount, checkText, HaltError, LlmOutputError } from "./errors.ts";
import { type FanOutOptions, fanOut, type Job } from "./fan-out.ts";
import { fold } from "./fold.ts";
import { type LlmCall, withSignal } from "./llm-call.ts";
import { step } from "./step.ts";
import { readTag } from "./xml.ts";

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
 * blanks, quotes and trailing punctuation. With a threshold over half the vote ends as soon as its
 * outcome is certain, and the voters that can't change it any more are cancelled.
 *
 * @throws {TypeError} A question is empty.
 * @throws {RangeError} `voters`, the length of a list or `threshold` is out of range.
 * @throws {AggregateError} Nobody voted, and at least one voter failed, with `onError: "settle"`.
 * @throws The first voter's failure, with `onError: "abort"`. A reply that can't be used is none.
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
  // At half or less two answers could get there, and the first to come must not win by that.
  const canStopEarly = threshold > questions.length / 2;
  const votes = new Map<string, number>();
  let lead = 0;
  let next = 0;
  let inFlight = 0;

  const isCertain = () => {
    const open = inFlight + questions.length - next;
    return canStopEarly && (lead >= threshold || lead + open < threshold);
  };
  const wanted = () => (asNeeded && canStopEarly ? threshold - lead : questions.length);

  // Each job is a lane that takes the next voter from the one queue. There is a lane for each voter, so that
  // all can start at once; `asNeeded`, most lanes end here at once, and the rest go on from voter to voter.
  const askInTurn: Job<void> = async (controller) => {
    while (next < questions.length && inFlight < wanted() && !isCertain()) {
      const index = next++;
      inFlight += 1;
      try {
        const llm = withSignal(controller.signal, options.llm);
        const ask = () => askVoter(questions[index] ?? "", llm);
        const ballot = await step(`voter[${index}]`, ask, controller.signal);
        ballots[index] = ballot;
        if (ballot.status === "voted") lead = Math.max(lead, addVote(votes, ballot.answer));
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
    // Where the budget ended first, those who weren't heard might all have voted for the second.
    const unheard = ballots.filter(({ status }) => {
      return status === "cancelled" || status === "not started";
    }).length;
    const rival = (second?.votes ?? 0) + unheard;
    if (first && first.votes >= threshold && first.votes > rival) {
      return { status: "decided", winner: first.answer, ...evidence };
    }
    if (!first) throwFailures(ballots, budget);
    return budget
      ? { status: "budget", error: budget, ...evidence }
      : { status: "undecided", ...evidence };
  };
  return step("vote", run, signal);
}

const HOW_TO_VOTE = `Think it through first, in a few sentences. Then end with your answer inside these tags, and with nothing else inside them: <vote>answer</vote>`;

async function askVoter(question: string, llm: LlmCall): Promise<Ballot> {
  try {
    const reply = await llm(`${question}\n\n${HOW_TO_VOTE}`);
    return { status: "voted", answer: readTag(reply, "vote").trim(), reply };
  } catch (error) {
    if (error instanceof LlmOutputError) return { status: "abstained", error };
    throw error;
  }
}

/** With no vote at all, an outage must not look like a tie. */
function throwFailures(ballots: readonly Ballot[], budget: BudgetError | undefined): void {
  if (budget) throw budget;
  const failures = ballots.flatMap((b) => (b.status === "failed" ? [b.error] : []));
  if (failures.length > 0) throw new AggregateError(failures, "No voter answered");
}

/** Counts a vote, and gives how many its answer has now. */
function addVote(votes: Map<string, number>, answer: string): number {
  const key = fold(answer);
  const count = (votes.get(key) ?? 0) + 1;
  votes.set(key, count);
  return count;
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
