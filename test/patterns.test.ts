/** The rules that every file in patterns/ keeps, so that it can be read, copied and run anywhere. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = join(ROOT, "patterns");

const names = (await readdir(FOLDER, { recursive: true })).filter((name) => name.endsWith(".ts"));
const sources = new Map<string, string>();
for (const name of names.sort()) sources.set(name, await readFile(join(FOLDER, name), "utf8"));
const files = [...sources].map(([name, source]) => ({
  name,
  source,
  code: withoutComments(source),
}));

const { dependencies }: { dependencies: Readonly<Record<string, string>> } = JSON.parse(
  await readFile(join(ROOT, "package.json"), "utf8"),
);

/** What each workflow imports at the most, beside what all of them may. */
const WORKFLOWS: ReadonlyMap<string, readonly string[]> = new Map([
  ["chain.ts", []],
  ["route.ts", ["fold.ts"]],
  ["section.ts", ["fan-out.ts"]],
  ["vote.ts", ["fan-out.ts", "fold.ts"]],
  ["orchestrate.ts", ["fan-out.ts", "plan.ts"]],
  ["refine.ts", ["fold.ts"]],
]);
const FOR_ALL = ["errors.ts", "llm-call.ts", "step.ts", "xml.ts"];
const workflows = files.filter(({ name }) => WORKFLOWS.has(name));

test("finds the files that the rules are about", () => {
  expect(workflows).toHaveLength(WORKFLOWS.size);
  expect(names).toEqual(expect.arrayContaining([...FOR_ALL, "door/send.ts", "layers/budget.ts"]));
});

// A process may name itself and ask for another one: a recording is written by one at a time.
test.for(files)("$name prints nothing and reads nothing from the environment", ({ code }) => {
  expect(
    code.match(/\bconsole\b|\bprocess\.(?!pid\b|kill\b)|\bprocess\b(?=[,;}\])])|node:process/g),
  ).toBe(null);
});

test("works not at all when it's imported", { timeout: 60_000 }, async () => {
  const urls = names.map((name) => new URL(`../patterns/${name}`, import.meta.url).href);
  const args = ["--import", "tsx", "--input-type=module", "--eval", IMPORTER, ...urls];
  const options = { cwd: ROOT, env: {} };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, options);
  expect([stdout, stderr]).toEqual([names.length.toString(), ""]);
});

test.for(workflows)("$name imports no other pattern", ({ name, source }) => {
  const allowed = [...FOR_ALL, ...(WORKFLOWS.get(name) ?? [])].map((file) => `./${file}`);
  expect(allowed).toEqual(expect.arrayContaining(importsIn(source).map(({ from }) => from)));
});

test.for(files)("$name imports by paths that end in .ts, or what package.json names", (file) => {
  for (const { from, values } of importsIn(file.source)) {
    if (from.startsWith(".")) expect(from).toMatch(/\.ts$/);
    else if (from.startsWith("node:")) expect(builtinModules).toContain(from.slice(5));
    else if (from.startsWith("@anthropic-ai/sdk")) {
      const known = /^(llm-call\.ts|recording\.ts|memory\.ts|(door|recording)\/.*)$/.test(
        file.name,
      );
      expect(values.length === 0 || known, `${from}: ${values}`).toBe(true);
    } else expect(Object.keys(dependencies)).toContain(/^(@[^/]+\/)?[^/]+/.exec(from)?.[0]);
  }
});

test("knows each package in one file, the SDK apart", () => {
  const knowing = new Map<string, string[]>();
  for (const { name, source } of files) {
    for (const { from } of importsIn(source)) {
      if (/^(\.|node:|@anthropic-ai\/sdk)/.test(from)) continue;
      knowing.set(from, [...(knowing.get(from) ?? []), name]);
    }
  }
  expect(knowing.get("@opentelemetry/api")).toEqual(["step.ts"]);
  expect(knowing.get("fast-xml-parser")).toEqual(["xml.ts"]);
  for (const [from, names] of knowing) expect(names, from).toHaveLength(1);
});

test("makes the SDK's client in two places only", () => {
  const makers = files.filter(({ code }) => /new Anthropic\(/.test(code));
  expect(makers.map(({ name }) => name)).toEqual(["llm-call.ts", "recording.ts"]);
  for (const { name, source } of files) {
    const values = importsIn(source).flatMap(({ values }) => values);
    const knows = values.includes("Anthropic") || values.includes("default as Anthropic");
    expect(knows, name).toBe(/^(llm-call|recording)\.ts$/.test(name));
  }
});

test.for(files)("$name has no any, no default export and no classes but errors", ({ code }) => {
  const bare = withoutTexts(code);
  expect(bare.match(/(?<![.\w])any\b/g)).toBe(null);
  expect(bare).not.toMatch(/export default|export \{[^}]*as default/);
  for (const [line] of bare.matchAll(/\bclass\b.*/g)) expect(line).toMatch(/ extends \w*Error \{/);
});

test.for(files)("$name keeps no variable of the module", ({ code }) => {
  expect(code.match(/^(export )?(let|var) .*/gm)).toBe(null);
});

test.for(files)("$name says of everything that it exports what it is", ({ source }) => {
  const lines = source.split("\n");
  const bare = lines.filter((line, index) => {
    const declares = /^export (?!type \{|\{|\*)/.test(line);
    return declares && !lines[index - 1]?.trimEnd().endsWith("*/");
  });
  expect(bare).toEqual([]);
});

test.for(files)("$name begins with a comment that says what it is", ({ source }) => {
  expect(source).toMatch(/^\/\*\*\n \* \S/);
  // Without one, the file would begin with what is said of its first export.
  expect(source.slice(source.indexOf("*/"))).not.toMatch(/^\*\/\nexport/);
});

const AGENTS = ["agent.ts", "approve.ts", "citations.ts", "subagent.ts"];
const shortOnes = files.filter(({ name }) => WORKFLOWS.has(name) || AGENTS.includes(name));

test.for(shortOnes)("$name has at most 150 lines of code", ({ code }) => {
  const lines = code.split("\n").filter((line) => line.trim() !== "");
  expect(lines.length).toBeLessThanOrEqual(150);
});

test.for(workflows)("$name shows itself in a drawing, and says when and at what cost", (file) => {
  const [comment = ""] = file.source.split("*/");
  const drawing = comment.split("\n").filter((line) => line.startsWith(" *     "));
  expect(drawing.length).toBeGreaterThan(1);
  expect(drawing.length).toBeLessThanOrEqual(6);
  for (const line of drawing) expect(line.slice(" *     ".length).length).toBeLessThanOrEqual(76);
  expect(comment).toMatch(/^ \* Use (`\w+` )?when /m);
  expect(comment).toMatch(/^ \* Costs /m);
  expect(comment).toMatch(/^ \* In Anthropic's "Building effective agents": /m);
  expect(comment).toMatch(/^ \* Copy along: /m);
});

/** Imports each module in turn, and throws if that printed, read, called or left something. */
const IMPORTER = String.raw`
  const deny = (what) => () => { throw new Error("At import: " + what); };
  const isOurs = () => /\/patterns\//.test(new Error().stack.split("\n")[3]);
  // The last are reads of the loader's own (since Node 22); those of ours are denied below.
  const loaders = ["PipeWrap", "PipeConnectWrap", "ConnectWrap", "CloseReq", "MessagePort", "FSReqPromise"];
  const left = () => process.getActiveResourcesInfo().filter((name) => !loaders.includes(name));
  const write = process.stdout.write.bind(process.stdout);
  for (const name of ["log", "info", "warn", "error", "debug"]) console[name] = deny(name);
  process.stdout.write = process.stderr.write = deny("write");
  globalThis.fetch = deny("fetch");
  for (const name of ["setTimeout", "setInterval", "setImmediate", "queueMicrotask"]) {
    const real = globalThis[name];
    globalThis[name] = (...args) => (isOurs() ? deny(name)() : real(...args));
  }
  const fs = process.getBuiltinModule("node:fs");
  for (const api of [fs, fs.promises]) {
    for (const [name, real] of Object.entries(api)) {
      if (typeof real !== "function" || /^[A-Z]/.test(name)) continue;
      api[name] = (...args) => (isOurs() ? deny("fs." + name)() : real(...args));
    }
  }
  process.getBuiltinModule("node:module").syncBuiltinESMExports();
  process.env = new Proxy(process.env, {
    get: (env, name) => (isOurs() ? deny(name)() : env[name]),
  });
  let imported = 0;
  for (const url of process.argv.slice(1)) {
    await import(url);
    if (left().length > 0) deny(url + " left " + left())();
    imported += 1;
  }
  process.on("exit", () => write(String(imported)));
`;

interface Import {
  readonly from: string;
  /** What is imported as a value, and not as a type. */
  readonly values: readonly string[];
}

function importsIn(source: string): Import[] {
  const statements = withoutComments(source).matchAll(
    /^(?:import|export(?= (?:type )?[{*])) (?:([^;"]*?) from )?"([^"]+)"|\bimport\("([^"]+)"\)/gm,
  );
  return [...statements].map(([, what = "", from, dynamic]) => {
    const named = what.startsWith("type ") ? [] : what.replace(/[{}]/g, ",").split(",");
    const values = named.map((name) => name.trim());
    return {
      from: from ?? dynamic ?? "",
      values: values.filter((name) => name && !name.startsWith("type ")),
    };
  });
}

/** The code with its lines as they are, but for comments. */
function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(?<=^|\s)\/\/.*$/gm, "");
}

/** The code without what stands in strings and templates. */
function withoutTexts(code: string): string {
  return code.replace(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/g, '""');
}
