/**
 * The command line of the agent.
 *
 *   npm run agent -- --root ../some-repo "Where is the retry limit set?"
 *   npm run agent -- --selftest        proves without a key that no tool leaves the folder
 *
 * A line a turn goes to stderr, the answer to stdout. Exit code 0: answered; 2: no answer; 1: failed; 130: stopped.
 */
import { text } from "node:stream/consumers";
import { createBudget } from "../../patterns/layers/budget.ts";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { observe } from "../../patterns/step.ts";
import { askAboutCode, whyNot } from "../agent.ts";
import { explain, UsageError } from "./explain.ts";
import { checkKept, readCount, readFlags, readNumber } from "./flags.ts";
import { selfTest } from "./self-test.ts";
import { openSource } from "./source.ts";
import { turnLines } from "./turn-lines.ts";

const FLAGS = {
  root: { type: "string", default: "." },
  "max-turns": { type: "string" },
  model: { type: "string" },
  budget: { type: "string" },
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
  --json               print the whole result as JSON`;

const interrupt = new AbortController();
process.once("SIGINT", () => interrupt.abort(new Error("Stopped")));

try {
  process.exitCode = await run();
} catch (error) {
  const stopped = interrupt.signal.aborted;
  process.stderr.write(`${stopped ? "Stopped" : explain(error)}\n`);
  process.exitCode = stopped ? 130 : 1;
}

async function run(): Promise<number> {
  checkKept(FLAGS, process.env, 'npm run agent "Where is …?"');
  const { values, positionals } = readFlags(
    process.argv.slice(2),
    FLAGS,
    "npm run agent -- --help",
  );
  if (values.help) {
    print(HELP);
    return 0;
  }
  if (values.selftest) return selfTest(print);

  const maxTurns = readCount("max-turns", values["max-turns"]);
  const usd = readNumber("budget", values.budget, Number.MIN_VALUE);
  const piped = positionals.length > 0 || process.stdin.isTTY ? "" : await text(process.stdin);
  const question = positionals.join(" ").trim() || piped.trim();
  if (!question) throw new UsageError('Ask something: npm run agent -- --root . "Where is …?"');

  const model = values.model ?? (process.env.ANTHROPIC_MODEL || undefined);
  const budget = usd === undefined ? undefined : createBudget({ usd });
  await using source = await openSource({ mode: "live", model, budget });
  const options = {
    tools: createRepoTools(values.root),
    maxTurns,
    model,
    llm: source.door.llmMessage,
    signal: interrupt.signal,
  };
  const result = await observe(
    turnLines((line) => process.stderr.write(`${line}\n`)),
    () => askAboutCode(question, options),
  );
  if (values.json) print(JSON.stringify(result));
  else if (result.status === "answered") print(result.answer);
  if (result.status === "answered") return 0;
  process.stderr.write(`Agent stopped: no final answer ${whyNot(result)}\n`);
  return 2;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
