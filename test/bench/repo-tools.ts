/** The repo tools on big input. Run: npx tsx test/bench/repo-tools.ts */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import type { Tool } from "../../patterns/tool.ts";
import { timed } from "./measure.ts";

/** Writes the files, in a process of its own, so that this one's memory is the tools' alone. */
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
`;

/** What a call took at best of five, and how much the process grew by all of them. */
async function report(what: string, tool: Tool, input: object): Promise<void> {
  const before = process.resourceUsage().maxRSS;
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    times.push(await timed(async () => tool.run(input, { signal: undefined })));
  }
  const [first = 0] = times;
  const grown = Math.round((process.resourceUsage().maxRSS - before) / 1_000);
  const best = Math.min(...times);
  console.log(`${what}: first ${first.toFixed(0)} ms, best ${best.toFixed(0)} ms, +${grown} MB`);
}

const root = await mkdtemp(join(tmpdir(), "repo-tools-bench-"));
try {
  execFileSync(process.execPath, ["--eval", PREPARE], { cwd: root });
  const [, readFile] = createRepoTools(root);
  await report("1 GB file, lines 1-400", readFile, { path: "big.txt" });
  await report("1 GB file, line 10,000", readFile, { path: "big.txt", start_line: 10_000 });
  await report("1 GB file, line 10,000,000", readFile, { path: "big.txt", start_line: 10_000_000 });
  await report("3 GB sparse file, lines 1-400", readFile, { path: "sparse.txt" });
  const [listFiles, , search] = createRepoTools(join(root, "tree"));
  await report("10,000 files, search needle", search, { pattern: "needle" });
  await report("10,000 files, search (?i)NEEDLE", search, { pattern: "(?i)NEEDLE" });
  await report("10,000 files, search \\w+\\(9+\\)", search, { pattern: "\\w+\\(9+\\)" });
  await report("10,000 files, search (a+)+$", search, { pattern: "(a+)+$" });
  await report("10,000 files, list **/7.ts", listFiles, { glob: "**/7.ts" });
} finally {
  await rm(root, { recursive: true });
}
