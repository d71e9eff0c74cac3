/**
 * A recorded run of the agent is replayed, and gone on with, where its tools would say something else.
 *
 * From effective-agents 0.1.0: test/recorded-tools.test.ts
 */
import { expect, test } from "vitest";
import { type AgentOptions, runAgent } from "../patterns/agent.ts";
import { RecordingError } from "../patterns/errors.ts";
import { createLlm } from "../patterns/llm-call.ts";
import { recordedTools } from "../patterns/recorded-tools.ts";
import { openRecording, type RecordingMode, recordedClient } from "../patterns/recording.ts";
import { step } from "../patterns/step.ts";
import { defineTool, ToolError } from "../patterns/tool.ts";
import { fails, reply, startServer } from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

const use = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
const turn = (...content: readonly ReturnType<typeof use>[]) =>
  reply(content, { stop_reason: "tool_use" });

const SCRIPT = [
  turn(use("a", "clock", {}), use("b", "clock", {}), use("c", "nope", {})),
  turn(use("d", "clock", { zone: "UTC" }), use("e", "big", {})),
  reply("It is late."),
] as const;

/** Tools whose results tell of the day, and how often they ran. */
function toolsOf(day: string) {
  const runs: string[] = [];
  const properties = { zone: { type: "string" } };
  const input_schema = { type: "object" as const, properties, required: [] };
  const about = {
    description: "Says it",
    input_schema: { ...input_schema, additionalProperties: false as const },
  };
  const clock = defineTool<{ zone?: string }>({
    ...about,
    name: "clock",
    run: ({ zone }) => {
      runs.push(day);
      if (zone) throw new ToolError(`${zone} is unknown on ${day}`);
      return `${day}, look ${runs.length}`;
    },
  });
  const big = defineTool({ ...about, name: "big", run: () => day.repeat(20_000) });
  return { runs, tools: [clock, big] };
}

/** Runs the agent on a day, through a recording; the server knows the script. */
async function run(
  file: string,
  mode: RecordingMode,
  day: string,
  script = [...SCRIPT],
  steer?: AgentOptions["steer"],
) {
  const [first, ...rest] = script;
  const server = await startServer(first ?? fails(500), ...rest);
  await using recording = await openRecording(file, { mode });
  const client = recordedClient(recording, { apiKey: "none", baseURL: server.url, maxRetries: 0 });
  const { llmMessage: llm } = createLlm({ client, layers: [recording.layer] });
  const { runs, tools } = toolsOf(day);
  const recorded = recordedTools(tools, recording);
  const ending = await step("eval", () =>
    runAgent("How late is it?", { tools: recorded, llm, steer }),
  ).catch((error: unknown) => error);
  return { ending, runs, requests: server.requests, unused: recording.unused() };
}

test("replays a run on what its tools gave then, errors and cut results too, and runs none", async () => {
  const file = await tapeFile();
  const monday = await run(file, "record", "Monday");
  expect(monday.ending).toMatchObject({ status: "answered", answer: "It is late.", turns: 3 });
  expect(monday.runs).toHaveLength(3);
  const tuesday = await run(file, "replay", "Tuesday");
  expect(tuesday).toEqual({ ...monday, runs: [], requests: [] });
  expect(JSON.stringify(tuesday.ending)).toContain("UTC is unknown on Monday");
});

test("replays a run to which something was said beside the results", async () => {
  const file = await tapeFile();
  const steer: AgentOptions["steer"] = ({ ending }) => (ending ? undefined : { say: "Hurry." });
  const monday = await run(file, "record", "Monday", [...SCRIPT], steer);
  expect(monday.ending).toMatchObject({ status: "answered", turns: 3 });
  const tuesday = await run(file, "replay", "Tuesday", [...SCRIPT], steer);
  expect(tuesday).toEqual({ ...monday, runs: [], requests: [] });
});

test("goes on with a broken run, and runs again only what no answered turn was told", async () => {
  const file = await tapeFile();
  const [first, second, last] = SCRIPT;
  const broken = await run(file, "resume", "Monday", [first, second, fails(400)]);
  expect(broken.ending).toMatchObject({ status: 400 });
  expect(broken.runs).toHaveLength(3);
  const { ending, runs, requests } = await run(file, "resume", "Tuesday", [last]);
  expect(ending).toMatchObject({ status: "answered" });
  expect([runs, requests.length]).toEqual([["Tuesday"], 1]);
  const asked = JSON.stringify(requests[0]?.body);
  expect([asked.includes("Monday, look 2"), asked.includes("UTC is unknown on Tuesday")]).toEqual([
    true,
    true,
  ]);
});

test("tells the runs of one recording apart, outside of any step too", async () => {
  const file = await tapeFile();
  const script = [
    turn(use("a", "clock", {})),
    reply("Early."),
    turn(use("b", "clock", {})),
    reply("Late."),
  ];
  const [first = fails(500), ...rest] = script;
  const server = await startServer(first, ...rest);
  const both = async (mode: RecordingMode, day: string) => {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const { llmMessage: llm } = createLlm({ client });
    const { runs, tools } = toolsOf(day);
    const recorded = recordedTools(tools, recording);
    const one = await runAgent("How late is it?", { tools: recorded, llm });
    const other = await runAgent("How late is it?", { tools: recorded, llm });
    return { answers: [one, other], runs };
  };
  const monday = await both("record", "Monday");
  expect(monday.answers).toMatchObject([{ answer: "Early." }, { answer: "Late." }]);
  expect(await both("replay", "Tuesday")).toEqual({ ...monday, runs: [] });
});

test("refuses to choose between two results of one id, as of a server whose ids aren't unique", async () => {
  const file = await tapeFile();
  const script = [
    turn(use("a", "clock", {})),
    reply("Early."),
    turn(use("a", "clock", {})),
    reply("Late."),
  ] as const;
  const server = await startServer(...script);
  const ask = async (mode: RecordingMode) => {
    await using recording = await openRecording(file, { mode });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const { llmMessage: llm } = createLlm({ client });
    const { runs, tools } = toolsOf("Monday");
    const recorded = recordedTools(tools, recording);
    await runAgent("How late is it?", { tools: recorded, llm });
    await runAgent("How late is it?", { tools: recorded, llm });
    return runs;
  };
  expect(await ask("record")).toHaveLength(2);
  await expect(ask("replay")).rejects.toThrow("two results of a tool's call a");
});

test("without it, a replay on another day is another request", async () => {
  const file = await tapeFile();
  await run(file, "record", "Monday");
  await using recording = await openRecording(file, { mode: "replay" });
  const { llmMessage: llm } = createLlm({ client: recordedClient(recording) });
  const { tools } = toolsOf("Tuesday");
  const replayed = step("eval", () => runAgent("How late is it?", { tools, llm }));
  await expect(replayed).rejects.toThrow(RecordingError);
});
