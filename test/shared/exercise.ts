/**
 * Replays a runner with one change made in a file of its, as a reader does who tries an exercise.
 *
 *     await exercise("runners/vote.ts", "voters: 7", "voters: 7, asNeeded: true");
 *     // "yes: 4 (4 needed, 3 not started)"
 */
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { main } from "../../runners/shared/cli.ts";
import { run } from "./run.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What it says then and didn't say before: the first line of an error, or else the last line before the
 * sums. */
export async function exercise(file: string, from: string, to: string): Promise<string> {
  const [, job = ""] = /^runners\/(\w+)/.exec(file) ?? [];
  const source = await readFile(join(ROOT, file), "utf8");
  const times = source.split(from).length - 1;
  if (times !== 1) throw new Error(`${file} must hold \`${from}\` once, got ${times}`);
  const changed = await compile(file, source.replace(from, to));
  try {
    const argv = ["replay", job];
    const [before, after] = [await run(argv), await run(argv, {}, changed.main)];
    const known = new Set(before.stdout.split("\n"));
    const lines = after.stdout.trimEnd().split("\n").slice(0, -1);
    const said =
      after.code === 0 ? lines.findLast((line) => !known.has(line)) : after.stderr.split("\n")[0];
    return (said ?? "").replace(/\s+/g, " ").trim();
  } finally {
    await changed.remove();
  }
}

/** The command line of the runners, with another text in one of their files. */
async function compile(file: string, contents: string) {
  const folder = await mkdtemp(join(tmpdir(), "exercise-"));
  await mkdir(join(folder, "runners/shared"), { recursive: true });
  // What is found from where a file is: recordings, sources, packages.
  for (const name of ["node_modules", "patterns", "runners/recordings", "runners/levels"]) {
    await symlink(join(ROOT, name), join(folder, name));
  }
  const outfile = join(folder, "runners/shared/cli.mjs");
  await build({
    absWorkingDir: ROOT,
    entryPoints: ["runners/shared/cli.ts"],
    outfile,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "silent",
    plugins: [
      {
        name: "exercise",
        setup: ({ onLoad }) => {
          const filter = new RegExp(`/${file.replaceAll(".", "\\.")}$`);
          onLoad({ filter }, () => ({
            contents,
            loader: "ts",
            resolveDir: join(ROOT, file, ".."),
          }));
        },
      },
    ],
  });
  const module: { readonly main: typeof main } = await import(pathToFileURL(outfile).href);
  return { main: module.main, remove: () => rm(folder, { recursive: true }) };
}
