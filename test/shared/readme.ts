/**
 * Fills the README with what it shows: files, outputs and numbers of lines. Nothing in it is a copy.
 *
 *     npm run readme    writes it; test/readme.test.ts checks that there was nothing to write
 */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { main as agent } from "../../runners/shared/agent-cli.ts";
import { linesOfCode } from "../../runners/shared/lines-of-code.ts";
import { exercise } from "./exercise.ts";
import { run } from "./run.ts";

const ROOT = new URL("../../", import.meta.url);
export const README = new URL("README.md", ROOT);
export const SPANISH = new URL("README.es.md", ROOT);

/** The text with everything that is shown in it put in anew. */
export async function fillIn(text: string): Promise<string> {
  let filled = await replaceEach(text, FILE, async ([, file = "", language = ""]) => {
    const source = await readFile(new URL(file, ROOT), "utf8");
    const shown = source.trimEnd().replaceAll("../../patterns/", "./patterns/");
    return `<!-- file: ${file} -->\n\`\`\`${language}\n${shown}\n\`\`\``;
  });
  filled = await replaceEach(filled, OUTPUT, async ([, command = ""]) => {
    return `<!-- output: ${command} -->\n\`\`\`\n${await outputOf(command)}\n\`\`\``;
  });
  filled = await replaceEach(filled, TABLE, async ([, command = ""]) => {
    return `<!-- table: ${command} -->\n\n${await outputOf(command)}\n`;
  });
  filled = await replaceEach(filled, EXERCISE, async ([, start = "", file = "", from, to]) => {
    return `${start}\`${await exercise(file, from ?? "", to ?? "")}\``;
  });
  return replaceEach(filled, ROW, async ([, link = "", file = ""]) => {
    return `${link} | ${linesOfCode(await readFile(new URL(file, ROOT), "utf8"))} |`;
  });
}

/** The Spanish text with everything that is shown in it as it is in the English one. */
export function inStep(spanish: string, english: string): string {
  let text = spanish;
  for (const shown of [FENCE, PRINTED, COUNTED, SEEN]) {
    const parts = english.matchAll(shown);
    text = text.replace(shown, (old) => parts.next().value?.[0] ?? old);
  }
  return text;
}

/** A block of code. */
const FENCE = /^```[\s\S]*?^```$/gm;
/** A table that a command prints. */
const PRINTED = /(?<=<!-- table: .+ -->\n\n)(?:\|.*\n)*/g;
/** What is counted or seen in a row, with what it's of. */
const COUNTED = /\[\w+\.ts\]\(patterns\/\w+\.ts\) \| \d+ \|/g;
const SEEN = /\(runners\/[\w/]+\.ts\) \| `.+?` → `.+?` \| `[^`]*` \|/g;

const FILE = /<!-- file: (\S+) -->\n```(\w*)\n[\s\S]*?```/g;
const OUTPUT = /<!-- output: (.+?) -->\n```\n[\s\S]*?```/g;
/** What a command prints is Markdown itself. */
const TABLE = /<!-- table: (.+?) -->\n\n(?:\|.*\n)*/g;
/** A row of the table: the link to a module, and its number of lines. */
const ROW = /(\[\w+\.ts\]\((patterns\/\w+\.ts)\)) \| \d+ \|/g;

/** A row of an exercise: the file, what becomes what in it, and what is seen then. */
const EXERCISE = /(\| \[[\w/]+\.ts\]\((runners\/[\w/]+\.ts)\) \| `(.+?)` → `(.+?)` \| )`[^`]*`/g;

/** What an npm command prints into a pipe. */
async function outputOf(command: string): Promise<string> {
  const { scripts } = JSON.parse(await readFile(new URL("package.json", ROOT), "utf8"));
  const [, script = "", args = ""] = /^npm (?:run )?(\w+) ?(.*)$/.exec(command) ?? [];
  const [, started = ""] = /start\.ts (.+)/.exec(scripts[script]) ?? [];
  // npm takes the -- for itself.
  const argv = `${started} ${args.replace("-- ", "")}`.trim().split(" ");
  const isAgent = argv[0] === "agent";
  const { code, stdout, stderr } = await (isAgent ? run(argv.slice(1), {}, agent) : run(argv));
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout.trimEnd();
}

async function replaceEach(
  text: string,
  pattern: RegExp,
  make: (match: RegExpMatchArray) => Promise<string>,
): Promise<string> {
  let result = "";
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    result += text.slice(end, match.index) + (await make(match));
    end = match.index + match[0].length;
  }
  return result + text.slice(end);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const english = await fillIn(await readFile(README, "utf8"));
  await writeFile(README, english);
  await writeFile(SPANISH, inStep(await readFile(SPANISH, "utf8"), english));
}
