/**
 * Level 3 as it runs: the Claude Agent SDK's own process against a server in place of the API.
 *
 *     npm install --no-save @anthropic-ai/claude-agent-sdk@0.3.333 && npm run test:levels
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { runPattern } from "../../patterns/step.ts";
import { type AgentSdkSettings, askAgentSdk } from "../../runners/levels/agent-sdk.ts";
import { folder } from "../shared/folder.ts";
import { ROOT, run } from "../shared/runner.ts";
import {
  type Answer,
  type Exchange,
  fails,
  hold,
  rejection,
  reply,
  startServer,
} from "../shared/server.ts";

/** Each run starts a process of 200 MB. */
vi.setConfig({ testTimeout: 120_000 });

let root = "";

beforeEach(async () => {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("ANTHROPIC_")) vi.stubEnv(name, undefined);
  }
  root = await folder();
  await writeFile(join(root, "app.ts"), "const MARK = 1;\n");
  await writeFile(join(root, ".env"), "MARK=secret\n");
  await mkdir(join(root, "runners/recordings"), { recursive: true });
  await writeFile(join(root, "runners/recordings/a.jsonl"), "MARK the answer\n");
  for (const name of ["a{b,c}.pem", "!d.pem", "e(1).pem", "f[2].pem", "g h.pem"]) {
    await writeFile(join(root, name), "MARK=secret\n");
  }
  await symlink(join(ROOT, "package.json"), join(root, "link.json"));
});

afterEach(() => vi.unstubAllEnvs());

let ids = 0;
const use = (name: string, input: object) => ({
  type: "tool_use",
  id: `toolu_${++ids}`,
  name,
  input,
});
const calls = (...content: readonly ReturnType<typeof use>[]) =>
  reply(content, { stop_reason: "tool_use", id: "msg_calls" });

/** Asks it about the folder. */
async function ask(
  answers: [Answer, ...Answer[]],
  settings: AgentSdkSettings = {},
  signal?: AbortSignal,
) {
  const server = await serve(...answers);
  const context = { model: undefined, left: () => Infinity, signal };
  const asked = runPattern(
    "level",
    () => askAgentSdk("Where is MARK?", context, { root, ...settings }),
    signal,
  );
  asked.catch(() => {});
  return { server, asked };
}

async function serve(...answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  return server;
}

interface Result {
  readonly is_error?: boolean;
  readonly text: string;
}

/** What the model is told of its calls, by their ids. A system message may come after them. */
function resultsIn({ body }: Exchange): Map<string, Result> {
  const last = body.messages.findLastIndex(({ role }) => role === "assistant");
  const results = new Map<string, Result>();
  for (const { content } of body.messages.slice(last + 1)) {
    for (const block of typeof content === "string" ? [] : content) {
      if (block.type !== "tool_result") continue;
      const { is_error = false, content: said } = block;
      results.set(block.tool_use_id, { is_error, text: JSON.stringify(said) });
    }
  }
  return results;
}

test("shows the model three tools that read, and answers", async () => {
  const { server, asked } = await ask([reply("In app.ts:1.")]);
  expect(await asked).toMatchObject({
    answer: "In app.ts:1.",
    status: "answered after 1 turn",
    totals: { answered: 1, tokensIn: 12, tokensOut: 3, usd: expect.any(Number) },
  });
  const [exchange] = server.requests;
  const names = exchange?.body.tools?.map((tool) => "name" in tool && tool.name) ?? [];
  expect(names.filter((name) => name !== "DeferredToolPlaceholder").toSorted()).toEqual([
    "Glob",
    "Grep",
    "Read",
  ]);
  expect(exchange?.body.model).toBe("claude-opus-5-5");
  expect(JSON.stringify(exchange?.body.system)).toContain("You answer questions about the code");
});

test("denies a write, a file outside, a link and a secret, and goes on", async () => {
  const turn = {
    write: use("Write", { file_path: join(root, "new.ts"), content: "x" }),
    bash: use("Bash", { command: "touch new.ts" }),
    outside: use("Read", { file_path: join(ROOT, "package.json") }),
    link: use("Read", { file_path: join(root, "link.json") }),
    secret: use("Read", { file_path: join(root, ".env") }),
    later: use("Read", { file_path: join(root, "later.pem") }),
    hidden: use("Read", { file_path: join(root, "runners/recordings/a.jsonl") }),
    globbed: use("Glob", { pattern: "/etc/*" }),
    braced: use("Glob", { pattern: "{..,x}/*" }),
    read: use("Read", { file_path: join(root, "app.ts") }),
  };
  const first: Answer = async (exchange) => {
    // The rules were made before it was there, and only the hook can deny it.
    await writeFile(join(root, "later.pem"), "MARK=secret\n");
    calls(...Object.values(turn))(exchange);
  };
  const { server, asked } = await ask([first, reply("In app.ts:1.")]);
  expect(await asked).toMatchObject({ answer: "In app.ts:1.", status: "answered after 2 turns" });
  const [, exchange] = server.requests;
  const results = exchange ? resultsIn(exchange) : new Map<string, Result>();
  const { read, ...denied } = turn;
  for (const [what, { id }] of Object.entries(denied)) {
    expect(results.get(id)?.is_error, what).toBe(true);
  }
  expect(results.get(turn.outside.id)?.text).toContain("points outside the repo root");
  expect(results.get(turn.link.id)?.text).toContain("no tool follows one out");
  expect(results.get(turn.later.id)?.text).toContain("may hold secrets");
  expect(results.get(read.id)).toMatchObject({ text: expect.stringContaining("const MARK") });
  expect(existsSync(join(root, "new.ts"))).toBe(false);
  const told = JSON.stringify([...results.values()]);
  expect(told).not.toMatch(/MARK=secret|MARK the answer|effective-agents/);
});

test("a search shows nothing of what is hidden", async () => {
  const turn = [
    use("Grep", { pattern: "MARK", output_mode: "content" }),
    use("Grep", { pattern: "MARK", path: join(root, "runners"), output_mode: "content" }),
    use("Grep", { pattern: "MARK", glob: "{.env,**/*.jsonl}", output_mode: "content" }),
    use("Glob", { pattern: "**/*" }),
  ];
  const { server, asked } = await ask([calls(...turn), reply("In app.ts:1.")]);
  await asked;
  const [, exchange] = server.requests;
  const told = JSON.stringify(exchange && [...resultsIn(exchange).values()]);
  expect(told).toContain("app.ts:1:const MARK");
  expect(told).not.toMatch(/secret|the answer|\.env\b|a\.jsonl|\.pem/);
});

/** Reads on and on; dear if it's to be. */
const more = (output_tokens = 3): Answer => {
  return (exchange) => {
    const usage = { input_tokens: 12, output_tokens };
    const id = `msg_${++ids}`;
    const call = use("Grep", { pattern: `MARK${ids}` });
    reply([call], { stop_reason: "tool_use", usage, id, model: "claude-opus-5-5" })(exchange);
  };
};

test("tells in words that maxTurns was reached, and what was spent until then", async () => {
  const { server, asked } = await ask([more()], { maxTurns: 2 });
  const outcome = await asked;
  expect(outcome).toMatchObject({
    status: "no answer after maxTurns=2; raise it or ask a narrower question",
    totals: { tokensIn: 24, tokensOut: 6 },
  });
  expect(outcome.answer).toBeUndefined();
  expect(server.requests).toHaveLength(2);
});

test("tells in words that maxBudgetUsd was reached, which is looked at after a turn", async () => {
  const { server, asked } = await ask([more(10_000)], { maxUsd: 0.3 });
  expect(await asked).toMatchObject({
    status: "no answer within maxBudgetUsd=$0.3000, which it looks at after a turn",
    totals: { usd: expect.closeTo(0.4, 3) },
  });
  expect(server.requests).toHaveLength(2);
});

test("an error's text is no answer", async () => {
  const { asked } = await ask([fails(400)]);
  const outcome = await asked;
  expect(outcome.answer).toBeUndefined();
  expect(outcome.status).toMatch(/^no answer after 0 turns: .*400/);
});

test("an abort ends its process, and rejects with the reason", async () => {
  const controller = new AbortController();
  const { server, asked } = await ask([hold], {}, controller.signal);
  const { gone } = await server.received(1);
  controller.abort("enough");
  expect(await rejection(asked)).toBe("enough");
  await gone;
});

test("live, all three levels answer, and the budget of the command is the third's too", async () => {
  const server = await serve((exchange) => reply("In app.ts:1.", { id: `msg_${++ids}` })(exchange));
  const { code, stdout, stderr } = await run(["live", "levels", "Where?", "--budget", "1"]);
  expect([code, stderr, server.requests.length]).toEqual([0, "", 3]);
  expect(stdout).toContain("\nTHE CLAUDE AGENT SDK\nIn app.ts:1.\n");
  expect(stdout).toMatch(/\ncalls {10}1 call {3,}1 call {3,}1 call\n/);
  expect(stdout).toMatch(/answered after 1 turn; not\n.* in the sum below\n/);
  expect(stdout).toMatch(/\n2 calls, 24 tokens in, 6 out, /);
});

test("its types are as they are written down", async () => {
  const project = await folder();
  await symlink(join(ROOT, "node_modules"), join(project, "node_modules"));
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  await writeFile(
    join(project, "check.ts"),
    `import { query, type SDKAssistantMessage, type SDKResultMessage } from "@anthropic-ai/claude-agent-sdk";
    import type { AgentSdk, AgentSdkResult, AgentSdkTurn } from "${join(ROOT, "runners/levels/agent-sdk-package.ts")}";
    export const sdk: AgentSdk = { query };
    export const turn = (message: SDKAssistantMessage): AgentSdkTurn => message;
    export const last = (message: SDKResultMessage): AgentSdkResult => message;`,
  );
  const { compilerOptions } = JSON.parse(await readFile(join(ROOT, "tsconfig.json"), "utf8"));
  const typeRoots = [join(ROOT, "node_modules/@types")];
  await writeFile(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots }, include: ["check.ts"] }),
  );
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const checked = promisify(execFile)(process.execPath, [tsc, "-p", project]);
  expect(await checked.catch(({ stdout }) => ({ stdout }))).toMatchObject({ stdout: "" });
});
