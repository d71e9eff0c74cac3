/**
 * Paths, events and spans: each step and call has its own, whatever it's nested in.
 *
 * From effective-agents 0.1.0: test/step.test.ts
 */
import { setImmediate } from "node:timers/promises";
import { SpanStatusCode } from "@opentelemetry/api";
import { expect, onTestFinished, test } from "vitest";
import {
  BudgetError,
  HaltError,
  LlmOutputError,
  RecordingError,
  shown,
} from "../patterns/errors.ts";
import {
  annotate,
  callStep,
  checkName,
  currentPath,
  observe,
  type RunEvent,
  reportCall,
  reportText,
  step,
} from "../patterns/step.ts";
import { rejection } from "./shared/server.ts";
import { keepSpans } from "./shared/tracer.ts";

const path = async () => currentPath();
const reply = { model: "claude-sonnet-5-5", usage: { input_tokens: 3, output_tokens: 5 } };

/** The events of `fn`, without the times. */
async function eventsOf(fn: () => Promise<unknown>): Promise<object[]> {
  const events: RunEvent[] = [];
  await observe((event) => events.push(event), fn);
  return events.map(({ at, ...event }) => {
    expect(at).toBeGreaterThan(1.7e12);
    if (event.type !== "end") return event;
    const { ms, ...rest } = event;
    expect(ms).toBeGreaterThanOrEqual(0);
    return rest;
  });
}

test("nests the names of steps in a path", async () => {
  const paths = await step("orchestrate", async () => [
    currentPath(),
    await step("worker[3]", () => step("draft", path)),
    currentPath(),
  ]);
  expect(paths).toEqual(["orchestrate", "orchestrate/worker[3]/draft", "orchestrate"]);
});

test("has an empty path outside of steps", () => {
  expect(currentPath()).toBe("");
});

test("counts a name that is used again inside one step", async () => {
  const paths = await step("route", async () => [
    await step("classify", path),
    await step("classify", path),
    await step("bill", path),
    await step("classify", path),
  ]);
  expect(paths).toEqual(["route/classify", "route/classify#2", "route/bill", "route/classify#3"]);
});

test("counts inside each step anew", async () => {
  const paths = await step("refine", async () => [
    await step("round[0]", () => step("grade", path)),
    await step("round[1]", () => step("grade", path)),
    await step("round[1]", () => step("grade", path)),
  ]);
  expect(paths).toEqual([
    "refine/round[0]/grade",
    "refine/round[1]/grade",
    "refine/round[1]#2/grade",
  ]);
});

test("numbers names in the order in which they start, also when they run at once", async () => {
  const paths = await step("vote", () =>
    Promise.all([1, 2, 3].map(() => step("voter", async () => setImmediate().then(path)))),
  );
  expect(paths).toEqual(["vote/voter", "vote/voter#2", "vote/voter#3"]);
});

test("doesn't number the steps of other runs, at the same time or later", async () => {
  const run = () => step("route", () => step("classify", async () => setImmediate().then(path)));
  expect(await Promise.all([run(), run()])).toEqual(["route/classify", "route/classify"]);
  expect(await run()).toBe("route/classify");
});

test("gives the first unnamed call of a step the step's path, and numbers the further ones", async () => {
  const paths = await step("chain", () =>
    step("draft", async () => [
      await callStep(undefined, path),
      await callStep(undefined, path),
      await callStep(undefined, path),
    ]),
  );
  expect(paths).toEqual(["chain/draft", "chain/draft/call#2", "chain/draft/call#3"]);
});

test("never gives one path to an unnamed call and to a step named call", async () => {
  const paths = await step("run", async () => [
    await step("call", path),
    await callStep(undefined, path),
    await callStep("call", path),
  ]);
  expect(new Set(paths).size).toBe(3);
});

test("makes a named call a step", async () => {
  expect(await step("route", () => callStep("classify", path))).toBe("route/classify");
  expect(await callStep("alone", path)).toBe("alone");
});

test("calls an unnamed call outside of steps the run call, observed or not", async () => {
  expect(await callStep(undefined, path)).toBe("call");
  const observed = () =>
    Promise.all([callStep(undefined, path), callStep(undefined, path), step("call", path)]);
  expect(await observe(() => {}, observed)).toEqual(["call", "call", "call"]);
});

test.for([
  "",
  "  ",
  "a/b",
  "/",
  "a#2",
  7,
  BigInt(7),
  Symbol("a"),
  null,
  undefined,
  {},
  Object.create(null),
])("refuses the name %o before anything runs", async (bad) => {
  const name = bad as string; // what callers without types hand in
  let ran = false;
  const events = await eventsOf(async () => {
    const error = await rejection(step(name, () => (ran = true)));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(`got ${shown(bad)}`);
  });
  expect(() => checkName(name)).toThrow(TypeError);
  expect(ran).toBe(false);
  expect(events).toEqual([]);
});

test("allows brackets, spaces, dots and other languages in a name", async () => {
  for (const name of ["worker[3]", "a b", "v1.2", "日本", "constructor", "__proto__"]) {
    expect(await step("run", () => step(name, path))).toBe(`run/${name}`);
  }
});

test("says that a name is bad even when the signal has fired", async () => {
  expect(await rejection(step("a/b", path, AbortSignal.abort("stop")))).toBeInstanceOf(TypeError);
});

test("passes a result through, and an error of any kind", async () => {
  expect(await step("a", () => 1)).toBe(1);
  expect(await step("a", async () => undefined)).toBe(undefined);
  for (const thrown of [new Error("no"), "text", undefined, null]) {
    const fail = () => {
      throw thrown;
    };
    expect(await rejection(step("a", fail))).toBe(thrown);
    expect(await rejection(step("a", async () => fail()))).toBe(thrown);
  }
});

test("never starts under its own signal that has fired", async () => {
  const reason = { because: "it is late" };
  let ran = false;
  const run = () => (ran = true);
  const events = await eventsOf(async () => {
    expect(await rejection(step("a", run, AbortSignal.abort(reason)))).toBe(reason);
    await step("b", async () => {
      expect(await rejection(step("c", run, AbortSignal.abort(reason)))).toBe(reason);
    });
  });
  expect(ran).toBe(false);
  expect(events).toMatchObject([{ path: "b" }, { path: "b" }]);
});

test("never starts under the surrounding step's signal that has fired", async () => {
  const controller = new AbortController();
  let ran = false;
  const fn = async () => {
    controller.abort("stop");
    return step("b", () => step("c", () => (ran = true)));
  };
  expect(await rejection(step("a", fn, controller.signal))).toBe("stop");
  expect(ran).toBe(false);
});

test.for(["named", undefined])(
  "never starts a call (%s) under a signal that has fired",
  async (name) => {
    let ran = false;
    const call = async () => {
      ran = true;
    };
    const fired = AbortSignal.abort("stop");
    expect(await rejection(callStep(name, call, fired))).toBe("stop");
    expect(await rejection(step("a", () => callStep(name, call, fired)))).toBe("stop");
    const controller = new AbortController();
    const fn = () => {
      controller.abort("stop");
      return callStep(name, call);
    };
    expect(await rejection(step("a", fn, controller.signal))).toBe("stop");
    expect(ran).toBe(false);
  },
);

test("reports steps and calls as they start and end, with path, input, result, model and usage", async () => {
  const events = await eventsOf(() =>
    step("route", async () => {
      await callStep("classify", () => reportCall({ max_tokens: 5 }, async () => reply));
      return "billing";
    }),
  );
  const { model, usage } = reply;
  expect(events).toEqual([
    { type: "start", kind: "step", path: "route" },
    { type: "start", kind: "step", path: "route/classify" },
    { type: "start", kind: "call", path: "route/classify", input: { max_tokens: 5 } },
    {
      type: "end",
      kind: "call",
      path: "route/classify",
      outcome: "ok",
      value: reply,
      model,
      usage,
    },
    { type: "end", kind: "step", path: "route/classify", outcome: "ok", value: reply },
    { type: "end", kind: "step", path: "route", outcome: "ok", value: "billing" },
  ]);
});

test("reports synchronously: an event is there before the line after it runs", async () => {
  const seen: string[] = [];
  await observe(
    (event) => seen.push(event.type),
    () =>
      step("a", () => {
        expect(seen).toEqual(["start"]);
        reportText("x");
        expect(seen).toEqual(["start", "text"]);
      }),
  );
  expect(seen).toEqual(["start", "text", "end"]);
});

test("reports streamed text with the path of the call", async () => {
  const call = async () => {
    reportText("Hel");
    reportText("lo");
    return reply;
  };
  const events = await eventsOf(() => step("a", () => reportCall({}, call)));
  expect(events).toContainEqual({ type: "text", path: "a", text: "Hel" });
  expect(events).toContainEqual({ type: "text", path: "a", text: "lo" });
});

test("reports a failure with its error, as failed, in every step that it leaves", async () => {
  const error = new Error("no");
  const events = await eventsOf(() =>
    rejection(step("a", () => step("b", () => reportCall({}, () => Promise.reject(error))))),
  );
  expect(events.slice(-3)).toEqual([
    { type: "end", kind: "call", path: "a/b", outcome: "failed", error },
    { type: "end", kind: "step", path: "a/b", outcome: "failed", error },
    { type: "end", kind: "step", path: "a", outcome: "failed", error },
  ]);
});

test("reports what ended with the reason of its signal as cancelled, inner steps too", async () => {
  const controller = new AbortController();
  const call = async () => {
    controller.abort("enough");
    throw controller.signal.reason;
  };
  const run = () => step("a", () => step("b", () => reportCall({}, call)), controller.signal);
  const events = await eventsOf(() => rejection(run()));
  const cancelled = { type: "end", outcome: "cancelled", error: "enough" };
  expect(events.slice(-3)).toMatchObject([cancelled, cancelled, cancelled]);
});

test("reports a call that ended with the reason of its own signal as cancelled", async () => {
  const controller = new AbortController();
  const call = async () => {
    controller.abort("enough");
    throw "enough";
  };
  const events = await eventsOf(() =>
    rejection(step("a", () => reportCall({}, call, controller.signal))),
  );
  expect(events.slice(-2)).toMatchObject([
    { kind: "call", outcome: "cancelled" },
    { kind: "step", outcome: "failed" },
  ]);
});

test("reports another error under a fired signal as failed", async () => {
  const controller = new AbortController();
  const fail = () => {
    controller.abort("enough");
    throw new Error("no");
  };
  const events = await eventsOf(() => rejection(step("a", fail, controller.signal)));
  expect(events.at(-1)).toMatchObject({ outcome: "failed" });
});

test("hands every event to each of nested observers, the outer one first", async () => {
  const seen: string[] = [];
  const watch = (name: string) => (event: RunEvent) =>
    seen.push(`${name} ${event.type} ${event.path}`);
  await observe(watch("outer"), () =>
    step("a", async () => {
      await observe(watch("inner"), () => step("b", () => {}));
      await step("c", () => {});
    }),
  );
  expect(seen).toEqual([
    "outer start a",
    "outer start a/b",
    "inner start a/b",
    "outer end a/b",
    "inner end a/b",
    "outer start a/c",
    "outer end a/c",
    "outer end a",
  ]);
});

test("doesn't change paths when it observes", async () => {
  const paths = await step("route", async () => [
    await step("classify", path),
    await observe(() => {}, path),
    await observe(
      () => {},
      () => step("classify", path),
    ),
    await step("classify", path),
  ]);
  expect(paths).toEqual(["route/classify", "route", "route/classify#2", "route/classify#3"]);
});

test("keeps observers of runs at the same time apart", async () => {
  const run = (name: string) =>
    eventsOf(() => step(name, () => setImmediate().then(() => step("x", () => {}))));
  const [a, b] = await Promise.all([run("a"), run("b")]);
  expect(a.map((event) => "path" in event && event.path)).toEqual(["a", "a/x", "a/x", "a"]);
  expect(b.map((event) => "path" in event && event.path)).toEqual(["b", "b/x", "b/x", "b"]);
});

test("gives back what an observed function gives, also what isn't a promise", async () => {
  const add = () => 1 + 1;
  expect(observe(() => {}, add)).toBe(2);
  await expect(observe(() => {}, path)).resolves.toBe("");
});

test("leaves the run alone when an observer throws, and surfaces the error as uncaught", async () => {
  const uncaught: unknown[] = [];
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => uncaught.push(error));
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException");
    for (const listener of others) process.on("uncaughtException", listener);
  });
  const error = new Error("a broken log");
  const broken = () => {
    throw error;
  };
  const seen: string[] = [];
  const result = await observe(broken, () =>
    observe(
      (event) => seen.push(event.type),
      () => step("a", path),
    ),
  );
  await setImmediate();
  expect(result).toBe("a");
  expect(seen).toEqual(["start", "end"]);
  expect(uncaught).toEqual([error, error]);
});

test("puts what is annotated on the end of the call under way, and on no other", async () => {
  const events = await eventsOf(() =>
    step("a", async () => {
      await reportCall({}, async () => {
        annotate({ cached: true, price: 1 });
        annotate({ price: 2 });
        return reply;
      });
      await reportCall({}, async () => reply);
    }),
  );
  expect(events).toMatchObject([
    { kind: "step" },
    { kind: "call" },
    { kind: "call", type: "end", notes: { cached: true, price: 2 } },
    { kind: "call" },
    { kind: "call", type: "end" },
    { kind: "step" },
  ]);
  expect(events[4]).not.toHaveProperty("notes");
  expect(events[5]).not.toHaveProperty("notes");
});

test("puts what is annotated on the end of a failed call too", async () => {
  const call = async () => {
    annotate({ tried: 3 });
    throw new Error("no");
  };
  const events = await eventsOf(() => rejection(step("a", () => reportCall({}, call))));
  expect(events).toContainEqual(
    expect.objectContaining({ kind: "call", outcome: "failed", notes: { tried: 3 } }),
  );
});

test("puts no annotation on the end of a step", async () => {
  const events = await eventsOf(() => step("a", () => annotate({ price: 1 })));
  expect(events).toEqual([
    { type: "start", kind: "step", path: "a" },
    { type: "end", kind: "step", path: "a", outcome: "ok", value: undefined },
  ]);
  expect(events[1]).not.toHaveProperty("notes");
});

test("keeps the notes of calls at the same time apart", async () => {
  const call = (n: number) =>
    callStep("call", () =>
      reportCall({}, async () => {
        await setImmediate();
        annotate({ n });
        return reply;
      }),
    );
  const events = await eventsOf(() => step("a", () => Promise.all([call(1), call(2)])));
  const ends = events.filter((event) => "notes" in event);
  expect(ends).toMatchObject([
    { path: "a/call", notes: { n: 1 } },
    { path: "a/call#2", notes: { n: 2 } },
  ]);
});

test("takes annotations and text outside of steps, where nobody hears them", () => {
  annotate({ a: 1 });
  reportText("x");
});

test("nests OpenTelemetry spans that have the path as their name", async () => {
  const spans = keepSpans();
  await step("vote", () =>
    Promise.all([
      step("voter[0]", () => setImmediate().then(() => step("ask", path))),
      step("voter[1]", path),
    ]),
  );
  expect(spans).toMatchObject([
    { name: "vote", parent: undefined, ended: true, status: SpanStatusCode.UNSET },
    { name: "vote/voter[0]", parent: "vote", ended: true },
    { name: "vote/voter[1]", parent: "vote", ended: true },
    { name: "vote/voter[0]/ask", parent: "vote/voter[0]", ended: true },
  ]);
});

test("marks the span of a failed step as an error, with the exception", async () => {
  const spans = keepSpans();
  const error = new Error("no");
  await rejection(step("a", () => Promise.reject(error)));
  await rejection(step("b", () => Promise.reject(7)));
  const bare = Object.create(null);
  expect(await rejection(step("c", () => Promise.reject(bare)))).toBe(bare);
  expect(spans).toMatchObject([
    { status: SpanStatusCode.ERROR, exceptions: [error], ended: true },
    { status: SpanStatusCode.ERROR, exceptions: ["7"], ended: true },
    { status: SpanStatusCode.ERROR, exceptions: ["[Object: null prototype] {}"], ended: true },
  ]);
});

test("doesn't mark the span of a cancelled step as an error", async () => {
  const spans = keepSpans();
  const controller = new AbortController();
  const fn = () => {
    controller.abort();
    throw controller.signal.reason;
  };
  await rejection(step("a", () => step("b", fn), controller.signal));
  const fine = { status: SpanStatusCode.UNSET, exceptions: [], ended: true };
  expect(spans).toMatchObject([fine, fine]);
});

test("gives an unusable reply's error the path, the text, the stop reason and the cause", async () => {
  const cause = new Error("why");
  const error = await step("a", () =>
    step("b", () => new LlmOutputError("Bad", { text: "half", stopReason: "max_tokens", cause })),
  );
  expect(error).toMatchObject({
    name: "LlmOutputError",
    message: "a/b: Bad",
    path: "a/b",
    text: "half",
    stopReason: "max_tokens",
    cause,
  });
});

test("gives an unusable reply's error empty text, no stop reason and no cause by default", () => {
  const error = new LlmOutputError("Bad");
  expect(error).toMatchObject({ message: "Bad", path: "", text: "", stopReason: null });
  expect(Object.hasOwn(error, "cause")).toBe(false);
});

test("gives the errors of calls that were not made their path, their name and their kind", async () => {
  for (const Kind of [HaltError, BudgetError, RecordingError]) {
    const error = await step("a", () => new Kind("No"));
    expect(error).toMatchObject({ name: Kind.name, message: "a: No", path: "a" });
    expect(error).toBeInstanceOf(HaltError);
    expect(error).not.toBeInstanceOf(LlmOutputError);
  }
  expect(new HaltError("No")).toMatchObject({ message: "No", path: "" });
  expect(new BudgetError("No")).not.toBeInstanceOf(RecordingError);
});

test("types a step's result, and an event by its type", async () => {
  const n: number = await step("a", () => 1);
  const s: string = await step("a", async () => "x");
  // @ts-expect-error The result has the type of what fn gives.
  const wrong: string = await step("a", () => 1);
  const read = (event: RunEvent) => {
    // @ts-expect-error Only the end of a step or a call has an outcome.
    event.outcome;
    return event.type === "end" ? event.outcome : "open";
  };
  // @ts-expect-error An event is read-only.
  const change = (event: RunEvent) => (event.path = "");
  // @ts-expect-error A call that is reported gives a model and its usage.
  reportCall({}, async () => "text").catch(() => {});
  expect([n, s, wrong, typeof read, typeof change]).toEqual([1, "x", 1, "function", "function"]);
});
