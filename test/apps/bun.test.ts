/** A project under Bun, which comes from its npm package. */
import { expect, test } from "vitest";
import { createApp, ROUTE_PASSES, startModel } from "./app.ts";

const app = createApp("bun");
/** npm brings Bun, and Bun all the rest. */
const BUN = "node_modules/.bin/bun";

test("adds a pattern by Bun's own package manager, and type-checks as it is", async () => {
  await app.run("npm install --no-package-lock");
  await app.run(`${BUN} install`);
  await app.add("route");
  expect(await app.read("bun.lock")).toContain("fast-xml-parser");
  await app.run("npx tsc");
});

test("builds, and a request makes a call", async () => {
  const { model, env } = await startModel();
  await app.run(`${BUN} build src/main.ts --target=bun --outfile=dist/main.js`);
  const url = await app.serve(`${BUN} dist/main.js`, env);
  const response = await fetch(url, { method: "POST", body: "I was charged twice" });
  expect(await response.text()).toBe("billing: We are sorry.");
  expect(model.requests).toHaveLength(2);
});

test("passes the copied test in Bun's runtime", async () => {
  expect(await app.run(`${BUN} --bun vitest run --dir src route`)).toMatch(ROUTE_PASSES);
});
