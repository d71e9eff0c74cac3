/**
 * The approval gate: what is asked, what runs, what the model is told, and how a terminal is asked.
 *
 * From effective-agents 0.1.0: test/approve.test.ts
 */
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { expect, expectTypeOf, test, vi } from "vitest";
import { runAgent } from "../patterns/agent.ts";
import {
  type ApprovalOptions,
  type ApprovalRequest,
  type Approve,
  type Ask,
  createApproval,
  isYes,
} from "../patterns/approve.ts";
import { askOnTerminal, type TerminalInput } from "../patterns/ask-terminal.ts";
import { BudgetError, RecordingError, SuspendError } from "../patterns/errors.ts";
import { observe } from "../patterns/step.ts";
import { type Tool, type ToolContext, ToolError } from "../patterns/tool.ts";
import { Kept } from "./shared/kept.ts";
import { held, withResolvers } from "./shared/scripted.ts";
import { rejection, reply, startServer } from "./shared/server.ts";
import { strictApi, turn, use } from "./shared/strict-api.ts";

interface Payment {
  to: string;
  cents: number;
}

const PAY: Omit<Tool<Payment>, "run"> = {
  name: "pay",
  description: "Pays somebody.",
  input_schema: {
    type: "object",
    properties: { to: { type: "string" }, cents: { type: "integer" } },
    required: ["to", "cents"],
    additionalProperties: false,
  },
};

const ADA = { to: "Ada", cents: 950 };
const context = (callId: string, signal?: AbortSignal): ToolContext => ({ callId, signal });

/** A tool that pays, behind a gate that asks like that, and what was asked and paid. */
function gate(ask: Ask | string | undefined, options: Partial<ApprovalOptions> = {}) {
  const asked: ApprovalRequest[] = [];
  const paid: Payment[] = [];
  const approve = createApproval({
    ask: (request, context) => {
      asked.push(request);
      return typeof ask === "function" ? ask(request, context) : ask;
    },
    ...options,
  });
  const run = (payment: Payment) => {
    paid.push(payment);
    return `Paid ${payment.cents} to ${payment.to}.`;
  };
  const preview = ({ to, cents }: Payment) => {
    if (cents > 10_000) throw new ToolError(`At most 10000, got ${cents}. Pay less.`);
    return `Pays ${cents} cents to ${to}. It can't be undone.`;
  };
  return { approve, asked, paid, preview, pay: approve({ ...PAY, run }, { preview }) };
}

const refusal = async (result: unknown): Promise<string> => {
  const error = await rejection(Promise.resolve(result));
  expect(error).toBeInstanceOf(ToolError);
  return error instanceof Error ? error.message : "";
};

const CALL = 'pay({ "to": "Ada", "cents": 950 })';
const GO_ON =
  "Don't call it again unless you are told to: go on without it, and say in your answer that it was not done, and why.";

// What is asked

test("shows what can't be seen, so that nothing passes for something else", async () => {
  const { asked, pay } = gate("no");
  for (const [index, hidden] of [
    "\u200d",
    "\u200c",
    "\u3164",
    "\u2800",
    "\u034f",
    "\ufe0f",
  ].entries()) {
    await refusal(pay.run({ to: `A${hidden}da`, cents: 1 }, context(`c${index}`)));
    const code = hidden.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
    expect(asked.at(-1)?.effect).toBe(`Pays 1 cents to A<U+${code}>da. It can't be undone.`);
    expect(asked.at(-1)?.call).toContain(`A<U+${code}>da`);
  }
});

test.for([true, 1, {}, Object.create(null), ["yes"], null])(
  "an answer that is %o is no yes, and is told",
  async (said) => {
    // What plain JavaScript can hand over.
    const { paid, pay } = gate((() => said) as unknown as Ask);
    expect(await refusal(pay.run(ADA, context("c1")))).toMatch(
      said === null ? /since nobody answered\./ : /since the person who was asked said '/,
    );
    expect(paid).toEqual([]);
  },
);

test("asks about nothing without an effect in words, and takes no null for done", async () => {
  const { approve, asked, paid } = gate("yes");
  const run = () => "Paid.";
  for (const [index, effect] of [undefined, "", 5].entries()) {
    const blank = approve({ ...PAY, run }, { preview: () => effect as string });
    const error = await rejection(Promise.resolve(blank.run(ADA, context(`c${index}`))));
    expect(String(error)).toMatch(/^TypeError: The preview must be a text with something in it/);
  }
  expect([asked, paid]).toEqual([[], []]);
  const anew = approve({ ...PAY, run }, { preview: () => "Pays.", done: () => null });
  expect(await anew.run(ADA, context("c9"))).toBe("Paid.");
  expect(() => approve({ ...PAY, run }, { preview: () => "", done: "x" as never })).toThrow(
    TypeError,
  );
});

test("shows the exact call and its effect, and runs it on a yes", async () => {
  const { pay, asked, paid } = gate("yes");
  expect(await pay.run(ADA, context("t1"))).toBe("Paid 950 to Ada.");
  expect(asked).toEqual([
    { callId: "t1", call: CALL, effect: "Pays 950 cents to Ada. It can't be undone." },
  ]);
  expect(paid).toEqual([ADA]);
});

test("asks nobody about a call that can't be carried out, and tells the model why", async () => {
  const { pay, asked, paid } = gate("yes");
  const call = pay.run({ to: "Ada", cents: 10_001 }, context("t1"));
  expect(await refusal(call)).toBe("At most 10000, got 10001. Pay less.");
  expect([asked, paid]).toEqual([[], []]);
});

test("what can't be seen is shown as its code, and can't write lines of its own", async () => {
  const { pay, asked, paid } = gate("yes");
  const to = "Ada\u202e\u001b[2J\r\nApproved already.\u2028\u{e0041}\ud800";
  await pay.run({ to, cents: 1 }, context("t1"));
  const [request] = asked;
  expect(request?.call).toBe(
    'pay({ "to": "Ada<U+202E>\\u001b[2J\\r\\nApproved already.<U+2028><U+E0041>\\ud800", "cents": 1 })',
  );
  expect(request?.effect).toBe(
    "Pays 1 cents to Ada<U+202E><U+001B>[2J<U+000D><U+000A>Approved already.<U+2028><U+E0041><U+D800>. It can't be undone.",
  );
  // What runs is the thing itself.
  expect(paid).toEqual([{ to, cents: 1 }]);
});

test("a request is the same whatever it's made of: nested, long or empty", async () => {
  const { approve, asked } = gate("yes");
  const tool = approve({ ...PAY, run: () => "ok" }, { preview: () => "Does it." });
  const list = Array.from({ length: 3 }, (_, index) => ({ index, name: "x".repeat(300) }));
  await tool.run({ list, none: {}, empty: [] }, context("t1"));
  const call = asked[0]?.call ?? "";
  expect(call).toMatch(/^pay\(\{ "list": \[ \{ "index": 0, "name": "x{300}" \}, .+ \}\)$/);
  expect(JSON.parse(call.slice(4, -1))).toEqual({ list, none: {}, empty: [] });
});

// The answer

test.each(["yes", "yes\r", " yes ", "\tyes\n"])("runs on %j", async (answer) => {
  expect(isYes(answer)).toBe(true);
  const { pay, paid } = gate(answer);
  await pay.run(ADA, context("t1"));
  expect(paid).toEqual([ADA]);
});

test.each(
  [
    ["yesterday", "yues", "Yikes no", "y", "y\r", " y ", "YES", "Yes", "yes!", "yes.", '"yes"'],
    [
      "ja",
      "o",
      "ok",
      "true",
      "1",
      "yes yes",
      "yes\nno",
      "\ufeffyes",
      "yes\u00a0",
      "y\u0435s",
      "ye\u200bs",
      "no",
      "--yes",
    ],
  ].flat(),
)("declines on %j, and the model hears it", async (answer) => {
  expect(isYes(answer)).toBe(false);
  const { pay, paid } = gate(answer);
  const message = await refusal(pay.run(ADA, context("t1")));
  expect(message).toContain(`Declined: ${CALL} was not run, since the person who was asked said '`);
  expect(message).toContain(GO_ON);
  expect(paid).toEqual([]);
});

test.each([undefined, "", " \n", "\r"])("declines when nobody answers (%j)", async (answer) => {
  const { pay, paid } = gate(answer);
  expect(await refusal(pay.run(ADA, context("t1")))).toBe(
    `Declined: ${CALL} was not run, since nobody answered. ${GO_ON}`,
  );
  expect(paid).toEqual([]);
});

test.each([true, 1, ["yes"], { answer: "yes" }, null])(
  "declines on %j, which is no text",
  async (answer) => {
    // What plain JavaScript can give.
    const { pay, paid } = gate(() => answer as unknown as string);
    expect(await refusal(pay.run(ADA, context("t1")))).toContain("Declined: ");
    expect(paid).toEqual([]);
  },
);

test("a reason that comes with a no reaches the model, with nothing unseen in it", async () => {
  const { pay } = gate("no, ask \u202eBob first\u001b[31m");
  expect(await refusal(pay.run(ADA, context("t1")))).toContain(
    "said 'no, ask <U+202E>Bob first<U+001B>[31m'.",
  );
});

test.each([
  ["throws", () => Promise.reject(new Error("pipe broken"))],
  [
    "throws at once",
    () => {
      throw new Error("pipe broken");
    },
  ],
])("declines when asking %s", async (_, ask) => {
  const { pay, paid } = gate(ask);
  expect(await refusal(pay.run(ADA, context("t1")))).toBe(
    `Declined: ${CALL} was not run, since nobody could be asked (pipe broken). ${GO_ON}`,
  );
  expect(paid).toEqual([]);
});

test("declines when the time is up, tells whoever asks, and heeds no later yes", async () => {
  const late = withResolvers<string>();
  let reason: unknown;
  const ask: Ask = (_, { signal }) => {
    signal.addEventListener("abort", () => {
      reason = signal.reason;
    });
    return late.promise;
  };
  const { pay, paid } = gate(ask, { timeoutMs: 1 });
  expect(await refusal(pay.run(ADA, context("t1")))).toBe(
    `Declined: ${CALL} was not run, since nobody answered within 0.001 s. ${GO_ON}`,
  );
  late.resolve("yes");
  await setImmediate();
  expect([String(reason), paid]).toEqual(["Error: nobody answered within 0.001 s", []]);
});

test("waits ten minutes by default, with a timer that keeps the process alive", async () => {
  const timer = vi.spyOn(globalThis, "setTimeout");
  const { pay } = gate("yes");
  await pay.run(ADA, context("t1"));
  const calls = timer.mock.calls.map(([, ms]) => ms);
  timer.mockRestore();
  expect(calls).toEqual([600_000]);
});

// What runs

test("runs what was shown, whatever becomes of the input afterwards", async () => {
  const answer = held();
  const { pay, asked, paid } = gate(() => answer.reply());
  const input = { to: "Ada", cents: 10 };
  const running = pay.run(input, context("t1"));
  // Before anybody is asked, and after.
  input.cents = 1_000;
  await answer.started;
  input.to = "Eve";
  answer.answer("yes");
  expect(await running).toBe("Paid 10 to Ada.");
  expect(asked[0]?.call).toBe('pay({ "to": "Ada", "cents": 10 })');
  expect(paid).toEqual([{ to: "Ada", cents: 10 }]);
});

test("neither a preview, nor whoever asks, nor the tool itself can change it", async () => {
  const tries: unknown[] = [];
  const change = (target: object, key: string) => {
    tries.push(Reflect.set(target, key, "Eve"), Reflect.defineProperty(target, key, { value: 2 }));
  };
  const approve = createApproval({
    ask: (request) => {
      change(request, "call");
      return "yes";
    },
  });
  const deep = { who: { name: "Ada" }, list: [1] };
  const tool = approve(
    {
      ...PAY,
      run: (input: typeof deep) => {
        change(input.who, "name");
        change(input.list, "0");
        return JSON.stringify(input);
      },
    },
    {
      preview: (input) => {
        change(input, "who");
        change(input.who, "name");
        return "Does it.";
      },
    },
  );
  expect(await tool.run(deep, context("t1"))).toBe(JSON.stringify(deep));
  expect(new Set(tries)).toEqual(new Set([false]));
});

test("what JSON doesn't show doesn't run either", async () => {
  const { approve, asked } = gate("yes");
  let ran: unknown;
  const run = (input: unknown) => {
    ran = input;
    return "ok";
  };
  const tool = approve({ ...PAY, run }, { preview: () => "Does it." });
  const sly = { to: "Ada", toJSON: undefined, extra: new Map([["cents", 1]]), none: undefined };
  await tool.run(sly, context("t1"));
  expect(asked[0]?.call).toBe('pay({ "to": "Ada", "extra": {} })');
  expect(ran).toEqual({ to: "Ada", extra: {} });
});

test("a yes to an effect that can't be looked at again runs nothing, and the model is told so", async () => {
  let looks = 0;
  const { approve, paid } = gate("yes");
  const run = (payment: Payment) => String(paid.push(payment));
  const preview = () => {
    looks += 1;
    if (looks === 2) throw new Error("the bank is away");
    return "Pays it.";
  };
  const tool = approve({ ...PAY, run }, { preview });
  expect(await refusal(tool.run(ADA, context("t1")))).toBe(
    `${CALL} was approved but not run, since its effect could not be looked at again: the bank is away. Don't call it again unless you are told to: go on without it, and say in your answer that it was not done, and why.`,
  );
  expect(paid).toEqual([]);
});

test("a yes to an effect that is another by then runs nothing, and the model may ask anew", async () => {
  let balance = 5;
  const { approve, paid } = gate(() => {
    balance -= 1;
    return "yes";
  });
  const run = (payment: Payment) => String(paid.push(payment));
  const preview = () => `Leaves ${balance} in the account.`;
  const tool = approve({ ...PAY, run }, { preview });
  expect(await refusal(tool.run(ADA, context("t1")))).toBe(
    `${CALL} was approved but not run, since meanwhile its effect is another. It was: Leaves 5 in the account. It is now: Leaves 4 in the account. Call it again if it is still right, and it will be asked for anew.`,
  );
  expect(paid).toEqual([]);
});

test("a yes to what can't be done any more runs nothing", async () => {
  let isOpen = true;
  const { approve, paid } = gate(() => {
    isOpen = false;
    return "yes";
  });
  const run = (payment: Payment) => String(paid.push(payment));
  const preview = () => {
    if (isOpen) return "Pays.";
    throw new ToolError("The account is closed.");
  };
  const tool = approve({ ...PAY, run }, { preview });
  expect(await refusal(tool.run(ADA, context("t1")))).toBe("The account is closed.");
  expect(paid).toEqual([]);
});

test("a failure after the yes says so, and says not to try again", async () => {
  const { approve } = gate("yes");
  const full = new Error("ENOSPC: no space left on device");
  const run = () => Promise.reject(full);
  const tool = approve({ ...PAY, run }, { preview: () => "Pays." });
  const error = await rejection(Promise.resolve(tool.run(ADA, context("t1"))));
  expect(error).toMatchObject({
    name: "ToolError",
    cause: full,
    message: `${CALL} was approved and then failed: ENOSPC: no space left on device. Whether it took effect isn't known. Don't call it again, with whatever input: go on without it, and say in your answer that a person must look whether it was done.`,
  });
});

test.each([new SuspendError("Waits"), new BudgetError("No money")])(
  "doesn't have a call run again that was approved and met its own %s",
  async (error) => {
    const { approve } = gate("yes");
    const tool = approve({ ...PAY, run: () => Promise.reject(error) }, { preview: () => "Pays." });
    const told = await rejection(Promise.resolve(tool.run(ADA, context("t1"))));
    expect(told).toMatchObject({ name: "ToolError", cause: error });
    expect(told).toHaveProperty("message", expect.stringContaining("Don't call it again"));
  },
);

test.each([new ToolError("Ada has moved."), new RecordingError("No call")])(
  "passes on the tool's own %s",
  async (error) => {
    const { approve } = gate("yes");
    const run = () => Promise.reject(error);
    const tool = approve({ ...PAY, run }, { preview: () => "Pays." });
    expect(await rejection(Promise.resolve(tool.run(ADA, context("t1"))))).toBe(error);
  },
);

// Once

test("the first answer to a call decides it; later submissions are told so", async () => {
  const answers = ["yes", "yes", "no"];
  const { pay, asked, paid } = gate(() => answers.shift());
  const first = pay.run(ADA, context("t1"));
  const told = [
    await refusal(pay.run(ADA, context("t1"))),
    (await first) && (await refusal(pay.run({ to: "Eve", cents: 1 }, context("t1")))),
  ];
  expect(new Set(told)).toEqual(
    new Set([
      "The call t1 is decided already, and is decided once: see its other result. For something else, make a call of its own.",
    ]),
  );
  expect([asked.length, paid]).toEqual([1, [ADA]]);
});

test("twenty submissions at once are one question and one payment, whatever the answers", async () => {
  const { pay, asked, paid } = gate("yes");
  const all = await Promise.allSettled(
    Array.from({ length: 20 }, async () => pay.run(ADA, context("t1"))),
  );
  expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect([asked.length, paid]).toEqual([1, [ADA]]);
});

test("a call that was declined stays declined", async () => {
  const answers = ["no", "yes"];
  const { pay, paid } = gate(() => answers.shift());
  await refusal(pay.run(ADA, context("t1")));
  expect(await refusal(pay.run(ADA, context("t1")))).toContain("is decided already");
  expect([answers, paid]).toEqual([["yes"], []]);
});

test("a call that nobody decided may come again: invalid, broken off or suspended", async () => {
  const controller = new AbortController();
  const answers = [
    () => Promise.reject(new SuspendError("Later")),
    () => {
      controller.abort("enough");
      return new Promise<string>(() => {});
    },
    () => "yes",
  ];
  const { pay, paid } = gate(() => answers.shift()?.());
  await refusal(pay.run({ to: "Ada", cents: 99_999 }, context("t1")));
  const suspended = await rejection(Promise.resolve(pay.run(ADA, context("t1"))));
  expect(suspended).toBeInstanceOf(SuspendError);
  const { signal } = controller;
  expect(await rejection(Promise.resolve(pay.run(ADA, context("t1", signal))))).toBe("enough");
  expect(await pay.run(ADA, context("t1"))).toBe("Paid 950 to Ada.");
  expect(paid).toEqual([ADA]);
});

test("what an earlier process ran isn't asked for again, and its result is given again", async () => {
  const { approve, asked, paid, preview } = gate("yes");
  const run = (payment: Payment) => String(paid.push(payment));
  const done = (callId: string) => (callId === "t1" ? "Paid before." : undefined);
  const tool = approve({ ...PAY, run }, { preview, done });
  expect(await tool.run(ADA, context("t1"))).toBe("Paid before.");
  expect([asked, paid]).toEqual([[], []]);
  await tool.run(ADA, context("t2"));
  expect([asked.length, paid]).toEqual([1, [ADA]]);
});

test.each([undefined, "", 7])("without a call's id (%j) nothing runs", async (callId) => {
  const { pay, asked } = gate("yes");
  // As by a loop of somebody's own, in plain JavaScript.
  const odd = { callId, signal: undefined } as unknown as ToolContext;
  expect(await rejection(Promise.resolve(pay.run(ADA, odd)))).toBeInstanceOf(TypeError);
  expect(asked).toEqual([]);
});

// In turn

test("two calls, of two tools, are asked one after the other; each sees what the one before did", async () => {
  const answers = [held(), held()];
  const queue = [...answers];
  let balance = 1_000;
  const { approve, asked } = gate(() => queue.shift()?.reply());
  const preview = ({ cents }: Payment) => {
    if (cents > balance) throw new ToolError(`Only ${balance} are left.`);
    return `Leaves ${balance - cents}.`;
  };
  const run = ({ cents }: Payment) => {
    balance -= cents;
    return `${balance} left`;
  };
  const [first, second] = ["first", "second"].map((name) =>
    approve({ ...PAY, name, run }, { preview }),
  );
  const results = [
    first?.run({ to: "Ada", cents: 600 }, context("t1")),
    second?.run({ to: "Bob", cents: 300 }, context("t2")),
    first?.run({ to: "Eve", cents: 600 }, context("t3")),
  ];
  const settled = Promise.allSettled(results);
  await answers[0]?.started;
  await setImmediate();
  expect(asked.map(({ callId }) => callId)).toEqual(["t1"]);
  answers[0]?.answer("yes");
  await answers[1]?.started;
  answers[1]?.answer("yes");
  expect(await settled).toMatchObject([
    { value: "400 left" },
    { value: "100 left" },
    { reason: { message: "Only 100 are left." } },
  ]);
  expect(asked.map(({ effect }) => effect)).toEqual(["Leaves 400.", "Leaves 100."]);
});

test("when the run is cancelled, nothing that waits is asked or run", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const answer = held();
  const { pay, asked, paid } = gate((_, context) => answer.reply("", context));
  const both = ["t1", "t2"].map(async (id) => pay.run(ADA, context(id, signal)));
  await answer.started;
  controller.abort("enough");
  expect(await Promise.allSettled(both)).toEqual([
    { status: "rejected", reason: "enough" },
    { status: "rejected", reason: "enough" },
  ]);
  expect([asked.length, paid]).toEqual([1, []]);
});

test("a run that is cancelled after the yes, and before the tool runs, pays nothing", async () => {
  const controller = new AbortController();
  const { approve, paid } = gate("yes");
  let previews = 0;
  const preview = () => {
    previews += 1;
    if (previews === 2) controller.abort("enough");
    return "Pays.";
  };
  const run = (payment: Payment) => String(paid.push(payment));
  const tool = approve({ ...PAY, run }, { preview });
  const call = tool.run(ADA, context("t1", controller.signal));
  expect(await rejection(Promise.resolve(call))).toBe("enough");
  expect([previews, paid]).toEqual([2, []]);
});

// In an agent's loop

test("an error in one question and no answer to the other: both declined, in one message", async () => {
  let questions = 0;
  const ask: Ask = () => {
    questions += 1;
    if (questions === 1) throw new Error("pipe broken");
    return new Promise(() => {});
  };
  const { pay, paid } = gate(ask, { timeoutMs: 1 });
  const calls = [use("t1", "pay", ADA), use("t2", "pay", { to: "Bob", cents: 5 })];
  const api = strictApi([turn("tool_use", ...calls), turn("end_turn", "Neither was paid.")]);
  const result = await runAgent("Pay both", { tools: [pay], llm: api.llm });
  expect(result).toMatchObject({ status: "answered" });
  expect(JSON.parse(api.sent[1] ?? "").messages.at(-1)).toEqual({
    role: "user",
    content: [
      ["t1", CALL, "nobody could be asked (pipe broken)"],
      ["t2", 'pay({ "to": "Bob", "cents": 5 })', "nobody answered within 0.001 s"],
    ].map(([tool_use_id, call, why]) => ({
      type: "tool_result",
      tool_use_id,
      content: `Declined: ${call} was not run, since ${why}. ${GO_ON}`,
      is_error: true,
    })),
  });
  expect(paid).toEqual([]);
});

test("the question is a step of the call, so that whoever watches sees it and its answer", async () => {
  const { pay } = gate("yes");
  const script = [turn("tool_use", use("t1", "pay", ADA)), turn("end_turn", "Paid.")];
  const ended: unknown[] = [];
  await observe(
    (event) => {
      if (event.type === "end" && event.path.includes("tool"))
        ended.push([event.path, event.value]);
    },
    () => runAgent("Pay", { tools: [pay], llm: strictApi(script).llm }),
  );
  expect(ended).toEqual([
    ["agent/turn[0]/tool[0]/ask", "yes"],
    ["agent/turn[0]/tool[0]", "Paid 950 to Ada."],
  ]);
});

test("asking can suspend the run; a later process goes on from it with the answer", async () => {
  const BOB = { to: "Bob", cents: 5 };
  const script = [
    turn(
      "tool_use",
      use("t1", "pay", ADA),
      use("t2", "pay", BOB),
      use("t3", "pay", { ...ADA, cents: 1e6 }),
    ),
    turn("end_turn", "Ada is paid."),
  ];
  const api = strictApi(script);
  const suspend: Ask = () => {
    throw new SuspendError("Waits for a person");
  };
  const first = gate(suspend);
  const before = await runAgent("Pay", { tools: [first.pay], llm: api.llm });
  expect(before).toMatchObject({ status: "suspended", results: [{ tool_use_id: "t3" }] });

  const saved = JSON.parse(JSON.stringify(before));
  const later = gate(({ callId }) => (callId === "t1" ? "yes" : "no"));
  const after = await runAgent(saved, { tools: [later.pay], llm: api.llm });
  expect(after).toMatchObject({ status: "answered", answer: "Ada is paid.", turns: 2 });
  expect(later.asked).toEqual(first.asked);
  expect([first.paid, later.paid]).toEqual([[], [ADA]]);
  expect(JSON.parse(api.sent[1] ?? "").messages.at(-1).content).toMatchObject([
    { tool_use_id: "t1", content: "Paid 950 to Ada." },
    { tool_use_id: "t2", content: expect.stringContaining("said 'no'"), is_error: true },
    { tool_use_id: "t3", content: expect.stringContaining("At most 10000"), is_error: true },
  ]);
  expect(api.refusals).toEqual([]);
});

test("works in the SDK's tool runner too, which hands over the call's id in its own way", async () => {
  const { pay, paid, asked } = gate(({ callId }) => (callId === "t1" ? "yes" : "no"));
  const calls = [use("t1", "pay", ADA), use("t2", "pay", { to: "Bob", cents: 5 })];
  const blocks = calls.map((call) => ({ ...call, type: "tool_use" }));
  const server = await startServer(
    reply(blocks, { stop_reason: "tool_use" }),
    reply("Ada is paid."),
  );
  const tool = betaTool({
    name: pay.name,
    description: pay.description,
    inputSchema: { ...pay.input_schema, properties: {} },
    run: (input, context) =>
      pay.run(input, {
        callId: context?.toolUse.id ?? "",
        signal: context?.signal ?? undefined,
      }),
  });
  const message = await server.client().beta.messages.toolRunner({
    model: "claude-sonnet-5-5",
    max_tokens: 100,
    messages: [{ role: "user", content: "Pay both" }],
    tools: [tool],
    thread: false,
  });
  expect(message.content).toMatchObject([{ text: "Ada is paid." }]);
  expect([asked.length, paid]).toEqual([2, [ADA]]);
  expect(server.requests[1]?.body.messages.at(-1)?.content).toMatchObject([
    { tool_use_id: "t1", content: "Paid 950 to Ada." },
    { tool_use_id: "t2", is_error: true, content: expect.stringContaining("Declined: pay(") },
  ]);
});

// What it refuses

test.each([
  [{ ask: undefined }, TypeError],
  [{ ask: "yes" }, TypeError],
  [{ timeoutMs: 0 }, RangeError],
  [{ timeoutMs: Number.NaN }, RangeError],
  [{ timeoutMs: Infinity }, RangeError],
  [{ timeoutMs: 2 ** 31 }, RangeError],
] as const)("refuses the options %j", (options, kind) => {
  // What plain JavaScript can hand over.
  const given = { ask: () => "yes", ...options } as unknown as ApprovalOptions;
  expect(() => createApproval(given)).toThrow(kind);
});

test("refuses a tool that nobody can preview, and hands on all else of it", () => {
  const { approve, pay } = gate("yes");
  const bare = { preview: undefined } as unknown as Parameters<Approve>[1];
  expect(() => approve({ ...PAY, run: () => "" }, bare)).toThrow(TypeError);
  const strict = approve({ ...PAY, strict: true, run: () => "" }, { preview: () => "" });
  expect({ ...strict, run: undefined }).toEqual({ ...PAY, strict: true, run: undefined });
  expectTypeOf(pay).toEqualTypeOf<Tool>();
});

test("types the preview by the tool's input", () => {
  const approve = createApproval({ ask: () => "no" });
  approve<Payment>(
    { ...PAY, run: ({ cents }) => String(cents) },
    {
      preview: (payment, context) => {
        expectTypeOf(payment).toEqualTypeOf<Payment>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return payment.to;
      },
    },
  );
  // A tool that was defined elsewhere: its input is what the preview says.
  const defined: Tool = { ...PAY, run: () => "" };
  expectTypeOf(approve(defined, { preview: ({ to }: Payment) => to })).toEqualTypeOf<Tool>();
  // @ts-expect-error There is no way around the question.
  createApproval({ ask: () => "no", yes: true });
  // @ts-expect-error A yes is a word, not a value.
  createApproval({ ask: () => true });
});

// On a terminal

const REQUEST = { callId: "t1", call: CALL, effect: "Pays 950 cents to Ada." };

/** A terminal that somebody types on. */
function terminal({ isTTY = true } = {}) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = new Kept();
  const ask = askOnTerminal(input as TerminalInput, output);
  const { signal } = new AbortController();
  /** Asks, and resolves when the question stands there. */
  const question = async (under = signal) => {
    const before = output.text.length;
    const answer = Promise.resolve(ask(REQUEST, { signal: under }));
    while (output.text.length === before) await setImmediate();
    return { answer };
  };
  return { input, output, question, ask: () => ask(REQUEST, { signal }) };
}

test("terminal: shows call and effect, and gives the line that is typed then", async () => {
  const { input, output, question } = terminal();
  const { answer } = await question();
  expect(output.text).toBe(
    `\n${CALL}\nPays 950 cents to Ada.\nType yes to run it, anything else to decline: `,
  );
  input.write("ye");
  input.write("s\r\nmore\n");
  expect(await answer).toBe("yes\r");
});

test("terminal: what was typed before the question stood there doesn't count", async () => {
  const { input, question } = terminal();
  input.write("yes\n");
  const { answer } = await question();
  input.write("no\nyes\n");
  expect(await answer).toBe("no");
  const second = await question();
  input.write("\n");
  expect(await second.answer).toBe("");
});

test("terminal: asks again and again, and lets the process end in between", async () => {
  const { input, question } = terminal();
  for (const line of ["yes", "no", "yes"]) {
    const { answer } = await question();
    input.write(`${line}\n`);
    expect(await answer).toBe(line);
    expect(input.isPaused()).toBe(true);
    for (const event of ["data", "end", "close", "error"]) {
      // The stream's own listeners stay.
      expect(input.listeners(event).map(({ name }) => name)).not.toContain("onEnd");
    }
  }
});

test.each([
  ["the input ends", ""],
  ["it ends in the middle of a line", "yes"],
])("terminal: when %s, nobody answered", async (_, last) => {
  const { input, question, ask } = terminal();
  const { answer } = await question();
  input.end(last);
  expect(await answer).toBe(undefined);
  // And ever after.
  expect(await ask()).toBe(undefined);
});

test("terminal: when the input fails or is closed, nobody answered", async () => {
  for (const error of [new Error("EIO"), undefined]) {
    const { input, question, ask } = terminal();
    const { answer } = await question();
    input.destroy(error);
    expect(await answer).toBe(undefined);
    expect(await ask()).toBe(undefined);
  }
});

test("terminal: leaves it when the run is cancelled or the time is up", async () => {
  const { input, question } = terminal();
  const controller = new AbortController();
  const { answer } = await question(controller.signal);
  controller.abort("enough");
  expect(await answer).toBe(undefined);
  expect([input.isPaused(), input.listenerCount("data")]).toEqual([true, 0]);
});

test("terminal: a pipe is nobody, whatever comes through it", async () => {
  const { input, output, ask } = terminal({ isTTY: false });
  input.write("yes\n");
  const approve = createApproval({ ask });
  const paid: Payment[] = [];
  const run = (payment: Payment) => String(paid.push(payment));
  const pay = approve({ ...PAY, run }, { preview: () => "Pays." });
  expect(await refusal(pay.run(ADA, context("t1")))).toContain(
    "was not run, since nobody could be asked (there is no terminal to ask on).",
  );
  expect([output.text, paid]).toEqual(["", []]);
});
