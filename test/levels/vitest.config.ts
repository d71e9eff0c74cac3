/** Level 3 against a server: needs the Claude Agent SDK (`npm start levels` says how to install it). */
import { defineConfig } from "vitest/config";
import { shared } from "../../vitest.config.ts";

export default defineConfig({
  test: { ...shared, include: ["test/levels/*.test.ts"] },
});
