/**
 * The shadcn registry: which files go into an app with a pattern, and the line in each that says where
 * it's from.
 *
 *     npm run registry    writes both; test/registry.test.ts checks that there was nothing to write
 *
 * An item is a pattern with its test, and every file that these import. shadcn lets an item name others
 * that it needs in `registryDependencies`, but none of the names fits all the ways to add an item. A plain
 * `door` is looked for at ui.shadcn.com. `./door.json` is read from the app's own folder, wherever the item
 * came from. `owner/repo/door` is an address: a clone or a fork would fetch it from elsewhere, and
 * `owner/repo/route#v1` would come with the newest door. So an item holds all of its files. What two items
 * share is the same file in the same place, and is skipped the second time.
 */
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import { makeGuides } from "./guides.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What can be added: a module, whose first sentence describes the item, and what nothing imports. */
const PATTERNS: Readonly<Record<string, readonly string[]>> = {
  chain: ["patterns/chain.ts", "test/chain.test.ts"],
  route: ["patterns/route.ts", "test/route.test.ts"],
  section: ["patterns/section.ts", "test/section.test.ts"],
  vote: ["patterns/vote.ts", "test/vote.test.ts"],
  orchestrate: ["patterns/orchestrate.ts", "test/orchestrate.test.ts"],
  refine: ["patterns/refine.ts", "test/refine.test.ts"],
  agent: ["patterns/agent.ts", "test/agent.test.ts", "test/tool-calls.test.ts"],
  subagent: ["patterns/subagent.ts", "test/subagent.test.ts"],
  context: ["patterns/context.ts", "test/context.test.ts"],
  memory: ["patterns/memory.ts", "test/memory.test.ts"],
  tools: [
    "patterns/repo-tools.ts",
    "test/repo-tools.test.ts",
    "test/repo-tools-glob.test.ts",
    "test/repo-tools-sandbox.test.ts",
  ],
  citations: ["patterns/citations.ts", "test/citations.test.ts", "test/citations-find.test.ts"],
  approval: ["patterns/approve.ts", "patterns/ask-terminal.ts", "test/approve.test.ts"],
  budget: ["patterns/layers/budget.ts", "test/budget.test.ts", "test/cost.test.ts"],
  recording: [
    "patterns/recording.ts",
    "patterns/recorded-tools.ts",
    "patterns/trace-file.ts",
    "test/recording.test.ts",
    "test/recording-order.test.ts",
    "test/recorded-tools.test.ts",
  ],
  door: [
    "patterns/llm-call.ts",
    "test/llm-call.test.ts",
    "test/faults.test.ts",
    "test/fan-out.test.ts",
    "test/step.test.ts",
  ],
  "tagged-text": ["patterns/xml.ts", "test/xml.test.ts", "test/fold.test.ts"],
};

/** What runs a single runner. */
const ONE = "runners/shared/one.ts";

const WORKFLOWS = ["chain", "route", "section", "vote", "orchestrate", "refine"];
const AGENTS = ["agent", "subagent", "levels", "refund"];

/** Each runner is an item too, with its recording. */
const RUNNERS = [...WORKFLOWS, ...AGENTS].map((name) => {
  return [
    `${name}-runner`,
    [`runners/${name}.ts`, ONE, `runners/recordings/${name}.jsonl`],
  ] as const;
});

const ITEMS = [...Object.entries(PATTERNS), ...RUNNERS];

/** One item, as shadcn reads it. */
export interface Item {
  readonly name: string;
  readonly type: "registry:item";
  readonly description: string;
  readonly dependencies: readonly string[];
  readonly devDependencies: readonly string[];
  readonly files: readonly File[];
  /** Printed once it has been added. */
  readonly docs: string;
}

interface File {
  readonly path: string;
  readonly type: "registry:file";
  /** Where it goes in the app: under `src`, if the app has such a folder. */
  readonly target: string;
}

/** What of package.json is read here. */
export interface Package {
  readonly name: string;
  readonly version: string;
  /** The repository's URL on GitHub. Without one, a copy names the package only. */
  readonly repository?: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** What is written, by path: registry.json, what coding agents read, and every file in it that has changed. */
export async function makeRegistry(): Promise<ReadonlyMap<string, string>> {
  const about: Package = JSON.parse(await read("package.json"));
  const items = await Promise.all(ITEMS.map(([name, files]) => makeItem(name, files, about)));
  const registry = {
    $schema: "https://ui.shadcn.com/schema/registry.json",
    name: about.name,
    // shadcn wants one.
    homepage: about.repository ?? "https://www.anthropic.com/engineering/building-effective-agents",
    items,
  };
  const modules = Object.entries(PATTERNS).map(([name, [module = ""]]) => ({ name, module }));
  const made = new Map([
    ["registry.json", `${toJson(registry)}\n`],
    ...(await makeGuides(modules)),
  ]);
  for (const { path } of items.flatMap(({ files }) => files)) {
    if (path.endsWith(".ts")) made.set(path, withOrigin(await read(path), path, about));
  }
  return made;
}

const SUFFIXES = `Imports end in .ts: in tsconfig.json set "allowImportingTsExtensions": true or, where tsc writes the JavaScript, "rewriteRelativeImportExtensions": true.`;

/** With each file on one line. */
function toJson(registry: object): string {
  return JSON.stringify(registry, null, 2).replace(
    /\{\s+("path".*)\s+(.*)\s+(.*)\s+\}/g,
    "{ $1 $2 $3 }",
  );
}

async function makeItem(name: string, own: readonly string[], about: Package): Promise<Item> {
  const imported = await Promise.all(own.map(importsOf));
  const files = [...new Set([...own, ...imported.flat()])].sort();
  const tests = own.filter((path) => path.startsWith("test/")).map(nameOf);
  const [module = ""] = own;
  const next =
    tests.length > 0
      ? `Its test needs no key: npx vitest run ${tests.join(" ")}`
      : `Replay it without a key: npx tsx runners/shared/one.ts ${nameOf(module)} (src/runners/shared/one.ts, if your app has a folder src)`;
  return {
    name,
    type: "registry:item",
    description: firstSentence(await read(module)),
    ...(await packagesOf(files, about)),
    files: files.map((path) => ({ path, type: "registry:file", target: path })),
    docs: `${SUFFIXES}\n${next}`,
  };
}

/** The npm packages that files import: what the patterns need to run, and what only tests and runners do. */
async function packagesOf(files: readonly string[], { dependencies, devDependencies }: Package) {
  const run = new Set<string>();
  const develop = new Set<string>();
  const { tsx } = devDependencies;
  for (const path of files) {
    for (const specifier of specifiersIn(await read(path))) {
      const [name = ""] = /^(@[^/]+\/)?[^/]+/.exec(specifier) ?? [];
      const range = dependencies[name] ?? devDependencies[name];
      // An app keeps the types of the Node that it has.
      if (name.startsWith("node:")) develop.add("@types/node");
      else if (range) (path.startsWith("patterns/") ? run : develop).add(`${name}@${caret(range)}`);
    }
    // Nothing imports what runs it.
    if (path === ONE) develop.add(`tsx@${tsx}`);
  }
  return {
    dependencies: [...run].sort(),
    devDependencies: [...develop].filter((name) => !run.has(name)).sort(),
  };
}

/** All files that a file imports by a relative path, directly or not, by their paths in the project. */
export async function importsOf(path: string): Promise<string[]> {
  const seen = new Set([path]);
  // What is added to a set while it's iterated over is visited too.
  for (const file of seen) {
    const source = await read(file).catch(() => "");
    for (const specifier of specifiersIn(source)) {
      if (specifier.startsWith(".")) seen.add(normalize(join(dirname(file), specifier)));
    }
  }
  seen.delete(path);
  return [...seen].sort();
}

function specifiersIn(source: string): string[] {
  const found = source.matchAll(/(?:from|import\(|import) ?"([^"]+)"/g);
  return [...found].map(([, specifier = ""]) => specifier);
}

/** The source, with the last line of its first comment saying where it's from. */
export function withOrigin(
  source: string,
  path: string,
  { name, version, repository }: Package,
): string {
  const end = source.indexOf("*/");
  if (!source.startsWith("/** ") && !source.startsWith("/**\n")) {
    throw new Error(
      `${path} must begin with a comment that says what it is: it's copied into apps`,
    );
  }
  const [first = "", ...lines] = source.slice(0, end).trimEnd().split("\n");
  const comment = first === "/**" ? lines : [first.replace("/**", " *"), ...lines];
  const kept = comment.filter((line) => !line.startsWith(` * From ${name} `));
  while (kept.at(-1) === " *") kept.pop();
  // What goes along, and where it's from, are one paragraph.
  if (!kept.some((line) => line.startsWith(" * Copy along:"))) kept.push(" *");
  const place = repository ? ` of ${repository}` : "";
  kept.push(` * From ${name} ${version}: ${path}${place}`);
  return `/**\n${kept.join("\n")}\n ${source.slice(end)}`;
}

function firstSentence(source: string): string {
  const comment = source.slice(0, source.indexOf("*/")).replace(/^(\/\*\*| \*) ?/gm, "");
  const [sentence = ""] = /^.*?\.(?=\s|$)/s.exec(comment.trim()) ?? [];
  return sentence.replaceAll("\n", " ");
}

function nameOf(path: string): string {
  return path.replace(/^.*\/|(\.test)?\.ts$/g, "");
}

/** What is pinned here needn't be in an app. */
function caret(range: string): string {
  return /^\d/.test(range) ? `^${range}` : range;
}

function read(path: string): Promise<string> {
  return readFile(join(ROOT, path), "utf8");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of await makeRegistry()) await writeFile(join(ROOT, path), text);
}
