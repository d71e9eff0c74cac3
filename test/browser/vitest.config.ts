import { defineConfig } from "vitest/config";

// .ci/run asks for the counts in a file, beside the report for people.
const { VITEST_JSON: outputFile } = process.env;

export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    // A browser starts in seconds, and later on a busy machine; nothing here asserts a time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: outputFile ? ["default", ["json", { outputFile }]] : ["default"],
  },
});
