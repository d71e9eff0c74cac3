/** The registry holds what its patterns need, and each copied file says where it's from. */
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { type Item, importsOf, makeRegistry, withOrigin } from "./shared/registry.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFile(join(ROOT, path), "utf8");

const made = await makeRegistry();
const { items }: { items: readonly Item[] } = JSON.parse(await read("registry.json"));
const filesOf = ({ files }: Item) => files.map(({ path }) => path);
const patterns = items.filter(({ name }) => !name.endsWith("-runner"));

test.for([...made])("%s is as it's generated: else run npm run registry", async ([path, text]) => {
  expect(await read(path)).toBe(text);
});

test("has each module of patterns/ in an item", async () => {
  const modules = (await readdir(join(ROOT, "patterns"), { recursive: true }))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => `patterns/${name}`);
  expect(patterns.flatMap(filesOf)).toEqual(expect.arrayContaining(modules));
});

test("has each runner with a recording in an item", async () => {
  const recordings = (await readdir(join(ROOT, "runners/recordings")))
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => `${name.replace(".jsonl", "")}-runner`);
  expect(items.map(({ name }) => name)).toEqual(expect.arrayContaining(recordings));
});

test.for(items)("$name holds what its files import, at the same place", async (item) => {
  const paths = filesOf(item);
  expect(item.files.map(({ target }) => target)).toEqual(paths);
  for (const path of paths) {
    const source = await read(path);
    for (const [, to = ""] of source.matchAll(/^(?:import|export|\}).* from "(\.[^"]+)";$/gm)) {
      expect(paths, path).toContain(normalize(join(dirname(path), to)));
    }
  }
});

test.for(patterns)("$name brings a test that needs nothing of the runners", (item) => {
  const paths = filesOf(item);
  expect(paths).toContainEqual(expect.stringMatching(/^test\/[\w-]+\.test\.ts$/));
  expect(paths.filter((path) => path.startsWith("runners/"))).toEqual([]);
});

test.for(["chain", "route", "section", "vote", "orchestrate", "refine", "budget"])(
  "%s brings no pattern that only its test uses",
  async (name) => {
    const item = items.find((one) => one.name === name);
    const modules = item ? filesOf(item).filter((path) => path.startsWith("patterns/")) : [];
    const own = modules.find((path) => path.endsWith(`/${name}.ts`)) ?? "";
    expect(modules).toEqual([own, ...(await importsOf(own))].sort());
  },
);

test("a workflow needs two packages beside the SDK at the most", () => {
  const workflows = ["chain", "route", "section", "vote", "orchestrate", "refine"];
  const found = items.filter(({ name }) => workflows.includes(name));
  expect(found).toHaveLength(workflows.length);
  for (const { dependencies } of found) {
    const others = dependencies.filter((name) => !name.startsWith("@anthropic-ai/sdk@"));
    expect(others.length).toBeLessThanOrEqual(2);
  }
});

test("names a package once, with its range if the copied code needs it to run", () => {
  for (const { dependencies, devDependencies } of items) {
    const names = [...dependencies, ...devDependencies].map((name) =>
      name.replace(/(?<=.)@.*/, ""),
    );
    expect(new Set(names).size).toBe(names.length);
    for (const name of dependencies) expect(name).toMatch(/.@\^\d/);
  }
});

const about = { name: "effective-agents", version: "1.2.3", dependencies: {}, devDependencies: {} };
const FROM = "From effective-agents 1.2.3: patterns/a.ts";

test.for([
  ["/** A. */\na();\n", `/**\n * A.\n *\n * ${FROM}\n */\na();\n`],
  ["/**\n * A.\n * B.\n */\n", `/**\n * A.\n * B.\n *\n * ${FROM}\n */\n`],
  [
    "/**\n * Copy along: b.ts,\n * c.ts\n */\n",
    `/**\n * Copy along: b.ts,\n * c.ts\n * ${FROM}\n */\n`,
  ],
  [
    "/**\n * A.\n *\n * From effective-agents 0.9.0: a.ts\n */\n",
    `/**\n * A.\n *\n * ${FROM}\n */\n`,
  ],
] as const)(
  "writes where a file is from as the last line of its first comment (%#)",
  ([before, after]) => {
    expect(withOrigin(before, "patterns/a.ts", about)).toBe(after);
    expect(withOrigin(after, "patterns/a.ts", about)).toBe(after);
  },
);

test("names the repository, if package.json does", () => {
  const repository = "https://github.com/someone/effective-agents";
  const source = withOrigin("/** A. */\n", "patterns/a.ts", { ...about, repository });
  expect(source).toContain(` * ${FROM} of ${repository}\n`);
});

test("refuses a file that doesn't say what it is", () => {
  for (const source of ["a();\n", "/* A. */\n", "// A.\n"]) {
    expect(() => withOrigin(source, "patterns/a.ts", about)).toThrow(
      "patterns/a.ts must begin with",
    );
  }
});
