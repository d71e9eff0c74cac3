import { defineConfig } from "vitest/config";
import type { InlineConfig } from "vitest/node";

// .ci/run asks for the counts in a file, beside the report for people.
const { VITEST_JSON: outputFile } = process.env;

/** What is tested of the commands, the README, the gallery and the app. The rest is of what is copied. */
const RUNNERS = [
  "agent-runner",
  "app",
  "browser",
  "context-runner",
  "eval",
  "failures",
  "gallery",
  "gallery-run",
  "levels",
  "live-server",
  "read-trace",
  "readme",
  "refund",
  "runners",
  "subagent-runner",
].map((name) => `test/${name}.test.ts`);

/** What suites in folders of their own share with these, each of which needs more than is installed here. */
export const shared: InlineConfig = {
  globalSetup: "test/shared/compile.ts",
  // Property tests take seconds on a busy machine; nothing here asserts a time.
  testTimeout: 30_000,
  // Much of it waits for child processes and servers, so no core is kept free.
  maxWorkers: "100%",
  // The files share a worker's modules: nothing here depends on the state of one but the shared door,
  // and loading the SDK anew for each would take a third of the time.
  isolate: false,
  reporters: outputFile ? ["default", ["json", { outputFile }]] : ["default"],
};

export default defineConfig({
  test: {
    ...shared,
    projects: [
      {
        extends: true,
        test: { name: "patterns", include: ["test/*.test.ts"], exclude: RUNNERS },
      },
      { extends: true, test: { name: "runners", include: RUNNERS } },
    ],
  },
});
