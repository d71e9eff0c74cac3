/** What kills processes, some seventy times: apart from the other tests, which take no longer than that. */
import { defineConfig } from "vitest/config";
import { shared } from "../../vitest.config.ts";

export default defineConfig({
  test: { ...shared, include: ["test/crash/*.test.ts"] },
});
