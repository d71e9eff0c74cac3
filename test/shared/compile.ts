/** Compiles what tests start as a process, once for all of them: by tsx, each start takes a second more. */
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** The script that all commands start with. */
    compiled: string;
    /** The script that is killed while it makes refunds. */
    refunding: string;
  }
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "compiled-"));
  // The recordings, and the lines of code that are shown or counted, are found from where the script is.
  const outdir = join(folder, "runners/shared");
  await mkdir(join(folder, "runners"));
  await symlink(join(ROOT, "runners/recordings"), join(folder, "runners/recordings"));
  await symlink(join(ROOT, "runners/levels"), join(folder, "runners/levels"));
  await symlink(join(ROOT, "patterns"), join(folder, "patterns"));
  await build({
    absWorkingDir: ROOT,
    entryPoints: { start: "runners/shared/start.ts", refunding: "test/shared/refunding.ts" },
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // One of the dependencies is CommonJS.
    banner: {
      js: `import{createRequire}from"node:module";const require=createRequire("${ROOT}");`,
    },
    logLevel: "silent",
  });
  project.provide("compiled", join(outdir, "start.mjs"));
  project.provide("refunding", join(outdir, "refunding.mjs"));
  return () => rm(folder, { recursive: true });
}
