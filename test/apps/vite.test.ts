/** Vite's own React template, with a small server beside it. */
import { expect, test } from "vitest";
import { createApp, ROUTE_PASSES, startModel } from "./app.ts";

const app = createApp("vite", "npx --yes create-vite@9 . --template react-ts --no-interactive");

test("adds a pattern, and type-checks as it is", async () => {
  await app.run("npm install --save-dev @happy-dom/global-registrator@21 happy-dom@21");
  await app.add("route");
  await app.run("npx tsc --build");
});

test("passes the copied test", async () => {
  expect(await app.run("npx vitest run route")).toMatch(ROUTE_PASSES);
});

test("the page asks its server, which makes a call; the model it can't call itself", async () => {
  const { model, env } = await startModel();
  await app.run("npm run build");
  await app.run("npx vite build --ssr src/server.ts --outDir dist-server");
  const url = await app.serve("node dist-server/server.js", env);

  expect(await app.run(`node look.js ${url} server`)).toBe("billing: We are sorry.\n");
  expect(model.requests).toHaveLength(2);

  expect(await app.run(`node look.js ${url} model`)).toContain("from the server only");
  expect(model.requests).toHaveLength(2);
});
