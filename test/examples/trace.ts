import { writeFile } from "node:fs/promises";
import { observe } from "../../patterns/step.ts";
import { collectTrace } from "../../patterns/trace-file.ts";

/** Runs anything that uses the patterns, and keeps its trace, if it fails too. */
export async function traced<T>(file: string, run: () => Promise<T>): Promise<T> {
  const trace = collectTrace();
  try {
    return await observe(trace.onEvent, run);
  } finally {
    await writeFile(file, JSON.stringify(trace.file({ origin: "live" })));
  }
}
