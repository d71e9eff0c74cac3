/**
 * Files as they are shown: the text as it is, highlighted, and which line names which step.
 */
import { readFile } from "node:fs/promises";
import typescript from "@shikijs/langs/typescript";
import dark from "@shikijs/themes/github-dark-high-contrast";
import light from "@shikijs/themes/github-light-high-contrast";
import { createHighlighterCore } from "shiki/core";
import { createOnigurumaEngine } from "shiki/engine/oniguruma";
import type { Source } from "./page-data.ts";

/** The project's folder. */
export const ROOT = new URL("../../", import.meta.url);

/** Shows files of the project together: each step's name is marked in the one that says it best. */
export type ShowSources = (
  files: readonly string[],
  stepNames: ReadonlySet<string>,
) => Promise<readonly Source[]>;

/** Prepares the highlighter, which all pages share. */
export async function openSources(): Promise<ShowSources> {
  const engine = createOnigurumaEngine(import("shiki/wasm"));
  const settings = { themes: [light, dark], langs: [typescript], engine };
  const highlighter = await createHighlighterCore(settings);
  const themes = { light: light.name ?? "", dark: dark.name ?? "" };
  const shown = new Map<string, Omit<Source, "steps">>();
  const show = async (file: string) => {
    const before = shown.get(file);
    if (before) return before;
    const code = await readFile(new URL(file, ROOT), "utf8");
    // The page chooses the colours, by CSS variables.
    const options = { lang: "typescript", themes, defaultColor: false } as const;
    const source = { file, code, html: highlighter.codeToHtml(code.trimEnd(), options) };
    shown.set(file, source);
    return source;
  };
  return async (files, stepNames) => {
    const sources = await Promise.all(files.map(show));
    const steps = stepLines(
      sources.map(({ code }) => code),
      stepNames,
    );
    return sources.map((source, index) => ({ ...source, steps: steps[index] ?? {} }));
  };
}

/**
 * Which lines, from 1, name these steps: each in the file that names it in the surest form.
 *
 * @example
 * stepLines(['a();\nstep("classify", fn);'], new Set(["classify"])); // [{ classify: 2 }]
 */
export function stepLines(
  codes: readonly string[],
  names: ReadonlySet<string>,
): readonly Readonly<Record<string, number>>[] {
  const files = codes.map(codeLines);
  const found = codes.map(() => new Map<string, number>());
  for (const name of names) {
    for (const form of formsOf(name)) {
      const lines = files.map((file) => file.findIndex((line) => form.test(line)));
      const file = lines.findIndex((line) => line >= 0);
      if (file < 0) continue;
      found[file]?.set(name, (lines[file] ?? 0) + 1);
      break;
    }
  }
  return found.map((lines) => Object.fromEntries(lines));
}

/** The lines of a file, those of comments empty. */
function codeLines(code: string): readonly string[] {
  return code.split("\n").map((line) => (/^\s*(\*|\/\*|\/\/)/.test(line) ? "" : line));
}

/** The forms in which code names a step, the surest one first: it makes it, hands the name on, … */
function formsOf(name: string): readonly RegExp[] {
  const word = name.replace(/[^\w ]/g, "\\$&");
  const quoted = `["'\`]${word}(["'\`]|\\[\\$)`;
  return [
    new RegExp(`\\b(step|runPattern|callStep)\\(\\s*${quoted}`),
    new RegExp(`\\bname: ${quoted}`),
    new RegExp(`^\\s*["']?${word}["']?(: |,|\\()`),
    new RegExp(quoted),
  ];
}

/** Whether a file makes a step of that name. */
export function makesStep(code: string, name: string): boolean {
  return formsOf(name)[0]?.test(code) ?? false;
}

/** Whether a file makes a step of that name, or gives the name to one. */
export function namesStep(code: string, name: string): boolean {
  return formsOf(name)
    .slice(0, 2)
    .some((form) => form.test(code));
}
