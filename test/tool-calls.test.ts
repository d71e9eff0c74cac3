/**
 * The calls of one turn: each gets one result, whatever became of it.
 *
 * From effective-agents 0.1.0: test/tool-calls.test.ts
 */
import { setImmediate } from "node:timers/promises";
import type { ToolUseBlock } from "@anthropic-ai/sdk/resources/messages";
import { expect, expectTypeOf, test } from "vitest";
import { BudgetError, HaltError, LlmOutputError, SuspendError } from "../patterns/errors.ts";
import { currentPath, step } from "../patterns/step.ts";
import { defineTool, type InputSchema, type Tool, ToolError } from "../patterns/tool.ts";
import { checkToolChoice, definitionsOf, prepareTools, toolCalls } from "../patterns/tool-calls.ts";
import { held } from "./shared/scripted.ts";
import { rejection } from "./shared/server.ts";
import { serverUse, text, think, use } from "./shared/strict-api.ts";

const schema = (
  properties: InputSchema["properties"] = {},
  required: string[] = [],
): InputSchema => ({ type: "object", properties, required, additionalProperties: false });

const add = defineTool<{ a: number; b: number }>({
  name: "add",
  description: "Adds two numbers.",
  input_schema: schema({ a: { type: "number" }, b: { type: "number" } }, ["a", "b"]),
  run: ({ a, b }) => String(a + b),
});

/** A tool without fields that does this. The type is kept wide, for what plain JavaScript hands over. */
function toolThat(run: () => unknown, name = "go"): Tool {
  return { name, description: "Goes.", input_schema: schema(), run: run as Tool["run"] };
}

const callsOf = (...blocks: readonly Parameters<typeof use>[]): ToolUseBlock[] =>
  toolCalls(blocks.map((block) => use(...block)));

/** What the model gets of one call. */
async function resultOf(tool: Tool, input: unknown = {}, maxChars = 1000) {
  const {
    results: [result],
  } = await prepareTools([tool], maxChars)(callsOf(["t1", tool.name, input]), undefined);
  return result;
}

test("finds the tool calls of a turn, in order, and not the API's own", () => {
  const first = use("t1", "add");
  const second = use("t2", "add");
  const found = toolCalls([think("hm"), first, serverUse("s1"), text("and"), second]);
  expect(found).toEqual([first, second]);
  expectTypeOf(found).toEqualTypeOf<ToolUseBlock[]>();
});

test("gives one result for each call, in the order of the calls", async () => {
  const slow = held();
  const tools = [{ ...toolThat(() => slow.reply()), name: "slow" }, add];
  const running = prepareTools(tools, 1000)(
    callsOf(["t1", "slow"], ["t2", "add", { a: 1, b: 2 }], ["t3", "no"]),
    undefined,
  );
  await slow.started;
  await setImmediate();
  slow.answer("at last");
  expect((await running).results).toEqual([
    { type: "tool_result", tool_use_id: "t1", content: "at last" },
    { type: "tool_result", tool_use_id: "t2", content: "3" },
    {
      type: "tool_result",
      tool_use_id: "t3",
      content: "There is no tool 'no'. The tools are: slow, add.",
      is_error: true,
    },
  ]);
});

test("runs all calls at once", async () => {
  const both = [held(), held()];
  const tools = both.map((one, index) => toolThat(() => one.reply(), `t${index}`));
  const running = prepareTools(tools, 1000)(callsOf(["1", "t0"], ["2", "t1"]), undefined);
  await Promise.all(both.map(({ started }) => started));
  for (const { answer } of both) answer("done");
  expect((await running).results).toHaveLength(2);
});

test.each([
  "constructor",
  "toString",
  "valueOf",
  "hasOwnProperty",
  "__proto__",
  "isPrototypeOf",
  "",
  "Add",
])("answers a call to %j with the tools that there are", async (name) => {
  const {
    results: [result],
  } = await prepareTools([add], 1000)(callsOf(["t1", name]), undefined);
  expect(result).toMatchObject({
    content: `There is no tool '${name}'. The tools are: add.`,
    is_error: true,
  });
});

test("says so when there is no tool at all", async () => {
  const {
    results: [result],
  } = await prepareTools([], 1000)(callsOf(["t1", "add"]), undefined);
  expect(result?.content).toBe("There is no tool 'add'. The tools are: none.");
});

test("runs a tool that is called __proto__ or constructor", async () => {
  const tools = ["__proto__", "constructor"].map((name) => toolThat(() => name, name));
  const calls = callsOf(["t1", "__proto__"], ["t2", "constructor"], ["t3", "toString"]);
  const { results } = await prepareTools(tools, 1000)(calls, undefined);
  expect(results.map(({ content }) => content)).toEqual([
    "__proto__",
    "constructor",
    "There is no tool 'toString'. The tools are: __proto__, constructor.",
  ]);
});

test.each([
  [{}, "the input must have required property 'a'; the input must have required property 'b'"],
  [{ a: "1", b: 2 }, "a must be number"],
  [{ a: 1, b: 2, c: 3 }, "the input must NOT have additional properties 'c'"],
  [JSON.parse('{"a":1,"b":2,"__proto__":3}'), "additional properties '__proto__'"],
  [null, "the input must be object"],
  ["a", "the input must be object"],
  [[1, 2], "the input must be object"],
])("doesn't run a tool on the input %j, and says what it takes", async (input, fault) => {
  let ran = false;
  const run = () => {
    ran = true;
    return "ran";
  };
  const tool = { ...add, run };
  const result = await resultOf(tool, input);
  expect(ran).toBe(false);
  expect(result?.is_error).toBe(true);
  expect(result?.content).toContain(fault);
  expect(result?.content).toContain("The input of 'add' doesn't fit: ");
  expect(result?.content).toContain("Its fields are: a, b.");
});

test("names the place of a fault deep in the input", async () => {
  const edits = {
    type: "array",
    items: { type: "object", properties: { line: { type: "integer" } } },
  };
  const tool = { ...toolThat(() => "ok"), input_schema: schema({ edits }) };
  const result = await resultOf(tool, { edits: [{ line: 1 }, { line: 1.5 }] });
  expect(result?.content).toContain("edits.1.line must be integer");
});

test("takes only an input's own fields for given", async () => {
  const named = { type: "string" };
  const required = {
    ...toolThat(() => "ok"),
    input_schema: schema({ constructor: named }, ["constructor"]),
  };
  expect((await resultOf(required, {}))?.is_error).toBe(true);
  expect((await resultOf(required, { constructor: "x" }))?.content).toBe("ok");
  const optional = { ...toolThat(() => "ok"), input_schema: schema({ toString: named }) };
  expect((await resultOf(optional, {}))?.content).toBe("ok");
});

test("gives a tool a copy of its input, so that the call stays as the model made it", async () => {
  const tool = defineTool<{ paths: string[] }>({
    name: "go",
    description: "Goes.",
    input_schema: schema({ paths: { type: "array", items: { type: "string" } } }),
    run: ({ paths }) => String(paths.push("/root")),
  });
  const calls = callsOf(["t1", "go", { paths: ["a"] }]);
  await prepareTools([tool], 1000)(calls, undefined);
  expect(calls[0]?.input).toEqual({ paths: ["a"] });
});

test.each([
  ["a ToolError", new ToolError("Ask for a folder"), "Ask for a folder"],
  ["a ToolError without a text", new ToolError(""), "(no output)"],
  ["an error", new RangeError("off by one"), "'go' failed: off by one. Try another way"],
  ["an error without a text", new Error(""), "'go' failed: . Try another way"],
  ["its own time-out", new DOMException("timed out", "TimeoutError"), "'go' failed: timed out."],
  ["a string", "no luck", "no luck"],
  ["nothing", undefined, "undefined"],
  ["a symbol", Symbol("x"), "Symbol(x)"],
  ["an object without a prototype", Object.create(null), "'go' failed: "],
])("makes %s that a tool throws an error for the model", async (_, thrown, content) => {
  const throws = () => {
    throw thrown;
  };
  for (const run of [throws, async () => throws()]) {
    const result = await resultOf(toolThat(run));
    expect(result).toMatchObject({ tool_use_id: "t1", is_error: true });
    expect(result?.content).toContain(content);
  }
});

test.each(["", " \n\t", undefined, () => {}, Symbol("x")])(
  "says that there is no output in place of %j",
  async (output) => {
    const result = await resultOf(toolThat(() => output));
    expect(result).toEqual({ type: "tool_result", tool_use_id: "t1", content: "(no output)" });
  },
);

test("gives an output that is no text as JSON, or an error where it has none", async () => {
  const contents = async (output: unknown) => (await resultOf(toolThat(() => output)))?.content;
  expect(await contents({ a: [1, null] })).toBe('{"a":[1,null]}');
  expect(await contents(0)).toBe("0");
  expect(await contents(null)).toBe("null");
  const circular: unknown[] = [];
  circular.push(circular);
  expect(await contents(circular)).toContain("'go' failed: ");
  expect(await contents(BigInt(1))).toContain("'go' failed: ");
});

test("cuts an output that is too long, and says how much is missing", async () => {
  const note = "\n[truncated: 81 more characters; ask for less at a time]";
  const tool = toolThat(() => "x".repeat(101));
  const cut = (await resultOf(tool, {}, 100))?.content;
  expect(cut).toBe("x".repeat(20) + note);
  expect((await resultOf(tool, {}, 101))?.content).toBe("x".repeat(101));
  // Handed out again, as by a recording, it's cut no further.
  expect(
    (
      await resultOf(
        toolThat(() => cut),
        {},
        100,
      )
    )?.content,
  ).toBe(cut);
});

test("cuts an error that is too long", async () => {
  const tool = toolThat(() => {
    throw new ToolError("x".repeat(5000));
  });
  const result = await resultOf(tool, {}, 100);
  expect(result?.is_error).toBe(true);
  expect(result?.content).toMatch(/^x{20}\n\[truncated: 4980 more/);
});

test("never gives half a character", async () => {
  const tool = toolThat(() => `x${"😀".repeat(100)}`);
  expect((await resultOf(tool, {}, 100))?.content).toMatch(/^x(😀){9}\ufffd\n\[truncated/u);
  expect((await resultOf(toolThat(() => "a\udc00b\ud83d")))?.content).toBe("a\ufffdb\ufffd");
  expect((await resultOf(toolThat(() => "😀")))?.content).toBe("😀");
});

test("gives a tool the run's signal, the call's id, and a path of its own", async () => {
  const { signal } = new AbortController();
  const seen: unknown[] = [];
  const tool: Tool = {
    ...toolThat(() => ""),
    run: (_, context) => {
      seen.push(currentPath(), context);
      return "ok";
    },
  };
  const calls = callsOf(["t1", "go"], ["t2", "go"]);
  await step("agent", () => prepareTools([tool], 1000)(calls, signal));
  expect(seen).toEqual([
    "agent/tool[0]",
    { callId: "t1", signal },
    "agent/tool[1]",
    { callId: "t2", signal },
  ]);
});

test("rejects with the signal's reason once every call has ended", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const slow = held();
  const tools = [
    toolThat(() => {
      controller.abort(reason);
      throw new Error("disturbed");
    }),
    toolThat(() => slow.reply(), "slow"),
  ];
  const calls = callsOf(["t1", "slow"], ["t2", "go"]);
  const running = rejection(prepareTools(tools, 1000)(calls, controller.signal));
  await slow.started;
  await setImmediate();
  slow.answer("late");
  expect(await running).toBe(reason);
  expect(slow.state()).toBe("ended");
});

test("starts nothing under a signal that has fired", async () => {
  let ran = false;
  const tool = toolThat(() => {
    ran = true;
  });
  const signal = AbortSignal.abort("no more");
  expect(await rejection(prepareTools([tool], 1000)(callsOf(["t1", "go"]), signal))).toBe(
    "no more",
  );
  expect(ran).toBe(false);
});

test("passes on a call to a model that was not made", async () => {
  const error = new HaltError("No call");
  const tool = toolThat(() => {
    throw error;
  });
  const calls = callsOf(["t1", "add", { a: 1, b: 2 }], ["t2", "go"]);
  expect(await rejection(prepareTools([add, tool], 1000)(calls, undefined))).toBe(error);
});

test("gives the end of a budget beside the results, and tells it as the call's own", async () => {
  const error = new BudgetError("No money");
  const tool = toolThat(() => {
    throw error;
  });
  const calls = callsOf(["t1", "add", { a: 1, b: 2 }], ["t2", "go"], ["t3", "go"]);
  const { results, budget } = await prepareTools([add, tool], 1000)(calls, undefined);
  expect(budget).toBe(error);
  const content = "'go' failed: No money. Try another way, or go on without it.";
  expect(results).toMatchObject([
    { tool_use_id: "t1", content: "3" },
    { tool_use_id: "t2", content, is_error: true },
    { tool_use_id: "t3", content, is_error: true },
  ]);
});

test("a call that waits has no result; the others keep theirs, and aren't run again", async () => {
  let runs = 0;
  const waits = toolThat(() => {
    throw new SuspendError("Waits");
  }, "waits");
  const counts = toolThat(() => String(++runs));
  const calls = callsOf(["t1", "go"], ["t2", "waits"], ["t3", "go"], ["t4", "no"]);
  const runTools = prepareTools([counts, waits], 1000);
  const { results } = await runTools(calls, undefined);
  expect(results.map(({ tool_use_id }) => tool_use_id)).toEqual(["t1", "t3", "t4"]);
  const answered = prepareTools([counts, toolThat(() => "now", "waits")], 1000);
  const { results: all } = await answered(calls, undefined, results);
  expect(all.map(({ content }) => content)).toEqual(["1", "now", "2", results[2]?.content]);
  expect(runs).toBe(2);
});

test("runs nothing when two calls have the same id", async () => {
  let ran = false;
  const tool = toolThat(() => {
    ran = true;
  });
  const calls = callsOf(["t1", "go"], ["t1", "go"]);
  const error = await rejection(prepareTools([tool], 1000)(calls, undefined));
  expect(error).toBeInstanceOf(LlmOutputError);
  expect(error).toMatchObject({ message: expect.stringContaining("the same id") });
  expect(ran).toBe(false);
});

test.each(["", "a b", "a.b", "ä", "add\n", "x".repeat(65), undefined])(
  "refuses the name %j",
  (name) => {
    const tool = { ...add, name: name as string };
    expect(() => prepareTools([tool], 1000)).toThrow(TypeError);
    expect(() => prepareTools([tool], 1000)).toThrow("A tool's name must match");
  },
);

test("takes names of 1 to 64 letters, digits, _ and -", () => {
  const names = ["a", "x".repeat(64), "read-file_2"];
  expect(() =>
    prepareTools(
      names.map((name) => ({ ...add, name })),
      1000,
    ),
  ).not.toThrow();
});

test("refuses two tools of one name", () => {
  expect(() => prepareTools([add, { ...add }], 1000)).toThrow(
    new TypeError('Tools need names of their own, got two "add"'),
  );
});

test("takes what schemas are made with: a dialect, unions, formats", async () => {
  const at = { type: ["string", "null"], format: "date-time" };
  const $schema = "https://json-schema.org/draft/2020-12/schema";
  const tool = {
    ...toolThat(() => "ok"),
    input_schema: { ...schema(), $schema, properties: { at } },
  };
  expect(await resultOf(tool, { at: null })).toMatchObject({ content: "ok" });
  // A format is a note, by the standard.
  expect(await resultOf(tool, { at: "soon" })).toMatchObject({ content: "ok" });
  expect(await resultOf(tool, { at: 1 })).toMatchObject({
    is_error: true,
    content: "The input of 'go' doesn't fit: at must be string,null. Its fields are: at.",
  });
});

test("names the values that a field may have", async () => {
  const properties = { unit: { enum: ["C", "F"] }, kind: { const: 1 } };
  const tool = { ...toolThat(() => "ok"), input_schema: { ...schema(), properties } };
  expect(await resultOf(tool, { unit: "K", kind: 2 })).toMatchObject({
    content: expect.stringMatching(
      /unit must be equal to one of the allowed values: "C","F"; kind must be equal to constant: 1\./,
    ),
  });
});

test("holds each input to its own schema, of the same $id or changed meanwhile", async () => {
  const named = (type: string, inner: string) => ({
    ...schema({ a: { type }, b: { $ref: "#/$defs/b" } }),
    $id: "one",
    $defs: { b: { $id: "two", type: inner } },
  });
  const input_schema = named("number", "string");
  const tool = { ...toolThat(() => "ok"), input_schema };
  const other = { ...tool, input_schema: named("string", "number") };
  expect(await resultOf(tool, { a: 1, b: "2" })).toMatchObject({ content: "ok" });
  expect(await resultOf(other, { a: "1", b: 2 })).toMatchObject({ content: "ok" });
  expect(await resultOf(other, { a: 1 })).toMatchObject({ is_error: true });
  Object.assign(input_schema.properties, { a: { type: "boolean" } });
  expect(await resultOf(tool, { a: 1 })).toMatchObject({ is_error: true });
  expect(await resultOf(tool, { a: true })).toMatchObject({ content: "ok" });
});

test.each([
  ["an unknown type", { ...schema(), properties: { a: { type: "text" } } }],
  ["a misspelt keyword", { ...schema(), propertys: {} }],
  ["no object", { type: "array", items: { type: "string" } }],
  ["no type", {}],
  ["an answer to come", { ...schema(), $async: true }],
])("refuses a schema that has %s", (_, input_schema) => {
  // What plain JavaScript can hand over.
  const tool = { ...add, input_schema: input_schema as unknown as InputSchema };
  expect(() => prepareTools([tool], 1000)).toThrow(
    expect.objectContaining({
      name: "TypeError",
      message: 'The input_schema of tool "add" is no valid JSON Schema',
      cause: expect.any(Error),
    }),
  );
});

test("gives the API a tool's definition and nothing else of it", () => {
  const { run: _, ...definition } = add;
  expect(definitionsOf([{ ...add, confirm: true } as Tool])).toEqual([definition]);
  expect(
    definitionsOf([
      { ...add, strict: true },
      { ...add, strict: undefined },
    ]),
  ).toEqual([{ ...definition, strict: true }, definition]);
  expect(definitionsOf([{ ...add, strict: undefined }])[0]).not.toHaveProperty("strict");
});

test("refuses a forced tool while thinking is on, and nothing else", () => {
  const any = { type: "any" } as const;
  const one = { type: "tool", name: "add" } as const;
  const enabled = { type: "enabled", budget_tokens: 1024 } as const;
  for (const tool_choice of [any, one]) {
    for (const thinking of [enabled, { type: "adaptive" } as const]) {
      expect(() => checkToolChoice({ tool_choice, thinking })).toThrow(TypeError);
    }
    checkToolChoice({ tool_choice });
    checkToolChoice({ tool_choice, thinking: { type: "disabled" } });
  }
  checkToolChoice({ tool_choice: { type: "auto" }, thinking: enabled });
  checkToolChoice({ tool_choice: { type: "none" }, thinking: enabled });
  checkToolChoice({ thinking: enabled });
});

test("types a tool's run by its input", () => {
  defineTool<{ a: number }>({
    name: "half",
    description: "Halves a number.",
    input_schema: schema({ a: { type: "number" } }, ["a"]),
    run: (input) => {
      expectTypeOf(input).toEqualTypeOf<{ a: number }>();
      return String(input.a / 2);
    },
  });
  expectTypeOf(add).toEqualTypeOf<Tool>();
  // @ts-expect-error A result is a text.
  const _bad: Tool = { ...add, run: () => 3 };
});
