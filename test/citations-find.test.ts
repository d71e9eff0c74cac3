/** What is a citation in an answer, and what only looks like one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { findCitations } from "../patterns/citations/find.ts";

/** The citations in their plain form, where only these files are there. */
function found(answer: string, ...files: readonly string[]): string[] {
  return findCitations(answer, (path) => files.includes(path)).map(({ text }) => text);
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
  ["bin/run:3", "bin/run:3"],
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
  ["at run (file:///home/me/a.ts:3:5)", "///home/me/a.ts:3"],
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
  "key: 1, src/a.ts: 42",
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
      const citations = findCitations(answer, (asked) => asked.replace(/^(\.\/)+/, "") === path);
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
      const citations = findCitations(pieces.join(""), () => isThere);
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
])("reads 200,000 characters that look like more to come: %j", ([unit, count]) => {
  for (const start of ["", "`", "]("]) {
    expect(found(start + unit.repeat(200_000 / unit.length)).length).toBeLessThanOrEqual(count + 1);
  }
});

test("finds 100,000 citations in one answer", () => {
  const lines = Array.from({ length: 100_000 }, (_, index) => index + 1);
  expect(findCitations(`a.ts:${lines.join(" a.ts:")}`)).toHaveLength(100_000);
  expect(findCitations(`a.ts:${lines.join(", ")}`)).toHaveLength(100_000);
});
