/**
 * All that is in a folder and below and may be shown, without what .gitignore files say to leave out.
 *
 *     folder ─► its entries ─► not ignored by its .gitignore, nor by those above ─► in turn, by name
 *
 * Only .gitignore files from the root down count: no global list, no .git/info/exclude. An ignored
 * folder that is asked for itself is walked, with the rules of its own. Links are given, not followed.
 *
 * From effective-agents 0.1.0: patterns/repo-tools/walk.ts
 */
import { ToolError } from "../tool.ts";
import { type Glob, matches, parseGlob } from "./glob.ts";
import { partsOf } from "./path.ts";
import type { Pause } from "./pause.ts";
import { type Entry, readFolder, type Sandbox, withEntry } from "./sandbox.ts";

/** How much of a .gitignore is read, in bytes, and how long a line of it may be to count. */
const MAX_RULES = 1_000_000;
const MAX_RULE = 4_096;

/** A line of a .gitignore. */
interface Rule {
  readonly glob: Glob;
  readonly isNegated: boolean;
  /** How many parts the path of its folder has. */
  readonly depth: number;
}

/** What a walk needs beside the folder. */
export interface WalkOptions {
  readonly pause: Pause;
  /** Is told of what couldn't be read. */
  readonly onUnread: (entry: Entry) => void;
  /** Whether to go into folders. Default: yes. */
  readonly isDeep?: boolean;
}

/**
 * Walks a folder, each folder before what is in it.
 *
 * @throws {ToolError} The folder itself can't be read.
 */
export async function* walk(
  sandbox: Sandbox,
  folder: Entry,
  { pause, onUnread, isDeep = true }: WalkOptions,
): AsyncGenerator<Entry> {
  const open = [{ entry: folder, rules: await rulesAbove(sandbox, folder) }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { entry } = next;
    await pause();
    if (entry !== folder) yield entry;
    if (entry !== folder && (entry.kind !== "folder" || !isDeep)) continue;
    try {
      const entries = readFolder(sandbox, entry.path);
      const rules = [...next.rules, ...(await rulesIn(sandbox, entries))];
      const shown = await notIgnored(rules, entries, pause);
      open.push(...shown.reverse().map((inner) => ({ entry: inner, rules })));
    } catch (error) {
      if (!(error instanceof ToolError) || entry === folder) throw error;
      onUnread(entry);
    }
  }
}

/** The rules of all folders above, as far as they say anything of what is in the folder. */
async function rulesAbove(sandbox: Sandbox, folder: Entry): Promise<readonly Rule[]> {
  const parts = partsOf(folder.path);
  let rules: readonly Rule[] = [];
  for (const [index] of parts.entries()) {
    const above = parts.slice(0, index).join("/") || ".";
    rules = [...rules, ...(await rulesIn(sandbox, readFolder(sandbox, above)))];
    const path = parts.slice(0, index + 1).join("/");
    if (isIgnored(rules, { path, kind: "folder" })) rules = [];
  }
  return rules;
}

/** Rules may be many, and entries too. */
async function notIgnored(
  rules: readonly Rule[],
  entries: readonly Entry[],
  pause: Pause,
): Promise<Entry[]> {
  const shown: Entry[] = [];
  for (const entry of entries) {
    if (!isIgnored(rules, entry)) shown.push(entry);
    const wait = pause();
    if (wait) await wait;
  }
  return shown;
}

/** The last rule that fits decides. */
function isIgnored(rules: readonly Rule[], { path, kind }: Entry): boolean {
  const parts = partsOf(path);
  const last = rules.findLast(({ glob, depth }) =>
    matches(glob, parts.slice(depth), kind === "folder"),
  );
  return last !== undefined && !last.isNegated;
}

/** The rules of the .gitignore among a folder's entries; none where it's a link, as with git. */
async function rulesIn(sandbox: Sandbox, entries: readonly Entry[]): Promise<readonly Rule[]> {
  const own = entries.find(({ path, kind }) => kind === "file" && /(^|\/)\.gitignore$/.test(path));
  if (!own) return [];
  const depth = partsOf(own.path).length - 1;
  return withEntry(sandbox, own, async ({ read }) => {
    const bytes = new Uint8Array(MAX_RULES);
    const text = new TextDecoder().decode(bytes.subarray(0, read(bytes, 0)));
    return text.split("\n").flatMap((line) => parseRule(line, depth) ?? []);
  });
}

function parseRule(raw: string, depth: number): Rule | undefined {
  if (raw.length > MAX_RULE) return undefined;
  const line = raw.replace(/\r$/, "");
  const isNegated = line.startsWith("!");
  // Spaces at the end don't count, but for one after a backslash.
  const glob = (isNegated ? line.slice(1) : line).replace(/(?<!\\) +$/, "");
  if (glob === "" || glob === "/" || line.startsWith("#")) return undefined;
  return { glob: parseGlob(glob), isNegated, depth };
}
