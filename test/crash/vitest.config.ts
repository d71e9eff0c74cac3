/** What kills processes, some seventy times: apart from the other tests, which take no longer than that. */
import { defineConfig } from "vitest/config";
import base from "../../vitest.config.ts";

export default defineConfig({
  test: { ...base.test, include: ["test/crash/*.test.ts"] },
});
