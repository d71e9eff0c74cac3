import { defineConfig } from "vitest/config";

const { VITEST_JSON: outputFile } = process.env;

/** Apart from the other tests: these install packages, and take minutes. */
export default defineConfig({
  test: {
    include: ["test/apps/*.test.ts"],
    globalSetup: "test/apps/build.ts",
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // An install waits for the network, a build takes a core.
    maxWorkers: 2,
    reporters: outputFile ? ["verbose", ["json", { outputFile }]] : ["verbose"],
  },
});
