/**
 * Evals: the agent is asked a fixed list of questions about this repository, and every answer is graded.
 *
 *   npm run eval         replays the answers that were recorded, and grades them by the files of today
 *   npm run eval:live    asks the API
 *
 * An answer passes if it cites a file that holds the answer, and if all that it cites exists. The list is
 * runners/evals.json: each question with the files that will do, and the share that must pass.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkCitations } from "../patterns/citations.ts";
import { BudgetError } from "../patterns/errors.ts";
import { createRepoTools } from "../patterns/repo-tools.ts";
import { observe } from "../patterns/step.ts";
import type { Tool } from "../patterns/tool.ts";
import { collectTrace } from "../patterns/trace-file.ts";
import { askAboutCode, DENY, ROOT, whyNot } from "./agent.ts";
import { explain, UsageError } from "./shared/explain.ts";
import { openSource, type SourceSettings } from "./shared/source.ts";
import { callsIn, totalsOf } from "./shared/trace.ts";

/** A question, and the files of which one must be cited. */
export interface Question {
  readonly id: string;
  readonly question: string;
  readonly cites: readonly string[];
}

/** The questions, and the share of them that must pass, from 0 to 1. */
export interface Evals {
  readonly share: number;
  readonly questions: readonly Question[];
}

/** What came of a question. */
export interface Outcome {
  readonly id: string;
  readonly verdict: "pass" | "fail" | "skip";
  /** What it cites of the files that hold the answer, or why it failed or was skipped. */
  readonly why: string;
  readonly turns: number;
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** In US dollars; missing where it isn't known. */
  readonly usd?: number;
  /** Of a replay: how many look-ups would give something else today, and how many there are. */
  readonly changed?: readonly [changed: number, all: number];
}

/**
 * Reads the list.
 *
 * @throws {UsageError} It's none.
 */
export function readEvals(file: string | URL = new URL("evals.json", import.meta.url)): Evals {
  try {
    const evals = JSON.parse(readFileSync(file, "utf8")) as Evals; // looked at right below
    const { share, questions } = evals;
    const isShare = typeof share === "number" && share >= 0 && share <= 1;
    if (isShare && questions.every(isQuestion)) return evals;
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
  const form =
    '{ "share": 0.9, "questions": [{ "id": "…", "question": "…?", "cites": ["path"] }] }';
  throw new UsageError(`${file} is no list of evals, which is ${form}`);
}

function isQuestion({ id, question, cites }: Question): boolean {
  return [id, question, ...cites].every((text) => typeof text === "string") && cites.length > 0;
}

/** How to ask. */
export type EvalSettings = Omit<SourceSettings, "file"> & {
  readonly signal?: AbortSignal;
  /** The folder of the recordings. Default: runners/recordings/eval. */
  readonly recordings?: string;
};

const RECORDINGS = fileURLToPath(new URL("recordings/eval", import.meta.url));

/** Asks one question, and grades the answer. Whatever goes wrong is an outcome. */
export async function evaluate(question: Question, settings: EvalSettings): Promise<Outcome> {
  const { id } = question;
  const { mode, recordings = RECORDINGS } = settings;
  const file = join(recordings, `${id}.jsonl`);
  if (mode === "replay" && !existsSync(file)) {
    return { id, verdict: "skip", why: "not recorded", turns: 0, tokensIn: 0, tokensOut: 0 };
  }
  const trace = collectTrace();
  const ending = await observe(trace.onEvent, () => attempt(question, { ...settings, file }));
  const { answered, tokensIn, tokensOut, usd, unpriced } = totalsOf(callsIn(trace.steps()));
  const cost = { turns: answered, tokensIn, tokensOut, ...(unpriced === 0 && { usd }) };
  return { id, ...ending, ...cost };
}

async function attempt(
  question: Question,
  settings: EvalSettings & { readonly file: string },
): Promise<Pick<Outcome, "verdict" | "why" | "changed">> {
  const { mode, signal } = settings;
  const isReplay = mode === "replay";
  try {
    await using source = await openSource({ ...settings, usualModel: "claude-opus-5-5" });
    const { model, door, recorded } = source;
    const present = createRepoTools(ROOT, { deny: DENY });
    const watched = watchTools(recorded(present), present);
    const tools = isReplay ? watched.tools : recorded(present);
    const options = { tools, model, llm: door.llmMessage, signal };
    const result = await askAboutCode(question.question, options);
    await source.keep();
    const grade: Pick<Outcome, "verdict" | "why"> =
      result.status === "answered"
        ? await gradeAnswer(result.answer, question)
        : { verdict: "fail", why: `no answer ${whyNot(result)}` };
    return { ...grade, ...(isReplay && { changed: watched.counts() }) };
  } catch (error) {
    if (signal?.aborted) return { verdict: "skip", why: "stopped" };
    return { verdict: error instanceof BudgetError ? "skip" : "fail", why: explain(error) };
  }
}

/** Whether an answer cites one of the files, and nothing that isn't there. */
async function gradeAnswer(
  answer: string,
  { cites }: Question,
): Promise<Pick<Outcome, "verdict" | "why">> {
  const checked = await checkCitations(answer, ROOT, { deny: DENY });
  const broken = checked.find(({ problem }) => problem);
  if (broken) return { verdict: "fail", why: `cites what isn't there: ${broken.problem}` };
  const found = checked.find(({ path }) => cites.includes(path));
  if (!found) return { verdict: "fail", why: `doesn't cite ${cites.join(" or ")}` };
  return { verdict: "pass", why: found.text };
}

/** Tools that count how often what was recorded isn't what the present tools give. */
function watchTools(recorded: readonly Tool[], present: readonly Tool[]) {
  let [changed, all] = [0, 0];
  const tools = recorded.map((tool, index) => ({
    ...tool,
    run: async (...call: Parameters<Tool["run"]>) => {
      const now = async () => (await present[index]?.run(...call)) ?? "";
      const then = async () => tool.run(...call);
      const [was, is] = await Promise.allSettled([then(), now()]);
      all += 1;
      if (told(was) !== told(is)) changed += 1;
      if (was.status === "rejected") throw was.reason;
      return was.value;
    },
  }));
  return { tools, counts: () => [changed, all] as const };
}

function told(outcome: PromiseSettledResult<string>): string {
  return outcome.status === "fulfilled" ? outcome.value : String(outcome.reason);
}
