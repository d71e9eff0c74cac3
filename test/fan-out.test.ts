/**
 * What runs at once: the first failure cancels the rest, and nothing is left running.
 *
 * From effective-agents 0.1.0: test/fan-out.test.ts
 */
import { getEventListeners } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { BudgetError, HaltError, RecordingError } from "../patterns/errors.ts";
import { type FanOut, fanOut, follow, type OnError } from "../patterns/fan-out.ts";
import { withResolvers } from "./shared/scripted.ts";
import { rejection } from "./shared/server.ts";

type Job<T = unknown> = (controller: AbortController) => Promise<T>;

/** A job that ends when it's told to, and a while after it was cancelled, with the reason. */
function slowJob() {
  const { promise, resolve, reject } = withResolvers<string>();
  const state = { ended: false, cancelled: false };
  const job: Job<string> = async ({ signal }) => {
    signal.addEventListener("abort", async () => {
      state.cancelled = true;
      await setImmediate();
      reject(signal.reason);
    });
    return promise.finally(() => {
      state.ended = true;
    });
  };
  return { job, state, resolve, reject };
}

const fails =
  (error: unknown): Job<never> =>
  async () => {
    throw error;
  };

test.for<OnError>(["abort", "settle"])(
  "gives the outcomes in the order of the jobs (%s)",
  async (onError) => {
    const first = slowJob();
    const second: Job<string> = async () => {
      first.resolve("a");
      return "b";
    };
    const { results, ...rest } = await fanOut([first.job, second], { onError });
    expect(results).toEqual([
      { status: "fulfilled", value: "a" },
      { status: "fulfilled", value: "b" },
    ]);
    expect(rest).toEqual({});
  },
);

test("starts all jobs at once", async () => {
  const started: number[] = [];
  const { promise, resolve } = withResolvers<void>();
  const job = (n: number) => async () => {
    started.push(n);
    if (started.length === 3) resolve();
    await promise;
  };
  await fanOut([job(0), job(1), job(2)], {});
  expect(started).toEqual([0, 1, 2]);
});

test("gives an empty list for no jobs", async () => {
  expect(await fanOut([], {})).toEqual({ results: [] });
});

test("cancels the siblings at the first failure, waits for them, and throws it", async () => {
  const slow = slowJob();
  const error = new Error("no");
  expect(await rejection(fanOut([slow.job, fails(error)], {}))).toBe(error);
  expect(slow.state).toEqual({ ended: true, cancelled: true });
});

test("throws the first failure, not the first in order and not those that follow from it", async () => {
  const first = slowJob();
  const late: Job = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new Error("in the wake")));
    });
  const run = fanOut([late, slowJob().job, first.job], { onError: "abort" });
  first.reject("first");
  expect(await rejection(run)).toBe("first");
});

test("throws a failure that is undefined, and one that is thrown synchronously", async () => {
  expect(await rejection(fanOut([slowJob().job, fails(undefined)], {}))).toBe(undefined);
  const error = new Error("at once");
  const sync: Job = () => {
    throw error;
  };
  const slow = slowJob();
  expect(await rejection(fanOut([slow.job, sync], {}))).toBe(error);
});

test("keeps each outcome when it settles, and cancels nobody", async () => {
  const slow = slowJob();
  const error = new Error("no");
  const last: Job<string> = async () => {
    await setImmediate();
    slow.resolve("a");
    return "b";
  };
  const { results } = await fanOut([slow.job, fails(error), last], { onError: "settle" });
  expect(results).toEqual([
    { status: "fulfilled", value: "a" },
    { status: "rejected", reason: error },
    { status: "fulfilled", value: "b" },
  ]);
  expect(slow.state.cancelled).toBe(false);
});

test.for<OnError>(["abort", "settle"])(
  "lets the siblings end when the budget ends, and hands its error back (%s)",
  async (onError) => {
    const slow = slowJob();
    const budget = new BudgetError("No money");
    const last: Job<string> = async () => {
      await setImmediate();
      slow.resolve("paid");
      throw new BudgetError("No money for me either");
    };
    const result = await fanOut([fails(budget), slow.job, last], { onError });
    expect(result.budget).toBe(budget);
    expect(result.results).toMatchObject([
      { status: "rejected", reason: budget },
      { status: "fulfilled", value: "paid" },
      { status: "rejected" },
    ]);
    expect(slow.state.cancelled).toBe(false);
  },
);

test("throws a failure that comes after the budget's end", async () => {
  const slow = slowJob();
  const error = new Error("no");
  const run = fanOut([fails(new BudgetError("No money")), slow.job], {});
  await setImmediate();
  slow.reject(error);
  expect(await rejection(run)).toBe(error);
});

test.for<OnError>(["abort", "settle"])(
  "cancels the siblings and throws when a call was not made for another reason (%s)",
  async (onError) => {
    for (const error of [new HaltError("No"), new RecordingError("Not on the tape")]) {
      const slow = slowJob();
      const jobs = [fails(new Error("settled")), slow.job, fails(error)];
      const expected =
        onError === "settle" ? error : expect.objectContaining({ message: "settled" });
      expect(await rejection(fanOut(jobs, { onError }))).toEqual(expected);
      expect(slow.state).toEqual({ ended: true, cancelled: true });
    }
  },
);

test.for<OnError>(["abort", "settle"])(
  "rejects with the reason of the caller's abort after all jobs have ended (%s)",
  async (onError) => {
    for (const reason of [new Error("enough"), "enough", undefined]) {
      const controller = new AbortController();
      const [a, b] = [slowJob(), slowJob()];
      const run = fanOut([a.job, b.job], { onError, signal: controller.signal });
      controller.abort(reason);
      expect(await rejection(run)).toBe(controller.signal.reason);
      expect([a.state, b.state]).toEqual([
        { ended: true, cancelled: true },
        { ended: true, cancelled: true },
      ]);
    }
  },
);

test.for<OnError>(["abort", "settle"])(
  "rejects with the caller's reason even when every job succeeds or the money ends (%s)",
  async (onError) => {
    const controller = new AbortController();
    const { signal } = controller;
    const deaf: Job = async () => controller.abort("enough");
    const jobs = [deaf, fails(new BudgetError("No money"))];
    expect(await rejection(fanOut(jobs, { onError, signal }))).toBe("enough");
  },
);

test("hands a fired signal to its jobs, and rejects with its reason", async () => {
  const seen: unknown[] = [];
  const job: Job = async ({ signal }) => seen.push(signal.reason);
  const signal = AbortSignal.abort("late");
  expect(await rejection(fanOut([job, job], { signal, onError: "settle" }))).toBe("late");
  expect(seen).toEqual(["late", "late"]);
});

test.for<OnError>(["abort", "settle"])(
  "lets a job cancel its siblings, which is no failure (%s)",
  async (onError) => {
    const slow = slowJob();
    const decided: Job<string> = async (controller) => {
      controller.abort("decided");
      return "won";
    };
    const { results } = await fanOut([slow.job, decided], { onError });
    expect(results).toEqual([
      { status: "rejected", reason: "decided" },
      { status: "fulfilled", value: "won" },
    ]);
    expect(slow.state).toEqual({ ended: true, cancelled: true });
  },
);

test("throws a real failure of a job that a sibling had cancelled", async () => {
  const error = new Error("in the wake");
  const late: Job = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(error));
    });
  const decided: Job = async (controller) => controller.abort("decided");
  expect(await rejection(fanOut([late, decided], { onError: "abort" }))).toBe(error);
  const { results } = await fanOut([late, decided], { onError: "settle" });
  expect(results[0]).toEqual({ status: "rejected", reason: error });
});

test("doesn't abort the caller's signal, nor that of another fan-out under it", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const other = slowJob();
  const run = fanOut([other.job], { signal });
  await rejection(fanOut([fails("no")], { signal }));
  other.resolve("fine");
  expect((await run).results).toEqual([{ status: "fulfilled", value: "fine" }]);
  expect(signal.aborted).toBe(false);
});

test("lets go of the caller's signal at its end, after a failure too", async () => {
  const source = new AbortController();
  const given: AbortController[] = [];
  const job: Job = async (controller) => given.push(controller);
  const failing: Job = async (controller) => {
    given.push(controller);
    throw new Error("no");
  };
  await fanOut([job], { signal: source.signal });
  await fanOut([failing], { signal: source.signal, onError: "settle" });
  source.abort();
  expect(given.map(({ signal }) => signal.aborted)).toEqual([false, false]);
});

test("follows a signal with its reason, and no longer once released", () => {
  const source = new AbortController();
  const kept = follow(source.signal);
  const released = follow(source.signal);
  released.release();
  source.abort("enough");
  expect(kept.controller.signal.reason).toBe("enough");
  expect(released.controller.signal.aborted).toBe(false);
});

test("follows the first of several signals to fire", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const { controller } = follow(one.signal, undefined, other.signal);
  other.abort("other");
  one.abort("one");
  expect(controller.signal.reason).toBe("other");
});

test("follows a signal that has fired, and none", () => {
  expect(follow(AbortSignal.abort("late")).controller.signal.reason).toBe("late");
  const free = follow(undefined);
  free.release();
  expect(free.controller.signal.aborted).toBe(false);
});

test("doesn't abort the signal that it follows", () => {
  const source = new AbortController();
  follow(source.signal).controller.abort();
  expect(source.signal.aborted).toBe(false);
});

test("listens once to a signal however many follow it, released or not", async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error) => warnings.push(warning);
  process.on("warning", keep);
  onTestFinished(() => void process.off("warning", keep));
  const source = new AbortController();
  const followers = Array.from({ length: 100 }, () => follow(source.signal));
  expect(getEventListeners(source.signal, "abort")).toHaveLength(1);
  for (const { release } of followers.slice(50)) release();
  for (let i = 0; i < 100; i++) await fanOut([async () => i], { signal: source.signal });
  expect(getEventListeners(source.signal, "abort")).toHaveLength(1);
  await setImmediate();
  expect(warnings).toEqual([]);
  source.abort();
  expect(followers.filter(({ controller }) => controller.signal.aborted)).toHaveLength(50);
});

test("lets a follower be released or made while the abort goes out", () => {
  const source = new AbortController();
  const [first, second] = [follow(source.signal), follow(source.signal)];
  let made: AbortSignal | undefined;
  first.controller.signal.addEventListener("abort", () => {
    second.release();
    made = follow(source.signal).controller.signal;
  });
  source.abort("enough");
  expect(second.controller.signal.aborted).toBe(false);
  expect(made?.reason).toBe("enough");
});

test("types the results by the jobs", async () => {
  const result: FanOut<number> = await fanOut([async () => 1], { onError: "settle" });
  // @ts-expect-error The value has the type of what the jobs give.
  const wrong: FanOut<string> = await fanOut([async () => 1], {});
  // @ts-expect-error There are two policies.
  const policy: OnError = "ignore";
  const [first] = result.results;
  // @ts-expect-error A rejected job has no value.
  first?.value;
  expect([wrong.results, policy]).toEqual([result.results, "ignore"]);
});
