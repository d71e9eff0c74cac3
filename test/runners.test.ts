/** The command line: what it replays, calls and records, what it prints, and what it says when it can't. */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import { BudgetError } from "../patterns/errors.ts";
import { collectTrace, type TraceCall, type TraceStep } from "../patterns/trace-file.ts";
import { job as section } from "../runners/section.ts";
import { type Paint, plainLine, totalsLine, treeLines, wrap } from "../runners/shared/format.ts";
import { callsIn, type Totals, totalsOf } from "../runners/shared/trace.ts";
import { openView } from "../runners/shared/view.ts";
import { brief, dollars, duration } from "../runners/shared/words.ts";
import { folder } from "./shared/folder.ts";
import { Kept } from "./shared/kept.ts";
import { ROOT, run, start } from "./shared/runner.ts";
import { type Answer, fails, hold, raw, reply, startServer } from "./shared/server.ts";
import { onlyTrace } from "./shared/traces.ts";

const AGENTS = ["agent", "subagent", "levels", "refund"];
/** Those whose recorded calls are single prompts. */
const WORKFLOWS = ["chain", "route", "section", "vote", "orchestrate", "refine"];
const NAMES = [...WORKFLOWS, ...AGENTS];
/** The one that has no recording. */
const SCRIPTED = "context";
const RECORDINGS = join(ROOT, "runners/recordings");
/** Starting Node and tsx takes a second, and more on a busy machine. */
const CHILD = { timeout: 120_000 };

beforeEach(() => {
  // Neither a key nor a profile of whoever runs the tests.
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("ANTHROPIC_")) vi.stubEnv(name, undefined);
  }
  vi.stubEnv("ANTHROPIC_CONFIG_DIR", join(ROOT, "no-such-folder"));
});

afterEach(() => vi.unstubAllEnvs());

/** A server of the test's own in place of the API. */
async function serve(...answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  return server;
}

const env = (url: string) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none" });

const LABEL = reply("<label>bug</label>");
const REPORT = reply(
  "<title>It crashes</title><severity>low</severity><steps>Press it</steps><suspicion>A null</suspicion>",
);
/** Costs $0.15 at the default model's price. */
const DEAR = { usage: { input_tokens: 0, output_tokens: 15_000 } };

interface JsonLine {
  readonly pattern: string;
  readonly result: unknown;
  readonly error?: string;
  readonly calls: readonly ({ readonly path: string; readonly state: string } & TraceCall)[];
  readonly totals: Totals;
}

function jsonLines(stdout: string): JsonLine[] {
  // What JSON holds has no types.
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as JsonLine);
}

async function replayed(name: string): Promise<JsonLine> {
  const { code, stdout, stderr } = await run(["replay", name, "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  const [line] = jsonLines(stdout);
  if (!line) throw new Error("It printed nothing");
  return line;
}

/** A copy of a recording, changed. */
async function edited(name: string, edit: (text: string) => string): Promise<string> {
  const file = join(await folder(), `${name}.jsonl`);
  await writeFile(file, edit(await readFile(join(RECORDINGS, `${name}.jsonl`), "utf8")));
  return file;
}

// Replay

test.for(NAMES)("replays %s to the end and uses every recorded call", async (name) => {
  const { code, stdout, stderr } = await run(["replay", name]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(new RegExp(`^${name}  .+\nreplayed, .+ nothing is spent\n`));
  expect(stdout).toMatch(/\n\n\d+ calls.*, \$\d\.\d{4}, .*\n\n$/);
});

test("replays all of them in one go", async () => {
  const { code, stdout, stderr } = await run(["replay"]);
  expect([code, stderr]).toEqual([0, ""]);
  const titles = stdout.match(/^\w+(?= {2}.*\nreplayed)/gm);
  expect(titles).toEqual(NAMES);
  expect(stdout).toMatch(new RegExp(`^${SCRIPTED}  .*\nscripted: `, "m"));
});

test("chain: the gate refuses a text, and the next prompt says why", async () => {
  const { result, calls } = await replayed("chain");
  expect(result).toMatchObject({ status: "completed" });
  expect(calls.map(({ path }) => path)).toEqual(
    expect.arrayContaining(["chain/notes", "chain/notes#2"]),
  );
  const tape = await readFile(join(RECORDINGS, "chain.jsonl"), "utf8");
  const again = tape.split("\n").find((line) => line.includes('"path":"chain/notes#2"'));
  expect(again).toMatch(/refused: it has \d+ characters, and the store takes 500/);
});

test("route: the ticket is a bug, and becomes a report with fields", async () => {
  const { result } = await replayed("route");
  const text = expect.stringMatching(/\S/);
  expect(result).toEqual({
    route: "bug",
    fellBack: false,
    output: { title: text, severity: text, steps: text, suspicion: text },
  });
});

test("section: three reviewers work at once, and code counts the lines", async () => {
  const { result, totals } = await replayed("section");
  expect(result).toMatchObject({ status: "completed", outputs: { size: expect.any(Number) } });
  expect(totals.savedMs).toBeGreaterThan(totals.ms);
});

test("vote: it is decided before all have voted, and the rest is cancelled", async () => {
  const { result, calls, totals } = await replayed("vote");
  expect(result).toMatchObject({ status: "decided", threshold: 4 });
  expect(totals.cancelled).toBeGreaterThan(0);
  expect(totals.answered + totals.cancelled).toBe(7);
  expect(calls.filter(({ state }) => state === "cancelled")).toHaveLength(totals.cancelled);
});

test("orchestrate: a task waits for another, and starts when that is done", async () => {
  const { result, calls } = await replayed("orchestrate");
  const { tasks } = result as { tasks: { id: string; needs: string[] }[] }; // JSON has no types
  const waiting = tasks.findIndex(({ needs }) => needs.length > 0);
  expect(waiting).toBeGreaterThanOrEqual(0);
  const callOf = (index: number) =>
    calls.find(({ path }) => path === `orchestrate/worker[${index}]`);
  const ends = (tasks[waiting]?.needs ?? []).map((id) => {
    const { begin = 0, ms = 0 } = callOf(tasks.findIndex((task) => task.id === id)) ?? {};
    return begin + ms;
  });
  expect(callOf(waiting)?.begin).toBe(Math.max(...ends));
});

test("refine: a draft is sent back, and a later one comes out", async () => {
  const { result, calls } = await replayed("refine");
  const paths = calls.map(({ path }) => path);
  expect(result).toMatchObject({ draft: expect.stringMatching(/\S/) });
  expect(paths).toEqual(expect.arrayContaining(["refine/round[0]/draft", "refine/round[1]/draft"]));
});

test("agent: it looks things up, several at once, and its answer cites what it read", async () => {
  const { result, calls } = await replayed("agent");
  const cited = expect.stringMatching(/\bpatterns\/\w+\.ts:\d+/);
  expect(result).toMatchObject({ status: "answered", answer: cited, turns: calls.length });
  const { stdout } = await run(["replay", "agent"]);
  expect(stdout).toMatch(/^agent\/turn\[0\]\/tool\[1\] {2}search\(\{"pattern": ".+\) → \S/m);
  expect(stdout).toMatch(/\nanswered after \d+ turns\n/);
});

test("agent: answers another question live, with the model that is asked for", async () => {
  const { requests } = await serve(
    reply([{ type: "tool_use", id: "toolu_1", name: "list_files", input: { path: "runners" } }], {
      stop_reason: "tool_use",
    }),
    reply("In runners/agent.ts:1."),
  );
  const { code, stdout } = await run(["live", "agent", "Where?", "--model", "claude-sonnet-5-5"]);
  expect([code, requests.length]).toEqual([0, 2]);
  expect(stdout).toContain("In runners/agent.ts:1.\n\nanswered after 2 turns\n");
  expect(requests[0]?.body).toMatchObject({
    model: "claude-sonnet-5-5",
    messages: [{ role: "user", content: "Where?" }],
  });
  const seen = JSON.stringify(requests[1]?.body.messages);
  expect(seen).toContain("runners/agent.ts");
  // What would give the answers away stays hidden.
  expect(seen).not.toMatch(/recordings|evals\.json/);
});

test("agent: a run that is cut short says why, and what to do", async () => {
  await serve(reply("I can't help with that.", { stop_reason: "refusal" }));
  const { code, stdout } = await run(["live", "agent", "Where?"]);
  expect(code).toBe(0);
  expect(stdout).toContain(
    "\nno answer after 1 turn, since the model refused\n\nrefusal after 1 turn\n",
  );
});

test("refund: one is paid after a yes, one is declined, and one is refused unasked", async () => {
  const { result, calls } = await replayed("refund");
  expect(result).toMatchObject({ status: "answered", turns: calls.length });
  const { questions, orders } = result as {
    questions: { call: string; said: string }[];
    orders: { id: string; paid: number; refunds: { callId: string; cents: number }[] }[];
  }; // JSON has no types
  expect(questions.map(({ said }) => said).toSorted()).toEqual([
    "no, opened coffee isn't taken back",
    "yes",
  ]);
  const back = orders.map(({ id, refunds }) => [id, refunds.map(({ cents }) => cents)]);
  expect(back).toEqual([
    ["5098", [1_800]],
    ["5107", [4_990]],
    ["5121", []],
  ]);
  const { stdout } = await run(["replay", "refund"]);
  expect(stdout).toMatch(/^agent\/turn\[\d\]\/tool\[\d\]\/ask {2}yes$/m);
});

test("refund: suspended and gone on with, it ends as if it had never been", async () => {
  const file = join(await folder(), "run.json");
  const begun = await run(["replay", "refund", "--suspend", file]);
  expect(begun).toMatchObject({ code: 0, stderr: "" });
  const fileIn = (stdout: string) =>
    /go on with: npm start refund -- --resume (\S+) --answer yes/.exec(stdout)?.[1];
  expect(fileIn(begun.stdout)).toBe(file);
  let [last, steps] = [begun, 0];
  for (let next = fileIn(last.stdout); next && steps < 5; next = fileIn(last.stdout)) {
    steps += 1;
    // The kettle is what the recorded person says yes to.
    const [, order] = /"(\d{4})".*\n> \(waits/.exec(last.stdout) ?? [];
    const answer = order === "5107" ? "yes" : "no";
    last = await run(["replay", "refund", "--resume", next, "--answer", answer]);
    expect(last).toMatchObject({ code: 0, stderr: "" });
  }
  expect(steps).toBe(2);
  const whole = await run(["replay", "refund"]);
  // The letter and the order book.
  const letter = (stdout: string) =>
    /\n\n[\s\S]*answered after \d+ turns/.exec(stdout.slice(stdout.lastIndexOf("\n> ")))?.[0];
  expect(letter(last.stdout)).toBe(letter(whole.stdout));
  expect(existsSync(file)).toBe(false);
});

test("refund: asks on the terminal when it's live, and a pipe is nobody", async () => {
  const call = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
  const refund = call("t1", "refund", { order: "5107", cents: 4_990, reason: "Leaks" });
  const stop = { stop_reason: "tool_use" };
  const { requests } = await serve(reply([refund], stop), reply("Sorry."));
  const { code, stdout } = await run(["live", "refund"]);
  expect([code, requests.length]).toEqual([0, 2]);
  expect(stdout).toContain("> (not asked: Error: there is no terminal to ask on)");
  expect(JSON.stringify(requests[1]?.body.messages)).toContain("Declined: refund(");
});

test("subagent: three deliver findings and gaps at once, and one call combines them", async () => {
  const { result, calls, totals } = await replayed("subagent");
  const { answer, reports, checked } = result as {
    answer: string;
    reports: { status: string; findings: unknown[]; gaps: string[] }[];
    checked: unknown[];
  }; // JSON has no types
  expect(answer).toMatch(/\bpatterns\/\w+\.ts:\d+/);
  expect(reports).toHaveLength(3);
  for (const { status, findings } of reports) {
    expect(status).toMatch(/^(delivered|asked)$/);
    expect(findings.length).toBeGreaterThan(0);
  }
  expect(reports.flatMap(({ gaps }) => gaps).length).toBeGreaterThan(0);
  expect(checked.length).toBeGreaterThan(0);
  const starts = calls.filter(({ path }) => path.endsWith("turn[0]"));
  expect(starts.map(({ path }) => path).toSorted()).toEqual(
    [0, 1, 2].map((brief) => `research/brief[${brief}]/subagent/agent/turn[0]`),
  );
  expect(totals.savedMs).toBeGreaterThan(0);
});

test("levels: two of them answer the same question, and the third says how to be asked", async () => {
  const { result, calls } = await replayed("levels");
  const [byHand, byRunner, apart] = result as {
    answer?: string;
    status: string;
    lines: number;
    totals?: Totals;
  }[]; // JSON has no types
  for (const level of [byHand, byRunner]) {
    expect(level?.answer).toMatch(/\bpatterns\/[\w-]+\.ts:\d+/);
    expect(level?.status).toMatch(/^answered after \d turns$/);
  }
  expect(apart).toMatchObject({ status: expect.stringContaining("live only") });
  expect(calls).toHaveLength((byHand?.totals?.answered ?? 0) + (byRunner?.totals?.answered ?? 0));
});

test("says which recorded calls nobody asked for", async () => {
  const file = await edited("route", (text) => {
    const [, , last = ""] = text.split("\n");
    return text + last.replace('"route/bug"', '"route/later"');
  });
  const { code, stderr } = await run(["replay", "route", "--recording", file]);
  expect([code, stderr]).toEqual([
    0,
    "The recording holds calls that nobody asked for: route/later\n",
  ]);
});

test("a changed prompt is a failure that shows the change", async () => {
  const file = await edited("route", (text) => text.replace("Decide which", "Choose which"));
  const { code, stderr } = await run(["replay", "route", "--recording", file]);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^RecordingError: route\/classify has changed since it was recorded: messages\[0\]\.content, line 1:\n {2}recorded: Choose which .*\n {2}now: {6}Decide which .*\n$/,
  );
});

test("finds a recording from where the command was given, not from where npm went", async () => {
  const file = await edited("route", (text) => text);
  const [where, name] = [dirname(file), basename(file)];
  const argv = ["replay", "route", "--recording", name];
  expect(await run(argv, { env: { INIT_CWD: where } })).toMatchObject({ code: 0, stderr: "" });
});

test("what went wrong is told without what a terminal would obey, and without a key", async () => {
  await serve(raw("<html>\u001b[31m\u202eDown\u0007</html>", { status: 400 }));
  const { stderr } = await run(["live", "vote"]);
  expect(stderr).toContain("Down");
  expect(stderr).not.toMatch(/[^\n\P{Cc}]|\p{Bidi_Control}/u);
  vi.stubEnv("ANTHROPIC_API_KEY", "sk-secret\nsk-more");
  const { code, stderr: told } = await run(["live", "vote"]);
  expect([code, told]).toEqual([
    1,
    "ANTHROPIC_API_KEY holds what no header may hold, such as the end of a line: set it anew\n",
  ]);
});

test("replays another input against another recording", async () => {
  const file = await edited("route", (text) => text);
  const args = ["replay", "route", "Something else", "--recording", file];
  const { code, stderr } = await run(args);
  expect([code, stderr]).toEqual([1, expect.stringContaining("route/classify has changed")]);
});

test("a missing recording and one that isn't one are told in a line", async () => {
  const missing = join(await folder(), "none.jsonl");
  const { code, stdout, stderr } = await run(["replay", "route", "--recording", missing]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^RecordingError: There is no recording at .*none\.jsonl.*\n$/);
  const other = await edited("route", () => "Hello\n");
  expect(await run(["replay", "route", "--recording", other])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("line 1: this is not a recording's header"),
  });
});

// Commands

test.for<[argv: string[], says: string]>([
  [["replay", "nope"], 'There is no pattern "nope"; there are chain, route, section, vote, '],
  [["live"], "Which pattern? npm run live <pattern> "],
  [["replay", "route", "my ticket"], 'Your own needs the API: npm run live route "my ticket"'],
  [["record", "route", "my ticket"], "Recordings are of the runners' own input"],
  [["live", "route", "my", "ticket"], "One input at a time: put it in quotes"],
  [["live", "route", "  "], "The input is empty"],
  [["replay", "--pace", "fast"], '--pace must be a number of at least 0, got "fast"'],
  [["replay", "--pace=-1"], '--pace must be a number of at least 0, got "-1"'],
  [["replay", "--pace="], '--pace must be a number of at least 0, got ""'],
  [["replay", "--pace", "Infinity"], '--pace must be a number of at least 0, got "Infinity"'],
  [["live", "route", "--pace", "1"], "--pace goes with npm start only"],
  [["replay", "--pace"], "Option '--pace <value>' argument missing; see npm start -- --help"],
  [["live", "route", "--budget", "0"], '--budget must be a number above 0, got "0"'],
  [["live", "route", "--budget", "$1"], '--budget must be a number above 0, got "$1"'],
  [["replay", "--budget", "1"], "--budget goes with live and record: a replay costs nothing"],
  [["replay", "--model", "x"], "--model goes with live and record"],
  [["live", "route", "--model", " "], "--model is empty: give the id of a model"],
  [["replay", "--recording", "x.jsonl"], "--recording goes with one pattern"],
  [["live", "route", "--recording", "x.jsonl"], "--recording goes with one pattern, in npm start"],
  [["replay", "--transcribed"], "--transcribed goes with record only"],
  [["replay", "--trace", "run.json"], "--trace goes with one pattern: name it"],
  [["replay", "vote", "--trace", "package.json"], "--trace: "],
  [
    ["replay", "vote", "--trace", "test"],
    `--trace: ${join(ROOT, "test")} can't be read: it's a folder`,
  ],
  [["replay", "vote", "--trace", "nowhere/run.json"], "--trace: there is no folder "],
  [["replay", "--colour"], "Unknown option '--colour'; see npm start -- --help"],
  [["replay", "route", "--suspend", "x.json"], "--suspend goes with refund, the job that asks"],
  [["replay", "--resume", "x.json", "--answer", "yes"], "--resume goes with refund, the job"],
  [["live", "vote", "--answer", "yes"], "--answer goes with refund, the job that asks a person"],
  [["record", "refund", "--suspend", "x.json"], "--suspend goes with npm start and npm run live"],
  [["replay", "refund", "--answer", "yes"], "--answer goes with --resume: nothing was asked yet"],
  [["replay", "refund", "--resume", "x.json"], "--resume needs the answer: --answer yes, or "],
  [
    ["replay", "refund", "--suspend", "a.json", "--resume", "b.json"],
    "--suspend begins a run, and",
  ],
  [
    ["replay", "refund", "--suspend", "run"],
    `A suspended run is kept in a .json file, not in "${join(ROOT, "run")}"`,
  ],
  [
    ["replay", "refund", "--suspend", "package.json"],
    `${join(ROOT, "package.json")} is there already: go on with`,
  ],
  [
    ["replay", "refund", "--resume", "none.json", "--answer", "yes"],
    `There is no suspended run in ${join(ROOT, "none.json")}`,
  ],
  [
    ["live", "refund", "my mail", "--resume", "x.json", "--answer", "yes"],
    "--resume goes on with the input that the run began with: leave yours out",
  ],
  [["replay", "refund", "--yes"], "Unknown option '--yes'; see npm start -- --help"],
  [["watch"], 'Start it with npm start, npm run live or npm run record, not "watch"'],
])("refuses %j in a line, with exit code 2", async ([argv, says]) => {
  const { code, stdout, stderr } = await run(argv);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.startsWith(says), stderr).toBe(true);
  expect(stderr).toMatch(/^.+\n$/);
});

test.for([
  ["replay", "npm_config_json", "true", "npm start route -- --json"],
  ["replay", "npm_config_pace", "1", "npm start route -- --pace"],
  ["live", "npm_config_model", "qwen3", "npm run live route -- --model"],
  ["record", "npm_config_budget", "true", "npm run record route -- --budget"],
  ["live", "npm_config_suspend", "run.json", "npm run live route -- --suspend"],
] as const)("tells that npm kept a flag: %s with %s=%s", async ([mode, name, value, right]) => {
  const { code, stderr } = await run([mode, "route"], { env: { [name]: value } });
  expect([code, stderr.trimEnd().endsWith(right)]).toEqual([2, true]);
});

test("npm itself keeps a flag that stands before --", CHILD, async () => {
  const { PATH } = process.env;
  const options = { cwd: ROOT, env: { PATH, HOME: await folder() } };
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile("npm", ["-s", "start", "route", "--json"], options, (error, _, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    );
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("npm start route -- --json\n")]);
});

test.for([
  ["replay", "-h"],
  ["live", "--help"],
])("prints help for %j", async (argv) => {
  const { code, stdout, stderr } = await run(argv);
  expect([code, stderr]).toEqual([0, ""]);
  for (const name of NAMES) expect(stdout).toContain(name);
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
});

// JSON

test("prints a line of JSON for each pattern, with result and calls", async () => {
  const { code, stdout, stderr } = await run(["replay", "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  const lines = jsonLines(stdout);
  expect(lines.map(({ pattern }) => pattern)).toEqual([...NAMES, SCRIPTED]);
  for (const { pattern, result, calls, totals } of lines) {
    expect(result).toBeTypeOf("object");
    expect(totals.answered + totals.cancelled).toBe(calls.length);
    if (pattern === SCRIPTED) continue;
    expect(calls[0]).toMatchObject({
      usage: { input_tokens: expect.any(Number) },
      estimated: true,
    });
  }
});

test("an error in a result has its name and message in JSON", async () => {
  await serve(reply("<vote>yes</vote>", DEAR));
  const { code, stdout, stderr } = await run(["live", "vote", "--json", "--budget", "0.2"]);
  expect([code, stderr]).toEqual([0, ""]);
  const message = expect.stringContaining("The budget of $0.2 has $0.0500 left");
  const error = { name: "BudgetError", message, path: "vote/voter[1]" };
  expect(jsonLines(stdout)).toMatchObject([{ result: { status: "budget", error } }]);
});

test("a failure is a line of JSON too, with the calls until then", async () => {
  await serve(LABEL, fails(400));
  const { code, stdout, stderr } = await run(["live", "route", "--json"]);
  const [line] = jsonLines(stdout);
  expect(code).toBe(1);
  expect(line?.calls).toMatchObject([{ state: "ok" }, { state: "failed", path: "route/bug" }]);
  expect(stderr).toBe(`${line?.error}\n`);
});

// Live

test("live without a key says in one line what to do", async () => {
  const { code, stdout, stderr } = await run(["live", "vote"]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(/^No API key: set ANTHROPIC_API_KEY .*, or .*: npm start vote\n$/);
});

test("a runner that was copied alone names its own command", CHILD, async () => {
  const { PATH } = process.env;
  const options = { cwd: join(ROOT, "runners"), env: { PATH, HOME: await folder() } };
  const tsx = ["--import", "tsx", "shared/one.ts"];
  const runOne = (...argv: readonly string[]) =>
    new Promise<string>((resolve) => {
      execFile(process.execPath, [...tsx, ...argv], options, (_, __, stderr) => resolve(stderr));
    });
  expect(await runOne()).toBe('Which runner? npx tsx shared/one.ts <name> ["your input"]\n');
  expect(await runOne("vote", "a < b")).toMatch(/^No API key: .*: npx tsx shared\/one.ts vote\n$/);
});

test("record without a key leaves no file", async () => {
  const to = await folder();
  const { code, stderr } = await run(["record", "vote", "--recording", join(to, "vote.jsonl")]);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^No API key: .*\n$/)]);
  expect(await readdir(to)).toEqual([]);
});

test("live asks the server at ANTHROPIC_BASE_URL, and prints a line a step", async () => {
  const server = await serve(LABEL, REPORT);
  const { code, stdout, stderr } = await run(["live", "route", "The export crashes"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(
    /^route {2}.*\nlive\nroute\/classify {2}\d+ ms {2}12 in 3 out {2}\$0\.0001 {2}bug\nroute\/bug {2}.*\n\nTITLE\nIt crashes\n/,
  );
  expect(stdout).toMatch(/\n\nrouted to bug\n\n2 calls, 24 tokens in, 6 out, \$0\.0001, \d+ ms/);
  const prompts = server.requests.map(({ body }) => String(body.messages[0]?.content));
  for (const prompt of prompts) expect(prompt).toContain("The export crashes");
});

test("--model goes before ANTHROPIC_MODEL, and that before the default", async () => {
  const server = await serve(LABEL, REPORT);
  for (const [flags, env] of [
    [["--model", "one"], { ANTHROPIC_MODEL: "two" }],
    [[], { ANTHROPIC_MODEL: "two" }],
    [[], { ANTHROPIC_MODEL: "" }],
  ] as const) {
    await run(["live", "route", ...flags], { env });
  }
  const models = server.requests.map(({ body }) => body.model);
  expect(new Set(models)).toEqual(new Set(["one", "two", "claude-sonnet-5-5"]));
});

test("a model without a known price has no cost, and says so", async () => {
  await serve(reply("<label>other</label>", { model: "qwen3" }));
  const { stdout } = await run(["live", "route", "--model", "qwen3"]);
  expect(stdout).toContain("route/classify");
  expect(stdout).toContain("$ unknown");
  expect(stdout).toContain("$0.0000 and 1 of unknown cost");
});

test.for<[string, Answer, RegExp]>([
  ["a refused key", fails(401), /^The API refused the key \(401\): check ANTHROPIC_API_KEY/],
  ["a bad request", fails(400), /^The API answered 400: error 400\n$/],
  ["an overload", fails(529, { "x-should-retry": "false" }), /^The API answered 529: error 529\n$/],
  ["a reply that was cut off", reply("yes", { stop_reason: "max_tokens" }), /max_tokens/],
])("explains %s in one line", async ([, answer, says]) => {
  await serve(answer);
  const { code, stderr } = await run(["live", "route"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(says);
  expect(stderr).toMatch(/^.+\n$/);
});

test.for(["127.0.0.1", "localhost"])(
  "names the reason where nobody listens at %s",
  async (host) => {
    const probe = createServer().listen(0);
    await once(probe, "listening");
    const address = probe.address();
    await once(probe.close(), "close");
    const port = typeof address === "object" ? address?.port : undefined;
    vi.stubEnv("ANTHROPIC_BASE_URL", `http://${host}:${port}`);
    vi.stubEnv("ANTHROPIC_API_KEY", "none");
    const { code, stderr } = await run(["live", "route"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^No connection to the API \(.*ECONNREFUSED.*\): check the network .*\n$/,
    );
  },
);

test("when the budget ends it says so, and what was spent", async () => {
  await serve(reply("<vote>yes</vote>", DEAR));
  const { code, stdout, stderr } = await run(["live", "vote", "--budget", "0.2"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("yes: 1 (4 needed, 6 not started)\n\nbudget\n");
  expect(stdout).toContain("\nbudget: $0.1500 spent\n");
});

test("a budget too small for the first call is a failure that says how small", async () => {
  const server = await serve(hold);
  const { code, stderr } = await run(["live", "route", "--budget", "0.001"]);
  expect([code, server.requests.length]).toEqual([1, 0]);
  expect(stderr).toMatch(
    /^BudgetError: .*The budget of \$0\.001 has .* may cost \$0\.16\d\d: lower /,
  );
});

test("a dollar budget for a model without a price is refused before a call", async () => {
  const server = await serve(hold);
  const { code, stderr } = await run(["live", "route", "--budget", "1", "--model", "qwen3"]);
  expect([code, server.requests.length]).toEqual([1, 0]);
  expect(stderr).toMatch(
    /^--budget needs a model whose price is known \(claude-opus-5-5 and [^\n]*\n$/,
  );
});

// Recording

test("records beside the old file, and puts the new one in its place at the end", async () => {
  const file = await edited("route", (text) => text);
  const before = await readFile(file, "utf8");
  const seen: [string, boolean][] = [];
  const look = (answer: Answer): Answer => {
    return async (exchange) => {
      seen.push([await readFile(file, "utf8"), existsSync(`${file}.partial`)]);
      answer(exchange);
    };
  };
  await serve(look(LABEL), look(REPORT));
  const { code, stdout, stderr } = await run(["record", "route", "--recording", file]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^route {2}.*\nrecording\n/);
  expect(seen).toEqual([
    [before, true],
    [before, true],
  ]);
  expect(existsSync(`${file}.partial`)).toBe(false);
  const [header, ...lines] = (await readFile(file, "utf8")).trimEnd().split("\n");
  expect(JSON.parse(header ?? "")).toMatchObject({ origin: "api", model: "claude-sonnet-5-5" });
  expect(lines.map((line) => JSON.parse(line).path)).toEqual(["route/classify", "route/bug"]);
  expect(await run(["replay", "route", "--recording", file])).toMatchObject({
    code: 0,
    stderr: "",
  });
});

test("a recording that breaks off keeps the old one, and is gone on with without asking again", async () => {
  const file = await edited("route", (text) => text);
  const before = await readFile(file, "utf8");
  const server = await serve(LABEL, fails(400), REPORT);
  const args = ["record", "route", "--recording", file];
  const broken = await run(args);
  expect(broken.code).toBe(1);
  expect(broken.stderr.split("\n")).toEqual([
    expect.stringContaining("400"),
    `What was recorded is kept: run it again to go on, or delete ${file}.partial to begin anew`,
    "",
  ]);
  expect(await readFile(file, "utf8")).toBe(before);
  expect(existsSync(`${file}.partial`)).toBe(true);

  const whole = await run([...args, "--budget", "1"]);
  expect([whole.code, whole.stderr]).toEqual([0, ""]);
  expect(whole.stdout).toContain(
    "1 of the calls had been recorded before and was not paid again\nbudget: ",
  );
  const asked = server.requests.map(({ body }) => String(body.messages[0]?.content).slice(0, 6));
  expect(asked).toEqual(["Decide", "Make a", "Make a"]);
  expect(existsSync(`${file}.partial`)).toBe(false);
  expect(await run(["replay", "route", "--recording", file])).toMatchObject({
    code: 0,
    stderr: "",
  });
});

test("record without a name goes on with the one that broke off", CHILD, async () => {
  const to = await folder();
  const program = join(to, "runners/shared/start.mjs");
  await mkdir(dirname(program), { recursive: true });
  await cp(inject("compiled"), program);
  const recordings = join(to, "runners/recordings");
  await cp(RECORDINGS, recordings, { recursive: true });
  await symlink(join(ROOT, "patterns"), join(to, "patterns"));
  await symlink(join(ROOT, "runners/levels"), join(to, "runners/levels"));
  await writeFile(join(recordings, "vote.jsonl.partial"), "");
  const server = await serve(fails(400));
  const child = start(["record"], env(server.url), program);
  expect(await child.ended).toMatchObject({ code: 1 });
  expect(child.stderr()).toMatch(
    /^Going on with vote, which broke off: those before it are recorded\n/,
  );
  const begun = NAMES.filter((name) => `\n${child.stdout()}`.includes(`\n${name}  `));
  expect(begun).toEqual(NAMES.slice(NAMES.indexOf("vote")));
});

test(
  "while one process records, another one is told so, asks nothing, and harms nothing",
  CHILD,
  async () => {
    const file = join(await folder(), "route.jsonl");
    const server = await serve(hold);
    const args = ["record", "route", "--recording", file];
    const first = start(args, env(server.url));
    const classify = await server.received(1);
    const second = start(args, env(server.url));
    expect(await second.ended).toMatchObject({ code: 1 });
    expect(second.stderr()).toMatch(
      new RegExp(
        `^RecordingError: ${file} is being written by process \\d+: let it end [^\\n]*\\n$`,
      ),
    );
    LABEL(classify);
    REPORT(await server.received(2));
    expect(await first.ended).toMatchObject({ code: 0 });
    expect(server.requests).toHaveLength(2);
    expect(await readdir(dirname(file))).toEqual(["route.jsonl"]);
    expect(await run(["replay", "route", "--recording", file])).toMatchObject({ code: 0 });
  },
);

test.for([["--model", "claude-opus-5-5"], ["--transcribed"]])(
  "a broken recording isn't gone on with under %j",
  async (flags) => {
    const file = join(await folder(), "route.jsonl");
    const server = await serve(LABEL, fails(400));
    const args = ["record", "route", "--recording", file];
    await run(args);
    const { code, stderr } = await run([...args, ...flags]);
    expect([code, server.requests.length]).toEqual([1, 2]);
    expect(stderr).toMatch(/^RecordingError: The broken recording was begun with .*\n$/);
  },
);

test("--transcribed says in the header that the replies aren't from the API", async () => {
  const file = join(await folder(), "route.jsonl");
  await serve(LABEL, REPORT);
  await run(["record", "route", "--recording", file, "--transcribed"]);
  expect(await readFile(file, "utf8")).toMatch(/^\{"version":1,"origin":"transcribed",/);
  const { stdout } = await run(["replay", "route", "--recording", file]);
  expect(stdout).toContain("times and token counts are estimates");
  expect(stdout).toContain("route/classify  ~550 ms");
});

test("a replay of a recording from the API says so, with measured times", async () => {
  const file = join(await folder(), "route.jsonl");
  await serve(LABEL, REPORT);
  await run(["record", "route", "--recording", file]);
  const { stdout } = await run(["replay", "route", "--recording", file]);
  expect(stdout).toMatch(
    /\nreplayed, recorded from the API on \d{4}-\d\d-\d\d; nothing is spent\n/,
  );
  expect(stdout).not.toContain("~");
});

// The trace of a run

test("--trace writes a replay as the run that was recorded", async () => {
  const file = join(await folder(), "run.json");
  const { code, stderr } = await run(["replay", "vote", "--trace", file]);
  expect([code, stderr]).toEqual([0, ""]);
  const trace = onlyTrace(await readFile(file, "utf8"));
  expect(trace).toMatchObject({ name: "vote", origin: "transcribed", result: { winner: "yes" } });
  const [header = ""] = (await readFile(join(RECORDINGS, "vote.jsonl"), "utf8")).split("\n", 1);
  expect(trace.startedAt).toBe(JSON.parse(header).date);
  expect(trace.title).toContain("SQL injection");
  // The same file may be written again, and by another run.
  await run(["replay", "route", "--trace", file]);
  expect(onlyTrace(await readFile(file, "utf8"))).toMatchObject({ name: "route" });
});

test("--trace keeps a live run that failed, as far as it came", async () => {
  const file = join(await folder(), "run.json");
  await serve(LABEL, fails(400));
  const { code } = await run(["live", "route", "--trace", file]);
  expect(code).toBe(1);
  const trace = onlyTrace(await readFile(file, "utf8"));
  expect(trace).toMatchObject({ name: "route", origin: "live" });
  expect(trace.steps.map(({ path, outcome }) => [path, outcome])).toEqual([
    ["route", "failed"],
    ["route/classify", "ok"],
    ["route/bug", "failed"],
  ]);
});

test("--trace writes nothing for a run that never began", async () => {
  const file = join(await folder(), "run.json");
  const { code } = await run(["live", "route", "--trace", file]);
  expect([code, existsSync(file)]).toEqual([1, false]);
});

// What the recordings hold

const evals = (await readdir(join(RECORDINGS, "eval"))).map((file) => `eval/${file.slice(0, -6)}`);

const recordingsOf = (names: readonly string[]) =>
  Promise.all(
    names.map(async (name) => ({
      name,
      text: await readFile(join(RECORDINGS, `${name}.jsonl`), "utf8"),
    })),
  );
const recordings = await recordingsOf(WORKFLOWS);
const agentRecordings = await recordingsOf(["agent", "refund", ...evals]);

test("there is a recording of each pattern, and nothing else", async () => {
  const files = await readdir(RECORDINGS);
  expect(files.toSorted()).toEqual(["eval", ...NAMES.map((name) => `${name}.jsonl`)].toSorted());
});

test.for(recordings)("the recording of $name holds calls and nothing more", ({ text }) => {
  const [header, ...lines] = text.trimEnd().split("\n");
  const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
  const model = "claude-sonnet-5-5";
  expect(JSON.parse(header ?? "")).toEqual({
    version: 1,
    origin: "transcribed",
    model,
    concurrency: 8,
    date,
  });
  for (const line of lines) {
    const { path, begin, ms, outcome, request, reply, ...rest } = JSON.parse(line);
    expect(rest, path).toEqual({});
    expect([typeof begin, typeof ms]).toEqual(["number", "number"]);
    const { messages, ...params } = request.body;
    expect(params).toEqual({ max_tokens: 16_000, model });
    expect(request).toEqual({ endpoint: "/v1/messages", body: request.body });
    expect(messages).toHaveLength(1);
    if (outcome === "cancelled") continue;
    expect(reply.headers).toEqual({ "content-type": expect.stringMatching(/^application\/json/) });
    expect([outcome, reply.status, Object.keys(reply.body)]).toEqual(["replied", 200, ["json"]]);
    expect(reply.body.json).toMatchObject({ type: "message", model, stop_reason: "end_turn" });
  }
});

test.for(recordings)("the recording of $name tells nothing of where it was made", (recording) => {
  const found = recording.text.match(
    /\b(helper|session|sandbox)\b|\/(tmp|work|root|home)\b|sk-ant|x-api-key|authorization: |bearer |127\.0\.0\.1|localhost/gi,
  );
  // The diff under review writes to /tmp, and its reviewers speak of it.
  const own = recording.name === "section" && section.input.includes("/tmp") ? "/tmp" : "";
  expect((found ?? []).filter((word) => word !== own)).toEqual([]);
});

test.for(agentRecordings)("the recording of $name holds turns and nothing more", (recording) => {
  const { name, text } = recording;
  const [header, ...lines] = text.trimEnd().split("\n");
  const model = "claude-opus-5-5";
  expect(JSON.parse(header ?? "")).toMatchObject({ origin: "transcribed", model });
  for (const [index, line] of lines.entries()) {
    const { path, request, reply } = JSON.parse(line);
    expect(path).toBe(`agent/turn[${index}]`);
    const { messages, system, tools, ...params } = request.body;
    const cache_control = { type: "ephemeral" };
    expect(params).toEqual({ max_tokens: 16_000, model, cache_control });
    expect([typeof system, tools.length]).toEqual(["string", name === "refund" ? 2 : 3]);
    // Each turn's request goes on from the one before.
    expect(messages).toHaveLength(1 + 2 * index);
    expect(reply.headers).toEqual({ "content-type": expect.stringMatching(/^application\/json/) });
    const isLast = index === lines.length - 1;
    expect(reply.body.json.stop_reason).toBe(isLast ? "end_turn" : "tool_use");
  }
  // It holds this repository's files, which may speak of keys and hosts; but not of where they were.
  expect(text).not.toMatch(/\/work\/|\/root\/|\/home\/(?!me\/)/);
});

// The look

const ESCAPE = "\u001b";

test("what is piped, or shown on a dumb terminal, holds no escape sequences", async () => {
  const piped = await run(["replay", "vote"]);
  const dumb = await run(["replay", "vote"], { columns: 80, env: { TERM: "dumb" } });
  for (const { stdout } of [piped, dumb]) expect(stdout).not.toContain(ESCAPE);
});

test("NO_COLOR takes the colours away, and leaves the live tree", async () => {
  const colours = new RegExp(`${ESCAPE}\\[[\\d;]*m`);
  const { stdout } = await run(["replay", "vote"], { columns: 80 });
  expect(stdout).toMatch(colours);
  const plain = await run(["replay", "vote"], { columns: 80, env: { NO_COLOR: "1" } });
  expect(plain.stdout).not.toMatch(colours);
  expect(plain.stdout).toContain("⊘ vote/voter[6]");
});

test.for([40, 60, 110])(
  "no line is longer than a terminal of %i columns",
  CHILD,
  async (columns) => {
    const { code, stdout, stderr } = await run(["replay"], { columns });
    expect([code, stderr]).toEqual([0, ""]);
    // Between two moves of the cursor, everything is on one line.
    const pieces = stdout.split(new RegExp(`\n|${ESCAPE}\\[\\d*[A-K]`));
    const long = pieces.map(stripVTControlCharacters).filter((line) => line.length > columns);
    expect(long).toEqual([]);
    const roots = [...WORKFLOWS, "agent"];
    for (const name of roots) expect(stripVTControlCharacters(stdout)).toContain(`✓ ${name}`);
  },
);

test("the live tree shows calls in flight, and at the end how each ended", async () => {
  // Slow enough to be drawn on the way.
  const argv = ["replay", "vote", "--pace", "0.1"];
  const { stdout } = await run(argv, { columns: 110, env: { NO_COLOR: "1" } });
  const flying = stdout.indexOf("… vote/voter[0]");
  const ended = stdout.lastIndexOf("✓ vote/voter[0]");
  expect(flying).toBeGreaterThan(0);
  expect(ended).toBeGreaterThan(flying);
});

test("on a failure the tree shows how far it came, and stderr why it ended", async () => {
  await serve(LABEL, fails(400));
  const { code, stdout, stderr } = await run(["live", "route"], {
    columns: 110,
    env: { NO_COLOR: "1" },
  });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^.*error 400.*\n$/)]);
  expect(stdout).toMatch(/└─ ✗ route\/bug .*The API answered 400: error 400/);
  expect(stdout).not.toContain("undefined");
  expect(stdout).toMatch(/\n1 call \(and 1 failed\), 12 tokens in, 3 out, /);
});

test("control characters from a reply don't reach the tree", () => {
  const [stdout, stderr] = [new Kept(60), new Kept(60)];
  const place = { env: { NO_COLOR: "1" }, output: { stdout, stderr } };
  const view = openView({ name: "a", title: "b", mode: "live", json: false }, place);
  view.onEvent({ type: "start", kind: "step", path: "a", at: 0 });
  view.onEvent({ type: "start", kind: "step", path: "a/b", at: 0 });
  const value = `red${ESCAPE}[31m\u0007\nalert`;
  view.onEvent({ type: "end", kind: "step", path: "a/b", at: 0, outcome: "ok", ms: 1, value });
  view.end({ result: value, words: "", budget: undefined, before: 0, unused: [] });
  expect(stdout.text).not.toContain(`${ESCAPE}[31m`);
});

// Formatting

test.for([
  [0, "0 ms"],
  [812.4, "812 ms"],
  [999.4, "999 ms"],
  [999.6, "1.0 s"],
  [1_940, "1.9 s"],
  [59_949, "59.9 s"],
  [59_960, "1 min 0 s"],
  [125_000, "2 min 5 s"],
  [119_600, "2 min 0 s"],
  [3_599_400, "59 min 59 s"],
  [3_599_600, "1 h 0 min"],
  [4_500_000, "1 h 15 min"],
  [86_369_000, "23 h 59 min"],
  [86_371_000, "1 d 0 h"],
  [266_400_000, "3 d 2 h"],
] as const)("%d ms are %s", ([ms, text]) => {
  expect(duration(ms)).toBe(text);
  expect(duration(ms, true)).toBe(`~${text}`);
});

test.for([
  [0, "$0.0000"],
  [0.00005, "$0.0001"],
  [0.0871, "$0.0871"],
  [12.5, "$12.5000"],
] as const)("%d dollars are %s", ([usd, text]) => {
  expect(dollars(usd)).toBe(text);
});

test.for<[unknown, string]>([
  [true, "passed"],
  [false, "false"],
  [undefined, ""],
  [21, "21"],
  ["two\n  lines ", "two lines"],
  [{ label: "bug", name: "bug" }, "bug"],
  [{ label: "bog", name: undefined }, "unknown label: bog"],
  [{ status: "voted", answer: "yes" }, "yes"],
  [{ status: "answered", answer: "Dear Ada,\n\nyes." }, "Dear Ada, yes."],
  [{ evaluation: "PASS", score: 9, feedback: "" }, "PASS, 9 of 10"],
  [{ output: "a\nb", verdict: true }, "a b"],
  [{ tasks: [1, 2], problem: undefined }, "2 tasks"],
  [{ tasks: [], problem: "it has no <task>" }, "it has no <task>"],
  [{ status: "completed", output: "…" }, "completed"],
  [{ title: "It\ncrashes" }, '{"title":"It\\ncrashes"}'],
])("a step that ended with %j shows as %j", ([value, text]) => {
  expect(brief(value)).toBe(text);
});

test.for([
  ["short", 10, "short"],
  ["one two three", 7, "one two\nthree"],
  ["one two three", 8, "one two\nthree"],
  ["abcdefghij", 4, "abcd\nefgh\nij"],
  ["  - indented text", 12, "  - indented\ntext"],
  ["exact fit", 9, "exact fit"],
  ["blanks at the end   \nstay out", 17, "blanks at the end\nstay out"],
  ["a\n\nb", 1, "a\n\nb"],
  ["", 40, ""],
] as const)("%j in %i columns is %j", ([text, columns, wrapped]) => {
  expect(wrap(text, columns)).toBe(wrapped);
});

const CALL: TraceCall = {
  outcome: "ok",
  sent: true,
  begin: 0,
  ms: 1_500,
  estimated: false,
  model: "claude-sonnet-5-5",
  usage: { input_tokens: 1_000, output_tokens: 20 },
  usd: 0.0022,
};
const { usage: _, usd: __, ...UNANSWERED } = CALL;

const TOTALS: Totals = {
  answered: 4,
  metered: 4,
  failed: 0,
  cancelled: 0,
  tokensIn: 1_512,
  tokensOut: 664,
  usd: 0.0097,
  unpriced: 0,
  ms: 13_100,
  savedMs: 0,
  estimated: false,
};

test.for<[Partial<Totals>, string]>([
  [{}, "4 calls, 1,512 tokens in, 664 out, $0.0097, 13.1 s"],
  [{ metered: 0 }, "4 calls; their tokens, cost and time need a recording from the API"],
  [{ answered: 1 }, "1 call, 1,512 tokens in, 664 out, $0.0097, 13.1 s"],
  [{ failed: 1, cancelled: 2 }, "4 calls (and 1 failed, 2 cancelled), 1,512 tokens in, 664 out, "],
  [{ unpriced: 2 }, "$0.0097 and 2 of unknown cost, 13.1 s"],
  [{ savedMs: 49 }, "$0.0097, 13.1 s"],
  [{ savedMs: 7_000, estimated: true }, ", ~13.1 s, ~7.0 s saved by running at once"],
])("sums up %j", ([some, text]) => {
  expect(totalsLine({ ...TOTALS, ...some })).toContain(text);
});

test("what running at once has saved leaves out the calls that were cancelled", () => {
  const side = { ...CALL, begin: 200, ms: 1_000 };
  const { ms, savedMs } = totalsOf([CALL, side, { ...side, ms: 1_300, outcome: "cancelled" }]);
  expect([ms, savedMs]).toEqual([1_500, 1_000]);
});

test("the calls after a broken recording come after those before", () => {
  const { onEvent, steps } = collectTrace();
  const at = Date.now();
  const model = "claude-sonnet-5-5";
  const usage = { input_tokens: 1, output_tokens: 1 };
  const call = { kind: "call", at, outcome: "ok", model, usage } as const;
  const recorded = { begin: 100, ms: 2_000, estimated: true };
  onEvent({ type: "start", kind: "call", path: "a", at });
  onEvent({ type: "end", path: "a", ms: 1, ...call, notes: { recorded } });
  onEvent({ type: "start", kind: "call", path: "b", at });
  onEvent({ type: "end", path: "b", ms: 300, ...call });
  expect(callsIn(steps())[1]?.begin).toBeGreaterThanOrEqual(2_100);
  expect(totalsOf(callsIn(steps())).savedMs).toBe(0);
});

const BARE: Paint = (_, text) => text;

function node(path: string, rest: Partial<TraceStep> = {}): TraceStep {
  return { path, begin: 0, ms: 0, outcome: "ok", calls: [], ...rest };
}

const TREE = [
  node("run"),
  node("run/first", { calls: [CALL], value: "done\nwell" }),
  node("run/first/gate", { value: true }),
  node("run/second", {
    outcome: "failed",
    calls: [{ ...UNANSWERED, outcome: "failed" }],
    error: new BudgetError("no money left"),
  }),
  node("run/third", {
    outcome: "unfinished",
    calls: [{ ...UNANSWERED, outcome: "unfinished", ms: 0 }],
  }),
  node("run/fourth", {
    outcome: "cancelled",
    calls: [{ ...UNANSWERED, outcome: "cancelled", sent: true }],
  }),
];

test("a tree has a line a step, with figures in columns", () => {
  expect(treeLines(TREE, { paint: BARE, columns: 100, now: 400 })).toEqual([
    "✓ run",
    "├─ ✓ run/first           1.5 s  1,000 in 20 out  $0.0022  done well",
    "│  └─ ✓ run/first/gate                                    passed",
    "├─ ✗ run/second          1.5 s                            no money left",
    "├─ … run/third          400 ms",
    "└─ ⊘ run/fourth          1.5 s                            cancelled, may be billed",
  ]);
});

test("a tool's step shows the call and what came of it, right behind its name", () => {
  const toolCall = 'search({"pattern": "retry"})';
  const nodes = [
    node("agent"),
    node("agent/turn[0]", { calls: [CALL] }),
    node("agent/turn[0]/tool[0]", { toolCall, value: "src/http.ts:42: retry(3)" }),
    node("agent/turn[0]/tool[1]", { toolCall, outcome: "failed", error: new Error("No") }),
  ];
  expect(treeLines(nodes, { paint: BARE, columns: 60, now: 0 }).slice(2)).toEqual([
    '   ├─ ✓ tool[0]  search({"pattern": "retry"}) → src/http.ts…',
    '   └─ ✗ tool[1]  search({"pattern": "retry"}) → No',
  ]);
});

test.for<[number, string[]]>([
  [70, ["├─ ✓ first     1.5 s  1,000 in 20 out  $0.0022  done well", "├─ … third    400 ms"]],
  [56, ["├─ ✓ first     1.5 s  $0.0022  done well", "├─ … third    400 ms"]],
  [40, ["├─ ✓ first     1.5 s  done well", "├─ … third    400 ms"]],
  [24, ["├─ ✓ first     1.5 s", "├─ … third    400 ms"]],
  [12, ["├─ ✓ first", "├─ … third"]],
  [9, ["├─ ✓ fir…", "├─ … thi…"]],
])("in %i columns the tree leaves out what has no room", ([columns, [first, third]]) => {
  const lines = treeLines(TREE, { paint: BARE, columns, now: 400 });
  expect([lines[1], lines[4]]).toEqual([first, third]);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
});

test("a text that is cut ends in an ellipsis, and never inside a character", () => {
  const long = node("a", { value: "😀".repeat(60) });
  const line = plainLine(long);
  expect(line).toMatch(/^a {2}(😀)+…$/u);
});

test("a plain line has path, time, tokens, cost and what came of it", () => {
  const line = plainLine(node("run/first", { calls: [CALL], value: "done" }));
  expect(line).toBe("run/first  1.5 s  1,000 in 20 out  $0.0022  done");
});

// As a process

test("Ctrl-C cancels the calls in flight, and says what was spent", CHILD, async () => {
  const { url, requests, received } = await startServer(hold);
  const child = start(["live", "vote"], env(url));
  await received(7);
  // npm and tsx pass it on, so that one Ctrl-C comes more than once.
  child.kill("SIGINT");
  await requests[0]?.gone;
  child.kill("SIGINT");
  await Promise.all(requests.map(({ gone }) => gone));
  expect(await child.ended).toEqual({ code: 130, signal: null });
  expect(child.stderr()).toBe("Stopped\n");
  expect(child.stdout()).toMatch(/0 calls \(and 7 cancelled\), 0 tokens in, 0 out, \$0\.0000, /);
});

test("Ctrl-C ends a replay that takes its time", CHILD, async () => {
  const child = start(["replay", "--pace", "1"]);
  await child.printed("nothing is spent\n");
  child.kill("SIGINT");
  expect(await child.ended).toEqual({ code: 130, signal: null });
  expect(child.stderr()).toBe("Stopped\n");
  expect(child.stdout()).toContain("1 cancelled");
  expect(child.stdout()).not.toContain("route");
});

test("Ctrl-C in a replay shows the time that has passed, and bills nobody", CHILD, async () => {
  const child = start(["replay", "vote", "--pace", "1"]);
  await child.printed("nothing is spent\n");
  child.kill("SIGINT");
  await child.ended;
  const lines = child
    .stdout()
    .split("\n")
    .filter((line) => line.startsWith("vote/"));
  expect(lines).toHaveLength(7);
  // The shortest of the recorded calls took 4 s, and those that were cancelled longer.
  for (const line of lines) expect(line).toMatch(/ {2}~?\d+ ms {2}cancelled, never sent$/);
  expect(child.stdout()).toMatch(/0 calls \(and 7 cancelled\), .*, ~?\d+ ms$/m);
});

test("a reader that has seen enough ends it quietly", CHILD, async () => {
  const child = start(["replay"]);
  await child.printed("chain");
  child.stopReading();
  expect(await child.ended).toEqual({ code: 0, signal: null });
  expect(child.stderr()).toBe("");
});

test("a recording whose reader goes away says that it isn't whole", CHILD, async () => {
  const { url, received } = await startServer(hold, REPORT);
  const file = join(await folder(), "route.jsonl");
  const child = start(["record", "route", "--recording", file], env(url));
  const first = await received(1);
  child.stopReading();
  LABEL(first);
  expect(await child.ended).toEqual({ code: 1, signal: null });
  expect(child.stderr()).toBe("Broke off, since nobody reads the output: run it again to go on\n");
});

test("the process ends with the exit code of the command", CHILD, async () => {
  const ended = await Promise.all(
    [
      ["replay", "route"],
      ["replay", "nope"],
      ["live", "route"],
    ].map(async (argv) => {
      const child = start(argv, { HOME: ROOT });
      return [(await child.ended).code, child.stderr().split(":")[0]];
    }),
  );
  expect(ended).toEqual([
    [0, ""],
    [2, expect.stringContaining("There is no pattern")],
    [1, "No API key"],
  ]);
});
