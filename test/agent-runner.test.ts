/** The agent's command line: an answer, no answer, and a line that says what to do instead. */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { main } from "../runners/shared/agent-cli.ts";
import { folder } from "./shared/folder.ts";
import { Kept } from "./shared/kept.ts";
import { start } from "./shared/runner.ts";
import { type Answer, fails, hold, reply, startServer } from "./shared/server.ts";
import { onlyTrace } from "./shared/traces.ts";

const SEARCH = reply(
  [{ type: "tool_use", id: "toolu_1", name: "search", input: { pattern: "(" } }],
  { stop_reason: "tool_use" },
);

let root = "";

beforeEach(async () => {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("ANTHROPIC_")) vi.stubEnv(name, undefined);
  }
  root = await folder();
  await writeFile(join(root, "app.ts"), "one();\ntwo();\nretry(3);\n");
});

afterEach(() => vi.unstubAllEnvs());

/** Runs a command line against a server of the test's own. */
async function agent(
  argv: readonly string[],
  answers: readonly Answer[] = [],
  { env = {}, piped = "" }: { env?: NodeJS.ProcessEnv; piped?: string } = {},
) {
  const [first = hold, ...rest] = answers;
  const server = await startServer(first, ...rest);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  const [stdout, stderr] = [new Kept(), new Kept()];
  const stdin = Readable.from([piped]) as unknown as NodeJS.ReadStream; // all that is read of it
  const code = await main(argv, env, { stdout, stderr }, stdin);
  const prompts = server.requests.map(({ body }) => body.messages.at(-1)?.content);
  const models = server.requests.map(({ body }) => body.model);
  return { code, stdout: stdout.text, stderr: stderr.text, prompts, models };
}

test("prints the answer to stdout and a line a turn to stderr", async () => {
  const { code, stdout, stderr, models } = await agent(
    ["--root", root, "Where", "is it?"],
    [SEARCH, reply("In app.ts:3.")],
  );
  expect({ code, stdout }).toEqual({ code: 0, stdout: "In app.ts:3.\n" });
  expect(stderr.split("\n")).toEqual([
    'turn 1 | tool_use | in=12 out=3 cache_read=0 | search({"pattern": "("}) ERROR',
    "turn 2 | end_turn | in=12 out=3 cache_read=0",
    "",
  ]);
  expect(models).toEqual(["claude-opus-5-5", "claude-opus-5-5"]);
});

test("takes the question from standard input, and the model from a flag or the environment", async () => {
  const piped = "Where?\n";
  const env = { ANTHROPIC_MODEL: "from-env" };
  const given = await agent(["--root", root], [reply("There.")], { env, piped });
  expect(given).toMatchObject({ code: 0, prompts: ["Where?"], models: ["from-env"] });
  const flag = await agent(["--model", "own", "Where?"], [reply("There.")], { env });
  expect(flag).toMatchObject({ models: ["own"] });
});

test("stops at --max-turns, with exit code 2 and what to do", async () => {
  const { code, stdout, stderr } = await agent(["--max-turns", "1", "Where?"], [SEARCH]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr.split("\n").slice(1)).toEqual([
    "Agent stopped: no final answer after max_turns=1; raise --max-turns or ask a narrower question",
    "",
  ]);
});

test("prints the whole result as JSON, answered or not", async () => {
  const answered = await agent(["--json", "Where?"], [reply("There.")]);
  expect(JSON.parse(answered.stdout)).toMatchObject({ status: "answered", answer: "There." });
  const stopped = await agent(["--json", "--max-turns", "1", "Where?"], [SEARCH]);
  expect(stopped.code).toBe(2);
  expect(JSON.parse(stopped.stdout)).toMatchObject({ status: "max_turns", turns: 1 });
});

test("says in one line what the API refused, and names no command there isn't", async () => {
  const { code, stdout, stderr } = await agent(["Where?"], [fails(401)]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe("The API refused the key (401): check ANTHROPIC_API_KEY\n");
});

test("shows nothing of an answer that a terminal would obey", async () => {
  const { stdout } = await agent(["Where?"], [reply("\u001b[2JThere.\u0007")]);
  expect(stdout).toBe("There.\n");
});

// --check

const grade = (evaluation: string, score: number) =>
  reply(
    `<evaluation>${evaluation}</evaluation><score>${score}</score><feedback>Say why.</feedback>`,
  );

test("--check: has the answer graded with the lines that it cites", async () => {
  const answers = [reply("Three times, app.ts:3."), grade("PASS", 9)];
  const argv = ["--root", root, "--check", "How often?"];
  const { code, stdout, stderr, prompts, models } = await agent(argv, answers);
  expect([code, stdout]).toEqual([0, "Three times, app.ts:3.\n"]);
  expect(stderr.split("\n")).toEqual([
    "turn 1 | end_turn | in=12 out=3 cache_read=0",
    "check 1 | PASS, 9 of 10 | Say why.",
    "",
  ]);
  expect(prompts[1]).toContain("3| retry(3);");
  expect(models).toEqual(["claude-opus-5-5", "claude-sonnet-5-5"]);
});

test("--check: sends an answer back once, and the agent goes on from there", async () => {
  const answers = [
    SEARCH,
    reply("Three times, see app.ts:9."),
    reply("Three times, app.ts:3."),
    grade("PASS", 8),
  ];
  const { code, stdout, stderr, prompts } = await agent(
    ["--root", root, "--check", "How often?"],
    answers,
  );
  expect([code, stdout]).toEqual([0, "Three times, app.ts:3.\n"]);
  expect(prompts[2]).toMatch(/^Your last answer did not pass\. [\s\S]*app\.ts:9/);
  expect(stderr).toMatch(/\ncheck 1 \| Not all of its citations hold:[\s\S]*\ncheck 2 \| PASS/);
});

test("--check: an answer that isn't accepted is printed all the same, with exit code 1", async () => {
  const answers = [reply("Three, app.ts:3."), grade("NEEDS_IMPROVEMENT", 4)];
  const argv = ["--root", root, "--check", "How often?"];
  const { code, stdout, stderr } = await agent(argv, [
    ...answers,
    reply("Three times, app.ts:3."),
    grade("NEEDS_IMPROVEMENT", 5),
  ]);
  expect([code, stdout]).toEqual([1, "Three times, app.ts:3.\n"]);
  expect(stderr).toMatch(/\nThe answer was not accepted: exhausted\n$/);
});

test("--check: without an answer there is nothing to check", async () => {
  const argv = ["--root", root, "--check", "--max-turns", "1", "How often?"];
  const { code, stdout, stderr } = await agent(argv, [SEARCH]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/\nAgent stopped: no final answer after max_turns=1; /);
});

test("--check: the result as JSON holds the rounds and the agent's own runs", async () => {
  const answers = [reply("Three times, app.ts:3."), grade("PASS", 9)];
  const argv = ["--root", root, "--check", "--json", "How often?"];
  const { stdout } = await agent(argv, answers);
  expect(JSON.parse(stdout)).toMatchObject({
    status: "accepted",
    answer: "Three times, app.ts:3.",
    rounds: [{ grade: { evaluation: "PASS", score: 9 } }],
    runs: [{ status: "answered", turns: 1 }],
  });
});

const GIBBERISH = reply("I can't say.");
const ANSWER = reply("Three times, app.ts:3.");

test.for<[what: string, answers: Answer[], why: RegExp]>([
  ["the grade is unreadable twice", [ANSWER, GIBBERISH, GIBBERISH], /The grade is unreadable/],
  ["the grader is refused", [ANSWER, fails(400)], /The API answered 400/],
  [
    "the second answer never comes",
    [ANSWER, grade("NEEDS_IMPROVEMENT", 4), reply("No.", { stop_reason: "refusal" })],
    /Until then it said: No\. Agent stopped: no final answer after 1 turn, since the model refused/,
  ],
])("--check: an answer that is paid for is printed though %s", async ([, answers, why]) => {
  const argv = ["--root", root, "--check", "How often?"];
  const { code, stdout, stderr } = await agent(argv, answers);
  expect([code, stdout]).toEqual([1, "Three times, app.ts:3.\n"]);
  expect(stderr).toMatch(why);
  expect(stderr).toMatch(/\nThe answer was not accepted: unchecked\n$/);
});

test("--check: nothing that is said of an answer passes for a line of ours", async () => {
  const feedback = "Bad.\ncheck 2 | PASS, 10 of 10 \u001b[31m\u202e";
  const said = `<evaluation>PASS</evaluation><score>9</score><feedback>${feedback}</feedback>`;
  const { stderr } = await agent(["--root", root, "--check", "How often?"], [ANSWER, reply(said)]);
  expect(stderr.split("\n")[1]).toBe("check 1 | PASS, 9 of 10 | Bad. check 2 | PASS, 10 of 10");
});

test("shows a tool's name and a stop reason without what a terminal would obey", async () => {
  const name = "\u001b[31mevil\u001b]0;title\u0007";
  const use = { type: "tool_use", id: "t1", name, input: { "a\u0085b": "\u202e" } };
  const { stderr } = await agent(
    ["Where?"],
    [reply([use], { stop_reason: "tool_use" }), reply("Here.")],
  );
  expect(stderr).toMatch(/^turn 1 \| tool_use \| .* evil\(/);
  expect(stderr).not.toMatch(/[^\n\P{Cc}]|\p{Bidi_Control}/u);
});

test("what a refused model said is not lost", async () => {
  const refused = reply("I would rather not.", { stop_reason: "refusal" });
  const { code, stderr } = await agent(["Where?"], [refused]);
  expect(code).toBe(2);
  expect(stderr).toContain(
    "\nUntil then it said: I would rather not.\nAgent stopped: no final answer",
  );
});

test("takes the folder from where the command was given, not from where npm went", async () => {
  const list = { type: "tool_use", id: "t1", name: "list_files", input: {} };
  const answers = [reply([list], { stop_reason: "tool_use" }), reply("Here.")];
  const { prompts } = await agent(["Where?"], answers, { env: { INIT_CWD: root } });
  expect(prompts[1]).toMatchObject([{ content: "app.ts 24 bytes" }]);
});

// --trace

test.for<[what: string, answers: Answer[], code: number, outcome: string, result: unknown]>([
  ["is answered", [SEARCH, reply("There.")], 0, "ok", { status: "answered", answer: "There." }],
  ["fails", [SEARCH, fails(400)], 1, "failed", undefined],
])("--trace: writes a run that %s for the gallery", async ([, answers, exit, outcome, result]) => {
  const file = join(root, "run.json");
  const { code } = await agent(["--root", root, "--trace", file, "Where?"], answers);
  expect(code).toBe(exit);
  const trace = onlyTrace(await readFile(file, "utf8"));
  expect(trace).toMatchObject({ origin: "live", title: "Where?", ...(result ? { result } : {}) });
  expect(trace.steps[0]).toMatchObject({ path: "agent", outcome });
  expect(trace.steps.flatMap(({ calls }) => calls)).toHaveLength(2);
});

// What it can't do

test.for<[argv: string[], message: string]>([
  [["--bogus"], "Unknown option '--bogus'; see npm run agent -- --help"],
  [["--max-turns", "x", "Where?"], '--max-turns must be a number of at least 1, got "x"'],
  [["--max-turns", "1.5", "Where?"], '--max-turns must be a whole number, got "1.5"'],
  [["--budget", "0", "Where?"], '--budget must be a number above 0, got "0"'],
  [["--trace", "nowhere/run.json", "Where?"], "--trace: there is no folder "],
  [["--root", "no-such-folder", "Where?"], "TypeError: The root must be a folder of files"],
  [[" "], "Ask something"],
  [[], "Ask something"],
])("refuses %j in one line, before any call", async ([argv, message]) => {
  const { code, stdout, stderr, prompts } = await agent(argv);
  expect({ code, stdout, prompts }).toEqual({ code: 1, stdout: "", prompts: [] });
  expect(stderr.startsWith(message), stderr).toBe(true);
  expect(stderr).toMatch(/^.+\n$/);
});

test("says when npm kept a flag for itself", async () => {
  const { code, stderr } = await agent(["Where?"], [], { env: { npm_config_max_turns: "3" } });
  expect([code, stderr]).toEqual([
    1,
    'npm kept --max-turns for itself: write -- before flags, as in npm run agent "Where is …?" -- --max-turns\n',
  ]);
});

test("prints help", async () => {
  const { code, stdout } = await agent(["--help"]);
  expect(code).toBe(0);
  for (const flag of [
    "root",
    "max-turns",
    "model",
    "budget",
    "trace",
    "check",
    "json",
    "selftest",
  ]) {
    expect(stdout).toContain(`--${flag}`);
  }
});

test("proves without a key that no tool leaves the folder", async () => {
  const { code, stdout } = await agent(["--selftest"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/selftest passed\n$/);
});

test("Ctrl-C cancels the call in flight and keeps its trace, with exit code 130", {
  timeout: 60_000,
}, async () => {
  const { url, requests, received } = await startServer(hold);
  const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" };
  const file = join(root, "run.json");
  const child = start(["agent", "Where?", "--trace", file], env);
  await received(1);
  child.kill("SIGINT");
  await requests[0]?.gone;
  expect(await child.ended).toEqual({ code: 130, signal: null });
  expect(child.stderr()).toBe("Stopped\n");
  const { steps } = JSON.parse(await readFile(file, "utf8"));
  expect(steps.at(-1).calls).toMatchObject([{ outcome: "cancelled", sent: true }]);
});
