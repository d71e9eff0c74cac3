/**
 * The command line of the agent.
 *
 *   npm run agent -- --root ../some-repo "Where is the retry limit set?"
 *   npm run agent -- --selftest        proves without a key that no tool leaves the folder
 *
 * A line a turn goes to stderr, the answer to stdout. Exit code 0: answered; 2: no answer; 1: failed, or
 * with --check not accepted; 130: stopped.
 */
import { text } from "node:stream/consumers";
import type { AgentOptions, AgentResult } from "../../patterns/agent.ts";
import type { TerminalInput } from "../../patterns/ask-terminal.ts";
import { type AnswerInput, type AnswerRound, reviseAnswer } from "../../patterns/citations.ts";
import type { LlmCall } from "../../patterns/llm-call.ts";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { observe } from "../../patterns/step.ts";
import { collectTrace } from "../../patterns/trace-file.ts";
import { askAboutCode, whyNot } from "../agent.ts";
import { explain, UsageError } from "./explain.ts";
import { checkKept, readBudget, readCount, readFlags, readModel, readPath } from "./flags.ts";
import { harmless, harmlessLine } from "./format.ts";
import { interruptible } from "./interrupt.ts";
import { selfTest } from "./self-test.ts";
import { openSource } from "./source.ts";
import { openTraceOutput, type WriteTrace } from "./trace-output.ts";
import { turnLines } from "./turn-lines.ts";
import type { Output } from "./view.ts";

const FLAGS = {
  root: { type: "string", default: "." },
  "max-turns": { type: "string" },
  model: { type: "string" },
  budget: { type: "string" },
  trace: { type: "string" },
  check: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  selftest: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `npm run agent -- [--root <folder>] "question"   answer a question about a folder of code
npm run agent -- --selftest                    prove that no tool leaves the folder; needs no key

  --root <folder>      the folder, default the current one
  --max-turns <count>  the most replies of the model, default 12
  --budget <dollars>   the most to spend, default no limit
  --model <id>         the model (else ANTHROPIC_MODEL, else claude-opus-5-5)
  --check              compare the answer with the lines that it cites, and mend it once if need be;
                       done by the same model, else by claude-sonnet-5-5
  --trace <file>       write the run with its prompts and replies, for npm run gallery -- <file>
  --json               print the whole result as JSON`;

/** Runs a command line, and gives the exit code. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: Output = process,
  stdin: TerminalInput = process.stdin,
): Promise<number> {
  const print = (line: string) => stdout.write(`${line}\n`);
  const note = (line: string) => stderr.write(`${harmlessLine(line)}\n`);
  return interruptible(async (signal) => {
    try {
      checkKept(FLAGS, env, 'npm run agent "Where is …?"');
      const { values, positionals } = readFlags(argv, FLAGS, "npm run agent -- --help");
      if (values.help) {
        print(HELP);
        return 0;
      }
      if (values.selftest) return await selfTest(print);
      const question = await readQuestion(positionals, stdin);
      const { trace } = values;
      const write = trace === undefined ? undefined : await openTraceOutput(readPath(trace, env));
      const perform = () => observe(turnLines(note), () => run(question, values, env, signal));
      const report = write ? await traced(question, perform, write) : await perform();
      const { code, result, answer, notes } = report;
      if (values.json) print(JSON.stringify(result));
      else if (answer !== undefined) print(harmless(answer));
      for (const line of notes) note(line);
      return code;
    } catch (error) {
      note(signal.aborted ? "Stopped" : explain(error));
      return signal.aborted ? 130 : 1;
    }
  });
}

/** Keeps the run in a file, as far as it came. */
async function traced(
  title: string,
  perform: () => Promise<Report>,
  write: WriteTrace,
): Promise<Report> {
  const trace = collectTrace();
  let result: unknown;
  try {
    const report = await observe(trace.onEvent, perform);
    result = report.result;
    return report;
  } finally {
    if (trace.steps().length > 0) await write(trace, { origin: "live", title, result });
  }
}

async function readQuestion(positionals: readonly string[], stdin: TerminalInput): Promise<string> {
  const piped = positionals.length > 0 || stdin.isTTY ? "" : await text(stdin);
  const question = positionals.join(" ").trim() || piped.trim();
  if (question) return question;
  throw new UsageError('Ask something: npm run agent -- --root . "Where is …?"');
}

type Values = ReturnType<typeof readFlags<typeof FLAGS>>["values"];

async function run(
  question: string,
  values: Values,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Report> {
  const maxTurns = readCount("max-turns", values["max-turns"]);
  const budget = readBudget(values.budget);
  const model = readModel(values.model, env);
  const root = readPath(values.root, env);
  const tools = createRepoTools(root);
  await using source = await openSource({ mode: "live", model, budget });
  const { llmCall, llmMessage } = source.door;
  const options = { tools, maxTurns, model, llm: llmMessage, signal };
  if (values.check) return await askAndCheck(question, root, options, llmCall);
  return reportOf(await askAboutCode(question, options));
}

/** What is printed in the end. */
interface Report {
  readonly code: number;
  /** For --json. */
  readonly result: unknown;
  readonly answer?: string;
  readonly notes: readonly string[];
}

function reportOf(result: AgentResult): Report {
  if (result.status === "answered") return { code: 0, result, answer: result.answer, notes: [] };
  const stopped = `Agent stopped: no final answer ${whyNot(result)}`;
  const said = "text" in result && result.text.trim() ? [`Until then it said: ${result.text}`] : [];
  return { code: 2, result, notes: [...said, stopped] };
}

/** The agent goes on from its own transcript when its answer is sent back. */
async function askAndCheck(
  question: string,
  root: string,
  options: AgentOptions,
  llm: LlmCall,
): Promise<Report> {
  const runs: AgentResult[] = [];
  let answer: string | undefined;
  const write = async ({ feedback = "" }: AnswerInput) => {
    const { transcript } = runs.at(-1) ?? {};
    const goOn = transcript && [...transcript, { role: "user" as const, content: feedback }];
    const run = await askAboutCode(goOn ?? question, options);
    runs.push(run);
    if (run.status !== "answered") throw new NoAnswer(reportOf(run).notes.join(" "));
    answer = run.answer;
    return run.answer;
  };
  try {
    const checked = await reviseAnswer(question, {
      root,
      answer: write,
      llm,
      signal: options.signal,
    });
    const { status, rounds } = checked;
    const notes = rounds.map(roundLine);
    const result = { ...checked, runs };
    if (status === "accepted") return { code: 0, result, answer: checked.answer, notes };
    const not = `The answer was not accepted: ${status}`;
    return { code: 1, result, answer: checked.answer, notes: [...notes, not] };
  } catch (error) {
    const [first] = runs;
    if (options.signal?.aborted || first === undefined) throw error;
    if (answer === undefined) return reportOf(first);
    // It is paid for, if not checked.
    const why = error instanceof NoAnswer ? error.message : explain(error);
    const result = { status: "unchecked", answer, why, runs };
    return { code: 1, result, answer, notes: [why, "The answer was not accepted: unchecked"] };
  }
}

/** The agent ended without an answer; the message says why. */
class NoAnswer extends Error {}

/** `check 1 | NEEDS_IMPROVEMENT, 6 of 10 | what is wrong`. */
function roundLine({ rejected, grade }: AnswerRound, index: number): string {
  const said = grade ? `${grade.evaluation}, ${grade.score} of 10 | ${grade.feedback}` : rejected;
  return `check ${index + 1} | ${said ?? "not graded"}`;
}
