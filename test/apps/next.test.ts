/** Next.js as create-next-app makes it: the app router, and a server action that runs a pattern. */
import { expect, test } from "vitest";
import { createApp, ROUTE_PASSES, startModel } from "./app.ts";

const app = createApp(
  "next",
  "npx --yes create-next-app@16 . --yes --ts --app --no-src-dir --no-tailwind --no-eslint --no-react-compiler --skip-install --disable-git",
);

test("adds a pattern, and needs the flag that is named", async () => {
  await app.run("npm install");
  const printed = await app.add("route");
  await expect(app.run("npx tsc --noEmit")).rejects.toThrow("allowImportingTsExtensions");
  expect(printed).toContain('"allowImportingTsExtensions": true');
  await app.setFlag("allowImportingTsExtensions");
});

test("passes the copied test", async () => {
  expect(await app.run("npx vitest run route")).toMatch(ROUTE_PASSES);
});

test("builds, which type-checks it, and a server action makes a call", async () => {
  const { model, env } = await startModel();
  await app.run("npm run build");
  const url = await app.serve("npx next start --port 0", env);
  const page = await (await fetch(url)).text();
  const headers = { origin: url };
  const response = await fetch(url, { method: "POST", headers, body: filledIn(page) });
  expect(await response.text()).toContain("<p>billing: We are sorry.</p>");
  expect(model.requests).toHaveLength(2);
});

/** The page's form as a browser without JavaScript sends it. */
function filledIn(page: string): FormData {
  const form = new FormData();
  for (const [tag] of page.matchAll(/<input type="hidden"[^>]*>/g)) {
    const [, name = ""] = / name="([^"]*)"/.exec(tag) ?? [];
    const [, value = ""] = / value="([^"]*)"/.exec(tag) ?? [];
    form.append(name, value.replaceAll("&quot;", '"'));
  }
  form.append("ticket", "I was charged twice");
  return form;
}
