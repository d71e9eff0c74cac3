/**
 * Finds a line of code by a piece of it, so that what is shown is where the line stands today.
 */
import { readFileSync } from "node:fs";

/** A piece of a line that stands once in its file. */
export interface Excerpt {
  /** From the project's folder, such as `patterns/agent.ts`. */
  readonly file: string;
  readonly code: string;
}

/** A line as it is in the file, without the blanks around it. */
export interface CodeLine extends Excerpt {
  /** From 1. */
  readonly line: number;
}

/** Finds the line. Throws unless there is exactly one: then the code has changed, and the lab has not. */
export function findLine({ file, code }: Excerpt): CodeLine {
  const lines = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8").split("\n");
  const found = lines.flatMap((text, index) =>
    text.includes(code) ? [{ file, line: index + 1, code: text.trim() }] : [],
  );
  const [only, another] = found;
  if (only && !another) return only;
  throw new Error(`${file} must hold \`${code}\` in one line, got ${found.length}`);
}
