/** Level 3 against a server: needs the Claude Agent SDK (`npm start levels` says how to install it). */
import { defineConfig } from "vitest/config";
import base from "../../vitest.config.ts";

export default defineConfig({
  test: { ...base.test, include: ["test/levels/*.test.ts"] },
});
