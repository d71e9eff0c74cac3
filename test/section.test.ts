/**
 * Sections: what runs at once, whose failure cancels the others, and what is kept.
 *
 * From effective-agents 0.1.0: test/section.test.ts
 */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { BudgetError, HaltError, LlmOutputError, RecordingError } from "../patterns/errors.ts";
import type { OnError } from "../patterns/fan-out.ts";
import type { Context } from "../patterns/llm-call.ts";
import { section } from "../patterns/section.ts";
import { held, scripted } from "./shared/scripted.ts";
import { rejection } from "./shared/server.ts";

const policies: readonly OnError[] = ["abort", "settle"];
const asks = (word: string) => (input: string, context: Context) => context.llm(`${word} ${input}`);

test("gives the input to every section at once, and keeps each output under its name", async () => {
  const [a, b] = [held(), held()];
  const { llm, prompts, paths, received } = scripted([a.reply, b.reply]);
  const run = section("diff", {
    llm,
    sections: {
      security: asks("Attack"),
      speed: asks("Measure"),
      size: (diff) => diff.length,
    },
  });
  await received(2);
  b.answer("fast");
  a.answer("safe");
  expect(await run).toEqual({
    status: "completed",
    outputs: { security: "safe", speed: "fast", size: 4 },
  });
  expect(prompts()).toEqual(["Attack diff", "Measure diff"]);
  expect(paths()).toEqual(["section/security", "section/speed"]);
});

test("cancels the other sections at the first failure, waits for them, and throws it", async () => {
  const slow = held();
  const broken = new Error("broken");
  const { llm, calls } = scripted([slow.reply, broken]);
  const run = section("x", { llm, sections: { slow: asks("1"), fails: asks("2") } });
  expect(await rejection(run)).toBe(broken);
  expect(slow.state()).toBe("ended");
  expect(calls[0]?.options.signal?.reason).toBe(broken);
});

test("makes no further call in a cancelled section, not even with a model from outside", async () => {
  const { llm, calls } = scripted(["never"]);
  const broken = new Error("broken");
  const late = async () => {
    await setImmediate();
    return llm("More");
  };
  expect(
    await rejection(section("x", { sections: { late, fails: () => Promise.reject(broken) } })),
  ).toBe(broken);
  expect(calls).toEqual([]);
});

test("keeps each outcome when it settles, and cancels nobody", async () => {
  const slow = held();
  const broken = new Error("broken");
  const sections = { slow: asks("1"), fails: asks("2"), code: () => Promise.reject(broken) };
  const { llm, received } = scripted([slow.reply, broken]);
  const run = section("x", { llm, onError: "settle", sections });
  await received(2);
  await setImmediate();
  expect(slow.state()).toBe("open");
  slow.answer("done");
  expect(await run).toEqual({
    status: "completed",
    outputs: {
      slow: { status: "fulfilled", value: "done" },
      fails: { status: "rejected", reason: broken },
      code: { status: "rejected", reason: broken },
    },
  });
});

test("completes when every section failed and it settles", async () => {
  const broken = new Error("broken");
  const { llm } = scripted([broken]);
  const result = await section("x", { llm, onError: "settle", sections: { a: asks("1") } });
  expect(result).toEqual({
    status: "completed",
    outputs: { a: { status: "rejected", reason: broken } },
  });
});

test.for(policies)(
  "lets the sections end when the budget ends, and keeps those that are done (%s)",
  async (onError) => {
    const slow = held();
    const first = new BudgetError("No money");
    const { llm, received } = scripted([first, slow.reply, new BudgetError("None for me either")]);
    const sections = { a: asks("1"), b: asks("2"), c: asks("3"), d: () => 4 };
    const run = section("x", { llm, onError, sections });
    await received(3);
    await setImmediate();
    expect(slow.state()).toBe("open");
    slow.answer("paid");
    const value = <T>(value: T) => (onError === "settle" ? { status: "fulfilled", value } : value);
    const result = await run;
    expect(result).toEqual({
      status: "budget",
      error: first,
      outputs: { b: value("paid"), d: value(4) },
    });
    expect(Object.keys(result.outputs)).toEqual(["b", "d"]);
  },
);

test("keeps a section's own failure beside the budget's end when it settles", async () => {
  const broken = new Error("broken");
  const error = new BudgetError("No money");
  const { llm } = scripted([error, broken, "done"]);
  const sections = { a: asks("1"), b: asks("2"), c: asks("3") };
  expect(await section("x", { llm, onError: "settle", sections })).toEqual({
    status: "budget",
    error,
    outputs: {
      b: { status: "rejected", reason: broken },
      c: { status: "fulfilled", value: "done" },
    },
  });
});

test.for(policies)("rejects when the budget ends and no section is done (%s)", async (onError) => {
  const error = new BudgetError("No money");
  const { llm } = scripted([error, new BudgetError("None for me either")]);
  const run = section("x", { llm, onError, sections: { a: asks("1"), b: asks("2") } });
  expect(await rejection(run)).toBe(error);
});

test.for(policies)(
  "cancels the sections and passes on a call that was not made (%s)",
  async (onError) => {
    for (const error of [new HaltError("No"), new RecordingError("Not taped")]) {
      const slow = held();
      const { llm } = scripted([slow.reply, error]);
      const run = section("x", { llm, onError, sections: { a: asks("1"), b: asks("2") } });
      expect(await rejection(run)).toBe(error);
      expect(slow.state()).toBe("ended");
    }
  },
);

test.for(policies)(
  "rejects with the reason of the caller's abort: sections (%s)",
  async (onError) => {
    const controller = new AbortController();
    const [a, b] = [held(), held()];
    const { llm, received } = scripted([a.reply, b.reply]);
    const sections = { a: asks("1"), b: asks("2"), c: () => "done" };
    const run = section("x", { llm, onError, signal: controller.signal, sections });
    await received(2);
    controller.abort("stop");
    expect(await rejection(run)).toBe("stop");
    expect([a.state(), b.state()]).toEqual(["ended", "ended"]);
  },
);

test.for(policies)("rejects when the sections are deaf to the abort (%s)", async (onError) => {
  for (const end of [() => "done", () => Promise.reject(new BudgetError("No money"))]) {
    const controller = new AbortController();
    const deaf = () => {
      controller.abort("stop");
      return end();
    };
    const sections = { deaf, other: () => "done" };
    const run = section("x", { onError, signal: controller.signal, sections });
    expect(await rejection(run)).toBe("stop");
  }
});

test.for(policies)("starts no section under a signal that has fired (%s)", async (onError) => {
  const { llm, calls } = scripted(["never"]);
  const signal = AbortSignal.abort("late");
  const run = section("x", { llm, onError, signal, sections: { a: asks("1") } });
  expect(await rejection(run)).toBe("late");
  expect(calls).toEqual([]);
});

test("passes an unusable reply's error on with its path, text and stop reason", async () => {
  const refuse = () => {
    throw new LlmOutputError("refused", { text: "I can't", stopReason: "refusal" });
  };
  const { llm } = scripted([refuse]);
  const run = section("x", { llm, sections: { legal: asks("1") } });
  const error = { path: "section/legal", text: "I can't", stopReason: "refusal" };
  expect(await rejection(run)).toMatchObject(error);
});

test.for<readonly [string, object]>([
  ["At least one section", { sections: {} }],
  ["name must be", { sections: { "a/b": () => 1 } }],
  ["name must be", { sections: { a: asks("1"), "": () => 1 } }],
  ["onError must be", { onError: "ignore" }],
  ["onError must be", { onError: null }],
])("refuses the caller's mistake before any section starts: %s", async ([message, wrong]) => {
  const { llm, calls } = scripted(["never"]);
  const error = await rejection(section("x", { llm, sections: { a: asks("1") }, ...wrong }));
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message: expect.stringContaining(message) });
  expect(calls).toEqual([]);
});

test("keeps sections that are named like what every object has", async () => {
  const names = ["__proto__", "constructor", "toString"];
  const sections = Object.fromEntries(names.map((name) => [name, () => name]));
  const { outputs } = await section("x", { sections });
  expect(Object.entries(outputs)).toEqual(names.map((name) => [name, name]));
});

test("types each section's output by its name", async () => {
  const sections = {
    text: async (n: number) => `${n}`,
    twice: (n: number) => 2 * n,
    none: () => undefined,
  };
  const result = await section(2, { sections });
  if (result.status === "completed") {
    const text: string = result.outputs.text;
    const twice: number = result.outputs.twice;
    expect([text, twice]).toEqual(["2", 4]);
    // @ts-expect-error There is no such section.
    result.outputs.other;
    // @ts-expect-error It's a text.
    const wrong: number = result.outputs.text;
    expect(wrong).toBe("2");
  } else {
    // @ts-expect-error When the budget ended it may be missing.
    const text: string = result.outputs.text;
    expect(text).toBeDefined();
  }
  const settled = await section(2, { sections, onError: "settle" });
  // @ts-expect-error A settled section has an outcome, which may be missing when the budget ended.
  settled.outputs.twice.status;
  if (settled.status !== "completed") return;
  const { twice } = settled.outputs;
  // @ts-expect-error A section that failed has no value.
  twice.value;
  if (twice.status === "fulfilled") expect(twice.value + 1).toBe(5);
});

test("types a section's input by the input", async () => {
  const result = await section({ lines: 3 }, { sections: { count: ({ lines }) => lines + 1 } });
  const count: number | undefined = result.outputs.count;
  expect(count).toBe(4);
  // @ts-expect-error The input is a number, and the section takes a text.
  await rejection(section(3, { sections: { a: (text: string) => text.trim() } }));
});

test("refuses a section that is no function, before any work", async () => {
  const { llm, calls } = scripted(["one"]);
  const sections = { a: asks("1"), b: 5 };
  // The compiler would refuse it.
  const error = await rejection(section("in", { llm, sections: sections as never }));
  expect(error).toMatchObject({ name: "TypeError", message: expect.stringContaining('"b"') });
  expect(calls).toHaveLength(0);
});
