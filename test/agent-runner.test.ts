/** The agent's command line: an answer, no answer, and a line that says what to do instead. */
import { expect, test } from "vitest";
import { start } from "./shared/runner.ts";
import { fails, reply, startServer } from "./shared/server.ts";

/** Starting Node and tsx takes a second, and more on a busy machine. */
const CHILD = { timeout: 60_000 };

async function agent(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = start(argv, env, "agent-cli");
  const { code } = await child.ended;
  return { code, stdout: child.stdout(), stderr: child.stderr() };
}

test("prints the answer to stdout and a line a turn to stderr", CHILD, async () => {
  const { url } = await startServer(reply("In app.ts:3."));
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" };
  const { code, stdout, stderr } = await agent(["--root", "test", "Where?"], env);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "In app.ts:3.\n" });
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("says in one line what the API refused, and names no command there isn't", CHILD, async () => {
  const { url } = await startServer(fails(401));
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" };
  const { code, stdout, stderr } = await agent(["Where?"], env);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^(turn.*\n)?The API refused the key \(401\): check ANTHROPIC_API_KEY\n$/);
});

test.for([
  [["--bogus"], "Unknown option '--bogus'"],
  [["--max-turns", "x", "Where?"], '--max-turns must be a number of at least 1, got "x"'],
  [["--max-turns", "1.5", "Where?"], '--max-turns must be a whole number, got "1.5"'],
  [["--budget", "0", "Where?"], '--budget must be a number above 0, got "0"'],
  [[" "], "Ask something"],
] as const)("refuses %j in one line, before any call", CHILD, async ([argv, message]) => {
  const { code, stdout, stderr } = await agent(argv);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.startsWith(message)).toBe(true);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("says when npm kept a flag for itself", CHILD, async () => {
  const { code, stderr } = await agent(["Where?"], { npm_config_max_turns: "3" });
  expect([code, stderr]).toEqual([
    1,
    'npm kept --max-turns for itself: write -- before flags, as in npm run agent "Where is …?" -- --max-turns\n',
  ]);
});

test("stops at --max-turns, with exit code 2 and what to do", CHILD, async () => {
  const content = [{ type: "tool_use", id: "toolu_1", name: "search", input: { pattern: "(" } }];
  const { url } = await startServer(reply(content, { stop_reason: "tool_use" }));
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" };
  const { code, stdout, stderr } = await agent(["--max-turns", "1", "Where?"], env);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.split("\n")).toEqual([
    'turn 1 | tool_use | in=12 out=3 cache_read=0 | search({"pattern": "("}) ERROR',
    "Agent stopped: no final answer after max_turns=1; raise --max-turns or ask a narrower question",
    "",
  ]);
});

test("proves without a key that no tool leaves the folder", CHILD, async () => {
  const { code, stdout } = await agent(["--selftest"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/selftest passed\n$/);
});
