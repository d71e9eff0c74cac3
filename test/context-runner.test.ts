import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { MessageCreateParamsNonStreaming } from "@anthropic-ai/sdk/resources/beta/messages";
import { expect, test } from "vitest";
import { play, summarize } from "../runners/context/script.ts";
import { scriptedClient } from "../runners/context/scripted-api.ts";
import { folder } from "./shared/folder.ts";
import { run, start } from "./shared/runner.ts";
import { type Answer, fails, raw, startServer } from "./shared/server.ts";

/** The scripted API, over HTTP. */
const answer: Answer = async (exchange) => {
  const { body, headers } = exchange;
  const { beta } = scriptedClient(play, summarize);
  const betas = String(headers["anthropic-beta"] ?? "");
  const reply = await beta.messages.create(body as MessageCreateParamsNonStreaming, {
    headers: { "anthropic-beta": betas },
  });
  raw(JSON.stringify(reply), {})(exchange);
};

test("shows of each way what is asked for, what the API did, and what came of it", async () => {
  const { code, stdout, stderr } = await run(["replay", "context"]);
  expect([code, stderr]).toEqual([0, ""]);
  const found = ": Hour 1: A-1017, Hour 2: A-1022, Hour 5: A-1040";
  expect(stdout).toContain(`compact: the conversation is summed up
  asked for   anthropic-beta: compact-2026-01-12
              {"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000}}]}
  done        call 4: all before it summed up in 323 characters
  came of it  answered after 4 turns${found}
  tokens in   needs a recording from the API

clear: old tool results are cleared
  asked for   anthropic-beta: context-management-2025-06-27
              {"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":30000},"keep":{"type":"tool_uses","value":2}}]}
  done        call 3: 2 tool results cleared
              call 4: 4 tool results cleared
  came of it  answered after 4 turns${found}
  tokens in   needs a recording from the API

memory: two runs, and files that outlive the first
  asked for   {"type":"memory_20250818","name":"memory"}
  came of it  first run answered after 5 turns: Hour 1: A-1017, Hour 2: A-1022
              /memories/notes.md holds: Hour 0: nothing; Hour 1: A-1017; Hour 2: A-1022
              second run answered after 5 turns${found}
  tokens in   needs a recording from the API

subagent: somebody else reads, and delivers a page
`);
  expect(stdout).toMatch(/its caller gets 3 findings and 1 gap, \d{3} characters; its own .* has/);
});

test("makes no figure up where a script plays the API", async () => {
  const { stdout } = await run(["replay", "context"]);
  expect(stdout).not.toMatch(/\d in \d|\d tokens|\$\d/);
  const json = await run(["replay", "context", "--json"]);
  const { calls, totals, isScripted } = JSON.parse(json.stdout);
  expect(isScripted).toBe(true);
  expect(calls).toHaveLength(22);
  for (const call of calls) expect(Object.keys(call)).not.toContain("usage");
  expect(totals).toMatchObject({ answered: 22, metered: 0, tokensIn: 0, usd: 0 });
});

test("has the API's figures once it's recorded", async () => {
  const server = await startServer(answer);
  const file = join(await folder(), "context.jsonl");
  const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "none" };
  const recording = start(["record", "context", "--recording", file], env);
  expect(await recording.ended).toMatchObject({ code: 0 });
  const { code, stdout } = await run(["replay", "context", "--recording", file]);
  expect(code).toBe(0);
  expect(stdout).toContain("replayed, recorded from the API on");
  expect(stdout).toMatch(/ {2}done {8}call 3: 2 tool results cleared, [\d,]{6} tokens\n/);
  expect(stdout).toMatch(/ {2}tokens in {3}[\d,]{7} in all, [\d,]{6} the most of one call\n/);
  expect(stdout).toMatch(/\n22 calls, [\d,]+ tokens in, /);
});

test("takes no input of one's own, before any call", async () => {
  const server = await startServer(answer);
  const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "none" };
  const live = start(["live", "context", "Read my own log"], env);
  const says = "context takes no input but its own: leave yours out\n";
  expect(await live.ended).toMatchObject({ code: 2 });
  expect(live.stderr()).toBe(says);
  expect(server.requests).toHaveLength(0);
  for (const mode of ["replay", "record"]) {
    const { code, stderr } = await run([mode, "context", "Read my own log"]);
    expect([code, stderr]).toEqual([2, says]);
  }
});

test("under a budget in dollars only a compaction isn't run, since it has no bound", async () => {
  const server = await startServer(answer);
  const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "none" };
  const live = start(["live", "context", "--budget", "1000"], env);
  expect(await live.ended).toMatchObject({ code: 0 });
  const [, compact = ""] = live.stdout().split(/\n(?=compact: )|\n(?=clear: )/);
  expect(compact).toMatch(
    / {2}came of it {2}nothing: A budget in dollars can't tell what a compaction/,
  );
  expect(live.stdout().match(/ {2}came of it {2}(?!nothing)/g)).toHaveLength(3);
});

test("what fails in one way takes no other's report with it, unless all fail", async () => {
  let isDown = false;
  const server = await startServer((exchange) => {
    const clears = JSON.stringify(exchange.body).includes("clear_tool_uses");
    (clears || isDown ? fails(400) : answer)(exchange);
  });
  const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "none" };
  const live = start(["live", "context"], env);
  expect(await live.ended).toMatchObject({ code: 0 });
  expect(live.stdout()).toMatch(
    /\nclear: .+\n.*\n.*\n {2}came of it {2}nothing: The API answered 400/,
  );
  expect(live.stdout().match(/ {2}came of it {2}(?!nothing)/g)).toHaveLength(3);
  isDown = true;
  const down = start(["live", "context"], env);
  expect(await down.ended).toMatchObject({ code: 1 });
  expect(down.stderr()).toContain("400");
});

test("leaves no folder where a reader has seen enough", async () => {
  const TMPDIR = await folder();
  const child = start(["replay", "context"], { TMPDIR });
  await child.printed("context/memory");
  child.stopReading();
  expect(await child.ended).toMatchObject({ code: 0 });
  expect(await readdir(TMPDIR)).toEqual([]);
});

test.for(["context-management-2025-06-27", "compact-2026-01-12"])(
  "plays an API that takes no edit without its beta: %s",
  async (beta) => {
    const edits = [
      { type: "clear_tool_uses_20250919" as const },
      { type: "compact_20260112" as const },
    ];
    const sent = scriptedClient(play, summarize).beta.messages.create({
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content: "Hi" }],
      betas: [beta],
      context_management: { edits },
    });
    await expect(sent).rejects.toThrow("context_management needs the beta");
  },
);
