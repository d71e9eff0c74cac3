import { expect, test } from "vitest";
import type { TraceFile } from "../patterns/trace-file.ts";
import { layOut } from "../runners/gallery/page/layout.ts";
import { momentsOf, savingsOf, stateAt, totalsAt } from "../runners/gallery/page/moment.ts";
import { runOf } from "../runners/gallery/page/run.ts";
import { type Item, type Stage, shapeOf } from "../runners/gallery/page/shape.ts";
import { axisTicks, ending, tickWords, toolWords } from "../runners/gallery/page/words.ts";
import { callAt, FAN_OUT, longTrace, type Told, traceOf, variedTrace } from "./shared/traces.ts";

/** The states of all steps at a time. */
function statesAt(trace: TraceFile, time: number): Record<string, string> {
  const { steps } = runOf(trace);
  return Object.fromEntries(steps.map((step) => [step.path, stateAt(step, time)]));
}

/** A shape in words: stages in a row, what is side by side in brackets, what hangs after a colon. */
function told(stages: readonly Stage[]): string {
  return stages
    .map(({ items }) =>
      items.length > 1 ? `[${items.map(tell).join(" ")}]` : items.map(tell).join(""),
    )
    .join(" > ");
}

function tell(item: Item): string {
  if (item.kind === "start" || item.kind === "end") return item.kind;
  if (item.kind === "crowd") return `${item.steps.length} ${item.one}`;
  if (item.kind === "frame") return `${item.label}{${told(item.stages)}}`;
  const hung = item.hung.map(({ name }) => name).join(",");
  return hung ? `${item.step.name}:${hung}` : item.step.name;
}

const shape = (steps: Readonly<Record<string, Told>>, facts?: Partial<TraceFile>) =>
  told(shapeOf(runOf(traceOf(steps, facts))));

// Moments

test("a step's state at a time depends on nothing but the trace and the time", () => {
  const before = statesAt(FAN_OUT, 500);
  statesAt(FAN_OUT, 1000);
  statesAt(FAN_OUT, 0);
  expect(statesAt(FAN_OUT, 500)).toEqual(before);
  expect(before).toEqual({
    plan: "flight",
    "plan/worker[0]": "ok",
    "plan/worker[1]": "flight",
    "plan/worker[2]": "flight",
    "plan/combine": "waiting",
  });
  expect(statesAt(FAN_OUT, 600)).toMatchObject({
    "plan/worker[1]": "ok",
    "plan/worker[2]": "cancelled",
    "plan/combine": "flight",
  });
  expect(statesAt(FAN_OUT, 1000)).toMatchObject({ plan: "ok", "plan/combine": "ok" });
});

test("what takes no time is never in flight", () => {
  const trace = traceOf({ chain: { at: [0, 20] }, "chain/gate": { at: [10, 10], call: false } });
  expect(statesAt(trace, 9)["chain/gate"]).toBe("waiting");
  expect(statesAt(trace, 10)["chain/gate"]).toBe("ok");
});

test("what goes on in a run under way is in flight at any later moment, and its end is no event", () => {
  const trace = traceOf({
    run: { at: [0, 500], outcome: "unfinished" },
    "run/first": { at: [0, 300] },
    "run/second": { at: [300, 500], outcome: "unfinished" },
  });
  const run = runOf(trace, true);
  expect(run.steps.map((step) => stateAt(step, 9_000))).toEqual(["flight", "ok", "flight"]);
  expect([run.end, momentsOf(run)]).toEqual([500, [0, 300]]);
  expect(momentsOf(runOf(trace))).toEqual([0, 300, 500]);
});

test("sums hold what has ended, and say what is in flight", () => {
  const run = runOf(FAN_OUT);
  expect(totalsAt(run, 0)).toMatchObject({ inFlight: 3, answered: 0, tokensIn: 0, usd: 0 });
  expect(totalsAt(run, 500)).toMatchObject({
    inFlight: 2,
    answered: 1,
    tokensIn: 100,
    usd: 0.0004,
  });
  expect(totalsAt(run, 1000)).toMatchObject({ inFlight: 0, answered: 3, cancelled: 1 });
});

test("the moments are all begins and ends, each once", () => {
  expect(momentsOf(runOf(FAN_OUT))).toEqual([0, 400, 600, 1000]);
});

test("what was cancelled is worth what its siblings have cost", () => {
  expect(savingsOf(runOf(FAN_OUT))).toEqual({ cancelled: 1, neverSent: 0, usd: 0.0004 });
  const alone = traceOf({ a: { at: [0, 1], outcome: "cancelled", call: { sent: false } } });
  expect(savingsOf(runOf(alone))).toEqual({ cancelled: 1, neverSent: 1, usd: undefined });
});

// The run

test("the critical path goes back from the end through what was waited for", () => {
  const paths = [...runOf(FAN_OUT).critical].map(({ path }) => path);
  expect(paths).toEqual(["plan/combine", "plan/worker[1]"]);
});

test("a step whose parent isn't in the trace is outermost, or in the nearest one that is", () => {
  const { roots, byPath } = runOf(
    traceOf({ a: { at: [0, 2] }, "a/b/c": { at: [0, 1] }, "x/y": { at: [1, 2] } }),
  );
  expect(roots.map(({ path }) => path)).toEqual(["a", "x/y"]);
  expect(byPath.get("a/b/c")).toMatchObject({ name: "b/c", depth: 1 });
});

test("scripted runs are laid out in their order, a beat a call, tools of one turn side by side", () => {
  const steps = {
    agent: { at: [0, 0] },
    "agent/turn[0]": { at: [0, 0], call: callAt(0, 0) },
    "agent/turn[0]/tool[0]": { at: [0, 0], call: false },
    "agent/turn[0]/tool[1]": { at: [0, 0], call: false },
    "agent/turn[1]": { at: [0, 0] },
  } as const;
  const { steps: placed, end } = runOf(traceOf(steps, { origin: "scripted" }));
  expect(placed.map(({ name, begin, end }) => [name, begin, end])).toEqual([
    ["agent", 0, 2500],
    ["turn[0]", 0, 1500],
    ["tool[0]", 1000, 1500],
    ["tool[1]", 1000, 1500],
    ["turn[1]", 1500, 2500],
  ]);
  expect(end).toBe(2500);
});

// Shapes

test("steps in a row are stages, and steps that overlap stand side by side", () => {
  expect(told(shapeOf(runOf(FAN_OUT)))).toBe(
    "start > [worker[0] worker[1] worker[2]] > combine > end",
  );
});

test("gates and tools hang under the step that they belong to", () => {
  const steps = {
    chain: { at: [0, 20] },
    "chain/notes": { at: [0, 10], call: {} },
    "chain/notes/gate": { at: [10, 10], call: false },
    "chain/notes#2": { at: [10, 20], call: {} },
    "chain/notes#2/gate": { at: [20, 20], call: false },
  } as const;
  expect(shape(steps)).toBe("start > notes:gate > notes#2:gate > end");
});

test("rounds follow one another even where they take no time, and frame what is in them", () => {
  const steps = {
    refine: { at: [0, 0] },
    "refine/round[0]": { at: [0, 0] },
    "refine/round[0]/draft": { at: [0, 0] },
    "refine/round[1]": { at: [0, 0] },
    "refine/round[1]/draft": { at: [0, 0] },
  } as const;
  expect(shape(steps)).toBe("start > round[0]{draft} > round[1]{draft} > end");
});

test("frames with one frame in them are drawn as one", () => {
  const steps = {
    research: { at: [0, 10] },
    "research/brief[0]": { at: [0, 10] },
    "research/brief[0]/agent": { at: [0, 10] },
    "research/brief[0]/agent/turn[0]": { at: [0, 10] },
    "research/brief[1]": { at: [0, 10] },
  } as const;
  expect(shape(steps)).toBe("start > [brief[0]/agent{turn[0]} brief[1]] > end");
});

test("many of a kind are a crowd, whether or not all run at once", () => {
  expect(told(shapeOf(runOf(longTrace(40))))).toBe("start > 40 ticket > end");
  const steps: Record<string, Told> = { vote: { at: [0, 10] } };
  for (let index = 0; index < 20; index += 1)
    steps[`vote/voter[${index}]`] = { at: [0, 5 + index] };
  expect(shape(steps)).toBe("start > 20 voter > end");
});

test("of many that follow one another the first and the last few are drawn, and the others are a crowd", () => {
  const steps: Record<string, Told> = { agent: { at: [0, 1000] } };
  for (let turn = 0; turn < 100; turn += 1)
    steps[`agent/turn[${turn}]`] = { at: [10 * turn, 10 * turn + 10] };
  const turns = (from: number) => [0, 1].map((index) => `turn[${from + index}]`);
  expect(shape(steps)).toBe(
    ["start", ...turns(0), "96 more step", ...turns(98), "end"].join(" > "),
  );

  const topics = (from: number) =>
    `[${Array.from({ length: 8 }, (_, index) => `topic-${from + index}`).join(" ")}]`;
  const [first, last] = [[0, 8].map(topics), [2984, 2992].map(topics)];
  expect(told(shapeOf(runOf(variedTrace(3000))))).toBe(
    ["start", ...first, "2968 more step", ...last, "end"].join(" > "),
  );
});

test("many side by side are a crowd although each has another name", () => {
  const steps: Record<string, Told> = { run: { at: [0, 20] }, "run/plan": { at: [0, 10] } };
  for (let index = 0; index < 3000; index += 1) steps[`run/topic-${index}`] = { at: [10, 15] };
  steps["run/combine"] = { at: [15, 20] };
  expect(shape(steps)).toBe("start > plan > 3000 step > combine > end");
});

test("a plan says which task waits for which, where times would say otherwise", () => {
  const tasks = [
    { id: "a", needs: [] },
    { id: "b", needs: ["c"] },
    { id: "c", needs: [] },
  ];
  const trace = traceOf({
    orchestrate: { at: [0, 40] },
    "orchestrate/plan": { at: [0, 10], value: { tasks } },
    "orchestrate/worker[0]": { at: [10, 12] },
    "orchestrate/worker[2]": { at: [10, 20] },
    "orchestrate/worker[1]": { at: [20, 30] },
    "orchestrate/combine": { at: [30, 40] },
  });
  const [, , stage] = shapeOf(runOf(trace));
  expect(stage?.items.map(tell)).toEqual(["worker[0]", "worker[2]", "worker[1]"]);
  const edges = stage?.edges.map((edge) => edge.map(tell).join(" > "));
  expect(edges).toEqual(["worker[2] > worker[1]"]);
});

// Layouts

test("a drawing fits the room it has by wrapping, and nothing in it overlaps", () => {
  const steps: Record<string, Told> = { chain: { at: [0, 60] } };
  for (let index = 0; index < 6; index += 1) {
    steps[`chain/step${index}`] = { at: [10 * index, 10 * index + 10], call: {} };
    steps[`chain/step${index}/gate`] = { at: [10 * index + 10, 10 * index + 10], call: false };
  }
  const stages = shapeOf(runOf(traceOf(steps)));
  for (const room of [320, 700, 2000]) {
    const { nodes, hung, width, height } = layOut(stages, room);
    expect(width).toBeLessThanOrEqual(room);
    const boxes = [...nodes, ...hung];
    for (const [index, a] of boxes.entries()) {
      expect(a.x + a.width).toBeLessThanOrEqual(width);
      expect(a.y + a.height).toBeLessThanOrEqual(height);
      for (const b of boxes.slice(index + 1)) {
        const isApart =
          a.x + a.width <= b.x ||
          b.x + b.width <= a.x ||
          a.y + a.height <= b.y ||
          b.y + b.height <= a.y;
        expect(isApart).toBe(true);
      }
    }
  }
});

test("what runs side by side is drawn from top to bottom in its order, in one column", () => {
  const { nodes } = layOut(shapeOf(runOf(FAN_OUT)), 1000);
  const workers = nodes.filter(({ item }) => tell(item).startsWith("worker"));
  expect(new Set(workers.map(({ x }) => x)).size).toBe(1);
  const tops = workers.map(({ y }) => y);
  expect(tops).toEqual(tops.toSorted((a, b) => a - b));
});

// Words

test.for([
  ['search({"pattern": "a|b", "glob": "*.ts"})', "search", "a|b, *.ts"],
  ["list_files({})", "list_files", ""],
  ["odd", "odd", ""],
] as const)("the tool call %s is %s of %s", ([call, name, input]) => {
  expect(toolWords(call)).toEqual({ name, input });
});

test.for([
  [5000, ["0", "1 s", "2 s", "3 s", "4 s"]],
  [0.4, ["0"]],
  [117_000, ["0", "30 s", "1 min", "1 min 30 s"]],
  [4_500_000, ["0", "15 min", "30 min", "45 min", "1 h"]],
  [100_000_000, ["0", "6 h", "12 h", "18 h", "1 d"]],
  [800_000_000, ["0", "2 d", "4 d", "6 d", "8 d"]],
  [0, ["0"]],
] as const)("an axis up to %d ms is marked at round times", ([end, marks]) => {
  expect(axisTicks(end).map(tickWords)).toEqual(marks);
});

test.for([
  [{ status: "decided", winner: "yes" }, "decided: yes"],
  [{ status: "completed" }, "completed"],
  [{ route: "bug", output: "…" }, "bug"],
  ["text", "result"],
  [undefined, "result"],
] as const)("a run that gave %j ends in %j", ([value, words]) => {
  expect(ending(value)).toBe(words);
});
