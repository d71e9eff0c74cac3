/**
 * Globs and .gitignore files: the rules one by one, and against git itself.
 *
 * From effective-agents 0.1.0: test/repo-tools-glob.test.ts
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { expandBraces, matches, parseGlob } from "../patterns/repo-tools/glob.ts";
import { createRepoTools } from "../patterns/repo-tools.ts";

const hasGit = spawnSync("git", ["--version"]).status === 0;

function fits(glob: string, path: string): boolean {
  const isFolder = path.endsWith("/");
  const parts = (isFolder ? path.slice(0, -1) : path).split("/");
  return matches(parseGlob(glob), parts, isFolder);
}

test.for<readonly [glob: string, fitting: readonly string[], others: readonly string[]]>([
  ["*.ts", ["a.ts", ".ts", "src/deep/a.ts", ".x.ts"], ["a.tsx", "a.ts/b"]],
  ["src/*.ts", ["src/a.ts"], ["a.ts", "src/b/a.ts", "lib/src/a.ts"]],
  ["/a.ts", ["a.ts"], ["src/a.ts"]],
  ["src/**", ["src/a", "src/b/c"], ["src", "src/", "lib/src/a"]],
  ["**/a", ["a", "b/a", "b/c/a"], ["ba", "a/b"]],
  ["src/**/a", ["src/a", "src/b/a", "src/b/c/a"], ["src", "src/b"]],
  ["a**b", ["ab", "axxb"], ["a/b"]],
  ["**", ["a", "a/b", ".x"], []],
  ["build/", ["build/", "a/build/"], ["build"]],
  ["?", ["a", "é", "漢", "😀"], ["", "ab"]],
  ["[ab]c", ["ac", "bc"], ["cc", "[ab]c"]],
  ["[!a-c]", ["d", "-"], ["a", "b"]],
  ["[^a]", ["b"], ["a"]],
  ["[]a]", ["]", "a"], ["b"]],
  ["[a-]", ["-", "a"], ["b"]],
  ["[\\]x]", ["]", "x"], ["\\"]],
  ["[a", ["[a"], ["a"]],
  ["\\*.ts", ["*.ts"], ["a.ts"]],
  ["a.b", ["a.b"], ["axb"]],
  ["(a|b)+", ["(a|b)+"], ["a"]],
])("the glob %s fits what it means", ([glob, fitting, others]) => {
  expect(fitting.filter((path) => !fits(glob, path))).toEqual([]);
  expect(others.filter((path) => fits(glob, path))).toEqual([]);
});

test("stands for all globs that its braces name, nested ones too", () => {
  expect(expandBraces("*.{ts,tsx}", 9)?.toSorted()).toEqual(["*.ts", "*.tsx"]);
  expect(expandBraces("{a,b{c,d}}/{e,}", 9)?.toSorted()).toEqual(
    ["a/", "a/e", "bc/", "bc/e", "bd/", "bd/e"].toSorted(),
  );
  expect(expandBraces("{a}{}{", 9)).toEqual(["{a}{}{"]);
  expect(expandBraces("{a,b}".repeat(20), 100)).toBe(undefined);
});

test("comes to an end with stars that no backtracking would survive", () => {
  expect(fits(`${"*a".repeat(100)}b`, "a".repeat(250))).toBe(false);
  expect(fits(`${"**/a/".repeat(100)}b`, "a/".repeat(1_000).concat("c"))).toBe(false);
});

test("fits a name with stars exactly as a regular expression does", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), maxLength: 8 });
  const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(text, name, (glob, path) => {
      const regex = new RegExp(`^${glob.replace(/\*+/g, ".*").replaceAll("?", ".")}$`);
      expect(fits(glob, path)).toBe(glob === "**" || regex.test(path));
    }),
  );
});

const TREE = [
  "a",
  "b.log",
  "keep.log",
  "src/a",
  "src/b.log",
  "src/lib/a",
  "src/lib/keep.log",
  "lib/a",
  "lib/x y",
  "lib/src/b.log",
  "#x",
  "!x",
  "x ",
];

// Where it was copied to, a test has five seconds if it doesn't say.
const LONG = { timeout: 30_000 };

test.skipIf(!hasGit)("leaves out exactly what git ignores", LONG, async () => {
  const root = await mkdtemp(join(tmpdir(), "repo-tools-git-"));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const path of TREE) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), "");
  }
  const { PATH } = process.env;
  const env = { PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: root, env, encoding: "utf8" });
  git("init", "--quiet");
  const [listFiles] = createRepoTools(root);

  const piece = fc.constantFrom("a", "b.log", "*.log", "src", "lib", "**", "*", "keep.log", "[ab]");
  const glob = fc.array(piece, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.join("/"));
  const rule = fc
    .tuple(
      fc.constantFrom("", "", "!"),
      fc.constantFrom("", "", "/"),
      glob,
      fc.constantFrom("", "/"),
    )
    .map((parts) => parts.join(""));
  const odd = fc.constantFrom("", "# a", "\\#x", "\\!x", "x\\ ", "a  ", "lib/x?y", "/", "a\r", "!");
  const lines = fc.array(fc.oneof({ weight: 4, arbitrary: rule }, odd), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(lines, lines, async (top, inner) => {
      await writeFile(join(root, ".gitignore"), top.join("\n"));
      await writeFile(join(root, "src/.gitignore"), inner.join("\n"));
      const listed = await listFiles.run({ glob: "**" }, { callId: "c1", signal: undefined });
      const files = [...listed.matchAll(/^(.*) \d+ bytes$/gm)].map(([, path]) => path);
      const others = git("ls-files", "-z", "--others", "--exclude-standard").split("\0");
      expect(files.toSorted()).toEqual(others.filter(Boolean).toSorted());
    }),
    { numRuns: 50 },
  );
});
