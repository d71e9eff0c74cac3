/**
 * The command line of the failure lab.
 *
 *   npm start failures                 runs all of them
 *   npm start failures endless-loop    runs one
 *   npm start failures -- --table      prints them as the README's table
 *
 * Exit code 0: all ran; 1: one couldn't be shown; 2: wrong command.
 */
import { type CodeLine, findLine } from "../failures/code-line.ts";
import type { Failure, Outcome } from "../failures/failure.ts";
import { FAILURES } from "../failures.ts";
import { explain, UsageError } from "./explain.ts";
import { checkKept, readFlags } from "./flags.ts";
import { harmless, type Paint, paintFor, wrap } from "./format.ts";
import type { Output } from "./view.ts";

const FLAGS = {
  json: { type: "boolean", default: false },
  table: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const HELP = `npm start failures [failure …]    make agents fail, and show what catches it; needs no key

Failures: ${[...FAILURES.keys()].join(", ")}

Flags go behind --, as in: npm start failures -- --json
  --json     print what came of each as JSON, a line a failure
  --table    print them as a table in Markdown`;

/** Runs a command line, and gives the exit code. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: Output = process,
): Promise<number> {
  const print = (line: string) => stdout.write(`${line}\n`);
  try {
    checkKept(FLAGS, env, "npm start failures");
    const { values, positionals } = readFlags(argv, FLAGS, "npm start failures -- --help");
    const failures = positionals.length > 0 ? positionals.map(find) : [...FAILURES.values()];
    if (values.help) {
      print(HELP);
      return 0;
    }
    if (values.table) print(TABLE_HEAD);
    for (const failure of failures) {
      if (values.table) print(tableRow(failure, await told(failure)));
      else if (values.json) print(JSON.stringify(await told(failure), replacer));
      else await show(failure, rowsOn(stdout, env));
    }
    return 0;
  } catch (error) {
    stderr.write(`${explain(error)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function find(name: string): Failure {
  const found = FAILURES.get(name);
  if (found) return found;
  const names = [...FAILURES.keys()].join(", ");
  throw new UsageError(`There is no failure "${name}"; there are ${names}`);
}

/** What is told of a failure: but for its symptom, all comes of its runs and of the source. */
interface Told {
  readonly failure: string;
  readonly symptom: string;
  /** With the catch taken out. */
  readonly uncaught: Outcome;
  readonly caught: Outcome;
  /** The turns of the run that was caught, a line each. */
  readonly turns: readonly string[];
  readonly by: readonly CodeLine[];
  readonly leaves?: string;
}

async function told(failure: Failure): Promise<Told> {
  const { name, symptom, catches, leaves } = failure;
  const turns: string[] = [];
  const uncaught = await failure.run(false);
  const caught = await failure.run(true, (line) => turns.push(line));
  const by = catches.map(findLine);
  return { failure: name, symptom, uncaught, caught, turns, by, ...(leaves && { leaves }) };
}

/** A transcript is long, and the turns tell what is in it. An error's own fields aren't enumerable. */
function replacer(key: string, value: unknown): unknown {
  if (key === "transcript") return undefined;
  return value instanceof Error ? { name: value.name, message: value.message } : value;
}

async function show(failure: Failure, { title, row, end }: Rows): Promise<void> {
  title(failure.name, failure.title);
  row("you'd see", failure.symptom);
  for (const line of (await failure.run(false)).words) row("without it", line, "yellow");
  const { words } = await failure.run(true, (line) => row("with it", line, "dim"));
  for (const line of words) row("caught", line, "green");
  for (const { file, line, code } of failure.catches.map(findLine)) {
    row("by", `${file}:${line}  ${code}`);
  }
  if (failure.leaves) row("not caught", failure.leaves);
  end();
}

interface Rows {
  readonly title: (name: string, title: string) => void;
  /** A label that is the one before is left out. */
  readonly row: (label: string, text: string, style?: Parameters<Paint>[0]) => void;
  readonly end: () => void;
}

const LABEL_WIDTH = 12;

/** Rows as they fit a terminal, or whole lines for a pipe. */
function rowsOn(stdout: Output["stdout"], env: NodeJS.ProcessEnv): Rows {
  const paint = paintFor(stdout, env);
  const columns = stdout.isTTY ? stdout.columns || 80 : undefined;
  const shown = (text: string, indent: number) =>
    columns ? wrap(harmless(text), Math.max(columns - indent, 20)) : harmless(text);
  let before = "";
  return {
    title: (name, title) => {
      const whole = shown(`${name}  ${title}`, 0);
      stdout.write(`${paint("bold", name)}${whole.slice(name.length)}\n`);
    },
    row: (label, text, style) => {
      for (const line of shown(text, LABEL_WIDTH).split("\n")) {
        const left = paint("dim", (label === before ? "" : label).padEnd(LABEL_WIDTH));
        stdout.write(`${left}${style ? paint(style, line) : line}\n`);
        before = label;
      }
    },
    end: () => stdout.write("\n"),
  };
}

const TABLE_HEAD = "| failure | what you'd see | what catches it |\n|---|---|---|";

/** Of each outcome the sum, and of each line of code the piece that it's found by. */
function tableRow({ name, title, symptom, catches }: Failure, { uncaught, caught, leaves }: Told) {
  const lines = catches.map(({ file, code }) => `[${codeSpan(code)}](${file})`);
  const cells = [
    [`[${title}](runners/failures/${name}.ts)`],
    [symptom, codeSpan(uncaught.words[0])],
    [codeSpan(caught.words[0]), `by ${lines.join(" and ")}`, leaves && `Not caught: ${leaves}`],
  ];
  const shown = cells.map((parts) => parts.filter(Boolean).join("<br>").replaceAll("|", "\\|"));
  return `| ${shown.join(" | ")} |`;
}

function codeSpan(text = ""): string {
  return text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``;
}
