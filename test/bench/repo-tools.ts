/**
 * The repo tools on many files and on big ones: a worker that measures itself, and sends what it found.
 *
 * Started with `fork`. The files are written by another process, so that this one's memory is the tools'.
 */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import type { Tool } from "../../patterns/tool.ts";
import { timed } from "./measure.ts";

/** What was measured, a few times over, and what it may be at most. */
export interface Figure {
  readonly what: string;
  readonly runs: readonly number[];
  readonly goal: number;
}

const RUNS = 5;

const PREPARE = `
  const { mkdirSync, truncateSync, writeFileSync } = require("node:fs");
  const line = "export const value = compute(12345); // a line of code, as there are many\\n";
  for (let folder = 0; folder < 200; folder += 1) {
    mkdirSync("tree/" + folder, { recursive: true });
    for (let file = 0; file < 50; file += 1) {
      const end = file === 0 && folder % 10 === 0 ? "a needle\\n" : "";
      writeFileSync("tree/" + folder + "/" + file + ".ts", line.repeat(80) + end);
    }
  }
  for (let piece = 0; piece < 1_000; piece += 1) {
    writeFileSync("big.txt", line.repeat(14_000), { flag: "a" });
  }
  writeFileSync("sparse.txt", line.repeat(1_000));
  truncateSync("sparse.txt", 3 * 1024 ** 3);
  mkdirSync("hostile");
  writeFileSync("hostile/a.txt", ("a".repeat(9_999) + "!\\n").repeat(20));
`;

const root = await mkdtemp(join(tmpdir(), "bench-repo-tools-"));
try {
  execFileSync(process.execPath, ["--eval", PREPARE], { cwd: root });
  process.send?.(await measure());
} finally {
  await rm(root, { recursive: true });
}

async function measure(): Promise<readonly Figure[]> {
  const [, readFile] = createRepoTools(root);
  const [, , search] = createRepoTools(join(root, "tree"));
  const [, , searchHostile] = createRepoTools(join(root, "hostile"));
  const before = process.resourceUsage().maxRSS;
  const range = await times(readFile, { path: "big.txt", start_line: 10_000 });
  const grown = (process.resourceUsage().maxRSS - before) / 1_000;
  const sparse = await times(readFile, { path: "sparse.txt" });
  const needle = await times(search, { pattern: "needle" });
  const call = await times(search, { pattern: "\\w+\\(9+\\)" });
  const hostile = await times(searchHostile, { pattern: "(a+)+$" });
  return [
    { what: "ms to read lines of a 1 GB file near its start", runs: range, goal: 100 },
    { what: "MB that takes", runs: [grown], goal: 50 },
    { what: "ms to read lines of a sparse file of 3 GB", runs: sparse, goal: 1000 },
    { what: "ms to search 10,000 files for a word", runs: needle, goal: 1000 },
    { what: "ms to search 10,000 files for \\w+\\(9+\\)", runs: call, goal: 1000 },
    { what: "ms to search hostile text for (a+)+$", runs: hostile, goal: 1000 },
  ];
}

async function times(tool: Tool, input: object): Promise<readonly number[]> {
  const runs: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    runs.push(await timed(async () => tool.run(input, { callId: "c1", signal: undefined })));
  }
  return runs;
}
