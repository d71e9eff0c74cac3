/**
 * The orchestrate runner is killed at every point of a recording, and then run again until it ends. What
 * was on the tape when it died must not be asked again, and what comes out must be right.
 *
 *     plan ─┬─► worker[0] ──┬─► worker[2] ──┐          killed when the server got it,
 *           ├─► worker[1] ──┘               ├─► combine        when it has answered it,
 *           └─► worker[3] ──────► worker[4] ┘                  when it's on the tape
 */
import { existsSync, watch } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { createLlm } from "../../patterns/llm-call.ts";
import type { TapeLine } from "../../patterns/recording/tape.ts";
import { openRecording, recordedClient } from "../../patterns/recording.ts";
import { observe } from "../../patterns/step.ts";
import { vote } from "../../patterns/vote.ts";
import { folder } from "../shared/folder.ts";
import { start } from "../shared/runner.ts";
import { type Exchange, hold, reply, startServer } from "../shared/server.ts";

const PLAN = `<task id="a">Do a</task>
<task id="b">Do b</task>
<task id="c" needs="a, b">Do c</task>
<task id="d">Do d</task>
<task id="e" needs="d">Do e</task>`;

const PATHS = [
  "orchestrate/plan",
  ...[0, 1, 2, 3, 4].map((index) => `orchestrate/worker[${index}]`),
  "orchestrate/combine",
];
const MOMENTS = ["asked", "answered", "on the tape"] as const;
type Moment = (typeof MOMENTS)[number];

/** Which call a request is, by its prompt. */
function pathOf({ body }: Exchange): string {
  const prompt = String(body.messages[0]?.content);
  const [, id] = /<task id="(\w)">/.exec(prompt) ?? [];
  if (prompt.startsWith("Split the request")) return "orchestrate/plan";
  if (prompt.startsWith("The request below was split")) return "orchestrate/combine";
  return `orchestrate/worker[${"abcde".indexOf(id ?? "")}]`;
}

/** The combined answer says what it was made of. */
function textFor(path: string, { body }: Exchange): string {
  const results = String(body.messages[0]?.content).match(/(?<=<result task="\w">).*(?=<)/g) ?? [];
  if (path === "orchestrate/plan") return PLAN;
  return `${path.slice("orchestrate/".length)}(${results.join(", ")})`;
}

const ANSWER =
  "combine(worker[0](), worker[1](), worker[2](worker[0](), worker[1]()), worker[3](), worker[4](worker[3]()))";

async function pathsOn(file: string): Promise<string[]> {
  const [, ...lines] = (await readFile(file, "utf8")).split("\n");
  // The last one may be torn.
  const whole = lines.filter((line) => line.startsWith("{") && line.endsWith("}"));
  return whole.map((line) => (JSON.parse(line) as TapeLine).path); // what JSON holds has no types
}

/** Records, is killed when `path` was asked, when it was answered, when it's on the tape, and ends. */
async function killedAround(path: string) {
  const file = join(await folder(), "tape/orchestrate.jsonl");
  await mkdir(dirname(file));
  let reached = (_moment: Moment, _path: string) => {};
  const look = async () => {
    const taped = await pathsOn(`${file}.partial`).catch((): string[] => []);
    if (taped.includes(path)) reached("on the tape", path);
  };
  const watcher = watch(dirname(file), look);
  let moment: Moment | undefined;
  const server = await startServer((exchange) => {
    const asked = pathOf(exchange);
    reached("asked", asked);
    exchange.response.on("finish", () => reached("answered", asked));
    // The end waits for the kill, however late that is noticed.
    if (moment && asked === "orchestrate/combine" && asked !== path) look();
    else reply(textFor(asked, exchange))(exchange);
  });

  const runs = [];
  for (moment of [...MOMENTS, undefined]) {
    const taped = await pathsOn(`${file}.partial`).catch((): string[] => []);
    const before = server.requests.length;
    const child = start(["record", "orchestrate", "--recording", file], {
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_API_KEY: "none",
    });
    reached = (...now) => {
      if (now[0] === moment && now[1] === path) child.kill("SIGKILL");
    };
    const { code, signal } = await child.ended;
    const asked = server.requests.slice(before).map(pathOf);
    runs.push({ moment, taped, asked, code, signal, stdout: child.stdout() });
    // The kill may come too late for the last of the calls: then all is done.
    if (existsSync(file)) break;
  }
  watcher.close();
  return { runs, tape: await pathsOn(file) };
}

test("killed at some twenty points, it asks nothing again that is on the tape", {
  timeout: 120_000,
}, async () => {
  const all = await Promise.all(PATHS.map(killedAround));
  const kills = all.flatMap(({ runs }) => runs.filter(({ signal }) => signal === "SIGKILL"));
  // Two of the last call's three may come too late.
  expect(kills.length).toBeGreaterThanOrEqual(3 * PATHS.length - 2);
  for (const { runs, tape } of all) {
    for (const { moment, taped, asked } of runs) {
      expect([moment, asked.filter((path) => taped.includes(path))]).toEqual([moment, []]);
      expect(new Set(asked).size).toBe(asked.length);
    }
    const last = runs.at(-1);
    expect(last?.stdout).toContain(`\n${ANSWER}\n`);
    // Exactly what was missing, each once.
    expect([...(last?.taped ?? []), ...(last?.asked ?? [])].toSorted()).toEqual(PATHS.toSorted());
    expect(tape.toSorted()).toEqual(PATHS.toSorted());
  }
});

test("a vote of nine replays a hundred times to the same result and the same events", {
  timeout: 60_000,
}, async () => {
  const file = join(await folder(), "vote.jsonl");
  const server = await startServer(hold);
  const question = Array.from({ length: 9 }, (_, index) => `Voter ${index}: is 91 a prime?`);
  const run = async (mode: "record" | "replay") => {
    await using recording = await openRecording(file, { mode, concurrency: 9, quietMs: 60_000 });
    const client = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const layers = [recording.layer];
    const llm = createLlm({ client, concurrency: 9, layers }).llmCall;
    const events: string[] = [];
    const { ballots, ...result } = await observe(
      (event) => {
        const outcome = event.type === "end" ? event.outcome : "";
        if (event.type !== "text") events.push(`${event.path} ${event.kind} ${outcome}`);
      },
      () => vote(question, { llm }),
    );
    return { ballots, result, events, unused: recording.unused() };
  };
  const recorded = run("record");
  await server.received(9);
  const votes: readonly [number, string][] = [
    [6, "no"],
    [1, "yes"],
    [8, "no"],
    [3, "No."],
    [0, "yes"],
    [7, "no"],
    [4, "**no**"],
  ];
  for (const [voter, answer] of votes) {
    const asked = server.requests.find(({ body }) =>
      String(body.messages[0]?.content).startsWith(`Voter ${voter}:`),
    );
    if (asked) reply(`Seven times thirteen. <vote>${answer}</vote>`)(asked);
  }
  const first = await recorded;
  expect(first.result).toMatchObject({ status: "decided", winner: "No.", threshold: 5 });
  expect(first.ballots.filter(({ status }) => status === "cancelled")).toHaveLength(2);
  for (let i = 0; i < 100; i++) expect(await run("replay")).toEqual(first);
  expect(server.requests).toHaveLength(9);
});
