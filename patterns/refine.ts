/**
 * Drafts, has the draft graded, and drafts again with the feedback until it passes.
 *
 *     task ─► draft ─► check in code ─► grade ─► PASS ─► best draft
 *               ▲            │            │
 *               └─ feedback ─┴────────────┘  at most maxRounds drafts
 *
 * Use when there are clear criteria, and a draft gets measurably better when somebody says what is
 * wrong with it: a translation, a text for a reader, code under a review. If the first draft would do,
 * it's one call.
 *
 * Costs two calls a round, one after the other, three where a grade can't be read; a draft that the check
 * in code rejects isn't graded. Each other draft is, the last one too, and the best graded one comes back.
 *
 * In Anthropic's "Building effective agents": evaluator-optimizer.
 * Copy along: errors.ts, fan-out.ts, fold.ts, llm-call.ts, step.ts, xml.ts, door/
 * From effective-agents 0.1.0: patterns/refine.ts
 */
import { BudgetError, checkCount, checkFunction, checkText, LlmOutputError } from "./errors.ts";
import { fold } from "./fold.ts";
import { type LlmCall, type PatternOptions, type Work, withSignal } from "./llm-call.ts";
import { runPattern, step } from "./step.ts";
import { readTag, readTags, tagged } from "./xml.ts";

/** What the grader said of a draft. */
export interface Grade {
  readonly evaluation: "PASS" | "NEEDS_IMPROVEMENT";
  /** From 0 to 10. */
  readonly score: number;
  /** What to do better. May be empty. */
  readonly feedback: string;
}

/** One round: a draft, and what was said of it. `attempts[1]` was made in `round[1]`. */
export interface Attempt {
  readonly draft: string;
  /** Missing where the check rejected the draft, or the budget ended before it was graded. */
  readonly grade?: Grade | undefined;
  /** Why the check in code rejected the draft. */
  readonly rejected?: string | undefined;
}

/** What a draft is made from. */
export interface DraftInput {
  readonly task: string;
  readonly attempts: readonly Attempt[];
}

/** What `refine` takes beside the task. */
export interface RefineOptions extends PatternOptions {
  /** What a draft must do to pass. The grader is shown this, and so is the writer. */
  readonly criteria: string;
  /** Writes a draft. Default: one call with the task and all earlier attempts with their feedback. */
  readonly draft?: Work<DraftInput, string> | undefined;
  /** Looks at a draft in code before a grade is paid for: `true`, or why not. Default: all pass. */
  readonly check?: ((draft: string) => true | string | PromiseLike<true | string>) | undefined;
  /** The most drafts. Default 3. */
  readonly maxRounds?: number | undefined;
}

/** The best draft (a PASS first, then the highest score, then the latest), and how it came about. */
export type RefineResult = { readonly draft: string; readonly attempts: readonly Attempt[] } & (
  | { readonly status: "accepted"; readonly grade: Grade }
  /** No draft passed: the rounds are used up, or the drafts stopped getting better (one repeated an
   * earlier one, or two in a row scored no higher than the best before: with three rounds that only names
   * the end, with more it saves the rest). */
  | { readonly status: "exhausted" | "stalled"; readonly grade?: Grade | undefined }
  /** The budget ended with a draft in hand. */
  | { readonly status: "budget"; readonly grade?: Grade | undefined; readonly error: BudgetError }
);

/**
 * Writes a draft for `task` and improves it until it passes the criteria.
 *
 * @throws {TypeError} The task or the criteria are empty, or the check gives neither `true` nor a reason.
 * @throws {RangeError} `maxRounds` is not a whole number of at least 1.
 * @throws {LlmOutputError} A grade was unreadable twice in one round, or a draft was missing.
 *
 * @example
 * const result = await refine("Translate into English: Der Panther …", {
 *   criteria: "Keeps the rhyme and the metre. Says nothing that the original doesn't.",
 * });
 * // { status: "accepted", draft: "His gaze …", grade: { evaluation: "PASS", score: 9, … }, … }
 */
export async function refine(task: string, options: RefineOptions): Promise<RefineResult> {
  const { criteria, check, maxRounds = 3, signal } = options;
  checkText("task", task);
  checkText("criteria", criteria);
  checkCount("maxRounds", maxRounds, 1);
  checkFunction("draft", options.draft, true);
  checkFunction("check", check, true);
  const llm = withSignal(signal, options.llm);
  const write = options.draft ?? writeDraft(criteria);
  const attempts: Attempt[] = [];

  const makeAttempt = async (round: number): Promise<Grade | "stalled" | undefined> => {
    const input = { task, attempts: [...attempts] };
    const draft = await step("draft", () => write(input, { llm, signal }));
    checkText("draft", draft);
    const twin = attempts.find((earlier) => earlier.draft.trim() === draft.trim());
    // Kept before it's graded, in case the budget ends in between. A draft that was made before has that
    // one's grade, and isn't paid for again.
    attempts[round] = { ...twin, draft };
    if (twin) return "stalled";
    const verdict = check ? await step("check", () => check(draft)) : true;
    if (verdict !== true) {
      checkText("check", verdict, "must give true or a reason");
      attempts[round] = { draft, rejected: verdict };
      return undefined;
    }
    const grade = await gradeDraft(gradePrompt(task, criteria, draft), llm);
    attempts[round] = { draft, grade };
    return grade.evaluation !== "PASS" && hasStalled(attempts) ? "stalled" : grade;
  };

  const run = async (): Promise<RefineResult> => {
    try {
      for (let round = 0; round < maxRounds; round += 1) {
        const outcome = await step(`round[${round}]`, () => makeAttempt(round));
        if (outcome === "stalled") return { status: outcome, ...best(attempts), attempts };
        if (outcome?.evaluation !== "PASS") continue;
        return { status: "accepted", draft: best(attempts).draft, grade: outcome, attempts };
      }
    } catch (error) {
      if (!(error instanceof BudgetError) || attempts.length === 0) throw error;
      return { status: "budget", error, ...best(attempts), attempts };
    }
    return { status: "exhausted", ...best(attempts), attempts };
  };
  return runPattern("refine", run, signal);
}

/** A PASS first, then the highest score, then the latest; without any grade, the latest draft. */
function best(attempts: readonly Attempt[]): Pick<Attempt, "draft" | "grade"> {
  const rank = ({ grade }: Attempt) =>
    grade ? grade.score + (grade.evaluation === "PASS" ? 100 : 0) : -1;
  const ranked = [...attempts].reverse().sort((a, b) => rank(b) - rank(a));
  return { draft: ranked[0]?.draft ?? "", grade: ranked[0]?.grade };
}

/** Whether the last two grades are no better than the best before them. */
function hasStalled(attempts: readonly Attempt[]): boolean {
  const scores = attempts.flatMap(({ grade }) => (grade ? [grade.score] : []));
  const [earlier, latest] = [scores.slice(0, -2), scores.slice(-2)];
  return earlier.length > 0 && Math.max(...latest) <= Math.max(...earlier);
}

async function gradeDraft(prompt: string, llm: LlmCall): Promise<Grade> {
  const ask = (text: string) =>
    step("grade", async () => {
      const reply = await llm(text);
      return readGrade(reply) ?? new LlmOutputError("The grade is unreadable", { text: reply });
    });
  let grade = await ask(prompt);
  if (grade instanceof Error) grade = await ask(`${prompt}\n\n${reGrade(grade.text)}`);
  if (grade instanceof Error) throw grade;
  return grade;
}

/** Exactly one of the two verdicts and a number, or `undefined`: "PASS, mostly" is neither. `8/10` is 8, and
 * NEEDS IMPROVEMENT is what it means. */
function readGrade(reply: string): Grade | undefined {
  try {
    const { evaluation, score, feedback } = readTags(reply, ["evaluation", "score", "feedback"]);
    const verdict = fold(evaluation)
      .toUpperCase()
      .replaceAll(/[\s-]+/g, "_");
    if (verdict !== "PASS" && verdict !== "NEEDS_IMPROVEMENT") return undefined;
    const figure = SCORE.exec(fold(score))?.[1];
    if (figure === undefined) return undefined;
    return { evaluation: verdict, score: Number(figure), feedback: feedback.trim() };
  } catch (error) {
    if (error instanceof LlmOutputError) return undefined;
    throw error;
  }
}

/** A number from 0 to 10, of 10 if of anything. */
const SCORE = /^(\d(?:\.\d+)?|10(?:\.0+)?)(?:\s*(?:\/|of|out of)\s*10)?$/i;

function writeDraft(criteria: string): Work<DraftInput, string> {
  return async ({ task, attempts }, { llm }) => {
    const also = ["task", "criteria", "attempt", "feedback", "draft"];
    const earlier = attempts.map(({ draft, grade, rejected }) => {
      const feedback =
        rejected ?? `${grade?.evaluation}, ${grade?.score} of 10. ${grade?.feedback}`;
      return `${tagged("attempt", draft, { also, raw: true })}\n${tagged("feedback", feedback, { also, raw: true })}`;
    });
    const again =
      earlier.length === 0
        ? ""
        : `\n\nThese are your earlier attempts, each with what was said of it:\n\n${earlier.join("\n\n")}\n\nWrite a better one: mend what was found, and keep what was good.`;
    const reply = await llm(`${tagged("task", task, { also, raw: true })}

Do the task so that the result meets these criteria:

${tagged("criteria", criteria, { also, raw: true })}${again}

Answer with the whole result inside <draft></draft>.`);
    return readTag(reply, "draft", { decode: false }).trim();
  };
}

function gradePrompt(task: string, criteria: string, draft: string): string {
  const also = ["task", "criteria", "draft", "evaluation", "score", "feedback"];
  return `Somebody was given a task and wrote the draft below. Judge it against the criteria alone. You don't write it, you judge it: be exact, and don't be kind.

${tagged("task", task, { also, raw: true })}

${tagged("criteria", criteria, { also, raw: true })}

${tagged("draft", draft, { also, raw: true })}

Go through the criteria one by one first. Then answer in this form. The feedback names what is wrong, where, and what to do about it, so that the writer can act on it. The score is a number from 0 to 10. Say PASS only if all criteria are met and you'd change nothing of weight.

<feedback>what to change</feedback>
<score>number</score>
<evaluation>PASS or NEEDS_IMPROVEMENT</evaluation>`;
}

function reGrade(reply: string): string {
  const also = ["task", "criteria", "draft", "evaluation", "score", "feedback"];
  return `Your last answer could not be read: its evaluation must be PASS or NEEDS_IMPROVEMENT and nothing else, and its score one number from 0 to 10. Answer again, in the form above. Your last answer was:\n\n${tagged("last_answer", reply, { also, raw: true })}`;
}
