/**
 * What each page shows, read from the modules, the runners, the recordings and the README.
 *
 *     README's table ─► which module ─┐
 *     the runner ─► job ─► its run ───┼─► PageData
 *     the module ─► doc, source ──────┘
 */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import type { TraceFile } from "../../patterns/trace-file.ts";
import { findLine } from "../failures/code-line.ts";
import type { Failure } from "../failures/failure.ts";
import { FAILURES } from "../failures.ts";
import { JOBS } from "../shared/cli.ts";
import type { Job } from "../shared/job.ts";
import { callsIn, totalsOf } from "../shared/trace.ts";
import { type ModuleDoc, readModuleDoc } from "./module-doc.ts";
import type { Card, Choice, Copying, IndexData, PageData } from "./page-data.ts";
import { failureRun, recordedRun } from "./recorded-run.ts";
import { makesStep, namesStep, openSources, ROOT, type ShowSources } from "./source.ts";

/** A page by itself, as yet without the others. */
type Page = Omit<PageData, "pages" | "isLive" | "capUsd">;

/** All pages, and the first one. */
export interface Gallery {
  readonly pages: readonly Page[];
  readonly index: IndexData;
  /** The patterns that a person may run with an input of their own, and without being asked. */
  readonly runnable: ReadonlySet<string>;
}

/** Reads all that there is to show; takes a second for each recording. */
export async function readGallery(): Promise<Gallery> {
  const readme = await readFile(new URL("README.md", ROOT), "utf8");
  const { items }: Registry = JSON.parse(await readFile(new URL("registry.json", ROOT), "utf8"));
  const show = await openSources();
  const pages: Page[] = [];
  const runnable = new Set<string>();
  for (const [name, load] of JOBS) {
    const { job } = await load();
    pages.push(await patternPage(name, job, { readme, items, show }));
    if (!job.suspends && !job.scripted) runnable.add(name);
  }
  for (const failure of FAILURES.values()) pages.push(await failurePage(failure, show));
  const index = { cards: pages.map(cardOf), choices: choicesIn(readme, pages) };
  return { pages, index, runnable };
}

/** The page of a trace of somebody's own: beside the pattern's module, if it's the run of one. */
export function ownPage(trace: TraceFile, name: string, pages: readonly Page[]): Page {
  const pattern = pages.find((page) => page.name === trace.name);
  return {
    ...NOTHING,
    name,
    kind: "own",
    sentence: trace.title ?? `A run of ${trace.name}`,
    drawing: pattern?.drawing ?? "",
    command: "",
    sources: pattern?.sources.slice(0, 1) ?? [],
    trace,
  };
}

/** The page for a trace that is dropped on it. */
export function emptyPage(): Page {
  return {
    ...NOTHING,
    name: "own",
    kind: "own",
    sentence: "A trace that you drop here is shown here, and goes nowhere else.",
    command: "",
    sources: [],
  };
}

const NOTHING = {
  article: "",
  drawing: "",
  useWhen: "",
  costs: "",
  copyAlong: [],
};

async function patternPage(
  name: string,
  job: Job,
  { readme, items, show }: Pick<Registry, "items"> & { readme: string; show: ShowSources },
): Promise<Page> {
  const trace = await recordedRun(name, job);
  const runner = `runners/${name}.ts`;
  const module = moduleOf(name, readme) ?? runner;
  const files = new Set([module, runner]);
  const steps = stepNames(trace);
  for (const file of await makersOf(steps, files)) files.add(file);
  const sources = await show([...files], steps);
  const doc = readModuleDoc(sources[0]?.code ?? "");
  const copying = copyingOf(module, doc, { readme, items });
  return {
    ...doc,
    name,
    // An agent is what takes turns.
    kind: steps.has("turn") ? "agent" : "workflow",
    command: `npm start ${name}`,
    ...(copying && { copying }),
    sources,
    ...(trace && { trace }),
  };
}

/** How the README copies from a clone, with the item of this module; nothing where there is none. */
function copyingOf(
  module: string,
  { sentence }: ModuleDoc,
  { readme, items }: Pick<Registry, "items"> & { readonly readme: string },
): Copying | undefined {
  const own = items.filter(({ files }) => files.some(({ path }) => path === module));
  // An item is described by its module's first sentence.
  const item = own.find(({ description }) => description === sentence);
  const [, inClone, inApp] = /From a clone it's `([^`]+)` there, and `([^`]+)`/.exec(readme) ?? [];
  if (!item || inClone === undefined || inApp === undefined) return undefined;
  return { inClone, inApp: inApp.replace(/[\w-]+(?=\.json$)/, item.name) };
}

/** What is read here of registry.json. */
interface Registry {
  readonly items: readonly {
    readonly name: string;
    readonly description: string;
    readonly files: readonly { readonly path: string }[];
  }[];
}

async function failurePage(failure: Failure, show: ShowSources): Promise<Page> {
  const { name, title, symptom, catches } = failure;
  const { trace, caught, uncaught } = await failureRun(failure);
  const steps = stepNames(trace);
  const lines = catches.map(findLine);
  const files = new Set([`runners/failures/${name}.ts`, ...lines.map(({ file }) => file)]);
  return {
    ...NOTHING,
    name,
    kind: "failure",
    article: title,
    sentence: symptom,
    useWhen: uncaught.words.join("; "),
    costs: caught.words.join("; "),
    command: `npm start failures ${name}`,
    sources: await show([...files], steps),
    trace,
  };
}

/** The module that the README's table has for a runner, or the one of the same name. */
function moduleOf(name: string, readme: string): string | undefined {
  const rows = readme.matchAll(/\((patterns\/[\w-]+\.ts)\) \| \d+ \| `npm start ([\w-]+)` \|/g);
  const row = [...rows].find(([, , command]) => command === name);
  const file = row?.[1] ?? `patterns/${name}.ts`;
  return existsSync(new URL(file, ROOT)) ? file : undefined;
}

/** The names of a run's steps, without index and number. */
function stepNames(trace: TraceFile | undefined): ReadonlySet<string> {
  const names = (trace?.steps ?? []).flatMap(({ path }) => path.split("/"));
  return new Set(names.map((name) => name.replace(/(\[\d+\])?(#\d+)?$/, "")));
}

/** The modules that make those of the steps that no file so far makes or names. */
async function makersOf(
  steps: ReadonlySet<string>,
  shown: ReadonlySet<string>,
): Promise<readonly string[]> {
  const read = (file: string) => readFile(new URL(file, ROOT), "utf8");
  const codes = await Promise.all([...shown].map(read));
  const missing = [...steps].filter((name) => !codes.some((code) => namesStep(code, name)));
  const makers: string[] = [];
  for (const file of (await readdir(new URL("patterns", ROOT))).sort()) {
    if (!file.endsWith(".ts")) continue;
    const code = await read(`patterns/${file}`);
    if (missing.some((name) => makesStep(code, name))) makers.push(`patterns/${file}`);
  }
  return makers;
}

function cardOf(page: Page): Card {
  const { name, kind, article, sentence, drawing, useWhen, costs, trace } = page;
  const card = { name, kind, article, sentence, drawing, useWhen, costs };
  if (!trace) return card;
  const { answered, usd, unpriced, metered, estimated } = totalsOf(callsIn(trace.steps));
  // What a script's calls would cost is nobody's money.
  const isPriced = trace.origin !== "scripted" && metered > 0 && unpriced === 0;
  return { ...card, calls: answered, estimated, ...(isPriced && { usd }) };
}

/** The README's answer, and its list, in which each arrow leads to a pattern. */
function choicesIn(readme: string, pages: readonly Page[]): Choice[] {
  const section = /## Which one do I need\?\n\n(.*) If yours doesn't:\n\n([\s\S]*?)\n\n/.exec(
    readme,
  );
  const [, first = "", list = ""] = section ?? [];
  return [first, ...list.split("\n")].map((line) => {
    const text = line.replace(/^- /, "");
    const to = /→ \*\*(\w+)\*\*/.exec(text)?.[1];
    const page = pages.find(({ sources }) => sources[0]?.file === `patterns/${to}.ts`);
    return page ? { text, to: page.name } : { text };
  });
}
