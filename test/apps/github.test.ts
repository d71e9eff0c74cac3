/** An empty folder, and a pattern or a runner from GitHub: the way in the README. */
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { type App, createApp, ROOT, ROUTE_PASSES, SHADCN } from "./app.ts";

const [app, other] = [createApp(), createApp()];

/** Adds an item by its address on GitHub. */
async function addFromGitHub(app: App, item: string): Promise<string> {
  // shadcn asks git for the newest commit.
  await app.run("git init --quiet ../repository");
  const identity = "-c user.name=a -c user.email=a@example.org";
  await app.run(`git -C ../repository ${identity} commit --quiet --allow-empty --message a`);
  const env = {
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "url.../repository.insteadOf",
    GIT_CONFIG_VALUE_0: "https://github.com/someone/effective-agents.git",
    NODE_OPTIONS: `--import ${pathToFileURL(ROOT)}test/apps/github.js`,
  };
  return app.run(`${SHADCN} add someone/effective-agents/${item} --yes`, env);
}

test("two commands lead from an empty folder to a passing test", async () => {
  await addFromGitHub(app, "route");
  expect(await app.run("npx vitest run route")).toMatch(ROUTE_PASSES);
  const { dependencies } = JSON.parse(await app.read("package.json"));
  const packages = ["@anthropic-ai/sdk", "@opentelemetry/api", "fast-xml-parser"];
  expect(Object.keys(dependencies)).toEqual(packages);
  expect(await app.read("patterns/route.ts")).toContain(" * From effective-agents ");
});

test("two commands lead from an empty folder to a replayed recording", async () => {
  expect(await addFromGitHub(other, "route-runner")).toContain(
    "Replay it without a key: npx tsx runners/shared/one.ts route",
  );
  const printed = await other.run("npx tsx runners/shared/one.ts route");
  expect(printed).toContain("routed to bug");
  expect(printed).toMatch(/2 calls, 536 tokens in/);
  // Without a key it says what can be done here, and nothing that is done elsewhere.
  const live = other.run('npx tsx runners/shared/one.ts route "It crashes"', NO_CREDENTIALS);
  await expect(live).rejects.toThrow(/No API key: .*: npx tsx runners\/shared\/one\.ts route\n/);
});

/** Neither a key nor a profile: `ANTHROPIC_…` isn't handed on. */
const NO_CREDENTIALS = { ANTHROPIC_CONFIG_DIR: "no-such-folder" };
