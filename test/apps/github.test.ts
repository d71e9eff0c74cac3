/** An empty folder, and a pattern from GitHub: the way in the README. */
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createApp, ROOT, SHADCN } from "./app.ts";

const app = createApp();

test("two commands lead from an empty folder to a passing test", async () => {
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
  await app.run(`${SHADCN} add someone/effective-agents/route --yes`, env);
  expect(await app.run("npx vitest run route")).toMatch(/Tests .*60 passed/);
  const { dependencies } = JSON.parse(await app.read("package.json"));
  const packages = ["@anthropic-ai/sdk", "@opentelemetry/api", "fast-xml-parser"];
  expect(Object.keys(dependencies)).toEqual(packages);
  expect(await app.read("patterns/route.ts")).toContain(" * From effective-agents ");
});
