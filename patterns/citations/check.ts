/**
 * Looks up what an answer cites, and gives the cited lines, or why there are none.
 *
 *     src/http.ts:42 ─┐            ┌─► 42| const retries = 3;
 *                     ├─► sandbox ─┤
 *     src/htp.ts:9 ───┘            └─► 'src/htp.ts' doesn't exist. Did you mean …
 *
 * Everything goes through the sandbox of repo-tools/, and the lines come from the reader of `read_file`,
 * with its caps. A problem is a sentence that a model can act on.
 *
 * From effective-agents 0.1.0: patterns/citations/check.ts
 */

import { partsInside } from "../repo-tools/path.ts";
import { createPause } from "../repo-tools/pause.ts";
import { readExcerpt } from "../repo-tools/read-file.ts";
import {
  createSandbox,
  type Entry,
  readFolder,
  type Sandbox,
  type SandboxOptions,
} from "../repo-tools/sandbox.ts";
import { quoted } from "../repo-tools/text.ts";
import { ToolError } from "../tool.ts";
import { type Citation, findCitations } from "./find.ts";
import { isGlob, type KindOf } from "./names.ts";

/** How many citations of one answer are looked up. */
const MAX_CITATIONS = 100;

/** A citation with its lines, or with what is wrong with it. */
export type CheckedCitation = Citation &
  (
    | {
        /** A header and the lines as `N| text`, with a note where they are too many to be shown. */
        readonly lines: string;
        readonly problem?: undefined;
      }
    | { readonly problem: string; readonly lines?: undefined }
  );

/** How to check. */
export interface CheckOptions extends Pick<SandboxOptions, "deny"> {
  /** Stops it, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Checks that each file and line that an answer cites is there, in the folder `root`.
 *
 * @param options.deny What is not to be shown, as in `createRepoTools`: it can't be cited either.
 * @throws {TypeError} There is no such folder, or it's one of the kernel's, such as /proc.
 *
 * @example
 * await checkCitations("Three times (src/http.ts:42), see src/htp.ts:9.", "/home/me/project");
 * // [{ text: "src/http.ts:42", …, lines: "src/http.ts lines 42-42 of 90\n42| const retries = 3;" },
 * //  { text: "src/htp.ts:9", …, problem: "'src/htp.ts' doesn't exist. Did you mean 'src/http.ts'?" }]
 */
export async function checkCitations(
  answer: string,
  root: string,
  { signal, deny }: CheckOptions = {},
): Promise<readonly CheckedCitation[]> {
  const sandbox = createSandbox(root, { deny });
  const pause = createPause(signal);
  const checked: CheckedCitation[] = [];
  for (const citation of findCitations(answer, kindsIn(sandbox))) {
    await pause();
    checked.push(
      checked.length < MAX_CITATIONS
        ? await lookUp(sandbox, citation, signal)
        : { ...citation, problem: `It isn't checked: cite ${MAX_CITATIONS} places at most.` },
    );
  }
  return checked;
}

async function lookUp(
  sandbox: Sandbox,
  citation: Citation,
  signal: AbortSignal | undefined,
): Promise<CheckedCitation> {
  const { path, start, end } = citation;
  const wrong = (problem: string) => ({ ...citation, problem });
  if (start < 1) return wrong("Lines are counted from 1.");
  if (end < start)
    return wrong(`Line ${end} comes before line ${start}. Put the first line first.`);
  try {
    const { path: real, text, last, total } = await readExcerpt(sandbox, path, start, end, signal);
    if (total === undefined && last < end) {
      return wrong(`${quoted(real)} is too big for so many lines. Cite only those that matter.`);
    }
    if (last >= start && (total === undefined || end <= total)) return { ...citation, lines: text };
    const has = total === 1 ? "1 line" : `${total} lines`;
    return wrong(`${quoted(real)} has ${has}, so line ${end} is beyond its end.`);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    if (!isGlob(path)) return wrong(error.message);
    return wrong(
      `${quoted(path)} is no file but a glob, which has no lines. Cite each file by its path.`,
    );
  }
}

/**
 * Tells what is at a path, if it may be shown. A folder is read once, however many words are asked for. A
 * path that is denied is a folder's, be there one or not: what is cited in it is looked up and refused.
 */
function kindsIn(sandbox: Sandbox): KindOf {
  const folders = new Map<string, ReadonlyMap<string, Entry>>();
  const entriesIn = (folder: string) => {
    const entries = folders.get(folder) ?? byName(readFolder(sandbox, folder));
    folders.set(folder, entries);
    return entries;
  };
  return (path) => {
    try {
      let entry: Entry | undefined = { path: ".", kind: "folder" };
      const parts = partsInside(sandbox.root, path);
      if (sandbox.denies(parts.slice(0, 1))) return "folder";
      for (const part of parts) entry = entry && entriesIn(entry.path).get(part);
      return entry?.kind;
    } catch (error) {
      if (error instanceof ToolError) return undefined;
      throw error;
    }
  };
}

function byName(entries: readonly Entry[]): ReadonlyMap<string, Entry> {
  return new Map(entries.map((entry) => [entry.path.replace(/^[\s\S]*\//, ""), entry]));
}
