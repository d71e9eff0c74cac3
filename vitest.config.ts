import { defineConfig } from "vitest/config";

// .ci/run asks for the counts in a file, beside the report for people.
const { VITEST_JSON: outputFile } = process.env;

export default defineConfig({
  test: {
    include: ["test/*.test.ts"],
    globalSetup: "test/shared/compile.ts",
    // Property tests take seconds on a busy machine; nothing here asserts a time.
    testTimeout: 30_000,
    // Much of it waits for child processes and servers, so no core is kept free.
    maxWorkers: "100%",
    // The files share a worker's modules: nothing here depends on the state of one but the shared door,
    // and loading the SDK anew for each would take a third of the time.
    isolate: false,
    reporters: outputFile ? ["default", ["json", { outputFile }]] : ["default"],
  },
});
