/** Has shadcn build the registry, once for all apps: a file an item, which can be added by its path. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ROOT, runIn, SHADCN } from "./app.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder with the built items. */
    registry: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "registry-"));
  await runIn(ROOT, `${SHADCN} registry validate`);
  await runIn(ROOT, `${SHADCN} build --output ${folder}`);
  project.provide("registry", folder);
  return () => rm(folder, { recursive: true });
}
