/**
 * Counts lines of code, and those that somebody keeps who copies a file.
 *
 *     runners/levels/loop.ts ─► patterns/agent.ts ─► patterns/step.ts, … ─► 1,234 lines in 18 files
 *
 * From effective-agents 0.1.0: runners/shared/lines-of-code.ts
 */
import { readFile } from "node:fs/promises";

/** Lines that are neither blank nor comment. */
export function linesOfCode(source: string): number {
  return source.split("\n").filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line)).length;
}

/** What goes with a file. */
export interface Kept {
  /** From the project's folder, such as `patterns/agent.ts`; the file itself first. */
  readonly files: readonly string[];
  /** Lines of code in all of them. */
  readonly lines: number;
}

const ROOT = new URL("../../", import.meta.url);

/** A file, and what it imports of its own folder and of patterns/, and so on. Packages are kept by others. */
export async function keptWith(file: string): Promise<Kept> {
  const own = new URL(".", new URL(file, ROOT)).href;
  const sources = new Map<string, string>();
  const open = [new URL(file, ROOT).href];
  for (let next = open.pop(); next; next = open.pop()) {
    if (sources.has(next)) continue;
    const source = await readFile(new URL(next), "utf8");
    sources.set(next, source);
    for (const [, path = ""] of source.matchAll(IMPORT)) {
      const { href } = new URL(path, next);
      if ([own, `${ROOT.href}patterns/`].some((folder) => href.startsWith(folder))) open.push(href);
    }
  }
  const lines = [...sources.values()].map(linesOfCode);
  return {
    files: [...sources.keys()].map((href) => href.slice(ROOT.href.length)),
    lines: lines.reduce((sum, count) => sum + count, 0),
  };
}

const IMPORT = /^(?:import|export) [^;"]*?from "(\.[^"]+\.ts)"/gm;
