/** Refunds on an order book in a file: never twice, never torn; suspended, and gone on with. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createApproval } from "../patterns/approve.ts";
import type { TerminalInput } from "../patterns/ask-terminal.ts";
import type { TapeLine } from "../patterns/recording/tape.ts";
import { checkRefund, openOrderBook, refunded, refundOf } from "../runners/refund/order-book.ts";
import { createRefundTools } from "../runners/refund/tools.ts";
import { job } from "../runners/refund.ts";
import { writeAtomically } from "../runners/shared/atomic-file.ts";
import { perform, type Settings } from "../runners/shared/perform.ts";
import { openSuspension, type SuspensionFlags } from "../runners/shared/suspension.ts";
import { openView } from "../runners/shared/view.ts";
import { folder } from "./shared/folder.ts";
import { Kept } from "./shared/kept.ts";
import { BURRS, COFFEE, KETTLE, newBook, refundsIn } from "./shared/order-book.ts";
import { rejection, reply, startServer } from "./shared/server.ts";

const LEAK = { order: "5107", cents: 4_990, reason: "It leaks" };

/** The gated tool of a run of its own, whose questions all get a yes. */
function refundTool(file: string, asked: string[] = []) {
  const approve = createApproval({
    ask: ({ effect }) => {
      asked.push(effect);
      return "yes";
    },
  });
  const [findOrders, refund] = createRefundTools(openOrderBook(file), approve);
  if (!findOrders || !refund) throw new Error("There are two tools");
  return {
    find: async (customer: string) =>
      findOrders.run({ customer }, { callId: "t0", signal: undefined }),
    pay: async (callId: string, input: object = LEAK) =>
      refund.run(input, { callId, signal: undefined }),
  };
}

// The order book

test("keeps a refund with the id of its call, in one write", async () => {
  const { file, book } = await newBook();
  await book.refund("t1", LEAK);
  const orders = await openOrderBook(file).orders();
  expect(orders).toEqual([
    { ...KETTLE, refunds: [{ callId: "t1", cents: 4_990, reason: "It leaks" }] },
    COFFEE,
    BURRS,
  ]);
  expect(refundOf(orders, "t1", LEAK)?.order.id).toBe("5107");
  expect(refunded(orders[0] ?? COFFEE)).toBe(4_990);
  expect(await readdir(join(file, ".."))).toEqual(["orders.json"]);
});

test("writes nothing for a call that it holds", async () => {
  const { file, book } = await newBook();
  await book.refund("t1", LEAK);
  const before = await readFile(file, "utf8");
  await openOrderBook(file).refund("t1", { ...LEAK, reason: "In other words" });
  expect(await readFile(file, "utf8")).toBe(before);
});

// Not all servers make ids unique.
test("takes no refund for another one's that has the same call id", async () => {
  const { file } = await newBook();
  await refundTool(file).pay("t1");
  const taken = /^The call id t1 is that of another refund, so nothing was paid for this call\./;
  const asked: string[] = [];
  for (const other of [
    { ...LEAK, order: "5121" },
    { ...LEAK, cents: 7 },
  ]) {
    await expect(refundTool(file, asked).pay("t1", other)).rejects.toThrow(taken);
    await expect(openOrderBook(file).refund("t1", other)).rejects.toThrow(taken);
  }
  expect([asked, await refundsIn(file)]).toEqual([[], ["t1"]]);
});

test("two refunds at once are both kept, and one that fails holds up none", async () => {
  const { file, book } = await newBook();
  const all = await Promise.allSettled([
    book.refund("t1", LEAK),
    book.refund("t2", { ...LEAK, order: "17" }),
    book.refund("t3", { ...LEAK, order: "5121", cents: 1 }),
  ]);
  expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await refundsIn(file)).toEqual(["t1", "t3"]);
});

test.each([
  [
    { ...LEAK, order: "17" },
    "There is no order '17'. Look the customer's orders up with find_orders.",
  ],
  [
    { ...LEAK, cents: 4_991 },
    "49.91 EUR is more than can be paid back for order 5107: 49.90 EUR was paid, and 0.00 EUR of it refunded. Ask for 49.90 EUR at the most.",
  ],
  [
    { ...LEAK, order: "5098", cents: 1 },
    "Order 5098 was refunded before, all 18.00 EUR of it. Nothing is left to pay back: tell the customer so.",
  ],
])("asks nobody about %j, and says what is wrong with it", async (input, message) => {
  const { file, book } = await newBook();
  const asked: string[] = [];
  const { pay } = refundTool(file, asked);
  expect(await rejection(pay("t1", input))).toMatchObject({ name: "ToolError", message });
  expect(asked).toEqual([]);
  // Nor does the book itself take it.
  expect(await rejection(book.refund("t1", input))).toMatchObject({ message });
  expect(await refundsIn(file)).toEqual([]);
});

test("a part can be paid back, and then no more than the rest", async () => {
  const { file, book } = await newBook();
  const asked: string[] = [];
  const { pay } = refundTool(file, asked);
  expect(await pay("t1", { ...LEAK, cents: 990 })).toBe(
    "Refunded 9.90 EUR for order 5107. The customer sees it within three working days.",
  );
  await pay("t2", { ...LEAK, cents: 4_000 });
  expect(asked).toEqual([
    "Pays 9.90 EUR back to hanna@example.org for order 5107 (Kettle; 49.90 EUR paid, no refund yet). It can't be undone.",
    "Pays 40.00 EUR back to hanna@example.org for order 5107 (Kettle; 49.90 EUR paid, 9.90 EUR refunded before). It can't be undone.",
  ]);
  const orders = await book.orders();
  expect(() => checkRefund(orders, { ...LEAK, cents: 1 })).toThrow("all 49.90 EUR of it");
});

test("lists a customer's orders, and nobody else's", async () => {
  const { file } = await newBook([KETTLE, { ...COFFEE, customer: "bob@example.org" }]);
  const { find } = refundTool(file);
  expect(await find("Hanna@example.org")).toBe("5107 | 2026-11-19 | Kettle | 49.90 EUR");
  expect(await find("eve@example.org")).toBe("No orders of 'eve@example.org'.");
});

test("a save that fails after the yes says so, and not to try again; the book is the old one", async () => {
  // Beside a name that long there is no room for the new file's.
  const file = join(await folder(), `${"o".repeat(245)}.json`);
  await writeFile(file, JSON.stringify([KETTLE]));
  const { pay } = refundTool(file);
  const error = await rejection(pay("t1"));
  expect(String(error)).toMatch(
    /^ToolError: refund\(\{ "order": "5107", .* \}\) was approved and then failed: ENAMETOOLONG: .* Don't call it again, with whatever input: /,
  );
  expect(await readFile(file, "utf8")).toBe(JSON.stringify([KETTLE]));
});

test("an atomic write that fails leaves nothing beside the old file", async () => {
  const inside = await folder();
  const taken = join(inside, "taken");
  await writeFile(join(inside, "other"), "old");
  await promisify(execFile)("mkdir", [taken]);
  expect(await rejection(writeAtomically(taken, "new"))).toBeInstanceOf(Error);
  expect((await readdir(inside)).toSorted()).toEqual(["other", "taken"]);
  await Promise.all(
    ["a", "b"].map((text) => writeAtomically(join(inside, "other"), text.repeat(9_999))),
  );
  expect(await readFile(join(inside, "other"), "utf8")).toMatch(/^(a{9999}|b{9999})$/);
  expect((await readdir(inside)).toSorted()).toEqual(["other", "taken"]);
});

// Twice

test("twenty submissions of one call at once are one refund", async () => {
  const { file } = await newBook();
  const asked: string[] = [];
  const { pay } = refundTool(file, asked);
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => pay("t1")));
  expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect([asked.length, await refundsIn(file)]).toEqual([1, ["t1"]]);
});

test("twenty runs that go on from one approval at once are one refund, and all are told so", async () => {
  const { file } = await newBook();
  const runs = Array.from({ length: 20 }, () => refundTool(file));
  const all = await Promise.all(runs.map(({ pay }) => pay("t1")));
  expect(new Set(all).size).toBe(1);
  expect(await refundsIn(file)).toEqual(["t1"]);
});

test("twenty calls for one refund, all approved, are one refund; the others are told why", async () => {
  const { file } = await newBook();
  const asked: string[] = [];
  const { pay } = refundTool(file, asked);
  const all = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => pay(`t${index}`)));
  const refused = all.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect(refused).toHaveLength(19);
  for (const why of refused) expect(why).toContain("was refunded before, all 49.90 EUR");
  expect([asked.length, await refundsIn(file)]).toEqual([1, ["t0"]]);
});

test("twenty runs that each refund one order, of a book that each opened, are one refund", async () => {
  const { file } = await newBook();
  const runs = Array.from({ length: 20 }, () => refundTool(file));
  const all = await Promise.allSettled(runs.map(({ pay }, index) => pay(`t${index}`)));
  expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(await refundsIn(file)).toHaveLength(1);
});

// The job

const use = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
const stop = { stop_reason: "tool_use" };
const LOOK_UP = reply(
  [use("toolu_0", "find_orders", { customer: "hanna.lindqvist@example.org" })],
  stop,
);
const PAY_BACK = reply(
  [
    use("toolu_1", "refund", { order: "5107", cents: 4_990, reason: "Leaks" }),
    use("toolu_2", "refund", { order: "5121", cents: 2_900, reason: "Sour" }),
    use("toolu_3", "refund", { order: "5098", cents: 1_800, reason: "Promised" }),
  ],
  stop,
);
const LETTER = reply("Dear Hanna, the kettle is refunded.\nCustomer care");

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith("ANTHROPIC_")) vi.stubEnv(name, undefined);
  }
});

afterEach(() => vi.unstubAllEnvs());

/** Runs the job, live unless it's told otherwise, on a server that knows the script. */
async function runJob(
  settings: Partial<Settings>,
  { columns, input }: { columns?: number; input?: TerminalInput } = {},
  script = [LOOK_UP, PAY_BACK, LETTER],
) {
  const [first = LETTER, ...rest] = script;
  const server = await startServer(first, ...rest);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  const [stdout, stderr] = [new Kept(columns), new Kept(columns)];
  const all: Settings = {
    mode: "live",
    json: false,
    pace: 0,
    origin: "transcribed",
    replayCommand: "npm start",
    ...{ input: undefined, budget: undefined, model: undefined, recording: undefined },
    ...settings,
  };
  const load = async () => ({ job });
  const place = { env: { NO_COLOR: "1" }, output: { stdout, stderr }, input };
  const code = await perform([["refund", load]], all, place);
  const results = server.requests.map(({ body }) => body.messages.at(-1)?.content);
  return { code, stdout, stderr, results, requests: server.requests };
}

const told = (...contents: readonly (string | RegExp)[]) =>
  contents.map((content) => ({ type: "tool_result", content: expect.stringMatching(content) }));

const PAID = /^Refunded 49\.90 EUR for order 5107\./;
const BEFORE = /^Order 5098 was refunded before/;
const DECLINED = /^Declined: refund\(.*said 'no, opened coffee isn't taken back'/;

/** A recording of the job, with the answers of its script. */
async function recorded(): Promise<string> {
  const file = join(await folder(), "refund.jsonl");
  const { code, results } = await runJob({ mode: "record", recording: file });
  expect(code).toBe(0);
  expect(results[2]).toMatchObject(told(PAID, DECLINED, BEFORE));
  return file;
}

test("one refund is approved, one declined, and one refused unasked; the letter comes last", async () => {
  const recording = await recorded();
  const { code, stdout, stderr, requests } = await runJob({ mode: "replay", recording });
  expect([code, stderr.text, requests]).toEqual([0, "", []]);
  expect(stdout.text).toMatch(/^agent\/turn\[1\]\/tool\[0\]\/ask {2}yes$/m);
  expect(stdout.text).toMatch(/^agent\/turn\[1\]\/tool\[0\] {2}refund\(.* → Refunded/m);
  const [, words = ""] = stdout.text.split(/\nagent\/turn\[2\].*\n/);
  expect(words).toBe(`
Pays 49.90 EUR back to hanna.lindqvist@example.org for order 5107 (Kettle K2, 1.7 l; 49.90 EUR paid, no refund yet). It can't be undone.
refund({ "order": "5107", "cents": 4990, "reason": "Leaks" })
> yes

Pays 29.00 EUR back to hanna.lindqvist@example.org for order 5121 (Yirgacheffe, 2 bags; 29.00 EUR paid, no refund yet). It can't be undone.
refund({ "order": "5121", "cents": 2900, "reason": "Sour" })
> no, opened coffee isn't taken back

Dear Hanna, the kettle is refunded.
Customer care

5098: 18.00 EUR paid, 18.00 EUR refunded
5107: 49.90 EUR paid, 49.90 EUR refunded
5121: 29.00 EUR paid, 0.00 EUR refunded

answered after 3 turns

${words.trimEnd().split("\n").at(-1)}

`);
});

test("live, the terminal is asked, one call after the other, and the tree makes room", async () => {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const running = runJob({}, { columns: 100, input: input as TerminalInput });
  // It's asked when it reads: whatever was typed before is dropped.
  for (const answer of ["yes\n", "\n"]) {
    await once(input, "resume");
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    input.write(answer);
    await once(input, "pause");
  }
  const { code, stderr, stdout, results } = await running;
  expect(code).toBe(0);
  expect(stderr.text.match(/^refund\(.*/gm)).toEqual([
    'refund({ "order": "5107", "cents": 4990, "reason": "Leaks" })',
    'refund({ "order": "5121", "cents": 2900, "reason": "Sour" })',
  ]);
  expect(results[2]).toMatchObject(told(PAID, /since nobody answered\./, BEFORE));
  expect(stdout.text).toContain("5107: 49.90 EUR paid, 49.90 EUR refunded");
  // The tree is drawn again after the questions, and stands there whole in the end.
  expect(stdout.text).toMatch(/\n└─ ✓ agent\/turn\[2\] .*Dear Hanna, the kettle/);
});

test("the tree keeps still while the terminal is asked", async () => {
  const [stdout, stderr] = [new Kept(60), new Kept(60)];
  const place = { env: { NO_COLOR: "1" }, output: { stdout, stderr } };
  const view = openView({ name: "a", title: "b", mode: "live", json: false }, place);
  const drawn = (path: string) => {
    const before = stdout.text.length;
    view.onEvent({ type: "start", kind: "step", path, at: 0 });
    return stdout.text.slice(before);
  };
  view.start(undefined);
  expect(drawn("a")).toContain("… a");
  const asked = await view.aside(async () => [drawn("a/b"), "yes"]);
  expect(asked).toEqual(["", "yes"]);
  // What happened meanwhile is drawn as soon as the terminal is free again.
  expect(stdout.text).toContain("└─ … a/b");
  drawn("a/c");
  view.end({ result: undefined, words: "", budget: undefined, before: 0, unused: [] });
  expect(stdout.text).toContain("└─ … a/c");
});

test("live without a terminal, nothing is paid", async () => {
  const { code, results, stdout } = await runJob({}, { input: new PassThrough() as TerminalInput });
  expect(code).toBe(0);
  expect(results[2]).toMatchObject(told(/there is no terminal/, /there is no terminal/, BEFORE));
  expect(stdout.text).toContain("> (not asked: Error: there is no terminal to ask on)");
  expect(stdout.text).toContain("5107: 49.90 EUR paid, 0.00 EUR refunded");
});

// Suspended

/** One process after the other, on the file of one run. */
async function suspended(settings: Partial<Settings>) {
  const file = join(await folder(), "run.json");
  const go = (flags: SuspensionFlags, script?: Parameters<typeof runJob>[2]) => {
    const suspension = openSuspension(flags, "npm start refund");
    return runJob({ ...settings, suspension }, {}, script);
  };
  const book = file.replace(".json", ".orders.json");
  let waiting = file;
  return {
    ...{ file, book, go },
    begin: () => go({ suspend: file }),
    /** Gives an answer as the line says that was printed last, or to the question in another file. */
    answer: async (
      answer: string,
      script?: Parameters<typeof runJob>[2],
      resume: string = waiting,
    ) => {
      const ran = await go({ resume, answer }, script);
      waiting = / --resume (\S+) /.exec(ran.stdout.text)?.[1] ?? waiting;
      return ran;
    },
  };
}

test("a run is suspended at each question, and goes on from there in a later process", async () => {
  const recording = await recorded();
  const { file, book, begin, answer } = await suspended({ mode: "replay", recording });
  const first = await begin();
  expect([first.code, first.stderr.text]).toEqual([0, ""]);
  expect(first.stdout.text).toContain(`
refund({ "order": "5107", "cents": 4990, "reason": "Leaks" })
> (waits for an answer)
`);
  expect(first.stdout.text).toContain(`
yes runs refund({ "order": "5107", "cents": 4990, "reason": "Leaks" }), any other answer declines
go on with: npm start refund -- --resume ${file} --answer yes
`);
  expect(first.stdout.text).toContain("\nsuspended after 2 turns\n");
  expect(await refundsIn(book)).toEqual(["toolu_before"]);

  const second = await answer("yes");
  expect([second.code, second.stderr.text]).toEqual([0, ""]);
  expect(second.stdout.text).toContain("\nsuspended after 2 turns\n");
  expect(await refundsIn(book)).toEqual(["toolu_before", "toolu_1"]);

  const third = await answer("no");
  expect([third.code, third.stderr.text]).toEqual([0, ""]);
  expect(third.stdout.text).toContain("> no, opened coffee isn't taken back\n");
  expect(third.stdout.text).toContain("\nDear Hanna, the kettle is refunded.\n");
  expect(third.stdout.text).toContain("\nanswered after 3 turns\n");
  expect(await refundsIn(book)).toEqual(["toolu_before", "toolu_1"]);
  // Nothing is left to go on with.
  expect((await readdir(join(file, ".."))).toSorted()).toEqual(["run.orders.json"]);
});

test("the same answer given twice doesn't answer the next question", async () => {
  const { file, book, begin, answer } = await suspended({});
  await begin();
  const { stdout } = await answer("yes", []);
  const next = file.replace(".json", ".2.json");
  expect(stdout.text).toContain(`npm start refund -- --resume ${next} --answer yes\n`);
  await expect(answer("yes", [], file)).rejects.toThrow(`There is no suspended run in ${file}`);
  expect(await refundsIn(book)).toEqual(["toolu_before", "toolu_1"]);
});

test("an earlier run's order book isn't overwritten", async () => {
  const { file, book, begin } = await suspended({});
  await writeFile(book, "mine");
  const { code, stderr, requests } = await begin();
  const says = `${book} is there already, of an earlier run: remove it, or name another file\n`;
  expect([code, stderr.text, requests.length]).toEqual([1, says, 0]);
  expect(await readFile(book, "utf8")).toBe("mine");
  expect(existsSync(file)).toBe(false);
});

test("a run whose order book is gone says so, and can be gone on with when it's back", async () => {
  const { file, book, begin, answer } = await suspended({});
  await begin();
  await rename(book, `${book}.moved`);
  const { code, stderr } = await answer("yes", []);
  const says = `${book} isn't there, and the run in ${file} can't go on without it\n`;
  expect([code, stderr.text]).toEqual([1, says]);
  await rename(`${book}.moved`, book);
  expect((await answer("yes", [])).code).toBe(0);
});

test("live, a suspended run asks the model for nothing that it knows", async () => {
  const { begin, answer } = await suspended({});
  const before = await begin();
  const again = await answer("yes", []);
  const after = await answer("no, opened coffee isn't taken back", [LETTER]);
  expect([before, again, after].map(({ requests }) => requests.length)).toEqual([2, 0, 1]);
  expect(after.results[0]).toMatchObject(told(PAID, DECLINED, BEFORE));
  const tape = (await readFile(await recorded(), "utf8")).trimEnd().split("\n");
  const last = JSON.parse(tape.at(-1) ?? "") as TapeLine; // JSON has no types
  expect(after.requests[0]?.body).toMatchObject(last.request?.body ?? {});
});

test("a run that dies after it has paid goes on without paying again", async () => {
  const { file, book, begin, answer } = await suspended({});
  await begin();
  const saved = `${file}.saved`;
  await copyFile(file, saved);
  await answer("yes", []);
  // As if it had died before it could save the run.
  await copyFile(saved, file);
  const again = await answer("yes", [], file);
  expect(again.stdout.text).not.toContain("> yes");
  const end = await answer("no", [LETTER]);
  expect(end.results[0]).toMatchObject(told(PAID, /said 'no'/, BEFORE));
  expect(await refundsIn(book)).toEqual(["toolu_before", "toolu_1"]);
});

test("an answer is for what was shown: if that's another by now, it is asked anew", async () => {
  const { book, begin, answer } = await suspended({});
  await begin();
  // Somebody pays a part of it back meanwhile.
  await openOrderBook(book).refund("other", { order: "5107", cents: 90, reason: "Late" });
  const again = await answer("yes", []);
  expect(again.stdout.text).toContain("\nsuspended after 2 turns\n");
  expect(await refundsIn(book)).toEqual(["toolu_before", "other"]);
});

test("in a replay, an answer that wasn't recorded is refused before anything is paid", async () => {
  const recording = await recorded();
  const { book, begin, answer } = await suspended({ mode: "replay", recording });
  await begin();
  const { code, stderr } = await answer("no");
  expect([code, stderr.text]).toEqual([
    1,
    'RecordingError: agent/turn[1]/tool[0]/ask: when it was recorded the answer was "yes"; another one needs the API: npm run live\n',
  ]);
  expect(await refundsIn(book)).toEqual(["toolu_before"]);
  expect((await answer("yes")).code).toBe(0);
});

test.each<[SuspensionFlags, string]>([
  [
    { suspend: "a.json", resume: "b.json" },
    "--suspend begins a run, and --resume goes on with one",
  ],
  [{ suspend: "a.json", answer: "yes" }, "--answer goes with --resume: nothing was asked yet"],
  [{ answer: "yes" }, "--answer goes with --resume"],
  [{ resume: "a.json" }, "--resume needs the answer: --answer yes, or anything else to decline"],
  [{ suspend: "run" }, 'A suspended run is kept in a .json file, not in "run"'],
  [{ suspend: "package.json" }, "package.json is there already: go on with it by --resume"],
  [{ resume: "none.json", answer: "yes" }, "There is no suspended run in none.json"],
  [{ resume: "package.json", answer: "yes" }, "package.json holds no suspended run"],
  [{ resume: "test/shared/../../tsconfig.json", answer: "" }, "holds no suspended run"],
])("refuses %j in a line", (flags, message) => {
  expect(() => openSuspension(flags, "npm start refund")).toThrow(message);
});

test("a file that holds no JSON is no suspended run", async () => {
  const file = join(await folder(), "run.json");
  await writeFile(file, "{");
  expect(() => openSuspension({ resume: file, answer: "yes" }, "")).toThrow(
    "holds no suspended run",
  );
});
