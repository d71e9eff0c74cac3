/** The failure lab: what each failure comes to, with its catch and without, and how it's shown. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { afterEach, expect, test, vi } from "vitest";
import type { AgentResult } from "../patterns/agent.ts";
import { BudgetError } from "../patterns/errors.ts";
import type { Layer } from "../patterns/llm-call.ts";
import { type CodeLine, findLine } from "../runners/failures/code-line.ts";
import { oneByOne } from "../runners/failures/dried-up-calls.ts";
import { defineFailure, type Failure } from "../runners/failures/failure.ts";
import { forgetful } from "../runners/failures/ignored-calls.ts";
import { playedBy, resultsIn } from "../runners/failures/scripted.ts";
import { FAILURES } from "../runners/failures.ts";
import { linesOfCode } from "../runners/shared/lines-of-code.ts";
import { ROOT, run, start } from "./shared/runner.ts";
import { message } from "./shared/server.ts";
import { brokenRule } from "./shared/strict-api.ts";

const NAMES = [...FAILURES.keys()];
const failures = [...FAILURES.values()];
/** What is no failure of its own in the folder of failures. */
const PARTS = ["code-line.ts", "failure.ts", "scripted.ts"];
/** Starting Node takes a second, and more on a busy machine. */
const CHILD = { timeout: 60_000 };

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Runs a failure; its result is of the type that its file gives it. */
async function outcomeOf<Result>(name: string, catching: boolean) {
  const turns: string[] = [];
  const outcome = await found(name).run(catching, (line) => turns.push(line));
  return { result: outcome.result as Result, words: outcome.words, turns };
}

function found(name: string): Failure {
  const failure = FAILURES.get(name);
  if (!failure) throw new Error(`There is no failure ${name}`);
  return failure;
}

const told = ({ transcript }: AgentResult) => resultsIn(transcript).map(({ content }) => content);
/** The input tokens of each turn. */
const tokensIn = (turns: readonly string[]) =>
  turns.map((line) => Number(/ in=(\d+) /.exec(line)?.[1]));
const isRising = (counts: readonly number[]) =>
  counts.every((count, at) => at === 0 || count > (counts[at - 1] ?? 0));

/** The rule that the API would see broken if these messages came through the layer. */
async function brokenBehind(layer: Layer, messages: readonly MessageParam[]) {
  const sent: string[] = [];
  const send = layer(async (params) => {
    sent.push(JSON.stringify(params));
    return message("");
  });
  await send({ model: "claude-opus-5-5", max_tokens: 1, messages: [...messages] }, {});
  return sent.map((body) => brokenRule(body));
}

const untouched: Layer = (next) => next;

/** The transcript until the last results: what was sent when the model answered. */
const beforeAnswer = ({ transcript }: AgentResult) => transcript.slice(0, -1);

// The failures

test("endless-loop: the same calls end the run, and so does the cap where they vary", async () => {
  type Result = { same: AgentResult; varied: AgentResult };
  const { result, words, turns } = await outcomeOf<Result>("endless-loop", true);
  expect(result).toMatchObject({
    same: { status: "repeating", turns: 3 },
    varied: { status: "max_turns", turns: 5 },
  });
  expect(words[0]).toContain("repeating after 3 turns; with calls that vary, max_turns after 5");
  expect(turns).toHaveLength(3 + 5);

  const without = await outcomeOf<Result>("endless-loop", false);
  const endless = { status: "max_turns", turns: 50 };
  expect(without.result).toMatchObject({ same: endless, varied: endless });
  expect(new Set(told(without.result.same)).size).toBe(1);
  expect(isRising(tokensIn(without.turns.slice(0, 50)))).toBe(true);
});

test("invented-arguments: nothing runs on them, and the model is told what there is", async () => {
  type Result = AgentResult & { refunds: string[] };
  const { result, words } = await outcomeOf<Result>("invented-arguments", true);
  expect(result).toMatchObject({ status: "answered", refunds: ["1250 cents on A-1017"] });
  expect(told(result)).toEqual([
    expect.stringMatching(
      /^The input of 'refund' doesn't fit: .*'order'.*Its fields are: order, c/,
    ),
    "There is no tool 'issue_refund'. The tools are: refund.",
    "There is no tool '__proto__'. The tools are: refund.",
    "Paid back 1250 cents on A-1017.",
  ]);
  expect(words.slice(1)).toEqual(told(result).map((text) => `told: ${text}`));

  const without = await outcomeOf<Result>("invented-arguments", false);
  expect(without.result).toMatchObject({
    status: "answered",
    answer: "The money is on its way.",
    refunds: ["undefined cents on undefined"],
  });
});

test("invented-arguments: a plain object has tools that nobody put there", () => {
  const tools: Readonly<Record<string, unknown>> = { refund: () => "" };
  for (const name of ["__proto__", "constructor", "toString"]) {
    expect(tools[name], name).toBeDefined();
    expect(new Map(Object.entries(tools)).get(name), name).toBe(undefined);
  }
});

test("context-rot: a full window has a name, and a brief goes on from what was found", async () => {
  type Result = { first: AgentResult; brief?: string; second?: AgentResult };
  const { result, turns } = await outcomeOf<Result>("context-rot", true);
  const { first, brief = "", second } = result;
  expect(first).toMatchObject({
    status: "model_context_window_exceeded",
    text: "So far only the payment of",
  });
  expect(second).toMatchObject({
    status: "answered",
    answer: expect.stringMatching(/Hour 1: payment of A-1017 failed\n.*\n.*\nHour 4: .* failed/),
  });
  expect(brief.length).toBeLessThan(JSON.stringify(first.transcript).length / 100);
  expect(turns).toHaveLength(first.turns + (second?.turns ?? 0));
  // What is in the brief isn't read again.
  const read = turns.join("\n").match(/read_log\(\{"hour": \d\}\)/g);
  expect(read).toHaveLength(7);

  const without = await outcomeOf<Result>("context-rot", false);
  expect(without.result).toEqual({
    first: expect.objectContaining({ status: "answered", answer: "So far only the payment of" }),
  });
});

test("runaway-cost: the call that may cost too much isn't made, and the run comes back", async () => {
  const { result, words, turns } = await outcomeOf<AgentResult>("runaway-cost", true);
  if (result.status !== "budget") throw new Error(`It ended with ${result.status}`);
  expect(result.error).toBeInstanceOf(BudgetError);
  expect(words[1]).toBe(result.error.message);
  expect(turns).toHaveLength(result.turns);
  expect(result.transcript).toHaveLength(1 + 2 * result.turns);
  expect(spentIn(words)).toBeLessThanOrEqual(0.5);

  const without = await outcomeOf<AgentResult>("runaway-cost", false);
  expect(without.result).toMatchObject({ status: "max_turns", turns: 12 });
  expect(isRising(tokensIn(without.turns))).toBe(true);
  expect(spentIn(without.words)).toBeGreaterThan(2 * 0.5);
});

const spentIn = ([sum = ""]: readonly string[]) => Number(/\$([\d.]+) spent/.exec(sum)?.[1]);

test("too-much: the result is cut, and says how to ask for less, which the model does", async () => {
  const { result, words, turns } = await outcomeOf<AgentResult>("too-much", true);
  const [first = "", second] = told(result);
  expect(first.length).toBeLessThanOrEqual(30_000);
  expect(words[1]).toBe(`the result's last line: ${String(first).split("\n").at(-1)}`);
  expect(words[1]).toMatch(/\[truncated: \d+ more characters; ask for less at a time\]$/);
  expect(second).toBe("02:17 payment of A-1017 failed\n");
  expect(turns[1]).toContain('read_log({"hours": "2-3"})');

  const without = await outcomeOf<AgentResult>("too-much", false);
  expect(told(without.result).map((text) => text?.length)).toEqual([400_031]);
  const [, after = 0] = tokensIn(without.turns);
  expect(after).toBeGreaterThan(100_000);
  expect(after).toBeGreaterThan(10 * (tokensIn(turns)[1] ?? 0));
});

test("silent-errors: what failed is told as an error, and half a call is never run", async () => {
  type Result = AgentResult & { notes: string[] };
  const { result, turns } = await outcomeOf<Result>("silent-errors", true);
  expect(result).toMatchObject({
    status: "answered",
    answer: expect.stringContaining("A-1017 was open"),
    notes: ["Call Inês before noon, not after"],
  });
  expect(turns[0]).toMatch(/^turn 1 \| max_tokens \| .*"Call Inês bef"/);
  expect(resultsIn(result.transcript)[1]).toMatchObject({
    is_error: true,
    content: expect.stringMatching(/^'open_orders' failed: connect ECONNREFUSED .*\. Try another/),
  });

  const without = await outcomeOf<Result>("silent-errors", false);
  expect(without.result).toMatchObject({ answer: "No order is open.", notes: ["Call Inês bef"] });
  expect(resultsIn(without.result.transcript)[1]).toEqual({
    type: "tool_result",
    tool_use_id: expect.any(String),
    content: "(no output)",
  });
});

test("dried-up-calls: the results of a turn are one message, and the calls stay together", async () => {
  const { result } = await outcomeOf<AgentResult>("dried-up-calls", true);
  expect(result).toMatchObject({ status: "answered", turns: 4 });
  const perMessage = result.transcript.map((one) => resultsIn([one]).length);
  expect(perMessage.filter((count) => count > 0)).toEqual([3, 3, 3]);

  const without = await outcomeOf<AgentResult>("dried-up-calls", false);
  expect(without.result).toMatchObject({ status: "answered", turns: 8 });
  expect(without.words[0]).toContain("with 3, 1, 1, 1, 1, 1, 1 calls a turn");
  // And where it isn't only learned from, it's refused.
  expect(await brokenBehind(untouched, beforeAnswer(result))).toEqual([undefined]);
  expect(await brokenBehind(oneByOne, beforeAnswer(result))).toEqual([
    "tool_use ids were found without tool_result blocks immediately after",
  ]);
});

test("ignored-calls: each call has exactly one result with its id", async () => {
  const { result } = await outcomeOf<AgentResult>("ignored-calls", true);
  expect(result).toMatchObject({ status: "answered", turns: 2 });
  const calls = result.transcript.flatMap(({ content }) =>
    typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_use"),
  );
  const answered = resultsIn(result.transcript).map(({ tool_use_id }) => tool_use_id);
  expect(calls.map((call) => "id" in call && call.id)).toEqual(answered);
  expect(answered).toHaveLength(3);

  const without = await outcomeOf<Error>("ignored-calls", false);
  expect(without.result).toMatchObject({ name: expect.any(String), status: 400 });
  expect(without.words[0]).toContain("`tool_use` ids were found without `tool_result` blocks");
  // Whatever is said next, the history is refused.
  const later: readonly MessageParam[] = [
    ...result.transcript,
    { role: "user", content: "And A-1018?" },
  ];
  expect(await brokenBehind(untouched, later)).toEqual([undefined]);
  for (const messages of [beforeAnswer(result), later]) {
    expect(await brokenBehind(forgetful, messages)).toEqual([
      "tool_use ids were found without tool_result blocks immediately after",
    ]);
  }
});

test.for(failures)(
  "$name comes to something else without its catch, each time",
  async (failure) => {
    const caught = await failure.run(true);
    const uncaught = await failure.run(false);
    expect(uncaught.words[0]).not.toBe(caught.words[0]);
    expect((await failure.run(true)).words).toEqual(caught.words);
    expect((await failure.run(false)).words).toEqual(uncaught.words);
  },
);

test("a run that is meant to be caught and fails otherwise is an error of the lab", async () => {
  const failure = defineFailure({
    ...found("endless-loop"),
    run: () => Promise.reject(new Error("the lab is broken")),
    tell: () => [],
  });
  await expect(failure.run(true)).rejects.toThrow("the lab is broken");
  expect((await failure.run(false)).words).toEqual(["Error: the lab is broken"]);
});

test("no run calls a model", async () => {
  vi.stubGlobal("fetch", () => {
    throw new Error("The lab must not call anybody");
  });
  for (const failure of failures) await failure.run(true);
  const llm = playedBy(() => ({ text: "Hello" }));
  const { content, usage } = await llm({ messages: [{ role: "user", content: "Hi" }] });
  expect(content).toMatchObject([{ type: "text", text: "Hello" }]);
  expect(usage.output_tokens).toBeGreaterThan(0);
});

// The lines of code

const catches = failures.flatMap(({ name, catches }) => catches.map((one) => ({ name, ...one })));

test.for(catches)("$name: `$code` stands once in $file", async ({ file, code }) => {
  const source = await readFile(join(ROOT, file), "utf8");
  expect(source.split(code)).toHaveLength(2);
  const { line, code: whole } = findLine({ file, code });
  expect(source.split("\n")[line - 1]?.trim()).toBe(whole);
  expect(whole).toMatch(/^[^*/]/);
});

test.for(["no line holds this", "const "])(
  "a piece that isn't in one line is an error: %j",
  (code) => {
    expect(() => findLine({ file: "patterns/agent.ts", code })).toThrow(
      new RegExp(`^patterns/agent\\.ts must hold \`${code}\` in one line, got (0|\\d\\d)$`),
    );
  },
);

test("there are eight failures, each in the file of its name, to be read in one sitting", async () => {
  const files = await readdir(join(ROOT, "runners/failures"));
  const own = files.filter((file) => !PARTS.includes(file));
  expect(own).toEqual(NAMES.map((name) => `${name}.ts`).toSorted());
  expect(NAMES).toHaveLength(8);
  for (const file of files) {
    const source = await readFile(join(ROOT, "runners/failures", file), "utf8");
    expect(linesOfCode(source), file).toBeLessThanOrEqual(80);
  }
});

// The command

test("prints each failure: what you'd see, the turns, what caught it, and the line", async () => {
  const { code, stdout, stderr } = await run(["replay", "failures"]);
  expect([code, stderr]).toEqual([0, ""]);
  const shown = stdout.trimEnd().split("\n\n");
  expect(shown).toHaveLength(8);
  for (const [index, text] of shown.entries()) {
    const failure = found(NAMES[index] ?? "");
    const { name, title, symptom, catches, leaves = "" } = failure;
    const lines = text.split("\n");
    expect(lines[0]).toBe(`${name}  ${title}`);
    expect(lines[1]).toBe(`you'd see   ${symptom}`);
    expect(text).toMatch(/\nwithout it {2}\S/);
    expect(text).toMatch(/\nwith it {5}turn 1 \| \w+ \| in=\d+ /);
    const { words } = await failure.run(true);
    expect(text).toContain(`\ncaught      ${words.join(`\n${" ".repeat(12)}`)}\nby `);
    for (const one of catches) {
      const { file, line, code } = findLine(one);
      expect(text).toContain(` ${file}:${line}  ${code}`);
    }
    expect(text).toContain(leaves);
  }
  expect(stdout).not.toContain(ESCAPE);
});

test("shows one or several by their names", async () => {
  const { code, stdout } = await run(["replay", "failures", "too-much", "endless-loop"]);
  expect(code).toBe(0);
  expect(stdout.match(/^[\w-]+(?= {2}an? )/gm)).toEqual(["too-much", "endless-loop"]);
});

interface Line {
  readonly failure: string;
  readonly uncaught: { readonly words: string[] };
  readonly caught: { readonly words: string[]; readonly result: unknown };
  readonly turns: string[];
  readonly by: CodeLine[];
}

test("prints a line of JSON for each failure, without the transcripts", async () => {
  const { code, stdout, stderr } = await run(["replay", "failures", "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line); // JSON has no types
  expect(lines.map(({ failure }) => failure)).toEqual(NAMES);
  for (const { failure, uncaught, caught, turns, by } of lines) {
    for (const { words } of [uncaught, caught]) expect(words[0]).toMatch(/\S/);
    expect(turns.length).toBeGreaterThan(1);
    expect(by).toEqual(found(failure).catches.map(findLine));
  }
  expect(lines.find(({ failure }) => failure === "runaway-cost")?.caught.result).toMatchObject({
    status: "budget",
    error: { name: "BudgetError", message: expect.stringContaining("The budget of $0.5 has $") },
  });
  expect(stdout).not.toContain('"transcript"');
});

test("takes flags before the name, too", async () => {
  const { code, stdout } = await run(["replay", "--json", "failures", "too-much"]);
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ failure: "too-much" })]);
});

test("prints a table in Markdown, of three cells a row", async () => {
  const { code, stdout } = await run(["replay", "failures", "--table"]);
  expect(code).toBe(0);
  const [head, rule, ...rows] = stdout.trimEnd().split("\n");
  expect([head, rule]).toEqual(["| failure | what you'd see | what catches it |", "|---|---|---|"]);
  expect(rows).toHaveLength(8);
  for (const row of rows) expect(row.split(/(?<!\\)\|/)).toHaveLength(5);
});

test.for<[argv: string[], says: string]>([
  [["replay", "failures", "nope"], 'There is no failure "nope"; there are endless-loop, invented-'],
  [["replay", "failures", "constructor"], 'There is no failure "constructor"; there are endless-'],
  [["replay", "failures", "--pace", "1"], "Unknown option '--pace'; see npm start failures -- --"],
  [
    ["live", "failures"],
    "The failure lab has a command of its own, and asks no model: npm start f",
  ],
  [
    ["record", "failures"],
    "The failure lab has a command of its own, and asks no model: npm start",
  ],
])("refuses %j in a line, with exit code 2", async ([argv, says]) => {
  const { code, stdout, stderr } = await run(argv);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.startsWith(says), stderr).toBe(true);
  expect(stderr).toMatch(/^.+\n$/);
});

test("tells that npm kept a flag", async () => {
  const { code, stderr } = await run(["replay", "failures"], { env: { npm_config_json: "true" } });
  expect([code, stderr]).toEqual([
    2,
    "npm kept --json for itself: write -- before flags, as in npm start failures -- --json\n",
  ]);
});

test("has a help of its own, and is named in the other", async () => {
  const own = await run(["replay", "failures", "--help"]);
  expect([own.code, own.stderr]).toEqual([0, ""]);
  for (const name of NAMES) expect(own.stdout).toContain(name);
  for (const line of own.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(130);
  expect((await run(["replay", "--help"])).stdout).toContain("npm start failures");
});

test("npm start alone leaves the lab out", async () => {
  const { stdout } = await run(["replay"]);
  for (const name of NAMES) expect(stdout).not.toContain(name);
});

const ESCAPE = "\u001b";

test("a terminal gets colours, unless NO_COLOR is set", async () => {
  const args = ["replay", "failures", "too-much"];
  expect((await run(args, { columns: 80 })).stdout).toContain(ESCAPE);
  const plain = await run(args, { columns: 80, env: { NO_COLOR: "1" } });
  expect(plain.stdout).not.toContain(ESCAPE);
});

test.for([40, 80])("no line is longer than a terminal of %i columns", async (columns) => {
  const { stdout } = await run(["replay", "failures"], { columns });
  const lines = stripVTControlCharacters(stdout).split("\n");
  expect(lines.filter((line) => line.length > columns)).toEqual([]);
});

test("runs as a process, and ends with the command's exit code", CHILD, async () => {
  const [one, none] = [
    start(["replay", "failures", "too-much"]),
    start(["replay", "failures", "x"]),
  ];
  expect(await one.ended).toEqual({ code: 0, signal: null });
  expect(one.stdout()).toMatch(/^too-much .*\n[\s\S]*\nby .*patterns\/tool-calls\.ts:\d+ /);
  expect(await none.ended).toEqual({ code: 2, signal: null });
});
