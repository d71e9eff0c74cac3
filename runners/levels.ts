/**
 * One question, asked three ways: by the loop, by the SDK's tool runner, and by the Claude Agent SDK.
 * Each takes more off your hands, and leaves less in them.
 *
 *     question ─┬─► the loop by hand ─► your turns, your tools
 *               ├─► the tool runner ──► the SDK's turns, your tools
 *               └─► the Agent SDK ────► its turns, its tools
 *
 * Use when you choose how much of an agent to write yourself: by hand, each limit ends in a status that
 * you can act on; the tool runner ends without a word, and the Agent SDK is a process of 400 MB.
 *
 * Costs what three agents cost, one after the other.
 *
 *   npm start levels                       replays the recording of the first two
 *   npm run live levels "<question>"       asks all three; the third if it's installed
 *
 * The third is a process of its own, where no recording sees its calls. What is left to keep of each is
 * counted in the files that it names.
 *
 * From effective-agents 0.1.0: runners/levels.ts
 */
import { BudgetError, RecordingError } from "../patterns/errors.ts";
import { observe, runPattern, step } from "../patterns/step.ts";
import { collectTrace } from "../patterns/trace-file.ts";
import { agentSdk } from "./levels/agent-sdk.ts";
import type { Level, Outcome } from "./levels/level.ts";
import { loop } from "./levels/loop.ts";
import { toolRunner } from "./levels/tool-runner.ts";
import { reason } from "./shared/explain.ts";
import { figuresOf } from "./shared/format.ts";
import { defineJob, type JobContext } from "./shared/job.ts";
import { type Kept, keptWith } from "./shared/lines-of-code.ts";
import { type TableRow, table } from "./shared/table.ts";
import { callsIn, totalsOf } from "./shared/trace.ts";
import { counted } from "./shared/words.ts";

const LEVELS: readonly Level[] = [loop, toolRunner, agentSdk];

const QUESTION =
  "What does the model get when it calls a tool that doesn't exist, and does the run go on?";

/** A level: what is said of it, what it leaves to keep, and what came of it. */
interface Row extends Omit<Level, "ask">, Kept, Outcome {}

export const job = defineJob({
  title: "one question asked three ways, and what each takes off your hands",
  input: QUESTION,
  model: "claude-opus-5-5",
  run: (question, context) =>
    step("levels", async () => {
      const rows: Row[] = [];
      for (const { ask, ...level } of LEVELS) {
        const kept = await keptWith(`runners/levels/${level.name}.ts`);
        const outcome = await outcomeOf({ ask, ...level }, question, context);
        rows.push({ ...level, ...kept, ...outcome });
      }
      return rows;
    }),
  tell: (rows, columns) => {
    const answers = rows.map(({ title, answer, status }) => {
      return `${title.toUpperCase()}\n${answer ?? status}`;
    });
    return [...answers, compared(rows, columns)].join("\n\n");
  },
});

async function outcomeOf(level: Level, question: string, context: JobContext): Promise<Outcome> {
  if (level.isApart && context.mode !== "live") {
    return { status: "not recorded: it's a process of its own, and is asked live only" };
  }
  const trace = collectTrace();
  const ask = () => level.ask(question, context);
  try {
    const outcome = await observe(trace.onEvent, () => runPattern(level.name, ask, context.signal));
    return { ...(!level.isApart && { totals: totalsOf(callsIn(trace.steps())) }), ...outcome };
  } catch (error) {
    context.signal?.throwIfAborted();
    if (error instanceof RecordingError) throw error;
    // What the others have answered is paid for.
    const why =
      error instanceof BudgetError ? ` within the budget (${error.message})` : `: ${reason(error)}`;
    const status = `no answer${why}`;
    return { status, totals: totalsOf(callsIn(trace.steps())) };
  }
}

/** What each leaves to keep, what its run came to, and what it does about limits and errors. */
function compared(rows: readonly Row[], columns: number): string {
  const all = rows[0]?.lines ?? 0;
  const kept = ({ lines, files }: Row) => {
    const fewer = lines < all ? `, ${(all - lines).toLocaleString("en")} fewer` : "";
    return `${lines.toLocaleString("en")} in ${counted(files.length, "file")}${fewer}`;
  };
  const ended = ({ status, isApart, totals }: Row) =>
    isApart && totals ? `${status}; not in the sum below` : status;
  const figure = (name: "calls" | "tokens" | "cost") => {
    return rows.map(({ totals }) => (totals ? figuresOf(totals)[name] : "not recorded"));
  };
  const cells: TableRow[] = [
    ["lines of code", ...rows.map(kept)],
    ["calls", ...figure("calls")],
    ["tokens", ...figure("tokens")],
    ["cost", ...figure("cost")],
    ["limits", ...rows.map(({ limits }) => limits)],
    ["errors", ...rows.map(({ errors }) => errors)],
    ["status", ...rows.map(ended)],
  ];
  const heads = rows.map(({ title }) => title);
  return table(heads, cells, columns);
}
