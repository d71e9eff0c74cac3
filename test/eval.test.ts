/** The evals: what they ask, how an answer is graded, and what the command prints. */
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { evaluate, type Outcome, readEvals } from "../runners/eval.ts";
import { main } from "../runners/shared/eval-cli.ts";
import { folder } from "./shared/folder.ts";
import { Kept } from "./shared/kept.ts";
import { ROOT } from "./shared/runner.ts";
import { type Answer, fails, reply, startServer } from "./shared/server.ts";

const { share, questions } = readEvals();
const recorded = await readdir(join(ROOT, "runners/recordings/eval"));

afterEach(() => vi.unstubAllEnvs());

async function run(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const [stdout, stderr] = [new Kept(), new Kept()];
  const code = await main(argv, env, { stdout, stderr });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

async function serve(...answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  return server;
}

/** One question, asked of a server that gives this answer, and its line. */
async function graded(answer: string) {
  await serve(reply(answer));
  const { code, stdout } = await run(["early-vote", "--live"]);
  return { code, line: stdout.split("\n")[0] };
}

test("asks twenty questions or more, each by a name of its own, about files that there are", () => {
  expect(questions.length).toBeGreaterThanOrEqual(20);
  expect(new Set(questions.map(({ id }) => id)).size).toBe(questions.length);
  for (const { id, question, cites } of questions) {
    expect(id).toMatch(/^[a-z-]{1,16}$/);
    expect(question).toMatch(/\?$/);
    expect(cites.length).toBeGreaterThan(0);
    for (const path of cites) expect(existsSync(join(ROOT, path)), path).toBe(true);
  }
  expect(share > 0.5 && share <= 1).toBe(true);
});

test("has eight questions or more recorded, each as it's asked now", async () => {
  expect(recorded.length).toBeGreaterThanOrEqual(8);
  for (const file of recorded) {
    const text = await readFile(join(ROOT, "runners/recordings/eval", file), "utf8");
    const asked = questions.find(({ id }) => `${id}.jsonl` === file);
    expect(text, file).toContain(JSON.stringify({ content: asked?.question, role: "user" }));
  }
});

test("replays what is recorded, skips the rest, and passes", async () => {
  const { code, stdout, stderr } = await run([]);
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.split("\n");
  expect(lines.filter((line) => /^(pass|fail) {2}[\w-]+ +\d turns /.test(line))).toHaveLength(
    recorded.length,
  );
  const skipped = questions.length - recorded.length;
  expect(lines.filter((line) => /^skip {2}[\w-]+ +not recorded$/.test(line))).toHaveLength(skipped);
  expect(stdout).toMatch(
    new RegExp(`\n\n\\d+ passed, \\d+ failed, ${skipped} skipped: \\d+ % \\(90 % needed\\), `),
  );
});

test("says how many look-ups would give something else today", async () => {
  const { stdout } = await run(["--json"]);
  const { outcomes } = JSON.parse(stdout) as { outcomes: Outcome[] }; // JSON has no types
  const graded = outcomes.filter(({ verdict }) => verdict !== "skip");
  for (const { changed = [0, 0] } of graded) {
    expect(changed[0]).toBeLessThanOrEqual(changed[1]);
    expect(changed[1]).toBeGreaterThan(0);
  }
});

test.for<[answer: string, code: number, line: RegExp]>([
  ["See patterns/vote.ts:1-3.", 0, /^pass {2}early-vote .* patterns\/vote\.ts:1-3$/],
  ["It ends early.", 1, /^fail {2}early-vote .* doesn't cite patterns\/vote\.ts$/],
  ["See patterns/chain.ts:1.", 1, /^fail {2}early-vote .* doesn't cite patterns\/vote\.ts$/],
  [
    "See patterns/vote.ts:1 and patterns/wote.ts:2.",
    1,
    /^fail .* cites what isn't there: 'patterns\/wote\.ts' doesn't exist\. Did you mean/,
  ],
  ["See patterns/vote.ts:99999.", 1, /^fail .* cites what isn't there: 'patterns\/vote\.ts' has/],
])("grades %j", async ([answer, code, line]) => {
  expect(await graded(answer)).toEqual({ code, line: expect.stringMatching(line) });
});

test("a run without an answer fails, and says why", async () => {
  await serve(reply("No.", { stop_reason: "refusal" }));
  const { code, stdout } = await run(["early-vote", "--live"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^fail {2}early-vote .* no answer after 1 turn, since the model refused\n/,
  );
});

test("what the budget doesn't reach is skipped, and with nothing graded nothing has passed", async () => {
  const { requests } = await serve(reply("See patterns/vote.ts:1."));
  const { code, stdout } = await run(["early-vote", "--live", "--budget", "0.01"]);
  expect([code, requests.length]).toEqual([1, 0]);
  expect(stdout).toMatch(/^skip {2}early-vote .*The budget of \$0\.01 has/);
  expect(stdout).toContain("0 passed, 0 failed, 1 skipped: none graded (90 % needed)");
});

test("adds up no unknown price, and keeps what a failed question has cost", async () => {
  const use = { type: "tool_use", id: "t1", name: "list_files", input: {} };
  const priceless = { model: "foo", stop_reason: "tool_use" };
  await serve(reply([use], priceless), fails(400));
  const { code, stdout } = await run(["early-vote", "--live"]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^fail {2}early-vote +1 turn {2}12 in 3 out {2}\$ unknown {2}The API answered/,
  );
  expect(stdout).toMatch(/1 turn, 12 in 3 out {2}\$ unknown\n$/);
});

test.for([
  '{"date":"x","outcomes":[null]}',
  '{"date":"x","outcomes":[{"id":"a","verdict":"pass"}]}',
  '{"date":"x"}',
  "{",
])("compares with nothing that isn't a run: %s", async (text) => {
  const file = join(await folder(), "old.json");
  await writeFile(file, text);
  const { code, stdout, stderr } = await run(["--compare", "old.json"], {
    INIT_CWD: dirname(file),
  });
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toBe(`${file} is not a run: make one with npm -s run eval -- --json > old.json\n`);
});

test.for([
  "{}",
  "{",
  '{"share":2,"questions":[]}',
  '{"share":"0.9","questions":[]}',
  '{"share":0.9,"questions":[{"id":"a","question":"?"}]}',
  '{"share":0.9,"questions":[{"id":"a","question":"?","cites":[]}]}',
])("says what a list of evals must be: %s", async (text) => {
  const file = join(await folder(), "evals.json");
  await writeFile(file, text);
  expect(() => readEvals(file)).toThrow(`${file} is no list of evals, which is { "share": 0.9`);
});

test("compares with an earlier run, question by question", async () => {
  const old = join(await folder(), "old.json");
  const { stdout } = await run(["early-vote", "unsettled", "--json"]);
  await writeFile(old, stdout.replace('"verdict":"pass"', '"verdict":"fail"'));
  const { code, stdout: compared } = await run(["early-vote", "stalled", "--compare", old]);
  expect(code).toBe(0);
  const [head, first, second] = compared.split("\n").slice(5);
  expect(head).toMatch(/^ {2}question +\d{4}-\d\d-\d\dT\d\d:\d\d +now$/);
  expect(first).toMatch(/^! early-vote +fail {2}\d turns .*\$\d\.\d{4} +pass {2}\d turns /);
  expect(second).toMatch(/^ {2}stalled +- +skip$/);
});

test.for<[argv: string[], says: string]>([
  [["nope"], 'There is no question "nope"; there are early-vote, '],
  [["--record"], "--record goes with npm run eval:live"],
  [["--model", "x"], "--model goes with npm run eval:live"],
  [["--live", "--budget", "0"], '--budget must be a number above 0, got "0"'],
  [["--compare", "none.json"], `${join(ROOT, "none.json")} is not a run: make one with `],
  [["--compare", "package.json"], `${join(ROOT, "package.json")} is not a run: make one with `],
  [
    ["--compare", "old.json", "--json"],
    "--compare prints a table, and --json a run: one of the two",
  ],
  [["--colour"], "Unknown option '--colour'; see npm run eval -- --help"],
])("refuses %j in a line, with exit code 2", async ([argv, says]) => {
  const { code, stdout, stderr } = await run(argv);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.startsWith(says), stderr).toBe(true);
  expect(stderr).toMatch(/^.+\n$/);
});

test("records live answers, and replays them with what the tools gave then", async () => {
  const question = { id: "own", question: "Where?", cites: ["patterns/vote.ts"] };
  const recordings = await folder();
  const use = { type: "tool_use", id: "t1", name: "list_files", input: { path: "runners" } };
  await serve(reply([use], { stop_reason: "tool_use" }), reply("In patterns/vote.ts:1."));
  const asked = await evaluate(question, { mode: "record", recordings });
  expect(asked).toMatchObject({ verdict: "pass", why: "patterns/vote.ts:1", turns: 2 });
  const { changed, ...replayed } = await evaluate(question, { mode: "replay", recordings });
  expect([replayed, changed]).toEqual([asked, [0, 1]]);

  const tape = join(recordings, "own.jsonl");
  await writeFile(tape, (await readFile(tape, "utf8")).replace(/agent\.ts \d+/g, "agent.ts 1"));
  const aged = await evaluate(question, { mode: "replay", recordings });
  expect(aged).toMatchObject({ verdict: "pass", changed: [1, 1] });
});
