/**
 * The command line of the evals.
 *
 *   npm run eval                           replays what was recorded; the rest is skipped
 *   npm run eval:live -- --record          asks the API, and records
 *   npm -s run eval -- --json > old.json   keeps a run, for npm run eval -- --compare old.json
 *
 * Exit code 0: the share passed that runners/evals.json sets; 1: it didn't; 2: wrong command; 130: stopped.
 */
import { readFileSync } from "node:fs";
import { createSlots } from "../../patterns/door/send.ts";
import { evaluate, type Outcome, type Question, readEvals } from "../eval.ts";
import { explain, UsageError } from "./explain.ts";
import { checkKept, readBudget, readFlags, readModel, readPath } from "./flags.ts";
import { interruptible } from "./interrupt.ts";
import type { Output } from "./view.ts";
import { counted, dollars } from "./words.ts";

const FLAGS = {
  live: { type: "boolean", default: false },
  record: { type: "boolean", default: false },
  transcribed: { type: "boolean", default: false },
  model: { type: "string" },
  budget: { type: "string" },
  json: { type: "boolean", default: false },
  compare: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `npm run eval [question …]         replay the recorded answers and grade them; needs no key
npm run eval:live [question …]    ask the API

Flags go behind --, as in: npm run eval early-vote -- --json
  --json               print the run as JSON
  --compare <file>     compare with an earlier run's JSON, question by question
  --record             live: record the answers for npm run eval
  --model <id>         live: the model (else ANTHROPIC_MODEL, else claude-opus-5-5)
  --budget <dollars>   live: the most to spend on all of them
  --transcribed        live: the replies don't come from the API, so times are to be estimated`;

/** How many questions are under way at once. */
const AT_ONCE = 4;

/** A run, as it's kept and compared. */
interface Run {
  readonly date: string;
  readonly outcomes: readonly Outcome[];
}

/** Runs a command line, and gives the exit code. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: Output = process,
): Promise<number> {
  const print = (text: string) => stdout.write(`${text}\n`);
  return interruptible(async (signal) => {
    try {
      checkKept(FLAGS, env, "npm run eval");
      const { values, positionals } = readFlags(argv, FLAGS, "npm run eval -- --help");
      if (values.help) {
        print(HELP);
        return 0;
      }
      return await run(values, positionals, env, signal, print);
    } catch (error) {
      stderr.write(`${explain(error)}\n`);
      return error instanceof UsageError ? 2 : 1;
    }
  });
}

type Values = ReturnType<typeof readFlags<typeof FLAGS>>["values"];

async function run(
  values: Values,
  ids: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  print: (text: string) => void,
): Promise<number> {
  const { share, questions } = readEvals();
  const asked = ids.length === 0 ? questions : ids.map((id) => find(questions, id));
  const { json, compare } = values;
  if (json && compare !== undefined) {
    throw new UsageError("--compare prints a table, and --json a run: one of the two");
  }
  const before = compare === undefined ? undefined : readRun(readPath(compare, env));
  const settings = { ...readSettings(values, env), signal };

  const slots = createSlots(AT_ONCE);
  const running = asked.map(async (question) => {
    await slots.take(undefined);
    try {
      return await evaluate(question, settings);
    } finally {
      slots.release();
    }
  });
  const outcomes: Outcome[] = [];
  for (const [index, outcome] of running.entries()) {
    outcomes[index] = await outcome;
    if (!json) print(lineOf(await outcome));
  }
  if (json) print(JSON.stringify({ date: new Date().toISOString(), outcomes }));
  else print(`\n${summaryOf(outcomes, share)}`);
  if (before) print(`\n${comparisonOf(before, outcomes).join("\n")}`);
  if (signal.aborted) return 130;
  return shareOf(outcomes) >= share ? 0 : 1;
}

function find(questions: readonly Question[], id: string): Question {
  const found = questions.find((question) => question.id === id);
  if (found) return found;
  const ids = questions.map(({ id }) => id).join(", ");
  throw new UsageError(`There is no question "${id}"; there are ${ids}`);
}

function readSettings(values: Values, env: NodeJS.ProcessEnv) {
  const { live, record, transcribed } = values;
  for (const flag of ["record", "transcribed", "model", "budget"] as const) {
    if (values[flag] && !live) throw new UsageError(`--${flag} goes with npm run eval:live`);
  }
  return {
    mode: record ? "record" : live ? "live" : "replay",
    model: live ? readModel(values.model, env) : undefined,
    budget: readBudget(values.budget),
    origin: transcribed ? "transcribed" : "api",
  } as const;
}

function lineOf({ id, verdict, why, turns, changed, ...cost }: Outcome): string {
  const figures = turns > 0 ? `${counted(turns, "turn")}  ${costOf(cost)}  ` : "";
  const [aged, all] = changed ?? [0, 0];
  const note = aged > 0 ? `  (${aged} of ${counted(all, "look-up")} would differ today)` : "";
  return `${verdict}  ${id.padEnd(16)}  ${figures}${why}${note}`;
}

function summaryOf(outcomes: readonly Outcome[], share: number): string {
  const count = (verdict: Outcome["verdict"]) =>
    outcomes.filter((outcome) => outcome.verdict === verdict).length;
  const sum = (of: (outcome: Outcome) => number) =>
    outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const passed = Number.isNaN(shareOf(outcomes)) ? "none graded" : percent(shareOf(outcomes));
  const total = costOf({
    tokensIn: sum(({ tokensIn }) => tokensIn),
    tokensOut: sum(({ tokensOut }) => tokensOut),
    ...(outcomes.every(isPriced) && { usd: sum(({ usd }) => usd ?? 0) }),
  });
  return `${count("pass")} passed, ${count("fail")} failed, ${count("skip")} skipped: ${passed} (${percent(share)} needed), ${counted(
    sum(({ turns }) => turns),
    "turn",
  )}, ${total}`;
}

/** Whether it's known what it cost; what called nothing cost nothing. */
function isPriced({ usd, tokensIn }: Outcome): boolean {
  return usd !== undefined || tokensIn === 0;
}

/** Of those that were graded; `NaN` if none was. */
function shareOf(outcomes: readonly Outcome[]): number {
  const graded = outcomes.filter(({ verdict }) => verdict !== "skip");
  return graded.filter(({ verdict }) => verdict === "pass").length / graded.length;
}

/** A line for each question of this run, with `!` where the verdict is another. */
function comparisonOf(before: Run, now: readonly Outcome[]): string[] {
  const lines = now.map((outcome) => {
    const then = before.outcomes.find(({ id }) => id === outcome.id);
    const mark = then && then.verdict !== outcome.verdict ? "!" : " ";
    return `${mark} ${outcome.id.padEnd(16)}  ${briefly(then).padEnd(44)}  ${briefly(outcome)}`;
  });
  return [`  ${"question".padEnd(16)}  ${before.date.slice(0, 16).padEnd(44)}  now`, ...lines];
}

function briefly(outcome: Outcome | undefined): string {
  if (!outcome) return "-";
  const { verdict, turns, ...cost } = outcome;
  return turns > 0 ? `${verdict}  ${counted(turns, "turn")}  ${costOf(cost)}` : verdict;
}

function costOf({ tokensIn, tokensOut, usd }: Pick<Outcome, "tokensIn" | "tokensOut" | "usd">) {
  const money = usd === undefined ? "$ unknown" : dollars(usd);
  return `${tokensIn.toLocaleString("en")} in ${tokensOut.toLocaleString("en")} out  ${money}`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function isOutcome({ id, verdict, turns, tokensIn, tokensOut, usd = 0 }: Outcome): boolean {
  const isNamed = typeof id === "string" && typeof verdict === "string";
  return isNamed && [turns, tokensIn, tokensOut, usd].every((count) => typeof count === "number");
}

function readRun(file: string): Run {
  try {
    const run = JSON.parse(readFileSync(file, "utf8")) as Run; // what --json has printed
    if (typeof run.date === "string" && run.outcomes.every(isOutcome)) return run;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  throw new UsageError(`${file} is not a run: make one with npm -s run eval -- --json > old.json`);
}
