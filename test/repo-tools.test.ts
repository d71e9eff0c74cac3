/**
 * What the three tools answer; what they must not, is in repo-tools-sandbox.test.ts.
 *
 * From effective-agents 0.1.0: test/repo-tools.test.ts
 */
import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createRepoTools } from "../patterns/repo-tools.ts";
import { defineTool, type Tool, ToolError } from "../patterns/tool.ts";

type Files = Readonly<Record<string, string | Uint8Array>>;

/** The tools for a new folder with these files. */
async function makeRepo(files: Files = {}) {
  const root = await mkdtemp(join(tmpdir(), "repo-tools-"));
  onTestFinished(() => rm(root, { recursive: true }));
  const written = Object.entries(files).map(async ([path, content]) => {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), content);
  });
  await Promise.all(written);
  const [listFiles, readFile, search] = createRepoTools(root);
  const asked = (tool: Tool) => async (input: object, signal?: AbortSignal) =>
    tool.run(input, { callId: "c1", signal });
  return { root, list: asked(listFiles), read: asked(readFile), search: asked(search) };
}

/** The message of the `ToolError` that it's refused with. */
async function refusal(call: Promise<string>): Promise<string> {
  const error = await call.catch((error: unknown) => error);
  if (error instanceof ToolError) return error.message;
  throw new Error("It was not refused", { cause: error });
}

const linesTo = (count: number) =>
  Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");

test("offers three tools, each with a closed schema and a description", async () => {
  const { root } = await makeRepo();
  const tools = createRepoTools(root);
  expect(tools.map(({ name }) => name)).toEqual(["list_files", "read_file", "search"]);
  for (const { description, input_schema: schema } of tools) {
    expect(description).toMatch(/Use it /);
    expect(schema).toMatchObject({ type: "object", additionalProperties: false });
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(schema.required));
  }
});

test("types what a tool's run is given", () => {
  const tool = defineTool<{ n: number }>({
    name: "double",
    description: "Doubles a number.",
    input_schema: {
      type: "object",
      properties: { n: { type: "number" } },
      required: ["n"],
      additionalProperties: false,
    },
    // @ts-expect-error There is no m.
    run: ({ n, m }) => String(2 * n + (m ?? 0)),
  });
  expect(tool.run({ n: 4 }, { callId: "c1", signal: undefined })).toBe("8");
});

// read_file

test("numbers the lines of a range, under where they are from", async () => {
  const { read } = await makeRepo({ "src/a.txt": linesTo(40) });
  expect(await read({ path: "src/a.txt", start_line: 9, end_line: 11 })).toBe(
    "src/a.txt lines 9-11 of 40\n9| line 9\n10| line 10\n11| line 11",
  );
  expect(await read({ path: "src/a.txt", start_line: 40 })).toBe(
    "src/a.txt lines 40-40 of 40\n40| line 40",
  );
  expect(await read({ path: "src/a.txt", start_line: 39, end_line: 1_000 })).toMatch(
    /39-40 of 40\n/,
  );
});

test("gives 400 lines at most, and says how to go on", async () => {
  const { read } = await makeRepo({ "a.txt": linesTo(1_000) });
  for (const input of [{}, { end_line: 900 }]) {
    const lines = (await read({ path: "a.txt", ...input })).split("\n");
    expect(lines.at(0)).toBe("a.txt lines 1-400 of 1000");
    expect(lines.at(-1)).toBe("[truncated at line 400; ask for start_line 401]");
    expect(lines).toHaveLength(402);
  }
  const rest = await read({ path: "a.txt", start_line: 601 });
  expect(rest).toMatch(/^a\.txt lines 601-1000 of 1000\n/);
  expect(rest).not.toContain("truncated");
});

test("gives 20,000 characters at most, whatever the lines hold, and loses no line on the way", async () => {
  const content = fc
    .array(fc.string({ unit: "binary", maxLength: 3_000 }), { maxLength: 60 })
    .map((lines) => `x${lines.join("\n")}`);
  const { root, read } = await makeRepo();
  await fc.assert(
    fc.asyncProperty(content, async (text) => {
      await writeFile(join(root, "a.txt"), text);
      if (text.slice(0, 8_000).includes("\0")) return;
      const seen: number[] = [];
      for (let next: number | undefined = 1; next !== undefined; ) {
        const result: string = await read({ path: "a.txt", start_line: next });
        expect(result.length).toBeLessThanOrEqual(20_000);
        const numbers = [...result.matchAll(/^(\d+)\| /gm)].map(([, number]) => Number(number));
        seen.push(...numbers);
        const [, more] = /; ask for start_line (\d+)\]$/.exec(result) ?? [];
        next = more === undefined ? undefined : Number(more);
      }
      const count = text.replace(/\n$/, "").split("\n").length;
      expect(seen).toEqual(Array.from({ length: count }, (_, index) => index + 1));
    }),
    { numRuns: 40 },
  );
});

test("ends lines at LF and CRLF only, and shows the other breaks", async () => {
  const { read } = await makeRepo({ "a.txt": "\ufeffa\r\nb\n\rc\rd\u2028e\u0085f\vg\n\n" });
  expect(await read({ path: "a.txt" })).toBe(
    "a.txt lines 1-4 of 4\n1| a\n2| b\n" + "3| <U+000D>c<U+000D>d<U+2028>e<U+0085>f<U+000B>g\n4| ",
  );
});

test.for<readonly [name: string, text: string, expected: string]>([
  ["without a newline at its end", "a\nb", "lines 1-2 of 2\n1| a\n2| b"],
  ["with one", "a\nb\n", "lines 1-2 of 2\n1| a\n2| b"],
  ["of one newline", "\n", "lines 1-1 of 1\n1| "],
  ["that is empty", "", "lines 0-0 of 0\n[the file is empty]"],
  ["of one character", "a", "lines 1-1 of 1\n1| a"],
])("reads a file %s", async ([, text, expected]) => {
  const { read } = await makeRepo({ "a.txt": text });
  expect(await read({ path: "a.txt" })).toBe(`a.txt ${expected}`);
});

test("lets nothing through that a terminal would act on or nobody would see", async () => {
  const text = "\u001b[31mred\u0007 \u009b1m \u202eabc\u2069 \u200bx \u{e0041} \tTab 👩‍💻";
  const { read, search } = await makeRepo({ "a.txt": text });
  const shown =
    "<U+001B>[31mred<U+0007> <U+009B>1m <U+202E>abc<U+2069> <U+200B>x <U+E0041> \tTab 👩‍💻";
  expect(await read({ path: "a.txt" })).toBe(`a.txt lines 1-1 of 1\n1| ${shown}`);
  expect(await search({ pattern: "red" })).toBe(`a.txt:1: ${shown}`);
});

test("cuts a long line, says so, and never through a character", async () => {
  const { read } = await makeRepo({ "a.txt": `a${"😀".repeat(5_000)}\nnext` });
  const [, line = "", next] = (await read({ path: "a.txt" })).split("\n");
  expect(line).toBe(`1| a${"😀".repeat(999)}… [line cut, 10001 characters]`);
  expect(next).toBe("2| next");
});

test("says what a binary file is, and decodes UTF-16", async () => {
  const { read } = await makeRepo({
    "a.png": Uint8Array.of(0x89, 0x50, 0, 1),
    "le.txt": Buffer.from("\ufeffa\r\nb漢", "utf16le"),
    "be.txt": Buffer.from("\ufeffa\r\nb漢", "utf16le").swap16(),
  });
  expect(await refusal(read({ path: "a.png" }))).toBe(
    "'a.png' is a binary file of 4 bytes, which has no lines to read.",
  );
  expect(await read({ path: "le.txt" })).toBe("le.txt lines 1-2 of 2\n1| a\n2| b漢");
  expect(await read({ path: "be.txt" })).toBe("be.txt lines 1-2 of 2\n1| a\n2| b漢");
});

test("keeps a character whole that two pieces of the file share", async () => {
  const { read } = await makeRepo({ "a.txt": `${"x".repeat(65_535)}\n漢字\n` });
  for (const shift of [0, 1, 2]) {
    const { read } = await makeRepo({
      "a.txt": `${"x\n".repeat(32_766)}${"y".repeat(shift)}漢字\n`,
    });
    expect(await read({ path: "a.txt", start_line: 32_767 })).toMatch(/\| y*漢字$/);
  }
  expect(await read({ path: "a.txt", start_line: 2 })).toBe("a.txt lines 2-2 of 2\n2| 漢字");
});

test("explains a range that can't be", async () => {
  const { read } = await makeRepo({ "a.txt": "a\nb\n", empty: "" });
  expect(await refusal(read({ path: "a.txt", start_line: 3 }))).toBe(
    "'a.txt' has 2 lines, so start_line 3 is beyond its end. Ask for a start_line from 1 to 2.",
  );
  expect(await refusal(read({ path: "a.txt", start_line: 2, end_line: 1 }))).toMatch(
    /^end_line 1 lies before start_line 2\./,
  );
  for (const input of [
    { start_line: 0 },
    { start_line: 1.5 },
    { end_line: Number.NaN },
    { start_line: -3 },
  ]) {
    expect(await refusal(read({ path: "a.txt", ...input }))).toMatch(
      /^Lines are whole numbers from 1/,
    );
  }
});

test("explains a folder, and a path that doesn't exist by what is nearby", async () => {
  const { read } = await makeRepo({ "src/app.ts": "", "src/lib/x.ts": "", "src/main.ts": "" });
  expect(await refusal(read({ path: "src" }))).toBe(
    "'src' is a folder. See what is in it with list_files.",
  );
  expect(await refusal(read({ path: "src/ap.ts" }))).toBe(
    "'src/ap.ts' doesn't exist. Did you mean 'src/app.ts'?",
  );
  expect(await refusal(read({ path: "SRC/app.ts" }))).toBe(
    "'SRC/app.ts' doesn't exist. Did you mean 'src/'?",
  );
  expect(await refusal(read({ path: "src/server.py" }))).toBe(
    "'src/server.py' doesn't exist. In 'src' there is 'src/app.ts', 'src/lib/', 'src/main.ts'.",
  );
  expect(await refusal(read({ path: "src/app.ts/x" }))).toBe(
    "'src/app.ts' is a file. Read it with read_file.",
  );
  expect(await refusal(read({ path: "x".repeat(4_000) }))).toMatch(/^'x{300}…' doesn't exist/);
});

// S11
test("reads the start of a file of 3 GB without loading it", async () => {
  const { root, read, search } = await makeRepo({ "zeros.bin": "", "big.txt": linesTo(20_000) });
  for (const name of ["zeros.bin", "big.txt"]) await truncate(join(root, name), 3 * 1024 ** 3);
  const before = process.resourceUsage().maxRSS;
  expect(await refusal(read({ path: "zeros.bin" }))).toMatch(
    /is a binary file of 3221225472 bytes/,
  );
  expect(await read({ path: "big.txt", start_line: 7, end_line: 7 })).toBe(
    "big.txt lines 7-7 of many\n7| line 7",
  );
  expect(await read({ path: "big.txt" })).toMatch(
    /^big.txt lines 1-400 of many\n[\s\S]*start_line 401\]$/,
  );
  const end = await read({ path: "big.txt", start_line: 20_000 });
  expect(end).toMatch(/^big\.txt lines 20000-20001 of many\n20000\| line 20000\n20001\| <U\+0000>/);
  expect(end).toMatch(
    /\[line cut, \d+ characters\]\n\[truncated at line 20001; ask for start_line 20002\]$/,
  );
  expect(await search({ pattern: "line" })).toMatch(
    /^No match .*\n\[over 5000000 bytes, not searched: 'big.txt', 'zeros.bin'\]$/,
  );
  // In kilobytes.
  expect(process.resourceUsage().maxRSS - before).toBeLessThan(50_000);
});

test("stops reading when it's told to, with the signal's reason", async () => {
  const { root, read } = await makeRepo({ "big.txt": linesTo(20_000) });
  await truncate(join(root, "big.txt"), 3 * 1024 ** 3);
  const controller = new AbortController();
  const reason = new Error("enough");
  const reading = read({ path: "big.txt", start_line: 30_000 }, controller.signal);
  await setImmediate();
  controller.abort(reason);
  await expect(reading).rejects.toBe(reason);
  await expect(read({ path: "big.txt" }, controller.signal)).rejects.toBe(reason);
});

// list_files

test("lists one folder, with folders marked and sizes, or all that fits a glob", async () => {
  const { list } = await makeRepo({
    "b.ts": "12",
    "a/x.ts": "1",
    "a/y/z.ts": "",
    "a/y.md": "",
    c: "",
  });
  expect(await list({})).toBe("a/\nb.ts 2 bytes\nc 0 bytes");
  expect(await list({ path: "a/" })).toBe("a/x.ts 1 bytes\na/y/\na/y.md 0 bytes");
  expect(await list({ glob: "*.ts" })).toBe("a/x.ts 1 bytes\na/y/z.ts 0 bytes\nb.ts 2 bytes");
  expect(await list({ path: "a", glob: "*/z.ts" })).toBe("a/y/z.ts 0 bytes");
  expect(await list({ glob: "./a/*.{ts,md}" })).toBe("a/x.ts 1 bytes\na/y.md 0 bytes");
  expect(await list({ glob: "a/**/" })).toBe("a/y/");
});

test("leaves out what .gitignore files name, unless its folder is asked for", async () => {
  const { list, read, search } = await makeRepo({
    ".gitignore": "dist/\n*.log\n!keep.log\n",
    "dist/a.js": "word",
    "dist/x.log": "word",
    "src/.gitignore": "/tmp\n",
    "src/tmp": "word",
    "src/lib/tmp": "word",
    "src/a.log": "word",
    "src/keep.log": "word",
  });
  expect(await list({})).toBe(".gitignore 22 bytes\nsrc/");
  expect(await list({ path: "src" })).toBe(
    "src/.gitignore 5 bytes\nsrc/keep.log 4 bytes\nsrc/lib/",
  );
  expect(await list({ path: "dist" })).toBe("dist/a.js 4 bytes\ndist/x.log 4 bytes");
  expect(await search({ pattern: "word" })).toBe("src/keep.log:1: word\nsrc/lib/tmp:1: word");
  expect(await read({ path: "dist/a.js" })).toMatch(/1\| word$/);
});

test("lists 500 entries at most, and 20,000 characters", async () => {
  const names = Array.from({ length: 501 }, (_, index) => `f${String(index).padStart(3, "0")}`);
  const { list } = await makeRepo(Object.fromEntries(names.map((name) => [name, ""])));
  const lines = (await list({})).split("\n");
  expect(lines).toHaveLength(501);
  expect(lines.at(-1)).toBe("[truncated at 500 entries; give a narrower path or glob]");

  const long = await makeRepo(
    Object.fromEntries(names.map((name) => [name + "x".repeat(200), ""])),
  );
  const listed = await long.list({ glob: "**" });
  expect(listed.length).toBeLessThanOrEqual(20_000);
  expect(listed).toMatch(/\[truncated at \d\d entries; give a narrower path or glob\]$/);
});

test("says that nothing is there, and explains what can't be listed", async () => {
  const { root, list } = await makeRepo({ "a.ts": "" });
  await mkdir(join(root, "empty"));
  expect(await list({ path: "empty" })).toMatch(/^There is nothing in 'empty', apart from/);
  expect(await list({ glob: "*.py" })).toMatch(/^Nothing in '\.' fits '\*\.py', apart from/);
  expect(await refusal(list({ path: "a.ts" }))).toBe("'a.ts' is a file. Read it with read_file.");
  expect(await refusal(list({ glob: " " }))).toMatch(/^Invalid glob ' ': it is empty/);
  expect(await refusal(list({ glob: "!*.ts" }))).toMatch(/can't be negated/);
  expect(await refusal(list({ glob: "{a,b}".repeat(9) }))).toMatch(/more than 100 globs/);
  expect(await refusal(list({ glob: "x".repeat(501) }))).toMatch(/longer than 500 characters/);
});

// search

test("gives each matching line with its path and number, sorted", async () => {
  const { search } = await makeRepo({
    "b.ts": "x\nfoo(1)\n",
    "a/c.ts": "foo(2)\r\n",
    "d.md": "foo",
  });
  expect(await search({ pattern: "foo" })).toBe("a/c.ts:1: foo(2)\nb.ts:2: foo(1)\nd.md:1: foo");
  expect(await search({ pattern: "\\)$" })).toBe("a/c.ts:1: foo(2)\nb.ts:2: foo(1)");
  expect(await search({ pattern: "foo", glob: "*.ts" })).toBe("a/c.ts:1: foo(2)\nb.ts:2: foo(1)");
  expect(await search({ pattern: "foo", glob: "a/**" })).toBe("a/c.ts:1: foo(2)");
});

test("shows lines around a match once each, with gaps marked", async () => {
  const { search } = await makeRepo({ "a.txt": linesTo(9) });
  expect(await search({ pattern: "[248]$", context: 1 })).toBe(
    [
      "a.txt-1- line 1",
      "a.txt:2: line 2",
      "a.txt-3- line 3",
      "a.txt:4: line 4",
      "a.txt-5- line 5",
      "--",
      "a.txt-7- line 7",
      "a.txt:8: line 8",
      "a.txt-9- line 9",
    ].join("\n"),
  );
  expect(await refusal(search({ pattern: "x", context: 21 }))).toMatch(/from 0 to 20, got 21/);
});

test("shows of a long line what is around the match, and says which lines it searched in part", async () => {
  const { search } = await makeRepo({
    "a.js": `${"x".repeat(5_000)}needle${"y".repeat(4_000)}`,
    "b.js": `${"x".repeat(10_000)}needle`,
  });
  const [line, note] = (await search({ pattern: "needle" })).split("\n");
  expect(line).toBe(
    `a.js:1: …${"x".repeat(50)}needle${"y".repeat(244)}… [line cut, 9006 characters]`,
  );
  expect(note).toBe("[only the first 10000 characters of a line were searched: 'b.js']");
});

test("passes binary files by, and decodes UTF-16", async () => {
  const { search } = await makeRepo({
    "a.bin": "needle\0",
    "b.txt": Buffer.from("\ufeffx\nneedle", "utf16le"),
  });
  expect(await search({ pattern: "needle" })).toBe("b.txt:2: needle");
});

test("gives 200 matches at most, and 20,000 characters", async () => {
  const { search } = await makeRepo({ "a.txt": linesTo(150), "b.txt": linesTo(150), "c.txt": "z" });
  const lines = (await search({ pattern: "line" })).split("\n");
  expect(lines.slice(199)).toEqual([
    "b.txt:50: line 50",
    "[truncated; there are more matches: narrow the pattern or the glob]",
  ]);
  const wide = await makeRepo({ "a.txt": `${"x".repeat(250)}\n`.repeat(150) });
  const result = await wide.search({ pattern: "x" });
  expect(result.length).toBeLessThanOrEqual(20_000);
  expect(result).toMatch(/\[truncated; there are more matches/);
});

test("says truncated only if something is missing", async () => {
  const { search } = await makeRepo({ "a.txt": linesTo(200), "b.txt": "other" });
  const result = await search({ pattern: "line" });
  expect(result.split("\n")).toHaveLength(200);
  expect(result).toMatch(/a\.txt:200: line 200$/);
});

// S16
test.for<readonly [pattern: string, why: RegExp]>([
  ["(", /^Invalid regular expression '\(': missing closing \): `\(`\. The syntax is RE2's/],
  ["[", /missing closing \]/],
  ["*", /missing argument to repetition operator/],
  ["\\Afoo", /\\A is the start of a file, but the search goes line by line\. Use \^/],
  ["foo\\z", /\\z is the end of a file, but the search goes line by line\. Use \$/],
  ["(?=a)", /Lookahead and lookbehind aren't supported/],
  ["(?<!a)b", /Lookahead and lookbehind aren't supported/],
  ["(a)\\1", /Backreferences aren't supported/],
  ["(?P<x>a)\\k<x>", /Backreferences aren't supported/],
  ["a++", /Possessive and doubled quantifiers aren't supported/],
  ["(?>a)", /That kind of group isn't supported/],
  ["\\u0041", /Write a character by its code as \\x\{20AC\}/],
  ["a{2000}", /A repeat count is at most 1000/],
  ["(?:\\pL{500}x){2}(?:.y){999}", /its repeats make it too large|repeat count/],
  ["", /^Invalid regular expression '': it is empty/],
  ["x".repeat(1_001), /longer than 1000 characters/],
])("explains what is wrong with the pattern %s", async ([pattern, why]) => {
  const { search } = await makeRepo({ "a.txt": "foo" });
  expect(await refusal(search({ pattern }))).toMatch(why);
});

// S16
test.for<readonly [pattern: string, lines: readonly number[]]>([
  ["(?i)foo", [1, 2]],
  ["(?P<x>fo)o", [1]],
  ["(?<x>fo)o", [1]],
  ["(?s)o.$", [1]],
  ["^[[:alpha:]]+$", [1, 2]],
  ["\\\\A", [3]],
  ["\\bFOO\\b", [2]],
  ["\\p{Greek}", [4]],
  ["[^\\n]{4}", [3]],
])("the pattern %s means what its dialect means by it", async ([pattern, lines]) => {
  const { search } = await makeRepo({ "a.txt": "foo\nFOO\n\\A 1\nλ\n" });
  const result = await search({ pattern });
  expect([...result.matchAll(/^a\.txt:(\d):/gm)].map(([, line]) => Number(line))).toEqual(lines);
});

// S17
test("finds an empty match once in each line of each file, and comes to an end", async () => {
  const { search } = await makeRepo({ a: "bb\nbb\n", b: "x", c: "bx" });
  for (const pattern of ["a*", "^", "$", "(|a)*"]) {
    expect(await search({ pattern })).toBe("a:1: bb\na:2: bb\nb:1: x\nc:1: bx");
  }
  expect(await search({ pattern: "x" })).toBe("b:1: x\nc:1: bx");
});

test("says what it looked through when nothing matches", async () => {
  const { search } = await makeRepo({ a: "x", b: "y" });
  expect(await search({ pattern: "Z" })).toBe(
    "No match for 'Z' in 2 files. Begin it with (?i) to ignore case.",
  );
  expect(await search({ pattern: "(?i)Z" })).toBe("No match for '(?i)Z' in 2 files.");
  expect(await search({ pattern: "x\\ny" })).toMatch(
    /The search goes line by line, so \\n matches/,
  );
  expect(await search({ pattern: "x", glob: "*.ts" })).toBe("No file fits '*.ts'.");
});

test("resolves a pattern that would keep a backtracking engine busy for ever", async () => {
  const { search } = await makeRepo({ "a.txt": `${"a".repeat(9_999)}!\n`.repeat(20) });
  expect(await search({ pattern: "(a+)+$" })).toMatch(/^No match/);
  expect(await search({ pattern: "(a|aa)+$" })).toMatch(/^No match/);
});

/** A pattern and 8 lines of which each takes RE2 a while, as no two stretches are alike. */
const SLOW = { pattern: "(\\b.{0,160}){3}[!?]", text: unlike(2_000).replace(/.{250}/g, "$&\n") };

function unlike(length: number): string {
  let seed = 1;
  const next = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return "ab c-"[Math.floor((seed / 2 ** 31) * 5)];
  };
  return Array.from({ length }, next).join("");
}

/** What a search finds, and how often others got their turn meanwhile. */
async function turnsOf(searching: Promise<string>) {
  let turns = 0;
  let isSearching = true;
  const ended = searching.finally(() => {
    isSearching = false;
  });
  for (; isSearching; await setImmediate()) turns += 1;
  return { found: await ended, turns };
}

test("lets the event loop run while it searches", async () => {
  const { search } = await makeRepo({ "a.txt": SLOW.text });
  const { found, turns } = await turnsOf(search({ pattern: SLOW.pattern }));
  expect(found).toMatch(/^No match/);
  // One for each of the 8 lines, if each takes a slice. Without a pause it would be one or two in all.
  expect(turns).toBeGreaterThan(3);
});

test("lets the event loop run, and stops when it's told to, whatever a .gitignore holds", async () => {
  const rules = Array.from({ length: 3_000 }, (_, index) => `${"*a".repeat(20)}${index}`);
  const files = Object.fromEntries(
    Array.from({ length: 30 }, (_, i) => [`${"a".repeat(60)}${i}b`, ""]),
  );
  const { search } = await makeRepo({ ".gitignore": rules.join("\n"), ...files });
  const { found, turns } = await turnsOf(search({ pattern: "x" }));
  expect(found).toMatch(/^No match/);
  expect(turns).toBeGreaterThan(5);
  const controller = new AbortController();
  const searching = search({ pattern: "x" }, controller.signal);
  await setImmediate();
  controller.abort(new Error("enough"));
  await expect(searching).rejects.toThrow("enough");
});

test("refuses a path that is longer than any", async () => {
  const { read } = await makeRepo({ a: "" });
  expect(await refusal(read({ path: "a/".repeat(5_000) }))).toMatch(
    /is longer than 4096 characters, as no path is\.$/,
  );
});

test("lets the event loop run while it looks where long lines match", async () => {
  const lines = Array.from({ length: 8 }, () => `${unlike(2_000)}!`).join("\n");
  const { search } = await makeRepo({ "a.txt": lines });
  const { found, turns } = await turnsOf(search({ pattern: SLOW.pattern }));
  expect(found.match(/^a\.txt:\d: /gm)).toHaveLength(8);
  // Where it matches takes longer than whether: without a pause between the lines it would be two or three.
  expect(turns).toBeGreaterThan(5);
});

test("stops searching when it's told to, with the signal's reason", async () => {
  const { search } = await makeRepo({ "a.txt": SLOW.text });
  const controller = new AbortController();
  const reason = new Error("enough");
  const searching = search({ pattern: SLOW.pattern }, controller.signal);
  await setImmediate();
  controller.abort(reason);
  await expect(searching).rejects.toBe(reason);
  await expect(search({ pattern: "x" }, controller.signal)).rejects.toBe(reason);
});

test("answers calls at once as it answers them one by one", async () => {
  const { list, read, search } = await makeRepo({ "a.txt": linesTo(30), "b/c.txt": "line" });
  const calls = [
    () => list({ glob: "**" }),
    () => read({ path: "a.txt" }),
    () => search({ pattern: "1" }),
  ];
  const alone: string[] = [];
  for (const call of calls) alone.push(await call());
  const together = await Promise.all([...calls, ...calls].map((call) => call()));
  expect(together).toEqual([...alone, ...alone]);
});
