/**
 * What is a citation in an answer, and what only looks like one.
 *
 * From effective-agents 0.1.0: test/citations-find.test.ts
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { findCitations } from "../patterns/citations/find.ts";

/** The citations in their plain form, where only these files are there. */
function found(answer: string, ...files: readonly string[]): string[] {
  return findCitations(answer, kindsOf(files)).map(({ text }) => text);
}

/** What there is in a folder of these files. */
function kindsOf(files: readonly string[]) {
  return (path: string) => {
    if (files.includes(path)) return "file";
    return files.some((file) => file.startsWith(`${path}/`)) ? "folder" : undefined;
  };
}

test("says of each citation what it cites", () => {
  expect(findCitations("See ./src/http.ts:42 and `src/a.ts:7-9`.")).toEqual([
    { text: "src/http.ts:42", path: "src/http.ts", start: 42, end: 42 },
    { text: "src/a.ts:7-9", path: "src/a.ts", start: 7, end: 9 },
  ]);
});

test("gives each citation once, where it first appears", () => {
  const answer = "b.ts:2, then a.ts:1, `./b.ts:2-2`, [b](b.ts#L2), b.ts:02, b.ts:2-3 and a.ts:1.";
  expect(found(answer)).toEqual(["b.ts:2", "a.ts:1", "b.ts:2-3"]);
});

test.for<readonly [answer: string, ...expected: string[]]>([
  // In prose
  ["see src/http.ts:42.", "src/http.ts:42"],
  ["src/http.ts:42", "src/http.ts:42"],
  ["(src/http.ts:42)", "src/http.ts:42"],
  ["(see src/http.ts:42-50).", "src/http.ts:42-50"],
  ["src/a.ts:1, src/b.ts:2; src/c.ts:3!", "src/a.ts:1", "src/b.ts:2", "src/c.ts:3"],
  ["src/a.ts:1,src/b.ts:2", "src/a.ts:1", "src/b.ts:2"],
  ["Is it src/a.ts:1?", "src/a.ts:1"],
  ['"src/a.ts:1" “src/b.ts:2” «src/c.ts:3»', "src/a.ts:1", "src/b.ts:2", "src/c.ts:3"],
  ["src/a.ts:1—the limit—is", "src/a.ts:1"],
  ["a.ts:1→b.ts:2", "a.ts:1", "b.ts:2"],
  ["[src/a.ts:1] {src/b.ts:2} <src/c.ts:3>", "src/a.ts:1", "src/b.ts:2", "src/c.ts:3"],
  ["read(src/a.ts:1)", "src/a.ts:1"],
  ["file=src/a.ts:1", "src/a.ts:1"],
  ["error:src/a.ts:1", "src/a.ts:1"],
  // In Markdown
  ["`src/http.ts:42`", "src/http.ts:42"],
  ["``src/http.ts:42-50``", "src/http.ts:42-50"],
  ["`src/http.ts`:42", "src/http.ts:42"],
  ["**src/http.ts:42**", "src/http.ts:42"],
  ["**src/http.ts**:42", "src/http.ts:42"],
  ["**`src/http.ts`**:42-50", "src/http.ts:42-50"],
  ["*src/http.ts:42*", "src/http.ts:42"],
  ["_src/http.ts:42_", "src/http.ts:42"],
  ["__src/_http.ts:42__", "src/_http.ts:42"],
  ["- src/a.ts:1\n- src/b.ts:2\n\n1. `c.ts:3`", "src/a.ts:1", "src/b.ts:2", "c.ts:3"],
  ["| src/a.ts:1 | 5 |\n|src/b.ts:2|`c.ts:3`|", "src/a.ts:1", "src/b.ts:2", "c.ts:3"],
  ["```ts\n// src/a.ts:1-2\ncall();\n```", "src/a.ts:1-2"],
  ["[text](src/http.ts:42)", "src/http.ts:42"],
  ["[text](src/http.ts#L42)", "src/http.ts:42"],
  ["[text](src/http.ts#L42-L50)", "src/http.ts:42-50"],
  ["[text](src/http.ts#L42C5-L50C7)", "src/http.ts:42-50"],
  ['[text](./src/http.ts#L42 "the limit")', "src/http.ts:42"],
  ["[text](<src/http.ts#L42>)", "src/http.ts:42"],
  ["[text](app/(shop)/[id]/page.tsx#L4)", "app/(shop)/[id]/page.tsx:4"],
  ["[text]: src/http.ts#L42", "src/http.ts:42"],
  ["[src/http.ts](src/http.ts):42", "src/http.ts:42"],
  ["[http.ts:42](src/http.ts:42)", "src/http.ts:42"],
  ["[http.ts:42](src/http.ts#L42-L50)", "src/http.ts:42", "src/http.ts:42-50"],
  ["[http.ts:42](src/http.ts)", "src/http.ts:42"],
  ["[see **`http.ts:42`** there](../x/src/http.ts)", "../x/src/http.ts:42"],
  ["[page.tsx:3](app/[id]/page.tsx#L3)", "app/[id]/page.tsx:3"],
  ["http.ts:42 is [here](src/http.ts#L42)", "http.ts:42", "src/http.ts:42"],
  ["[a](b.ts:1) http.ts:42 (c) [x](src/http.ts)", "b.ts:1", "http.ts:42"],
  ["[src/a.ts:1](lib/b.ts#L1)", "src/a.ts:1", "lib/b.ts:1"],
  // Ranges
  ["src/a.ts:42–50 src/b.ts:42—50", "src/a.ts:42-50", "src/b.ts:42-50"],
  [
    "src/a.ts:L42 src/b.ts:L42-L50 src/c.ts:L42-50",
    "src/a.ts:42",
    "src/b.ts:42-50",
    "src/c.ts:42-50",
  ],
  ["src/a.ts:42..50", "src/a.ts:42-50"],
  ["src/a.ts:42:7", "src/a.ts:42"],
  ["src/a.ts:42:7: error", "src/a.ts:42"],
  ["src/a.ts:42:7-12", "src/a.ts:42"],
  ["src/a.ts:42:7-50:3", "src/a.ts:42-50"],
  ["src/a.ts:42ff. src/b.ts:42f", "src/a.ts:42", "src/b.ts:42"],
  ["src/a.ts:12: import x", "src/a.ts:12"],
  ["src/a.ts:42- and src/b.ts:42-ish", "src/a.ts:42", "src/b.ts:42"],
  ["src/a.ts:50-42", "src/a.ts:50-42"],
  ["src/a.ts:0 src/b.ts:0-3", "src/a.ts:0", "src/b.ts:0-3"],
  ["src/a.ts:007", "src/a.ts:7"],
  [`src/a.ts:${"9".repeat(400)}`, `src/a.ts:${Number.MAX_SAFE_INTEGER}`],
  ["src/a.ts:3, 17-20", "src/a.ts:3", "src/a.ts:17-20"],
  ["src/a.ts:3,17", "src/a.ts:3", "src/a.ts:17"],
  ["(src/a.ts:3, 17 and 30–31)", "src/a.ts:3", "src/a.ts:17", "src/a.ts:30-31"],
  ["`src/a.ts:3`, `:17-20` and `:30` too", "src/a.ts:3", "src/a.ts:17-20", "src/a.ts:30"],
  ["src/a.ts:3 and 17. Then", "src/a.ts:3", "src/a.ts:17"],
  ["src/a.ts:3, 5 retries", "src/a.ts:3"],
  ["src/a.ts:3 and 5 more", "src/a.ts:3"],
  ["src/a.ts:3, 1.5 s", "src/a.ts:3"],
  ["src/a.ts:3, 2024-01-05", "src/a.ts:3"],
  ["src/a.ts:3, src/b.ts:4", "src/a.ts:3", "src/b.ts:4"],
  // Paths
  ["Dockerfile:3 Makefile:12 LICENSE:1", "Dockerfile:3", "Makefile:12", "LICENSE:1"],
  [".github/workflows/ci.yml:3", ".github/workflows/ci.yml:3"],
  [".gitignore:3 ./run:4", ".gitignore:3", "run:4"],
  ["..foo/a.ts:3 ../b.ts:4 ././c.ts:5", "..foo/a.ts:3", "../b.ts:4", "c.ts:5"],
  ["/etc/passwd:1 ~/.ssh/config:2", "/etc/passwd:1", "~/.ssh/config:2"],
  ["C:\\src\\a.ts:42 c:/src/b.ts:1", "C:\\src\\a.ts:42", "c:/src/b.ts:1"],
  ["src\\a.ts:42", "src\\a.ts:42"],
  [
    "app/(shop)/[id]/page.tsx:3 (app/[...x]/a.tsx:4)",
    "app/(shop)/[id]/page.tsx:3",
    "app/[...x]/a.tsx:4",
  ],
  ["[id].ts:3 (src/b.ts):4", "[id].ts:3", "src/b.ts:4"],
  [
    "__init__.py:3 _app.tsx:4 $types.ts:5 +page.svelte:6",
    "__init__.py:3",
    "_app.tsx:4",
    "$types.ts:5",
    "+page.svelte:6",
  ],
  ["node_modules/@types/node/fs.d.ts:3", "node_modules/@types/node/fs.d.ts:3"],
  ["src/naïve/漢字.ts:3 docs/😀.md:2", "src/naïve/漢字.ts:3", "docs/😀.md:2"],
  ["at run (file:///home/me/a.ts:3:5)", "/home/me/a.ts:3"],
  ["github.com/a/b.go:3", "github.com/a/b.go:3"],
])("finds %j", ([answer, ...expected]) => {
  expect(found(answer)).toEqual(expected);
});

test.for([
  "http://localhost:3000 and https://example.com:443/x",
  "[docs](http://localhost:3000/a.ts:3)",
  "`http://localhost:3000`",
  "[RFC](https://x.org/a):3",
  "https://github.com/o/r/blob/main/src/http.ts#L42",
  "localhost:8080, `localhost:3000/x`",
  "127.0.0.1:80 0.0.0.0:8080 [::1]:80",
  "web:80/x registry.example.com:5000/img",
  "root@server:22/x git@github.com:22",
  "at 12:30, or 12:30:45",
  "2024-01-01T12:30:00Z",
  "3:1, 16:9, 1/2:3",
  "node:fs node:internal/process/task_queues:95:5",
  "std::vector foo::bar:3 a::b.c:3",
  "error TS2345:12?",
  "John 3:16",
  "key: 1",
  '{"a.b":1}',
  "opacity:0.5 top:10px a.ts:3x",
  "Total:3 node:20 TS2345:12 z-index:10",
  "example.com:443 api.internal:8080 ghcr.io/o/img:1",
  "v1.2.3:4 1.5:2",
  "config.maxRetries:3",
  "a:b:3",
  ":3 `:3` (:3) #L3",
  "src/a.ts src/a.ts#retries [x](src/a.ts)",
  "",
])("finds nothing in %j", (answer) => {
  expect(found(answer)).toEqual([]);
});

test("takes a word for a path if there is such a file", () => {
  expect(found("Total:3 run:4, example.com:5 Kefile:6", "run", "example.com")).toEqual([
    "run:4",
    "example.com:5",
  ]);
  expect(found("a:run:4 run:4/x", "run")).toEqual([]);
  expect(found("run:0.5 run:22@x run:3x", "run")).toEqual([]);
  expect(findCitations("Total:3").map(({ text }) => text)).toEqual(["Total:3"]);
});

test.for<readonly [answer: string, file: string, there: string, gone: string]>([
  ["`my docs/a b.md:3`", "my docs/a b.md", "my docs/a b.md:3", "b.md:3"],
  ["`npx tsx src/a.ts:3`", "src/a.ts", "src/a.ts:3", "src/a.ts:3"],
  ["[x](my docs/b.md:3)", "my docs/b.md", "my docs/b.md:3", "docs/b.md:3"],
  ['[x](<my docs/b.md#L3> "b")', "my docs/b.md", "my docs/b.md:3", "docs/b.md:3"],
  ["[x](my%20docs/b.md#L3)", "my docs/b.md", "my docs/b.md:3", "my%20docs/b.md:3"],
  ["[x](caf%C3%A9.md:3)", "café.md", "café.md:3", "caf%C3%A9.md:3"],
  ["[x](100%.md:3)", "100%.md", "100%.md:3", "100%.md:3"],
  ["`C#/it's, a=b.cs:3`", "C#/it's, a=b.cs", "C#/it's, a=b.cs:3", "b.cs:3"],
  ["请看src/a.ts:3。", "src/a.ts", "src/a.ts:3", "请看src/a.ts:3"],
  ["✅src/a.ts:3", "src/a.ts", "src/a.ts:3", "✅src/a.ts:3"],
  ["@src/a.ts:3", "src/a.ts", "src/a.ts:3", "@src/a.ts:3"],
  ["@src/a.ts:3", "@src/a.ts", "@src/a.ts:3", "@src/a.ts:3"],
  ["漢字/a.ts:3", "漢字/a.ts", "漢字/a.ts:3", "漢字/a.ts:3"],
])("takes of two readings the one that is there: %j for %j", ([answer, file, there, gone]) => {
  expect(found(answer, file)).toEqual([there]);
  expect(found(answer)).toEqual([gone]);
});

test("takes the longer of two readings that are there", () => {
  expect(found("@src/a.ts:3", "@src/a.ts", "src/a.ts")).toEqual(["@src/a.ts:3"]);
  expect(found("`my docs/a.ts:3`", "my docs/a.ts", "docs/a.ts")).toEqual(["my docs/a.ts:3"]);
});

test("reads on behind a path that is there", () => {
  const answer = "`src/a.ts:3`, `:17-20` and `:30`; `src/a.ts:4 and src/b.ts:5`";
  const expected = ["src/a.ts:3", "src/a.ts:17-20", "src/a.ts:30", "src/a.ts:4", "src/b.ts:5"];
  expect(found(answer, "src/a.ts")).toEqual(expected);
});

test("takes an address, a time and the like for no path, whatever files there are", () => {
  const answer =
    "http://localhost:3000 `https://example.com:443/x` localhost:8080 `127.0.0.1:80` at 12:30, 3:1, node:fs, std::vector, `foo::bar:3`, John 3:16, key: 1, `16 / 9:1`, [x](localhost:8080), [y](12:30)";
  expect(findCitations(answer)).toEqual([]);
});

test("reads no path between two code spans", () => {
  expect(found("`a` see my file.ts:3 `b`", "see my file.ts")).toEqual(["file.ts:3"]);
  expect(found("a stray ` and `my file.ts:3`, `x`", "my file.ts")).toEqual(["file.ts:3"]);
});

// Whatever stands between path, first and last line

test.for<readonly [answer: string, ...expected: string[]]>([
  // A last line behind blanks, words and marks
  ["src/a.ts:12 - 20", "src/a.ts:12-20"],
  ["src/a.ts:12 – 20", "src/a.ts:12-20"],
  ["src/a.ts:12 — 20.", "src/a.ts:12-20"],
  ["src/a.ts:12\u00a0\u2011\u202f20", "src/a.ts:12-20"],
  ["src/a.ts:12 to 20", "src/a.ts:12-20"],
  ["src/a.ts:12 through 20", "src/a.ts:12-20"],
  ["src/a.ts:12 thru 20, src/b.ts:1 until 4", "src/a.ts:12-20", "src/b.ts:1-4"],
  [
    "src/a.ts:12→20 src/b.ts:12 -> 20 src/c.ts:1…3",
    "src/a.ts:12-20",
    "src/b.ts:12-20",
    "src/c.ts:1-3",
  ],
  ["`src/a.ts:3`–`5`", "src/a.ts:3-5"],
  ["`src/a.ts:3` to `:5`", "src/a.ts:3-5"],
  ["`src/a.ts:3` – `5`", "src/a.ts:3-5"],
  ["**src/a.ts:3** to **5**", "src/a.ts:3-5"],
  ["src/a.ts:L12 to L20", "src/a.ts:12-20"],
  ["src/a.ts:12 to line 20", "src/a.ts:12-20"],
  ["src/a.ts#L12-#L20", "src/a.ts:12-20"],
  ["src/a.ts:12 to 20 sets the limit", "src/a.ts:12-20"],
  ["src/a.ts:12 - 20 sets the limit", "src/a.ts:12-20"],
  ["README.md:1 - 99999", "README.md:1-99999"],
  ["src/a.ts:20 - 12", "src/a.ts:20-12"],
  ["src/a.ts:12:5 to 20:3", "src/a.ts:12-20"],
  ["src/a.ts:12:5 to 99", "src/a.ts:12-99"],
  ["src/a.ts:12至20 src/b.ts：3 src/c.ts，第4行", "src/a.ts:12-20", "src/b.ts:3", "src/c.ts:4"],
  ["src/a.ts:12 to\n20, src/b.ts:3 and\n  5.", "src/a.ts:12-20", "src/b.ts:3", "src/b.ts:5"],
  ["src/a.ts:12\\-20 src/b.ts:1..=5 #L", "src/a.ts:12-20", "src/b.ts:1-5"],
  ["src/a.ts:L12:L20", "src/a.ts:12-20"],
  ["src/a.ts:12 to src/a.ts:20", "src/a.ts:12", "src/a.ts:20"],
  ["`src/a.ts:12`-`src/a.ts:20`", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:3, 17 to 20 and 30 – 31", "src/a.ts:3", "src/a.ts:17-20", "src/a.ts:30-31"],
  // A dash that begins a remark
  ["src/a.ts:12 - 3 retries", "src/a.ts:12"],
  ["- `src/a.ts:12` – 250 ms between two tries", "src/a.ts:12"],
  ["src/a.ts:12—3 retries", "src/a.ts:12"],
  ["src/a.ts:3\n- 5 retries", "src/a.ts:3"],
  // Lists
  ["src/a.ts:12 or 20", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12; 20", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12/20", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12 & 20, src/b.ts:1+3", "src/a.ts:12", "src/a.ts:20", "src/b.ts:1", "src/b.ts:3"],
  ["src/a.ts:12 and line 20 show it", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12, L20 shows it", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12, and 20 (the limit)", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts:12 or 20 or 30?", "src/a.ts:12", "src/a.ts:20", "src/a.ts:30"],
  ["src/a.ts:12; 5 retries", "src/a.ts:12"],
  ["src/a.ts:12 or 5 times", "src/a.ts:12"],
  // Thousands
  ["src/a.ts:1,000", "src/a.ts:1000"],
  ["src/a.ts:1,000-1,200 and src/b.ts:12,345", "src/a.ts:1000-1200", "src/b.ts:12345"],
  ["lines 1,000 to 1,200 of src/a.ts", "src/a.ts:1000-1200"],
  ["src/a.ts:120,135", "src/a.ts:120", "src/a.ts:135"],
  ["src/a.ts:3,170,200", "src/a.ts:3", "src/a.ts:170", "src/a.ts:200"],
  ["src/a.ts:12,345-400", "src/a.ts:12", "src/a.ts:345-400"],
  // More than a mark between the path and the line
  ["src/a.ts: 12", "src/a.ts:12"],
  ["src/a.ts: 12-20, 30", "src/a.ts:12-20", "src/a.ts:30"],
  ["**src/a.ts:** 12", "src/a.ts:12"],
  ["`src/a.ts`: `12`", "src/a.ts:12"],
  ["`src/a.ts`:`12`", "src/a.ts:12"],
  ["`src/a.ts` `:12`", "src/a.ts:12"],
  ["`src/a.ts` (`:12`)", "src/a.ts:12"],
  ["src/a.ts (line 12)", "src/a.ts:12"],
  ["(src/a.ts, line 12)", "src/a.ts:12"],
  ["src/a.ts, lines 12-20", "src/a.ts:12-20"],
  ["src/a.ts lines 12 and 20.", "src/a.ts:12", "src/a.ts:20"],
  ["src/a.ts on line 12", "src/a.ts:12"],
  ["src/a.ts, at lines 12 to 20, is", "src/a.ts:12-20"],
  ["`src/a.ts` L12", "src/a.ts:12"],
  ["`src/a.ts`, L12–L20", "src/a.ts:12-20"],
  ["`src/a.ts` (L12-20)", "src/a.ts:12-20"],
  ["`src/a.ts` (lines 3–5)", "src/a.ts:3-5"],
  ["**`src/a.ts`** (**lines 3–5**)", "src/a.ts:3-5"],
  ["`src/a.ts` (3–5)", "src/a.ts:3-5"],
  ["src/a.ts:lines 3-5", "src/a.ts:3-5"],
  ["src/a.ts: line 3 sets it", "src/a.ts:3"],
  ["src/a.ts: L3", "src/a.ts:3"],
  ["src/a.ts — line 3", "src/a.ts:3"],
  ["src/a.ts -- line 3, src/b.ts · L4", "src/a.ts:3", "src/b.ts:4"],
  ["src/a.ts's line 3", "src/a.ts:3"],
  ["src/a.ts between lines 3 and 5", "src/a.ts:3", "src/a.ts:5"],
  ["【F:src/a.ts†L3-L5】", "src/a.ts:3-5"],
  ["src/a.ts Ln 12, Col 5", "src/a.ts:12"],
  ["src/a.ts line #12", "src/a.ts:12"],
  ["src/a.ts (see line 12)", "src/a.ts:12"],
  ["| src/a.ts | L12 |\n| `src/b.ts` | lines 3-5 |", "src/a.ts:12", "src/b.ts:3-5"],
  ['  File "src/a.py", line 12, in run', "src/a.py:12"],
  ["[src/a.ts](src/a.ts), line 12", "src/a.ts:12"],
  ["[a.ts](./src/a.ts) (lines 3-5)", "src/a.ts:3-5"],
  ["[a.ts line 12](src/a.ts)", "src/a.ts:12"],
  ['[x](src/a.ts "the limit") line 12', "src/a.ts:12"],
  ["`src/a.ts, line 3`", "src/a.ts:3"],
  ["Makefile, line 3", "Makefile:3"],
  // Lines in front
  ["line 12 of src/a.ts", "src/a.ts:12"],
  ["Lines 3-5 and 9 of `src/a.ts` show", "src/a.ts:3-5", "src/a.ts:9"],
  ["(lines 3 to 5 in src/a.ts)", "src/a.ts:3-5"],
  ["see L12-L20 of [a.ts](src/a.ts)", "src/a.ts:12-20"],
  ["on **line 12** of the file src/a.ts.", "src/a.ts:12"],
  ["src/a.ts:3 and line 5 of src/b.ts", "src/a.ts:3", "src/b.ts:5"],
  ["src/a.ts and line 5 of Makefile", "Makefile:5"],
  ["lines 3-5 of src/a.ts:4", "src/a.ts:4"],
  // Compilers
  ["src/a.ts(12,5): error TS2345: x", "src/a.ts:12"],
  ["src/a.ts(12): warning", "src/a.ts:12"],
  ["a.ts(12,5): error", "a.ts:12"],
  ["(src/a.ts(12,5,14,3))", "src/a.ts:12-14"],
  ["src/a.ts(12-14)", "src/a.ts:12-14"],
  // Code blocks
  ["```12:20:src/a.ts\nx();\n```", "src/a.ts:12-20"],
  ["```ts 12:20:src/a.ts\nx();\n```", "src/a.ts:12-20"],
  ["```ts:src/a.ts:12-20\nx();\n```", "src/a.ts:12-20"],
  ["`12:20:src/a.ts`", "src/a.ts:12-20"],
  // Files as URLs
  ["[x](file:///home/u/repo/src/a.ts#L12)", "/home/u/repo/src/a.ts:12"],
  ["file://localhost/home/u/a.ts:3 (file:///C:/src/a.ts:4)", "/home/u/a.ts:3", "C:/src/a.ts:4"],
  ["(C:\\src\\a.ts:42)", "C:\\src\\a.ts:42"],
  // Globs
  ["src/{a,b}.ts:12", "src/{a,b}.ts:12"],
  ["src/*.ts:12 `src/**/*.test.ts:3`", "src/*.ts:12", "src/**/*.test.ts:3"],
  ["src/*/index.ts:12", "src/*/index.ts:12"],
  // Emphasis
  ["_src/a.ts_ (line 3)", "src/a.ts:3"],
  ["_**src/a.ts**_:3 *a.ts:4*", "src/a.ts:3", "a.ts:4"],
])("finds every line: %j", ([answer, ...expected]) => {
  expect(found(answer)).toEqual(expected);
});

test.for([
  "process.env:3 obj.method:3 Math.max:3 config.timeout:30",
  "`process.env: 3` `console.log(3)` `res.json(404)` `history.go(2)`, list.map (line 3)",
  "Node.js:20, Next.js: 14, Node.js/Express.js:4, ASP.NET:8 .NET:8",
  "i.e:3 e.g.:3 n/a:3 I/O:5 and/or:2",
  "client/server:8080 GET /users:8080 POST /api/users:3",
  "req.params/req.query:3 .then/.catch:3 .map:3",
  "ghcr.io/o/img:1 docs.example.com/a/b:443",
  "Total: 3 src/a.ts: 3 retries, src/a.ts (12) src/a.ts 12",
  "see it (line 3), the limit, line 4",
  "retry(3) sleep(250,5) `f(12)`",
  "*.ts:12 **/*.md",
  "https://github.com/o/r/blob/main/src/a.ts#L12-L20",
  "[x](https://github.com/o/r/blob/main/src/a.ts#L12)",
  "In src/a.ts the limit is set on line 12",
  "line 3 of 20, lines of src/a.ts",
  "`12:30:45` at 10:20:30",
])("leaves alone what is no path: %j", (answer) => {
  expect(found(answer)).toEqual([]);
});

test.for<readonly [answer: string, file: string, ...expected: string[]]>([
  // With such a file, whatever its name
  ["process.env:3 n/a:4", "process.env", "process.env:3"],
  ["Node.js:20, lines 3-5 of Node.js", "Node.js", "Node.js:20", "Node.js:3-5"],
  ["n/a:3", "n/a", "n/a:3"],
  ["client/server:8080", "client/server", "client/server:8080"],
  ["res.json(3)", "res.json", "res.json:3"],
  ["`run` (line 3), `run`: 4, run: 5", "run", "run:3", "run:4"],
  ["bin/run, line 3", "bin/run", "bin/run:3"],
  ["src/a.ts:12-src/a.ts:20", "src/a.ts", "src/a.ts:12", "src/a.ts:20"],
  ["x*src/a.ts:3", "src/a.ts", "src/a.ts:3"],
  ["请看**src/a.ts:3**", "src/a.ts", "src/a.ts:3"],
  ["__src/a__:3", "src/a", "src/a:3"],
  ["__src/a__:3", "__src/a__", "__src/a__:3"],
  ["src/*.ts:3", "src/*.ts", "src/*.ts:3"],
  // With its first folder
  ["src/nope:9 lib/nope:9", "src/a.ts", "src/nope:9"],
  ["src/nope.odd:9 (src/nope)", "src/a.ts", "src/nope.odd:9"],
  // Blanks
  ["`my docs/a.md`:3", "my docs/a.md", "my docs/a.md:3"],
  ["`my docs/a.md` (lines 3-5)", "my docs/a.md", "my docs/a.md:3-5"],
  ["`my docs/a.md, lines 3-5`", "my docs/a.md", "my docs/a.md:3-5"],
  ["`my docs/a.md: 3`", "my docs/a.md", "my docs/a.md:3"],
  ["[x](<my docs/a.md>), line 3", "my docs/a.md", "my docs/a.md:3"],
  ["```3:5:my docs/a.md\n```", "my docs/a.md", "my docs/a.md:3-5"],
  // At GitHub and the like
  ["https://github.com/o/r/blob/main/src/a.ts#L12-L20.", "src/a.ts", "src/a.ts:12-20"],
  ["[x](https://github.com/o/r/blob/main/src/a.ts#L12)", "src/a.ts", "src/a.ts:12"],
  ["[a.ts:12](https://github.com/o/r/blob/main/src/a.ts#L12)", "src/a.ts", "src/a.ts:12"],
  ["https://github.com/o/r/blob/my/branch/src/a.ts#L12", "src/a.ts", "src/a.ts:12"],
  ["https://github.com/o/r/blob/main/packages/x/src/a.ts#L12", "src/a.ts", "src/a.ts:12"],
  ["https://github.com/o/r/blob/main/README.md?plain=1#L3", "README.md", "README.md:3"],
  ["https://gitlab.com/g/o/r/-/blob/main/src/a.ts#L3-5", "src/a.ts", "src/a.ts:3-5"],
  ["https://codeberg.org/o/r/src/branch/main/src/a.ts#L3", "src/a.ts", "src/a.ts:3"],
  [
    "https://github.com/o/r/blob/main/app/(x)/[id]/a.ts#L3",
    "app/(x)/[id]/a.ts",
    "app/(x)/[id]/a.ts:3",
  ],
  ["https://github.com/o/r/blob/main/my%20docs/a.md#L3", "my docs/a.md", "my docs/a.md:3"],
  ["https://github.com/o/r/blob/main/nope/index.ts#L3", "index.ts"],
  ["https://github.com/o/r/tree/main/src/a.ts", "src/a.ts"],
  ["https://example.com/src/a.ts#L3", "src/a.ts"],
])("asks what is there: %j for %j", ([answer, file, ...expected]) => {
  expect(found(answer, file)).toEqual(expected);
});

test("finds a file that is made up", () => {
  const made = ["wote.ts:3", "src/nope.ts:9", "nowhere/a.md:1", "./x:2", ".github/nope:3"];
  expect(found(made.join(" "))).toEqual([
    "wote.ts:3",
    "src/nope.ts:9",
    "nowhere/a.md:1",
    "x:2",
    ".github/nope:3",
  ]);
});

// Whatever the path

const letter = fc.constantFrom(..."abcXYZ019_-.+@~$éß漢Ω😀".split(/(?:)/u));
const name = fc.oneof(
  fc.array(letter, { minLength: 1, maxLength: 6 }).map((letters) => letters.join("")),
  fc.constantFrom("(shop)", "[id]", "[...all]", "..", ".github", "node", "file", "a.com"),
);
const isCitable = (path: string) =>
  /\p{L}/u.test(path) && path !== "localhost" && !/^\.?\/|\/\.\/|^\(.*\)$|^\[.*\]$/.test(path);
const plainPath = fc
  .array(name, { minLength: 1, maxLength: 4 })
  .map((names) => names.join("/"))
  .filter(isCitable);
/** Blanks and signs too. */
const anyPath = fc
  .array(fc.oneof(name, fc.constantFrom(" ", ",", "#", "'", "=", "!", "?", ";", "&", '"')), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join(""))
  .filter((path) => isCitable(path) && path === path.trim());
const line = fc.integer({ min: 0, max: 1_000_000 });

type Form = (path: string, lines: string, hash: string) => string;
const PROSE: readonly Form[] = [
  (path, lines) => `${path}:${lines}`,
  (path, lines) => `See ${path}:${lines}.`,
  (path, lines) => `(${path}:${lines})`,
  (path, lines) => `a,${path}:${lines},b`,
  (path, lines) => `**${path}:${lines}**`,
  (path, lines) => `**${path}**:${lines}`,
  (path, lines) => `"${path}:${lines}" and more`,
  (path, lines) => `- ${path}:${lines}\n- nothing`,
  (path, lines) => `|${path}:${lines}|12:30|`,
  (path, lines) => `\`${path}:${lines}\``,
  (path, lines) => `\`${path}\`:${lines}`,
  (path, lines) => `./${path}:${lines}`,
  (path, _, hash) => `${path}${hash}`,
  (path, lines) => `[here](${path}:${lines})`,
  (path, lines) => `[${path}:${lines}](${path}:${lines})`,
  (path, _, hash) => `[\`${path}\`](./${path}${hash})`,
];
const escaped = (path: string) =>
  encodeURIComponent(path).replaceAll("%2F", "/").replaceAll("(", "%28").replaceAll(")", "%29");
const ENCLOSED: readonly Form[] = [
  (path, lines) => `\`${path}:${lines}\``,
  (path, lines) => `Not \`this\`: \`\`${path}:${lines}\`\`.`,
  (path, _, hash) => `\`${path}${hash}\``,
  (path, _, hash) => `[here](${escaped(path)}${hash})`,
  (path, lines) => `[here](<${escaped(path)}:${lines}> "title")`,
];

/** What may stand between a path and its first line, a first and a last line, and around all of it. */
const INTROS = [
  ":",
  ":L",
  "#L",
  ": ",
  ":lines ",
  " (line ",
  " (lines ",
  ", lines ",
  ", line ",
  " on line ",
  " L",
  ", L",
  " (L",
  " — line ",
  ": line ",
  " | L",
];
const TOS =
  "-|–|—|..|…|→|->| - | – | — | → | to | through | until | up to |-L|–L| to L| to line | - L".split(
    "|",
  );
const AROUND: readonly Form[] = [
  (path, lines) => `${path}${lines}`,
  (path, lines) => `See ${path}${lines}, which is so.`,
  (path, lines) => `- **${path}**${lines}\n- no more`,
  (path, lines) => `\`${path}\`${lines}`,
  (path, lines) => `\`${path}\`${lines}; \`x\``,
  (path, lines) => `[x](./${path})${lines}`,
];
const AHEAD: readonly Form[] = [
  (path, lines) => `lines ${lines} of ${path}`,
  (path, lines) => `**Lines ${lines}** in \`${path}\` and others`,
  (path, lines) => `(line ${lines} of the file ${path}, too)`,
  (path, lines) => `L${lines} of ${path}`,
];
/** As the rules have it: loose forms need a word that looks like a path. */
const lookingPath = plainPath.map((path) => `src/${path}`).filter((path) => !/[)\]}.]$/.test(path));

test("finds exactly what was written, whatever stands between path, first and last line", () => {
  const anyOf = (texts: readonly string[]) => fc.constantFrom(...texts);
  const forms = fc.oneof(
    fc.tuple(anyOf(INTROS), fc.constantFrom(...AROUND)),
    fc.tuple(fc.constant(""), fc.constantFrom(...AHEAD)),
  );
  const range = fc.tuple(line, fc.option(line));
  fc.assert(
    fc.property(
      lookingPath,
      range,
      forms,
      anyOf(TOS),
      fc.boolean(),
      (path, range, form, to, big) => {
        const [start, last] = range;
        const [intro, around] = form;
        // 120,135 and 1,000-200 are lists.
        const isBig = big && (last === null || last >= 1_000);
        const written = (line: number) =>
          isBig && line < 100_000 ? line.toLocaleString("en-US") : `${line}`;
        const lines = `${intro}${written(start)}${last === null ? "" : to + written(last)}`;
        const answer = around(path, lines, "");
        const end = last ?? start;
        const text = `${path}:${start}${end === start ? "" : `-${end}`}`;
        expect([answer, ...findCitations(answer, kindsOf([path]))]).toEqual([
          answer,
          { text, path, start, end },
        ]);
      },
    ),
    { numRuns: 3_000 },
  );
});

test("finds every range of a list, whatever stands between them", () => {
  const ands = [
    ", ",
    "; ",
    " and ",
    ", and ",
    " or ",
    " & ",
    "/",
    " + ",
    " plus ",
    ", L",
    " and line ",
  ];
  const item = fc.record({
    start: fc.integer({ min: 100_000, max: 1_000_000 }),
    last: fc.option(line),
    and: fc.constantFrom(...ands),
    to: fc.constantFrom(...TOS),
  });
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 8 }), (items) => {
      const written = items.map(({ start, last, to, and }, index) =>
        [index > 0 ? and : "", start, ...(last === null ? [] : [to, last])].join(""),
      );
      const expected = items.map(({ start, last }) =>
        last === null || last === start ? `a.ts:${start}` : `a.ts:${start}-${last}`,
      );
      const answer = `It is a.ts:${written.join("")}.`;
      expect([answer, ...found(answer)]).toEqual([answer, ...new Set(expected)]);
    }),
    { numRuns: 1_000 },
  );
});

test.for([
  ["in prose", plainPath, PROSE],
  ["in code and links", anyPath, ENCLOSED],
] as const)("finds exactly what was written, whatever path and lines: %s", ([, paths, forms]) => {
  fc.assert(
    fc.property(paths, line, fc.option(line), fc.nat(), (path, start, last, form) => {
      const end = last ?? start;
      const lines = last === null ? `${start}` : `${start}-${end}`;
      const hash = last === null ? `#L${start}` : `#L${start}-L${end}`;
      const answer = forms[form % forms.length]?.(path, lines, hash) ?? "";
      const citations = findCitations(answer, kindsOf([path, `./${path}`]));
      const text = `${path}:${start}${end === start ? "" : `-${end}`}`;
      expect(citations).toEqual([{ text, path, start, end }]);
    }),
    { numRuns: 1_000 },
  );
});

// Whatever the text

const piece = fc.oneof(
  fc.constantFrom(
    ..."`[](){}<>_*~#:/\\.,-–@ \n|\"'",
    "](",
    "](<",
    "://",
    "./",
    "#L1",
    ":1",
    "%20",
    "%",
  ),
  fc.constantFrom(
    "a.ts",
    "src/a.ts",
    "C:\\",
    "node:",
    "::",
    ", 2",
    " and 3",
    "-4",
    "漢",
    "\ud800",
    "\0",
  ),
  fc.string({ unit: "binary", maxLength: 3 }),
);

test("reads any text, and gives well-formed citations, each once", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), fc.boolean(), (pieces, isThere) => {
      const citations = findCitations(pieces.join(""), () => (isThere ? "file" : undefined));
      for (const { text, path, start, end } of citations) {
        expect(text).toBe(`${path}:${start}${end === start ? "" : `-${end}`}`);
        expect(path).toMatch(/\p{L}/u);
        expect([start, end].every((line) => Number.isSafeInteger(line) && line >= 0)).toBe(true);
      }
      expect(new Set(citations.map(({ text }) => text)).size).toBe(citations.length);
    }),
    { numRuns: 1_000 },
  );
});

// A quadratic search would take minutes here.
test.for<readonly [unit: string, found: number]>([
  ["a", 0],
  ["1", 0],
  ["`", 0],
  ["[", 0],
  ["](", 0],
  ["](<a", 0],
  ["](a(b", 0],
  ["](a)", 0],
  ["()", 0],
  ["./", 0],
  ["_", 0],
  [" ", 0],
  ["漢", 0],
  ["`a", 0],
  ["`!", 0],
  ["a.ts:", 0],
  [":1", 0],
  ["http://", 0],
  ["C:\\", 0],
  ["a:1 ", 0],
  ["`a b:1`", 0],
  ["[x](a#)", 0],
  ["a.ts:1_", 1],
  ["a.ts:1,", 1],
  ["a.ts:1 and ", 1],
  ["a.ts:1- ", 1],
  ["[a.ts:1](b/a.ts)", 1],
  ["a lines 1, ", 1],
  ["lines 1, ", 0],
  ["line 1 of ", 0],
  ["_a.ts line ", 0],
  ["a.ts (", 0],
  ["a.ts(1,", 0],
  ["a.ts(", 0],
  ["a.ts: ", 0],
  ["a.ts:1 to ", 1],
  ["a.ts:1 - 2 - ", 1],
  ["a.ts:1,000", 2],
  ["1,000,", 0],
  ["src/*", 0],
  ["{a,", 0],
  ["{a,b}", 0],
  ["*", 0],
  [")", 0],
  [".)", 0],
  ["```1:2:", 0],
  ["`x`, L1, ", 0],
  [", `L1`", 0],
  [", `line 1`", 0],
  ["`x y`, L1, ", 0],
  ["1:2:", 0],
  ["https://a/blob/", 0],
  ["/blob/a", 0],
  ["a/b/", 0],
])("reads 50,000 characters that look like more to come: %j", ([unit, count]) => {
  for (const start of ["", "`", "]("]) {
    expect(found(start + unit.repeat(50_000 / unit.length)).length).toBeLessThanOrEqual(count + 1);
  }
});

test("finds 100,000 citations in one answer", () => {
  const lines = Array.from({ length: 100_000 }, (_, index) => index + 1);
  expect(findCitations(`a.ts:${lines.join(" a.ts:")}`)).toHaveLength(100_000);
  expect(findCitations(`a.ts:${lines.join(", ")}`)).toHaveLength(100_000);
});
