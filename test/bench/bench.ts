/**
 * What the patterns cost beside the model: our wrapper and patterns against the bare SDK, which makes
 * the same calls to the same local server, in one run, as ratios.
 *
 *     npm run bench               prints each figure with its quartiles and its goal
 *     npm run bench -- --check    exits with 1 if a goal is missed
 *
 * Their CPU time is taken in blocks that take turns, each in a process of its own: V8 throws compiled
 * code away where no closure with it is alive at a garbage collection, so that in one process the blocks
 * of the one had to compile again what those of the other had lost. Each reply takes a fixed time, short
 * beside a model's: without any, the process would never rest, and find all code still at hand.
 *
 * On Node 20 an AsyncLocalStorage, which the path needs, makes every promise of its process dearer, ours
 * or not. Most servers have one already, for their traces, and so have both sides here. What it costs who
 * has none is told by itself, of the CPU's figures and of those under load.
 */
import { once } from "node:events";
import { createLlm } from "../../patterns/llm-call.ts";
import { orchestrate } from "../../patterns/orchestrate.ts";
import { vote } from "../../patterns/vote.ts";
import { parseTags } from "../../patterns/xml.ts";
import { bareCall, clientOf } from "./bare.ts";
import { ratios, type Spread, spread, timed } from "./measure.ts";
import { createLauncher, type Group, type Who } from "./protocol.ts";
import type { Figure } from "./repo-tools.ts";

/** A thousand calls are made in so many pairs of processes. */
const PAIRS_OF_LOADS = 15;
/** CPU time is taken in so many pairs of blocks. */
const PAIRS = 30;
/** What a reply takes, in milliseconds. */
const DELAY_MS = 2;
/** How many calls a block makes: the garbage collector runs once in some 75, for the CPU time of about
 * 20, and a block that holds either one run of it or none is no measure. */
const CALLS_IN_BLOCK = 200;
/** How many calls each makes before, until what is run at each has been compiled, */
const WARM_UP_CALLS = 24_000;
/** and how many repetitions of the work are under way then, to save time. */
const WARM_UP_LANES = 10;

const launcher = await createLauncher();
const server = launcher.start("server");
const [url] = await once(server, "message");
let missed = 0;
try {
  await cpu();
  await load();
  await earlyVote();
  await criticalPath();
  hostileText();
  await repoTools();
} finally {
  server.kill();
  await launcher.remove();
}
print(missed === 0 ? "All goals are met." : `${missed} missed.`);
if (missed > 0 && process.argv.includes("--check")) process.exitCode = 1;

/** CPU time of the workers; the server has its own. */
async function cpu(): Promise<void> {
  report("CPU of one call", await cpuOf("one call"), 1.1);
  for (const work of [
    "chain of 3",
    "route",
    "section of 3",
    "vote of 5",
    "orchestrate 1 + 4 + 1",
    "refine of 2 rounds",
  ]) {
    report(`CPU of ${work}`, await cpuOf(work), 1.15);
  }
  report("CPU of a bare call, with AsyncLocalStorage", await cpuOf("one call", "scoped", "bare"));
}

/** The CPU time of a piece of work by one worker, as a ratio to that of another, pair by pair. */
async function cpuOf(work: string, one: Who = "ours", other: Who = "scoped"): Promise<Spread> {
  const groups = await traced(work);
  const calls = groups.flat().length;
  const start = (who: Who) => {
    const worker = launcher.worker(who, `${url}/${DELAY_MS}`);
    const repeat = async (ofCalls: number, lanes: number) => {
      const times = Math.ceil(ofCalls / calls);
      const item = who === "ours" ? work : groups;
      return (await worker.ask({ do: "repeat", work: item, times, lanes })).cpu;
    };
    const warmUp = () => repeat(WARM_UP_CALLS, WARM_UP_LANES);
    return { warmUp, block: () => repeat(CALLS_IN_BLOCK, 1), end: worker.end };
  };
  const [first, second] = [start(one), start(other)];
  // The compiler works on other threads, whose time counts too: it must have come to an end.
  await Promise.all([first.warmUp(), second.warmUp()]);
  const result = await ratios(first.block, second.block, PAIRS);
  first.end();
  second.end();
  return result;
}

/** The prompts of a piece of work, those together that go out at once. */
async function traced(work: string): Promise<readonly Group[]> {
  const worker = launcher.worker("ours", url);
  const { groups = [] } = await worker.ask({ do: "trace", work });
  worker.end();
  return groups;
}

/** A thousand calls of 50 ms, a hundred in flight. */
async function load(): Promise<void> {
  const { time, peak } = await loadsOf("ours", "scoped");
  report("time of 1,000 calls, 100 in flight", time, 1.05);
  report("peak memory of these", peak, 1.15);
  const bare = await loadsOf("scoped", "bare");
  report("time of bare ones, with AsyncLocalStorage", bare.time);
}

/** The time and the peak memory of one by those of another, by new workers each time. */
async function loadsOf(one: Who, other: Who): Promise<{ time: Spread; peak: Spread }> {
  const run = async (who: Who, peaks: number[]) => {
    const worker = launcher.worker(who, `${url}/50`);
    await worker.ask({ do: "load", calls: 100, inFlight: 100 }); // opens the connections
    const { wall, peak } = await worker.ask({ do: "load", calls: 1000, inFlight: 100 });
    worker.end();
    peaks.push(peak);
    return wall;
  };
  const ones: number[] = [];
  const others: number[] = [];
  const time = await ratios(
    () => run(one, ones),
    () => run(other, others),
    PAIRS_OF_LOADS,
  );
  const peak = spread(ones.map((bytes, pair) => bytes / (others[pair] ?? Number.NaN)));
  return { time, peak };
}

/** Nine voters, whose answers come 50 ms apart, by the fifth answer of nine bare calls. */
async function earlyVote(): Promise<void> {
  let runs = 0;
  const stagger = () => `${url}/stagger-${runs++}-50`;
  const ours = async () => {
    const { llmCall } = createLlm({ client: clientOf(stagger()), concurrency: 9 });
    const { status } = await vote("Is 97 a prime number?", { llm: llmCall, voters: 9 });
    if (status !== "decided") throw new Error(`The vote is ${status}`);
  };
  const bare = async () => {
    const client = clientOf(stagger());
    const voters = Array.from({ length: 9 }, () => bareCall(client, "<vote>"));
    await Promise.all(voters.slice(0, 5));
    rest.push(Promise.all(voters));
  };
  const rest: Promise<unknown>[] = [];
  const quiet = async (work: () => Promise<void>) => {
    const ms = await timed(work);
    await Promise.all(rest);
    return ms;
  };
  const result = await ratios(
    () => quiet(ours),
    () => quiet(bare),
    10,
  );
  report("time of a vote of 9, by its 5th answer", result, 1.05);
}

/** Tasks that wait for each other, by bare calls along the longest way through them. */
async function criticalPath(): Promise<void> {
  const client = clientOf(`${url}/told`);
  const { llmCall } = createLlm({ client });
  const ours = async () => {
    const result = await orchestrate("Do dependent things", { llm: llmCall });
    if (result.status !== "completed") throw new Error(`It ended with ${result.status}`);
  };
  const bare = async () => {
    const path = ["plan", "takes 200 ms</task>", "takes 100 ms</task>", "takes 150 ms</task>"];
    for (const prompt of [...path, "combine"]) await bareCall(client, prompt);
  };
  const result = await ratios(
    () => timed(ours),
    () => timed(bare),
    8,
  );
  report("time of dependent tasks, by critical path", result, 1.05);
}

/** The slowest to read of several texts of 200 kB that are made to be slow to read. */
function hostileText(): void {
  const size = 200_000;
  const pieces = [
    "<task>",
    "</task>",
    "<task/>",
    "<",
    "&",
    "&amp;",
    '<task id="',
    "<task =",
    "<task ",
    "<task x='\r'/>",
    "<task>&lt;</task>",
  ];
  const texts = pieces.map((piece) => piece.repeat(size / piece.length));
  const deep = size / "<task></task>".length;
  texts.push("<task>".repeat(deep) + "</task>".repeat(deep));
  texts.push(`<task ${" ".repeat(size)}`, `<task id="${"<task>".repeat(size / 6)}`);
  const attributes = Array.from({ length: size / 12 }, (_, i) => `x${i}='1'`);
  texts.push(`<task ${attributes.join(" ")}/>`);
  for (const piece of ["&", "&#", "&x;", "<b>&lt;", "&\r"]) {
    texts.push(`<task>${piece.repeat(size / piece.length)}</task>`);
  }
  for (const letter of ["\r", "‹"]) texts.push(`<task>&${letter.repeat(size)}</task>`);
  const times = texts.map((text) => {
    const runs = [1, 2, 3].map(() => {
      const from = process.cpuUsage();
      try {
        parseTags(text, ["task"]);
      } catch {
        // Most of them can't be read, and that is found out in the same time.
      }
      return process.cpuUsage(from).user / 1000;
    });
    return spread(runs).median;
  });
  report("ms to read hostile text of 200 kB, at most", spread([Math.max(...times)]), 200);
}

/** The repo tools on many files and on big ones. */
async function repoTools(): Promise<void> {
  const worker = launcher.start("repo-tools");
  const [figures]: (readonly Figure[])[] = await once(worker, "message");
  for (const { what, runs, goal } of figures ?? []) report(what, spread(runs), goal);
}

function report(what: string, { median, low, high }: Spread, goal?: number): void {
  const digits = median < 10 ? 3 : 0;
  const figure = median.toFixed(digits).padStart(6);
  const quartiles = low === high ? "" : `(${low.toFixed(digits)} to ${high.toFixed(digits)})`;
  const isMissed = goal !== undefined && median > goal;
  if (isMissed) missed += 1;
  const verdict = goal ? `goal ${String(goal).padEnd(4)}  ${isMissed ? "MISSED" : "met"}` : "";
  print(`${what.padEnd(44)} ${figure}  ${quartiles.padEnd(16)}  ${verdict}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
