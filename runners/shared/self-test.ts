/**
 * Proves without a key that no tool leaves the folder: builds a little repository with ways out of it,
 * calls the tools as the loop does, and prints a line for each check.
 */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { prepareTools } from "../../patterns/tool-calls.ts";
import { temporaryFolder } from "./temporary.ts";

interface Check {
  readonly tool: "list_files" | "read_file" | "search";
  readonly input: object;
  readonly says: string;
  /** Begins what comes back. */
  readonly expected: string;
}

const OUT = (path: string) => `is_error: '${path}' points outside the repo root.`;

const CHECKS: readonly Check[] = [
  {
    tool: "read_file",
    input: { path: "app.py" },
    says: "app.py",
    expected: "result: app.py lines 1-2 of 2",
  },
  {
    tool: "read_file",
    input: { path: "../outside.txt" },
    says: "../outside.txt",
    expected: OUT("../outside.txt"),
  },
  {
    tool: "search",
    input: { pattern: "return 42" },
    says: "'return 42'",
    expected: "result: app.py:2:     return 42",
  },
  {
    tool: "search",
    input: { pattern: "(" },
    says: "'(' (bad regex)",
    expected: "is_error: Invalid regular expression '('",
  },
  {
    tool: "read_file",
    input: { path: "link.txt" },
    says: "link.txt (symlink out)",
    expected: OUT("link.txt"),
  },
  {
    tool: "read_file",
    input: { path: "folder/outside.txt" },
    says: "folder/outside.txt (through a link)",
    expected: OUT("folder/outside.txt"),
  },
  {
    tool: "search",
    input: { pattern: "TOP SECRET" },
    says: "'TOP SECRET' (outside, and in .env)",
    expected: "result: No match",
  },
  {
    tool: "read_file",
    input: { path: ".ENV" },
    says: ".ENV (a secret, in other letters)",
    expected: "is_error: '.ENV'",
  },
  { tool: "list_files", input: {}, says: "(no secrets among the names)", expected: "result: " },
];

/** Runs the checks; gives the exit code. */
export async function selfTest(print: (line: string) => void): Promise<number> {
  using folder = temporaryFolder("selftest-");
  const repo = join(folder.path, "repo");
  await mkdir(repo);
  await writeFile(join(repo, "app.py"), "def answer():\n    return 42\n");
  await writeFile(join(repo, ".env"), "KEY=TOP SECRET\n");
  await writeFile(join(folder.path, "outside.txt"), "TOP SECRET\n");
  await symlink("../outside.txt", join(repo, "link.txt"));
  await symlink("..", join(repo, "folder"));
  const runTools = prepareTools(createRepoTools(repo), 30_000);
  let failures = 0;
  for (const { tool, input, says, expected } of CHECKS) {
    const caller = { type: "direct" } as const;
    const call = { type: "tool_use", id: "call", name: tool, input, caller } as const;
    const { results } = await runTools([call], undefined);
    const [result] = results;
    const text = `${result?.is_error ? "is_error" : "result"}: ${result?.content}`;
    const isOk = text.startsWith(expected) && !text.includes("KEY") && !text.includes(".env");
    if (!isOk) failures += 1;
    const line = text.split("\n", 1)[0] ?? "";
    print(`${isOk ? "ok " : "BAD"} ${`${tool} ${says}`.padEnd(52)} ${line.slice(0, 110)}`);
  }
  print(failures === 0 ? "selftest passed" : `selftest FAILED: ${failures} of ${CHECKS.length}`);
  return failures === 0 ? 0 : 1;
}
