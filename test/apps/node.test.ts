/** Node alone, with tsc writing the JavaScript under the strictest settings. */
import { expect, test } from "vitest";
import { createApp, ROUTE_PASSES, startModel } from "./app.ts";

const app = createApp("node");

test("adds a pattern and its runner, and says what they need", async () => {
  await app.run("npm install");
  const printed = await app.add("route", "route-runner");
  expect(printed).toContain("npx vitest run route");
  expect(printed).toContain('"rewriteRelativeImportExtensions": true');
  await app.setFlag("rewriteRelativeImportExtensions");
});

test("builds under its own settings, and makes a call", async () => {
  const { model, env } = await startModel();
  await app.run("npm run build");
  const printed = await app.run('node dist/main.js "I was charged twice"', env);
  expect(printed).toBe("billing: We are sorry.\n");
  expect(model.requests).toHaveLength(2);
});

test("passes the copied test", async () => {
  expect(await app.run("npx vitest run --dir src route")).toMatch(ROUTE_PASSES);
});

test("replays the copied recording", async () => {
  const printed = await app.run("npx tsx src/runners/shared/one.ts route");
  expect(printed).toContain("routed to bug");
  expect(printed).toMatch(/2 calls, 536 tokens in/);
});
