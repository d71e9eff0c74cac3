/** The subagents' runner: three at once on one question, their findings and gaps, and one answer. */
import { APIError } from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { BudgetError } from "../patterns/errors.ts";
import { createBudget } from "../patterns/layers/budget.ts";
import { createLlm, type Layer } from "../patterns/llm-call.ts";
import { recordedTools } from "../patterns/recorded-tools.ts";
import { openRecording, recordedClient } from "../patterns/recording.ts";
import { observe } from "../patterns/step.ts";
import type { JobContext } from "../runners/shared/job.ts";
import { job } from "../runners/subagent.ts";
import {
  type Answer,
  type Exchange,
  fails,
  rejection,
  reply,
  startServer,
} from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

const VIEWS = ["promised", "done", "proven"] as const;
type View = (typeof VIEWS)[number];

/** Whose request it is: each has a boundary that begins with what it looks at. */
function viewOf({ body }: Exchange): View | "combine" {
  const system = String(body.system);
  if (system.includes("Only what its README")) return "promised";
  if (system.includes("Only what the code")) return "done";
  return system.includes("Only what the tests") ? "proven" : "combine";
}

let ids = 0;
const use = (name: string, input: object) => ({
  type: "tool_use",
  id: `toolu_${++ids}`,
  name,
  input,
});
const calls = (...content: readonly ReturnType<typeof use>[]) =>
  reply(content, { stop_reason: "tool_use" });
const delivery = (source: string, ...gaps: readonly string[]) =>
  use("deliver", { findings: [{ claim: `Seen in ${source}`, evidence: "export", source }], gaps });

/** Looks first, then delivers; the last of all combines. */
const usual: Answer = (exchange) => {
  const view = viewOf(exchange);
  if (view === "combine") return reply("It stops (patterns/step.ts:1).")(exchange);
  if (exchange.body.messages.length === 1) {
    return calls(use("list_files", { path: "runners" }))(exchange);
  }
  if (view === "promised") return calls(delivery("README.md:1"))(exchange);
  if (view === "done") return calls(delivery("patterns/no-such.ts:1", "No bill seen."))(exchange);
  calls(delivery("test/step.test.ts:1-2"))(exchange);
};

interface Setting {
  readonly question?: string;
  readonly layers?: readonly Layer[];
  readonly signal?: AbortSignal;
}

/** What the job has no use for, and tools that are what they are. */
const rest: Pick<JobContext, "model" | "recorded" | "asking" | "suspension" | "isScripted"> = {
  model: undefined,
  recorded: (tools) => tools,
  asking: (script) => script,
  suspension: undefined,
  isScripted: false,
};

async function run(answer: Answer, { question = job.input, layers = [], signal }: Setting = {}) {
  const server = await startServer(answer);
  const { llmCall: llm, llmMessage } = createLlm({ client: server.client(), layers });
  const context = { ...rest, llm, llmMessage, signal };
  const done = job.run(question, context);
  done.catch(() => {});
  return { server, done };
}

test("gives three briefs at once, and has one call combine what was delivered", async () => {
  const { server, done } = await run(usual, { question: "What stops it?" });
  const { words } = await done;
  const views = server.requests.map(viewOf);
  const asked = server.requests.filter(({ body }) => body.system && body.messages.length === 1);
  expect(asked.map(viewOf).toSorted()).toEqual([...VIEWS].sort());
  expect(views.filter((view) => view === "combine")).toHaveLength(1);
  expect(server.requests).toHaveLength(7);
  for (const { body } of asked) {
    expect(body.system).toContain("What stops it?");
    expect(body.system).toContain("You have 8 turns at the most");
  }
  const prompt = String(server.requests.at(-1)?.body.messages[0]?.content);
  expect(prompt).toContain("<question>What stops it?</question>");
  expect(prompt).toMatch(/<report of="done">[\s\S]*Seen in patterns\/no-such[\s\S]*No bill seen\./);
  expect(words).toMatch(/^It stops \(patterns\/step\.ts:1\)\.\n\nGAPS\n- done: No bill seen\.\n\n/);
  expect(words).toContain("\nSOURCES\n3 of 4 cited places exist\n- patterns/no-such.ts:1: ");
  expect(words).toMatch(
    /\n\n\w+: delivered \(findings: 1, gaps: 0\)\ndone: delivered \(findings: 1, gaps: 1\)\n.*$/,
  );
});

test("shows its tools nothing of the recordings", async () => {
  const { server, done } = await run(usual);
  await done;
  const seen = JSON.stringify(server.requests.map(({ body }) => body.messages));
  expect(seen).toContain("runners/agent.ts");
  expect(seen).not.toMatch(/recordings\/|evals\.json/);
});

test("takes a subagent that delivers nothing for a gap", async () => {
  const { server, done } = await run((exchange) => {
    if (viewOf(exchange) !== "proven") return usual(exchange);
    reply("I can't", { stop_reason: "refusal" })(exchange);
  });
  const { words } = await done;
  const gap =
    "research/brief[2]/subagent: No delivery: refusal, neither asked nor forced to deliver";
  expect(words).toContain(`- proven: ${gap}`);
  expect(words).toContain("\nproven: undelivered (findings: 0, gaps: 1)");
  expect(String(server.requests.at(-1)?.body.messages[0]?.content)).toContain(gap);
});

test("cancels the others when one fails in another way", async () => {
  const held: Exchange[] = [];
  const { server, done } = await run((exchange) => {
    held.push(exchange);
    if (held.length === 3) fails(400)(exchange);
  });
  expect(await rejection(done)).toBeInstanceOf(APIError);
  await Promise.all(held.slice(0, 2).map(({ gone }) => gone));
  expect(server.requests).toHaveLength(3);
});

test("rejects with the budget's error, or the signal's reason", async () => {
  const broke = await run(usual, { layers: [createBudget({ calls: 4 }).layer] });
  expect(await rejection(broke.done)).toBeInstanceOf(BudgetError);
  const controller = new AbortController();
  const { server, done } = await run(() => {}, { signal: controller.signal });
  await server.received(3);
  controller.abort("enough");
  expect(await rejection(done)).toBe("enough");
});

test("replays with what its tools gave then, by paths of their own", async () => {
  const file = await tapeFile();
  const server = await startServer(usual);
  const paths = new Set<string>();
  const perform = async (mode: "record" | "replay") => {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const { llmCall: llm, llmMessage } = createLlm({ client, layers: [recording.layer] });
    const { words } = await observe(
      ({ kind, path }: { kind?: string; path: string }) => kind === "call" && paths.add(path),
      () =>
        job.run(job.input, {
          ...rest,
          llm,
          llmMessage,
          signal: undefined,
          recorded: (tools) =>
            recordedTools(
              tools.map((tool) =>
                mode === "record" ? tool : { ...tool, run: () => "Another day" },
              ),
              recording,
            ),
        }),
    );
    expect(recording.unused()).toEqual([]);
    return words;
  };
  const words = await perform("record");
  expect(await perform("replay")).toBe(words);
  expect(server.requests).toHaveLength(7);
  const turns = [0, 1, 2].flatMap((brief) =>
    [0, 1].map((turn) => `research/brief[${brief}]/subagent/agent/turn[${turn}]`),
  );
  expect([...paths].toSorted()).toEqual([...turns, "research/combine"]);
});
