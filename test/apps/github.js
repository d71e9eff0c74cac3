/**
 * Loaded into shadcn before it runs: this project stands in for its own repository on GitHub, whatever
 * the owner and the commit, and nothing else is fetched. (npm doesn't use `fetch`.)
 */
import { readFile } from "node:fs/promises";

const ROOT = new URL("../../", import.meta.url);

globalThis.fetch = async (url) => {
  const [, path] =
    /^https:\/\/raw\.githubusercontent\.com\/[^/]+\/effective-agents\/[0-9a-f]{40}\/(.*)$/.exec(
      url,
    ) ?? [];
  if (path === undefined) throw new Error(`${url} was not to be fetched`);
  return new Response(await readFile(new URL(path, ROOT)));
};
