/** A Hono server on Node. */
import { expect, test } from "vitest";
import { createApp, ROUTE_PASSES, startModel } from "./app.ts";

const app = createApp("hono");

test("adds a pattern, and needs the flag that is named", async () => {
  await app.run("npm install");
  const printed = await app.add("route");
  await expect(app.run("npx tsc --noEmit")).rejects.toThrow("allowImportingTsExtensions");
  expect(printed).toContain('"rewriteRelativeImportExtensions": true');
  await app.setFlag("rewriteRelativeImportExtensions");
});

test("builds under its own settings, and a request makes a call", async () => {
  const { model, env } = await startModel();
  await app.run("npm run build");
  const url = await app.serve("npm start", env);
  const response = await fetch(url, { method: "POST", body: "I was charged twice" });
  expect(await response.text()).toBe("billing: We are sorry.");
  expect(model.requests).toHaveLength(2);
});

test("passes the copied test", async () => {
  expect(await app.run("npx vitest run --dir src route")).toMatch(ROUTE_PASSES);
});
