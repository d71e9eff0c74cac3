/** What becomes of the door in a bundle for the browser, which has empty modules in the place of Node's. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";
import { expect, onTestFinished, test, vi } from "vitest";
import { rejection } from "./shared/server.ts";

const PATTERNS = fileURLToPath(new URL("../patterns", import.meta.url));

test("a bundle for the browser loads, and its first call says where the model is called from", async () => {
  const folder = await mkdtemp(join(tmpdir(), "browser-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const entry = join(folder, "entry.js");
  await writeFile(
    entry,
    `export { llmCall } from "${PATTERNS}/llm-call.ts";
export { route } from "${PATTERNS}/route.ts";
export { createBudget } from "${PATTERNS}/layers/budget.ts";`,
  );
  // Only then are they empty: while you develop, Vite's own say at once that they aren't for the browser.
  vi.stubEnv("NODE_ENV", "production");
  onTestFinished(() => void vi.unstubAllEnvs());
  const lib = { entry, formats: ["es" as const], fileName: () => "bundle.mjs" };
  const outDir = join(folder, "dist");
  await build({ configFile: false, logLevel: "silent", root: folder, build: { lib, outDir } });

  vi.stubGlobal("window", {});
  vi.stubGlobal("document", {});
  onTestFinished(() => void vi.unstubAllGlobals());
  const { llmCall, route } = await import(pathToFileURL(join(outDir, "bundle.mjs")).href);
  expect(String(await rejection(llmCall("Hi")))).toContain("from the server only");
  const routes = { a: { when: "a", run: () => 1 } };
  expect(String(await rejection(route("Hi", { routes })))).toContain("from the server only");
});
