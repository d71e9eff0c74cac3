/**
 * Each pattern is copied, with the files that its doc comment names and no others, into an empty folder,
 * and type-checked there under the strictest flags. `TEST_ALL_COPIES=1` runs all of their tests there
 * too, instead of one pattern's.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { importsOf } from "./shared/registry.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** What other patterns are made of. They are copied along, and need not say what goes with them. */
const INNER = ["errors.ts", "fan-out.ts", "fold.ts", "plan.ts", "step.ts", "xml.ts"];

/** A copy without all the files that it needs. */
const BROKEN = "broken/chain";

const files = [
  ...(await readdir(join(ROOT, "patterns"))),
  ...(await readdir(join(ROOT, "patterns/layers"))).map((name) => `layers/${name}`),
].filter((name) => name.endsWith(".ts"));
const patterns = files.filter((file) => !INNER.includes(file));
const tested = files.filter((file) => existsSync(testOf(file)));

let folder = "";
let typeErrors: readonly string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "copying-"));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(STRICTEST));
  await Promise.all(
    files.map(async (file) => {
      const along = await (patterns.includes(file) ? named(file) : closure(file));
      // A name of no file is reported by the pattern's own test.
      const there = along.filter((name) => existsSync(join(ROOT, "patterns", name)));
      const paths = [file, ...there].map((name) => `patterns/${name}`);
      await copy(paths, join("alone", nameOf(file)));
    }),
  );
  await copy(["patterns/chain.ts", "patterns/step.ts"], BROKEN);
  // One compiler for all: nothing but the SDK's types is shared, as imports don't leave their folder.
  const { output } = await run(["node_modules/typescript/bin/tsc"]);
  typeErrors = output.split("\n").filter((line) => line.trim() !== "");
}, 60_000);

afterAll(() => rm(folder, { recursive: true }));

test.for(patterns)("%s names the files that it needs, and no others", async (file) => {
  expect(await named(file)).toEqual(await closure(file));
});

test.for(files)("%s type-checks alone with the files that it names", (file) => {
  expect(typeErrors.filter((line) => line.startsWith(`alone/${nameOf(file)}/`))).toEqual([]);
});

test("type-checks the copies and nothing else", () => {
  const elsewhere = typeErrors.filter((line) => !/^(alone|broken)\//.test(line));
  expect(elsewhere).toEqual([]);
});

test("finds what is missing from a copy", () => {
  const found = typeErrors.filter((line) => line.startsWith(BROKEN));
  expect(found).toContainEqual(expect.stringContaining("Cannot find module './llm-call.ts'"));
});

test("runs a pattern's test beside its copy", { timeout: 60_000 }, async () => {
  const { TEST_ALL_COPIES } = process.env;
  const some = TEST_ALL_COPIES ? tested : ["chain.ts"];
  await Promise.all(
    some.map(async (file) => {
      const own = [file, ...(await closure(file))].map((name) => `patterns/${name}`);
      const test = testOf(file).slice(ROOT.length);
      await copy([...own, test, ...(await importsOf(test))], join("tested", nameOf(file)));
    }),
  );
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--root", "tested", "--reporter=json"];
  const { output } = await run(vitest);
  const result = JSON.parse(output.slice(output.indexOf("{")));
  expect(failuresIn(result)).toEqual([]);
  expect(result).toMatchObject({ success: true, numFailedTests: 0 });
  expect(result.testResults).toHaveLength(some.length);
  expect(result.numPassedTests).toBeGreaterThan(some.length);
});

/** This project's own settings, and those under which a library makes its declarations. */
const STRICTEST = {
  extends: join(ROOT, "tsconfig.json"),
  compilerOptions: {
    isolatedModules: true,
    declaration: true,
    isolatedDeclarations: true,
    // What Next.js sets in a new app: no BigInt literals, for one.
    target: "es2017",
    lib: ["esnext", "dom"],
  },
  include: ["alone", "broken"],
};

/** The files that a pattern's doc comment names, those of a folder one by one. */
async function named(file: string): Promise<string[]> {
  const [comment = ""] = (await readFile(join(ROOT, "patterns", file), "utf8")).split("*/");
  const [, list = ""] = /Copy along: ([^@]*?)(?= \* From |$)/.exec(comment) ?? [];
  const names = list
    .replaceAll("*", " ")
    .split(",")
    .map((name) => name.trim());
  const all = names.filter(Boolean).map(async (name) => {
    if (!name.endsWith("/")) return [name];
    const inside = await readdir(join(ROOT, "patterns", name)).catch(() => []);
    return inside.map((inner) => name + inner);
  });
  return (await Promise.all(all)).flat().sort();
}

/** The files in patterns/ that one of them imports, and those that they import. */
async function closure(file: string): Promise<string[]> {
  const all = await importsOf(`patterns/${file}`);
  return all.map((path) => path.slice("patterns/".length));
}

async function copy(paths: readonly string[], to: string): Promise<void> {
  for (const path of new Set(paths)) {
    const target = join(folder, to, path);
    await mkdir(dirname(target), { recursive: true });
    await cp(join(ROOT, path), target);
  }
}

function nameOf(file: string): string {
  return file.replace(/^.*\/|\.ts$/g, "");
}

function testOf(file: string): string {
  return join(ROOT, "test", `${nameOf(file)}.test.ts`);
}

/** Runs a script with Node in the folder, as somebody would who has nothing but the copies. */
function run(args: readonly string[]): Promise<{ code: unknown; output: string }> {
  const { PATH = "" } = process.env;
  const options = { cwd: folder, env: { PATH }, maxBuffer: 2 ** 26 };
  return new Promise((resolve) => {
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      resolve({ code: error?.code ?? 0, output: stdout || stderr });
    });
  });
}

interface Report {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

function failuresIn({ testResults }: Report): string[] {
  return testResults.flatMap(({ message, assertionResults }) => [
    ...(message ? [message] : []),
    ...assertionResults
      .filter(({ status }) => status === "failed")
      .map(({ fullName, failureMessages }) => `${fullName}: ${failureMessages.join("\n")}`),
  ]);
}
