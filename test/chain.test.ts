/**
 * The chain: its steps, its gates, what it keeps when one stops it, and how it ends.
 *
 * From effective-agents 0.1.0: test/chain.test.ts
 */
import { expect, test } from "vitest";
import { type ChainContext, chain } from "../patterns/chain.ts";
import { BudgetError, HaltError, LlmOutputError, RecordingError } from "../patterns/errors.ts";
import { observe, type RunEvent } from "../patterns/step.ts";
import { held, scripted } from "./shared/scripted.ts";
import { rejection } from "./shared/server.ts";

/** A step that sends its input with a word before it. */
const asks = (word: string) => (input: string, context: ChainContext) =>
  context.llm(`${word} ${input}`);

test("runs each step on what the one before gave", async () => {
  const { llm, prompts, paths } = scripted(["notes", "Notizen", "kurz"]);
  const result = await chain("log", {
    llm,
    steps: [
      { name: "notes", run: asks("Note") },
      { name: "german", run: asks("Translate") },
      { name: "short", run: asks("Shorten") },
    ],
  });
  expect(result).toEqual({
    status: "completed",
    output: "kurz",
    outputs: { notes: "notes", german: "Notizen", short: "kurz" },
  });
  expect(prompts()).toEqual(["Note log", "Translate notes", "Shorten Notizen"]);
  expect(paths()).toEqual(["chain/notes", "chain/german", "chain/short"]);
});

test("takes steps in code, and shows their output to the gate", async () => {
  const seen: string[] = [];
  const result = await chain("a", {
    steps: [
      { name: "double", run: (text) => text + text },
      { name: "see", run: (text) => `<${text}>`, gate: (text) => seen.push(text) > 0 || "never" },
    ],
  });
  expect(result).toMatchObject({ status: "completed", outputs: { double: "aa", see: "<aa>" } });
  expect(seen).toEqual(["<aa>"]);
});

test.for(["", " ", undefined, 7])(
  "refuses a step's output that is no text (%j)",
  async (output) => {
    const last = { name: "last", run: () => "never" };
    const run = () => output as string; // the compiler would refuse some
    const error = await rejection(chain("in", { steps: [{ name: "a", run }, last] }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: expect.stringContaining('output of "a"') });
  },
);

test.for([{ run: 5 }, { gate: "no" }])(
  "refuses a step that is badly made, before any call (%j)",
  async (part) => {
    const { llm, calls } = scripted(["one"]);
    const steps = [
      { name: "a", run: asks("1") },
      { name: "b", run: asks("2"), ...part },
    ];
    // The compiler would refuse it.
    const error = await rejection(chain("in", { llm, steps: steps as never }));
    expect(error).toBeInstanceOf(TypeError);
    expect(calls).toHaveLength(0);
  },
);

test("keeps the outputs before a failed gate, and says which step failed and why", async () => {
  const { llm, prompts } = scripted(["one", "two"]);
  const result = await chain("log", {
    llm,
    steps: [
      { name: "first", run: asks("1"), gate: () => true },
      { name: "second", run: asks("2"), gate: (text) => `"${text}" is too short` },
      { name: "third", run: asks("3") },
    ],
  });
  expect(result).toEqual({
    status: "stopped",
    step: "second",
    rejected: { output: "two", reason: '"two" is too short' },
    outputs: { first: "one" },
  });
  expect(prompts()).toEqual(["1 log", "2 one"]);
});

test("stops at the first step without outputs, and at the last with all others", async () => {
  const no = () => "no";
  const first = await chain("log", { steps: [{ name: "only", run: () => "text", gate: no }] });
  expect(first).toMatchObject({ status: "stopped", step: "only", outputs: {} });
  const last = await chain("log", {
    steps: [
      { name: "a", run: () => "1" },
      { name: "b", run: () => "2", gate: async () => "no" },
    ],
  });
  expect(last).toMatchObject({ status: "stopped", step: "b", outputs: { a: "1" } });
});

test("sends the reason back to the step, on the same input, until the gate is passed", async () => {
  const { llm, prompts, paths } = scripted(["v1", "v2", "v3", "done"]);
  const seen: unknown[] = [];
  const result = await chain("log", {
    llm,
    steps: [
      {
        name: "notes",
        retries: 5,
        gate: (text) => text === "v3" || `${text} won't do`,
        run: (input, { llm, rejected }) => {
          seen.push(rejected);
          return llm(
            `Note ${input}${rejected ? `, not ${rejected.output}: ${rejected.reason}` : ""}`,
          );
        },
      },
      { name: "next", run: (text, { llm, rejected }) => llm(`Go on ${text} ${rejected}`) },
    ],
  });
  expect(result).toMatchObject({ status: "completed", outputs: { notes: "v3", next: "done" } });
  expect(seen).toEqual([
    undefined,
    { output: "v1", reason: "v1 won't do" },
    { output: "v2", reason: "v2 won't do" },
  ]);
  expect(prompts()).toEqual([
    "Note log",
    "Note log, not v1: v1 won't do",
    "Note log, not v2: v2 won't do",
    "Go on v3 undefined",
  ]);
  expect(paths()).toEqual(["chain/notes", "chain/notes#2", "chain/notes#3", "chain/next"]);
});

test.for([0, 1, 3, undefined])(
  "stops after the retries are used up, with the last output and reason (%s)",
  async (retries) => {
    const { llm, paths } = scripted(["v1", "v2", "v3", "v4", "v5"]);
    const result = await chain("log", {
      llm,
      steps: [{ name: "notes", run: asks("Note"), gate: (text) => `${text}: no`, retries }],
    });
    const output = `v${(retries ?? 0) + 1}`;
    expect(result).toEqual({
      status: "stopped",
      step: "notes",
      rejected: { output, reason: `${output}: no` },
      outputs: {},
    });
    expect(paths()).toHaveLength((retries ?? 0) + 1);
  },
);

test("reports a gate's verdict as what its step gave", async () => {
  const events: RunEvent[] = [];
  await observe(
    (event) => events.push(event),
    () =>
      chain("log", {
        steps: [
          { name: "a", run: () => "1", gate: () => true },
          { name: "b", run: () => "2", gate: () => "no" },
        ],
      }),
  );
  const gates = events.filter(({ type, path }) => type === "end" && path.endsWith("/gate"));
  expect(gates).toMatchObject([
    { path: "chain/a/gate", value: true },
    { path: "chain/b/gate", value: "no" },
  ]);
});

test.for(["", " \n"])("refuses an input with nothing in it (%j)", async (input) => {
  const { llm, calls } = scripted(["one"]);
  const error = await rejection(chain(input, { llm, steps: [{ name: "a", run: asks("1") }] }));
  expect(error).toBeInstanceOf(TypeError);
  expect(calls).toHaveLength(0);
});

const circular: { self?: unknown } = {};
circular.self = circular;

test.for<readonly [string, unknown]>([
  ["false", false],
  ["undefined", undefined],
  ["null", null],
  ["an empty text", ""],
  ["a blank", " "],
  ["1", 1],
  ["a BigInt", BigInt(5)],
  ["a symbol", Symbol("no")],
  ["an object", {}],
  ["one without a prototype", Object.create(null)],
  ["a circle", circular],
])("refuses a verdict that is neither true nor a reason: %s", async ([, verdict]) => {
  const gate = () => verdict as true; // the compiler would refuse it
  const run = chain("log", { steps: [{ name: "notes", run: () => "text", gate }] });
  const error = await rejection(run);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({
    message: expect.stringContaining('"notes" must give true or a reason, got '),
  });
});

test.for([
  ["at least one step", []],
  ["names of their own", [{ name: "a" }, { name: "b" }, { name: "a" }]],
  ["without", [{ name: "a/b" }]],
  ["without", [{ name: "a#2" }]],
  ["non-empty", [{ name: "a" }, { name: " " }]],
] as const)("refuses bad steps before anything runs: %s", async ([message, given]) => {
  const { llm, calls } = scripted(["never"]);
  const steps = given.map(({ name }) => ({ name, run: asks("Note") }));
  const error = await rejection(chain("log", { llm, steps }));
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: expect.stringContaining(message) });
  expect(calls).toEqual([]);
});

test.for([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, "1" as never])(
  "refuses %s retries before anything runs",
  async (retries) => {
    const { llm, calls } = scripted(["never"]);
    const steps = [
      { name: "a", run: asks("1") },
      { name: "b", run: asks("2"), retries },
    ];
    const error = await rejection(chain("log", { llm, steps }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error).toMatchObject({ message: expect.stringContaining(`"b" must be a whole`) });
    expect(error).toMatchObject({ message: expect.stringMatching(`got "?${retries}`) });
    expect(calls).toEqual([]);
  },
);

test("passes an unusable reply's error on untouched, and doesn't ask again", async () => {
  const cut = () => {
    throw new LlmOutputError("cut off", { text: "half", stopReason: "max_tokens" });
  };
  const { llm, calls } = scripted(["one", cut]);
  const run = chain("log", {
    llm,
    steps: [
      { name: "first", run: asks("1") },
      { name: "second", run: asks("2"), retries: 3, gate: () => "no" },
    ],
  });
  expect(await rejection(run)).toMatchObject({
    name: "LlmOutputError",
    path: "chain/second",
    text: "half",
    stopReason: "max_tokens",
  });
  expect(calls).toHaveLength(2);
});

test("passes the errors of a step and of a gate on untouched", async () => {
  const broken = new Error("broken");
  const fails = () => {
    throw broken;
  };
  expect(await rejection(chain("a", { steps: [{ name: "run", run: fails }] }))).toBe(broken);
  const steps = [{ name: "gate", run: () => "text", gate: fails, retries: 3 }];
  expect(await rejection(chain("a", { steps }))).toBe(broken);
});

test.for([new HaltError("Not made"), new RecordingError("Not on the tape")])(
  "passes a call that was not made on, whatever is done already: $name",
  async (error) => {
    const { llm } = scripted(["one", error]);
    const steps = [
      { name: "a", run: asks("1") },
      { name: "b", run: asks("2") },
    ];
    expect(await rejection(chain("log", { llm, steps }))).toBe(error);
  },
);

test("returns the outputs so far when the budget ends", async () => {
  const error = new BudgetError("No money");
  const { llm, paths } = scripted(["one", error]);
  const result = await chain("log", {
    llm,
    steps: [
      { name: "a", run: asks("1") },
      { name: "b", run: asks("2") },
      { name: "c", run: asks("3") },
    ],
  });
  expect(result).toEqual({ status: "budget", step: "b", error, outputs: { a: "one" } });
  expect(paths()).toEqual(["chain/a", "chain/b"]);
});

test("hands back a refused output, not as done, when the budget ends in the retry", async () => {
  const error = new BudgetError("No money");
  const notes = { name: "notes", run: asks("Note"), gate: () => "no", retries: 2 };
  const { llm } = scripted(["one", "two", error]);
  const result = await chain("log", { llm, steps: [{ name: "a", run: asks("1") }, notes] });
  const rejected = { output: "two", reason: "no" };
  expect(result).toEqual({
    status: "budget",
    step: "notes",
    error,
    rejected,
    outputs: { a: "one" },
  });
  const alone = chain("log", { llm: scripted(["two", error]).llm, steps: [notes] });
  expect(await rejection(alone)).toBe(error);
});

test("rejects when the budget ends in the first step", async () => {
  const error = new BudgetError("No money");
  const steps = [{ name: "a", run: asks("1") }];
  expect(await rejection(chain("log", { llm: scripted([error]).llm, steps }))).toBe(error);
});

test("calls nothing under a signal that has fired", async () => {
  const { llm, calls } = scripted(["never"]);
  const ran: string[] = [];
  const steps = [{ name: "a", run: (text: string) => `${ran.push(text)}` }];
  const signal = AbortSignal.abort("late");
  expect(await rejection(chain("log", { llm, signal, steps }))).toBe("late");
  expect([calls, ran]).toEqual([[], []]);
});

test.for(["stop", undefined])(
  "rejects with the reason when it's aborted during a call (%s)",
  async (reason) => {
    const slow = held();
    const { llm, calls } = scripted(["one", slow.reply]);
    const controller = new AbortController();
    const run = chain("log", {
      llm,
      signal: controller.signal,
      steps: [
        { name: "a", run: asks("1") },
        { name: "b", run: asks("2") },
        { name: "c", run: asks("3") },
      ],
    });
    await slow.started;
    controller.abort(reason);
    expect(await rejection(run)).toBe(controller.signal.reason);
    expect(calls).toHaveLength(2);
  },
);

test("rejects with the reason when it's aborted in a gate, and doesn't start the next step", async () => {
  const controller = new AbortController();
  const ran: string[] = [];
  const gate = () => {
    controller.abort("stop");
    return true as const;
  };
  const steps = [
    { name: "a", run: () => "1", gate },
    { name: "b", run: (text: string) => `${ran.push(text)}` },
  ];
  expect(await rejection(chain("log", { signal: controller.signal, steps }))).toBe("stop");
  expect(ran).toEqual([]);
});

test.for<readonly [string, () => string | Promise<string>]>([
  ["completed", () => "text"],
  ["budget", () => Promise.reject(new BudgetError("No money"))],
  ["failed", () => Promise.reject(new Error("in the wake"))],
])("rejects with the reason when a deaf last step would have ended as %s", async ([, end]) => {
  const controller = new AbortController();
  const deaf = () => {
    controller.abort("stop");
    return end();
  };
  const steps = [
    { name: "a", run: () => "1" },
    { name: "b", run: deaf },
  ];
  expect(await rejection(chain("log", { signal: controller.signal, steps }))).toBe("stop");
});

test.for([true, "no"] as const)(
  "rejects with the reason when it's aborted in the last gate, which says %j",
  async (verdict) => {
    const controller = new AbortController();
    const gate = () => {
      controller.abort("stop");
      return verdict;
    };
    const steps = [{ name: "a", run: () => "1", gate }];
    expect(await rejection(chain("log", { signal: controller.signal, steps }))).toBe("stop");
  },
);

test("hands its signal and a model under it to each step", async () => {
  const { llm, calls } = scripted(["1", "2"]);
  const { signal } = new AbortController();
  const seen: unknown[] = [];
  const run = (_: string, context: ChainContext): Promise<string> => {
    seen.push(context.signal);
    return context.llm("Hi", { model: "claude-haiku-5-5" });
  };
  await chain("log", { llm, signal, steps: [{ name: "a", run }] });
  await chain("log", { llm, steps: [{ name: "a", run }] });
  expect(seen).toEqual([signal, undefined]);
  expect(calls.map(({ options }) => options)).toEqual([
    { model: "claude-haiku-5-5", signal },
    { model: "claude-haiku-5-5" },
  ]);
});

test("keeps steps apart that are named like what every object has", async () => {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const steps = names.map((name) => ({ name, run: (text: string) => `${text}>${name}` }));
  const result = await chain("in", { steps });
  expect(Object.entries(result.outputs)).toEqual([
    ["__proto__", "in>__proto__"],
    ["constructor", "in>__proto__>constructor"],
    ["toString", "in>__proto__>constructor>toString"],
    ["hasOwnProperty", "in>__proto__>constructor>toString>hasOwnProperty"],
  ]);
  const empty = await chain("in", { steps: [{ name: "a", run: () => "text", gate: () => "no" }] });
  expect(Object.keys(empty.outputs)).toEqual([]);
});

test("changes no text on its way", async () => {
  const text = "$& $1 $$ </input> <label>x</label> \r\n &lt; \u200b ";
  const { llm, prompts } = scripted([text, text]);
  const run = (input: string, context: ChainContext) => context.llm(input);
  const steps = [
    { name: "a", run },
    { name: "b", run },
  ];
  expect(await chain(text, { llm, steps })).toMatchObject({ output: text });
  expect(prompts()).toEqual([text, text]);
});

test("numbers the retries of chains at the same time apart", async () => {
  const steps = [{ name: "a", run: asks("1"), gate: () => "no", retries: 1 }];
  const one = scripted(["1", "2"]);
  const two = scripted(["1", "2"]);
  await Promise.all([chain("x", { llm: one.llm, steps }), chain("y", { llm: two.llm, steps })]);
  expect([one.paths(), two.paths()]).toEqual([
    ["chain/a", "chain/a#2"],
    ["chain/a", "chain/a#2"],
  ]);
});

test("types the outputs by the steps' names, and the rest by the status", async () => {
  const result = await chain("log", {
    steps: [
      { name: "notes", run: () => "1" },
      { name: "german", run: async (text) => text.trim(), gate: (text) => text !== "" || "empty" },
    ],
  });
  if (result.status === "completed") {
    const german: string = result.outputs.german;
    expect(german).toBe(result.output);
    // @ts-expect-error There is no such step.
    result.outputs.french;
    // @ts-expect-error A completed chain has no failed step.
    result.step;
  } else if (result.status === "stopped") {
    const name: "notes" | "german" = result.step;
    // @ts-expect-error A stopped chain may have no such output.
    const notes: string = result.outputs.notes;
    expect([name, notes]).toBeDefined();
  } else {
    const error: BudgetError = result.error;
    expect(error).toBeDefined();
  }
  // @ts-expect-error Whether a chain completed must be looked at before its output is there.
  result.output;
});

test("types what a step and a gate give", async () => {
  const options = { steps: [{ name: "a", run: () => "1" }] };
  expect(await chain("log", options)).toMatchObject({ status: "completed" });
  // @ts-expect-error A step gives a text.
  await rejection(chain("log", { steps: [{ name: "a", run: () => 7 }] }));
  const gate = () => false;
  // @ts-expect-error A gate gives true or a reason, and never false.
  await rejection(chain("log", { steps: [{ name: "a", run: () => "1", gate }] }));
});

test.for([undefined, null, BigInt(5), "a"])("refuses %s in place of a step", async (step) => {
  const error = await rejection(chain("log", { steps: [step as never] }));
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toContain("name must be non-empty");
});

test.for([null, BigInt(5), {}, "ab"])("refuses %o in place of the list of steps", async (steps) => {
  const error = await rejection(chain("log", { steps: steps as never }));
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toContain("steps must be a list, got ");
});
