/**
 * Writes the gallery as a folder of static files, which opens from disk and from any host.
 */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../shared/explain.ts";
import { buildAssets } from "./page/assets.ts";
import { renderIndex, renderPage } from "./page/html.ts";
import type { PageData } from "./page-data.ts";
import { emptyPage, type Gallery } from "./pages.ts";

/** What a server adds to each page. */
export type LiveFacts = Pick<PageData, "isLive" | "capUsd">;

/** The site's files: their names and contents. */
export type Site = ReadonlyMap<string, string>;

/** Makes the files of a gallery. */
export async function makeSite(
  { pages: given, index, runnable }: Gallery,
  live: LiveFacts,
): Promise<Site> {
  const assets = await buildAssets();
  const hasOwn = given.some(({ kind }) => kind === "own");
  const pages = hasOwn ? given : [...given, emptyPage()];
  const links = pages.map(({ name, kind, sentence }) => ({ name, kind, sentence }));
  const files = pages.map((page) => {
    const isLive = live.isLive && runnable.has(page.name);
    return [
      `${page.name}.html`,
      renderPage({ ...page, ...live, isLive, pages: links }, assets),
    ] as const;
  });
  return new Map([["index.html", renderIndex(index, assets)], ...files]);
}

/** Names the files of an earlier gallery: with it, a folder may be written anew. */
const MARKER = "gallery.json";

/**
 * Writes the site into a folder, in place of an earlier one.
 *
 * @throws {UsageError} The folder holds something else.
 */
export async function writeSite(site: Site, folder: string): Promise<void> {
  for (const name of await earlierFiles(folder)) await rm(join(folder, name), { force: true });
  await mkdir(folder, { recursive: true });
  // First, so that what is broken off can be written anew too.
  const marker = { format: "effective-agents/gallery", files: [...site.keys()] };
  await writeFile(join(folder, MARKER), `${JSON.stringify(marker, undefined, 2)}\n`);
  for (const [name, content] of site) await writeFile(join(folder, name), content);
}

/**
 * Sees to it that a folder can be written to, before the work is done.
 *
 * @returns The files of an earlier gallery in it.
 * @throws {UsageError} It holds something else, or is no folder.
 */
export async function earlierFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(`--out: ${folder} is no folder that can be written to`);
  });
  if (names.length === 0) return [];
  const files = await markedFiles(join(folder, MARKER));
  if (!files)
    throw new UsageError(
      `--out: ${folder} holds something that isn't a gallery: name another folder`,
    );
  return files;
}

async function markedFiles(marker: string): Promise<readonly string[] | undefined> {
  try {
    const { format, files } = JSON.parse(await readFile(marker, "utf8"));
    const isOurs = format === "effective-agents/gallery" && Array.isArray(files);
    // Nothing but pages beside it is ever removed.
    const pages = isOurs ? files.filter((name) => /^[\w-]+\.html$/.test(name)) : [];
    return isOurs && isDeepStrictEqual(pages, files) ? pages : undefined;
  } catch {
    return undefined;
  }
}
