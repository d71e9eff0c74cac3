/** One question asked three ways: what each level does when all goes well, at its limits and on errors. */
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBudget } from "../patterns/layers/budget.ts";
import { createSandbox } from "../patterns/repo-tools/sandbox.ts";
import { observe } from "../patterns/step.ts";
import { defineTool, type Tool, ToolError } from "../patterns/tool.ts";
import { askAgentSdk } from "../runners/levels/agent-sdk.ts";
import { environment, INSTALL, loadAgentSdk } from "../runners/levels/agent-sdk-package.ts";
import { loop } from "../runners/levels/loop.ts";
import { denyRules, readOnlyHook } from "../runners/levels/read-only.ts";
import { toolRunner } from "../runners/levels/tool-runner.ts";
import { job } from "../runners/levels.ts";
import { keptWith, linesOfCode } from "../runners/shared/lines-of-code.ts";
import { folder } from "./shared/folder.ts";
import { jobContext } from "./shared/job-context.ts";
import { ROOT, run } from "./shared/runner.ts";
import {
  type Answer,
  type Exchange,
  hold,
  message,
  rejection,
  reply,
  startServer,
} from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("ANTHROPIC_")) vi.stubEnv(name, undefined);
  }
});

afterEach(() => vi.unstubAllEnvs());

let ids = 0;
const use = (name: string, input: unknown) => ({
  type: "tool_use",
  id: `toolu_${++ids}`,
  name,
  input,
});
const calls = (...content: readonly ReturnType<typeof use>[]) =>
  reply(content, { stop_reason: "tool_use" });
const READ = { path: "LICENSE", end_line: 1 };

/** Whether the SDK's tool runner makes the call. */
const isRunners = ({ headers }: Exchange) =>
  String(headers["x-stainless-helper"]).includes("BetaToolRunner");

/** Looks once, then answers. */
const usual: Answer = (exchange) => {
  if (exchange.body.messages.length === 1) return calls(use("read_file", READ))(exchange);
  reply(isRunners(exchange) ? "It's MIT, says the runner." : "It's MIT.")(exchange);
};

/** What a request tells of the calls of the turn before. */
function resultsIn({ body }: Exchange): unknown[] {
  const content = body.messages.at(-1)?.content;
  return Array.isArray(content) ? content : [];
}

/** A server in place of the API, for the command line. */
async function serve(...answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  return server;
}

// The runner

test("asks the same twice, and tells of each what it leaves, costs and does", async () => {
  const file = await tapeFile();
  const server = await serve(usual);
  const recorded = await run(["record", "levels", "--recording", file]);
  expect(recorded).toMatchObject({ code: 0, stderr: "" });
  expect(server.requests.map(isRunners)).toEqual([false, false, true, true]);
  const [first, , third] = server.requests.map(({ body }) => body);
  expect(third).toEqual(first);

  const { code, stdout, stderr } = await run(["replay", "levels", "--recording", file]);
  expect([code, stderr, server.requests.length]).toEqual([0, "", 4]);
  expect(stdout).toContain("\nTHE LOOP BY HAND\nIt's MIT.\n");
  expect(stdout).toContain("\nTHE SDK'S TOOL RUNNER\nIt's MIT, says the runner.\n");
  expect(stdout).toContain("\nTHE CLAUDE AGENT SDK\nnot recorded: ");
  const rows = stdout.split(/\n\n(?=the )/).slice(1);
  expect(rows).toHaveLength(3);
  for (const row of rows) expect(row).toMatch(/\n {2}yours .+\n {2}limits .+\n {2}errors .+\n/);
  const [byHand = "", byRunner = "", byAgentSdk = ""] = rows;
  expect(byHand).toMatch(/ run {5}2 calls, 24 tokens in, 6 out, \$0\.0001, .+\n.+answered after 2/);
  expect(byRunner).toMatch(/, [\d,]+ fewer\n[\s\S]+ 2 calls, 24 tokens in,.+\n.+answered after 2/);
  expect(byAgentSdk).toMatch(/ run {5}not recorded\n {2}status {2}not recorded: .+ live only/);
  expect(stdout).toMatch(/\n4 calls, 48 tokens in, 12 out, /);
});

test("shows the tool runner's turns as it shows the loop's", async () => {
  const file = await tapeFile();
  await serve(usual);
  await run(["record", "levels", "--recording", file]);
  const { stdout } = await run(["replay", "levels", "--recording", file]);
  expect(stdout).toMatch(/^levels\/loop\/agent\/turn\[1\] {2}.+ {2}It's MIT\.$/m);
  expect(stdout).toMatch(
    /^levels\/tool-runner\/turn {2}.+ {2}read_file\(\{"path": "LICENSE".+\)$/m,
  );
  expect(stdout).toMatch(/^levels\/tool-runner\/turn#2 {2}.+ {2}It's MIT, says the runner\.$/m);
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n").slice(1);
  expect(lines.map((line) => JSON.parse(line).path)).toEqual([
    "levels/loop/agent/turn[0]",
    "levels/loop/agent/turn[1]",
    "levels/tool-runner/turn",
    "levels/tool-runner/turn#2",
  ]);
});

test("a replay gives both what their tools gave then", async () => {
  const file = await tapeFile();
  const wrong = [use("read_file", { path: "no-such" }), use("nope", {}), use("search", {})];
  await serve((exchange) => {
    if (exchange.body.messages.length > 1) return usual(exchange);
    // An id is used once in a recording.
    calls(...wrong.map(({ name, input }) => use(name, input)))(exchange);
  });
  await run(["record", "levels", "--recording", file]);
  // As if the file had been another one then.
  const tape = await readFile(file, "utf8");
  expect(tape).toContain("'no-such' doesn't exist.");
  await writeFile(file, tape.replaceAll("'no-such' doesn't exist.", "'no-such' is on holiday."));
  expect(await run(["replay", "levels", "--recording", file])).toMatchObject({
    code: 0,
    stderr: "",
  });
});

test("prints what came of each as JSON", async () => {
  const file = await tapeFile();
  await serve(usual);
  await run(["record", "levels", "--recording", file]);
  const { stdout } = await run(["replay", "levels", "--recording", file, "--json"]);
  const { result, calls } = JSON.parse(stdout);
  expect(calls).toHaveLength(4);
  expect(result).toMatchObject([
    {
      name: "loop",
      answer: "It's MIT.",
      status: "answered after 2 turns",
      totals: { answered: 2 },
    },
    { name: "tool-runner", status: "answered after 2 turns", totals: { tokensIn: 24 } },
    { name: "agent-sdk", isApart: true, status: expect.stringMatching(/^not recorded/) },
  ]);
});

test.for([40, 80])("no line is longer than a terminal of %i columns", async (columns) => {
  const file = await tapeFile();
  await serve(usual);
  await run(["record", "levels", "--recording", file]);
  const { stdout } = await run(["replay", "levels", "--recording", file], {
    columns,
    env: { NO_COLOR: "1" },
  });
  const rows = stdout.slice(stdout.indexOf("THE LOOP")).split("\n");
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((line) => line.length > columns)).toEqual([]);
});

test("a budget holds for the tool runner too, and what is left for the Agent SDK", async () => {
  const server = await startServer(usual);
  const budget = createBudget({ calls: 3 });
  const context = jobContext(server.client(), { layers: [budget.layer], mode: "record" });
  const { words } = await job.run(job.input, context);
  expect(server.requests).toHaveLength(3);
  expect(budget.spent()).toMatchObject({ calls: 3 });
  expect(words).toMatch(/ run {5}1 call .+\n {2}status {2}no answer within the budget \(.+3 calls/);
  expect(await askAgentSdk("?", { ...context, left: () => 0 }, { load })).toEqual({
    status: "not asked: nothing is left of the budget",
  });
});

// Level 2

/** Asks the tool runner alone. */
async function askRunner(answers: [Answer, ...Answer[]], tools?: readonly Tool[]) {
  const server = await startServer(...answers);
  const context = jobContext(server.client(), tools && { recorded: () => tools });
  return { server, outcome: await toolRunner.ask("Where?", context) };
}

test("says in words that the tool runner was ended by its cap, which it doesn't say", async () => {
  const more: Answer = (exchange) => calls(use("search", { pattern: `a${++ids}` }))(exchange);
  const { server, outcome } = await askRunner([more]);
  expect(server.requests).toHaveLength(12);
  expect(outcome).toEqual({
    status:
      "no answer after max_iterations=12, which the runner doesn't say; raise it or ask a narrower question",
  });
  const loops = await startServer(more);
  expect(await loop.ask("Where?", jobContext(loops.client()))).toEqual({
    status: "no answer after max_turns=12; raise --max-turns or ask a narrower question",
  });
});

test("tells the model of an unknown tool, an input that doesn't fit and a tool that throws", async () => {
  const throws = defineTool<{ path: string }>({
    name: "throws",
    description: "Throws",
    input_schema: { type: "object", properties: {}, required: [], additionalProperties: false },
    run: ({ path }) => {
      if (path) throw new ToolError(`'${path}' is closed.`);
      throw new Error("Boom");
    },
  });
  const turn = [use("nope", {}), use("throws", "no object"), use("throws", { path: "a.ts" })];
  const { server, outcome } = await askRunner([calls(...turn), reply("Here.")], [throws]);
  const { requests } = server;
  expect(outcome).toEqual({ answer: "Here.", status: "answered after 2 turns" });
  const told = ["Error: Tool 'nope' not found", "Error: Boom", "'a.ts' is closed."];
  expect(requests[1] && resultsIn(requests[1])).toEqual(
    told.map((content, index) => {
      return { type: "tool_result", tool_use_id: turn[index]?.id, content, is_error: true };
    }),
  );
});

test.for<[what: string, answer: Answer, status: string]>([
  ["refuses", reply("No.", { stop_reason: "refusal" }), "it stopped for refusal"],
  ["is cut off", reply("It", { stop_reason: "max_tokens" }), "it stopped for max_tokens"],
  ["says nothing", reply([]), "it ended without a word"],
])("takes nothing for an answer when the model %s", async ([, answer, status]) => {
  const { outcome } = await askRunner([answer]);
  expect(outcome).toEqual({ status: `no answer after 1 turn: ${status}` });
});

test("a tool gets the id of its call, and the signal", async () => {
  const seen: unknown[] = [];
  const tool = defineTool<object>({
    name: "look",
    description: "Looks",
    input_schema: { type: "object", properties: {}, required: [], additionalProperties: false },
    run: (input, context) => {
      seen.push(input, context);
      return "Seen";
    },
  });
  const call = use("look", { a: 1 });
  const server = await startServer(calls(call), reply("Here."));
  const { signal } = new AbortController();
  const context = jobContext(server.client(), { recorded: () => [tool], signal });
  await toolRunner.ask("Where?", context);
  expect(seen).toEqual([{ a: 1 }, { callId: call.id, signal: expect.any(AbortSignal) }]);
});

test("an abort cancels the tool runner's call, and rejects with its reason", async () => {
  const server = await startServer(hold);
  const controller = new AbortController();
  const { signal } = controller;
  const llmMessage = async () => message("By hand.");
  const ends: string[] = [];
  const done = observe(
    (event) => event.type === "end" && ends.push(`${event.kind} ${event.path} ${event.outcome}`),
    () => job.run(job.input, jobContext(server.client(), { signal, llmMessage })),
  );
  done.catch(() => {});
  const exchange = await server.received(1);
  expect(isRunners(exchange)).toBe(true);
  controller.abort("enough");
  expect(await rejection(done)).toBe("enough");
  await exchange.gone;
  expect(ends).toContain("call levels/tool-runner/turn cancelled");
  expect(ends).toContain("step levels/tool-runner cancelled");
});

// Level 3

const load = async () => {
  const query = () => {
    throw new Error("Nobody is to be asked");
  };
  return { query };
};

test("says in one line how to install the Agent SDK where it isn't", async () => {
  const context = { model: undefined, left: () => Infinity, signal: undefined };
  const missing = () => loadAgentSdk("@anthropic-ai/no-such-package");
  const { status } = await askAgentSdk("Where?", context, { load: missing });
  expect(status).toBe(`not asked: it isn't installed. Install it with: ${INSTALL}`);
  expect(INSTALL).toMatch(/^npm install --no-save @anthropic-ai\/claude-agent-sdk@[\d.]+$/);
});

test("a failure of the Agent SDK is told, and takes no other level's answer with it", async () => {
  const context = { model: undefined, left: () => Infinity, signal: undefined };
  expect(await askAgentSdk("Where?", context, { load })).toEqual({
    status: "no answer: Nobody is to be asked",
  });
});

test("CI installs the Agent SDK that the runner names, and nobody else does", async () => {
  const [, name = ""] = /(@\S+)$/.exec(INSTALL) ?? [];
  expect(await readFile(join(ROOT, ".ci/run"), "utf8")).toContain(name);
  const lock = await readFile(join(ROOT, "package-lock.json"), "utf8");
  expect(lock).not.toContain("claude-agent-sdk");
});

test("gives the Agent SDK's process whom to ask, and nothing of a person's own settings", async () => {
  vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
  vi.stubEnv("CLAUDE_CODE_ENTRYPOINT", "cli");
  vi.stubEnv("GITHUB_TOKEN", "secret");
  const given = environment("/tmp/home");
  expect(given).toMatchObject({
    ANTHROPIC_BASE_URL: "http://127.0.0.1:1",
    CLAUDE_CONFIG_DIR: "/tmp/home",
    HOME: "/tmp/home",
  });
  expect(Object.keys(given)).not.toEqual(
    expect.arrayContaining([expect.stringMatching(/ENTRYPOINT|TOKEN/)]),
  );
});

/** A folder with a secret, something to hide, a link out, and what may be read. */
async function guarded() {
  const root = await folder();
  await writeFile(join(root, "app.ts"), "one();\n");
  await writeFile(join(root, ".env"), "KEY=1\n");
  await mkdir(join(root, "runners/recordings"), { recursive: true });
  await writeFile(join(root, "runners/recordings/a[1].jsonl"), "{}\n");
  await symlink(ROOT, join(root, "out"));
  return createSandbox(root, { deny: ["runners/recordings/"] });
}

test("the hook denies writes, secrets and whatever leads out, and leaves the rest alone", async () => {
  const sandbox = await guarded();
  const hook = readOnlyHook(sandbox);
  const decide = async (tool_name: string, tool_input: unknown) => {
    const { hookSpecificOutput } = await hook({
      hook_event_name: "PreToolUse",
      tool_name,
      tool_input,
    });
    return hookSpecificOutput?.permissionDecisionReason ?? "allowed";
  };
  const inside = (path: string) => join(sandbox.root, path);
  for (const [tool, input] of [
    ["Read", { file_path: inside("app.ts") }],
    ["Read", { file_path: "app.ts" }],
    ["Grep", { pattern: "one" }],
    ["Grep", { pattern: "/etc/../", path: inside("runners") }],
    ["Glob", { pattern: "**/*.ts" }],
    ["Glob", { pattern: "a..b/{x,y}.ts", path: sandbox.root }],
  ] as const) {
    expect(await decide(tool, input), JSON.stringify(input)).toBe("allowed");
  }
  for (const [tool, input, why] of [
    ["Write", { file_path: inside("app.ts"), content: "" }, /^'Write' may change something\. You/],
    ["Bash", { command: "ls" }, /^'Bash' may change/],
    ["mcp__db__drop", {}, /^'mcp__db__drop' may change/],
    ["Read", { file_path: "/etc/passwd" }, /outside the repo root/],
    ["Read", { file_path: inside("../other.ts") }, /outside the repo root/],
    ["Read", { file_path: inside("out/package.json") }, /It's a link/],
    ["Read", { file_path: inside(".env") }, /may hold secrets/],
    ["Read", { file_path: inside("runners/recordings/a[1].jsonl") }, /is to stay hidden/],
    ["Grep", { pattern: "KEY", path: inside(".env") }, /may hold secrets/],
    ["Grep", { pattern: "KEY", path: ".." }, /outside the repo root/],
    ["Glob", { pattern: "/etc/*" }, /leads out of the folder/],
    ["Glob", { pattern: "src/../../*" }, /leads out of the folder/],
    ["Glob", { pattern: "{..,src}/*" }, /leads out of the folder/],
    ["Glob", { pattern: "{src,/etc}/*" }, /leads out of the folder/],
    ["Glob", { pattern: "~/*" }, /leads out of the folder/],
    ["Glob", { pattern: "*", path: "/" }, /outside the repo root/],
  ] as const) {
    expect(await decide(tool, input), JSON.stringify(input)).toMatch(why);
  }
});

test("the hook fails on an input that it can't read, which blocks the call", async () => {
  const hook = readOnlyHook(await guarded());
  const ask = (tool_name: string, tool_input: unknown) =>
    hook({ hook_event_name: "PreToolUse", tool_name, tool_input });
  for (const input of [undefined, null, {}, { file_path: 1 }]) {
    await expect(ask("Read", input)).rejects.toThrow(TypeError);
  }
  await expect(ask("Glob", {})).rejects.toThrow(TypeError);
});

test("what is hidden gets a rule by its path, and what is in it none of its own", async () => {
  const sandbox = await guarded();
  expect(denyRules(sandbox).toSorted()).toEqual(
    [".env", "runners/recordings"].flatMap((path) => [
      `Read(/${sandbox.root}/${path})`,
      `Read(/${sandbox.root}/${path}/**)`,
    ]),
  );
  const { root, denies } = createSandbox(sandbox.root, { deny: ["*.jsonl"] });
  expect(denyRules({ ...sandbox, root, denies })).toContain(
    `Read(/${root}/runners/recordings/a\\[1\\].jsonl)`,
  );
});

// What is left to keep

test("counts a file with what it imports of patterns/ and of its own folder", async () => {
  const { files, lines } = await keptWith("runners/levels/loop.ts");
  expect(files[0]).toBe("runners/levels/loop.ts");
  expect(files).toEqual(
    expect.arrayContaining(["patterns/agent.ts", "patterns/step.ts", "patterns/door/send.ts"]),
  );
  expect(files.filter((file) => !/^(patterns|runners\/levels)\//.test(file))).toEqual([]);
  const sources = await Promise.all(files.map((file) => readFile(join(ROOT, file), "utf8")));
  expect(lines).toBe(sources.reduce((sum, source) => sum + linesOfCode(source), 0));
});

test("each level leaves less than the one before, and is read in one sitting", async () => {
  const kept = await Promise.all(
    ["loop", "tool-runner", "agent-sdk"].map((name) => keptWith(`runners/levels/${name}.ts`)),
  );
  const lines = kept.map((one) => one.lines);
  expect(lines).toEqual(lines.toSorted((a, b) => b - a));
  const names = await readdir(join(ROOT, "runners/levels"));
  for (const name of ["../levels.ts", ...names]) {
    const source = await readFile(join(ROOT, "runners/levels", name), "utf8");
    expect(linesOfCode(source), name).toBeLessThanOrEqual(80);
  }
});
