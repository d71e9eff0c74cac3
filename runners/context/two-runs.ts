/**
 * A run that writes down what it found, and a second one that knows nothing but what it finds there.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runAgent } from "../../patterns/agent.ts";
import { createMemory } from "../../patterns/memory.ts";
import { temporaryFolder } from "../shared/temporary.ts";
import { readLog, taskOf } from "./log.ts";
import { ending, FIRST, type Means, MIDDLE, RUN, TASK } from "./run.ts";

/** Gives how both ended, and the files between them. */
export async function runTwice(means: Means): Promise<readonly string[]> {
  using folder = temporaryFolder("memory-");
  const options = { ...means, ...RUN, tools: [readLog, createMemory(folder.path)] };
  const firstHours = taskOf(FIRST, MIDDLE, " Write what you said into your memory at the end.");
  const first = await runAgent(firstHours, options);
  const files = await filesIn(join(folder.path, "memories"));
  const second = await runAgent(TASK, options);
  return [`first run ${ending(first)}`, ...files, `second run ${ending(second)}`];
}

async function filesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  const read = names.map(async (name) => {
    const text = await readFile(join(folder, name), "utf8");
    return `/memories/${name} holds: ${text.trim().replaceAll("\n", "; ")}`;
  });
  return Promise.all(read);
}
