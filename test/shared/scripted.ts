/**
 * A scripted model: an `llm` for patterns that gives prepared replies and keeps the calls it got.
 *
 *     const { llm, calls } = scripted(["a draft", new Error("down"), (prompt) => prompt.slice(0, 5)]);
 *     const { llm, paths } = scripted({ "vote/voter[0]": "<vote>yes</vote>", "vote/voter[1]": [] });
 *
 * Replies are used in the order of the calls, or by the path of the call; each once. An `Error` is
 * thrown. A call without a reply is a `HaltError`, which no pattern settles or counts. As at the real
 * door, an aborted call isn't made and isn't kept, a named call is a step, and so is a second one.
 *
 * `held` is a reply that stays open until the test ends it: an event, in place of a sleep.
 *
 * From effective-agents 0.1.0: test/shared/scripted.ts
 */
import { setImmediate } from "node:timers/promises";
import { HaltError } from "../../patterns/errors.ts";
import type { CallOptions, LlmCall, LlmParams } from "../../patterns/llm-call.ts";
import { callStep, currentPath } from "../../patterns/step.ts";

type Options = LlmParams & CallOptions;

/** A function is on its own: it sees the options, and heeds their signal or doesn't. */
export type Reply =
  | string
  | Error
  | ((prompt: string, options: Options) => string | PromiseLike<string>);

/** One call as it came. */
export interface Call {
  readonly path: string;
  readonly prompt: string;
  readonly options: Options;
}

export interface Scripted {
  readonly llm: LlmCall;
  /** In the order in which they came. */
  readonly calls: readonly Call[];
  readonly paths: () => readonly string[];
  readonly prompts: () => readonly string[];
  /** The prompts that were sent under `path`, joined by a line. */
  readonly promptAt: (path: string) => string;
  /** Resolves as soon as there are `count` calls. */
  readonly received: (count: number) => Promise<void>;
}

/** Makes a scripted model. */
export function scripted(
  script: readonly Reply[] | Readonly<Record<string, Reply | readonly Reply[]>>,
): Scripted {
  const calls: Call[] = [];
  const waiting = new Map<number, () => void>();
  const queues = new Map<string, Reply[]>(
    isList(script)
      ? [["", [...script]]]
      : Object.entries(script).map(([path, own]) => [path, isList(own) ? [...own] : [own]]),
  );

  const llm: LlmCall = (prompt, options = {}) =>
    callStep(
      options.name,
      async () => {
        const path = currentPath();
        const text = typeof prompt === "string" ? prompt : JSON.stringify(prompt);
        calls.push({ path, prompt: text, options });
        waiting.get(calls.length)?.();
        const reply = queues.get(isList(script) ? "" : path)?.shift();
        if (reply === undefined) throw new HaltError("The script has no reply left");
        if (typeof reply === "function") return reply(text, options);
        if (reply instanceof Error) throw reply;
        return reply;
      },
      options.signal,
    );

  return {
    llm,
    calls,
    paths: () => calls.map(({ path }) => path),
    prompts: () => calls.map(({ prompt }) => prompt),
    promptAt: (wanted) =>
      calls.flatMap(({ path, prompt }) => (path === wanted ? [prompt] : [])).join("\n"),
    received: async (count) => {
      if (calls.length < count) await new Promise<void>((wake) => waiting.set(count, wake));
    },
  };
}

export interface Held {
  /** Put this into the script, or call it in a function handed to a pattern. */
  readonly reply: (prompt?: unknown, options?: Pick<Options, "signal">) => Promise<string>;
  /** Resolves when the call was made. */
  readonly started: Promise<void>;
  readonly answer: (text: string) => void;
  readonly fail: (error: unknown) => void;
  /** Cancelled calls end as well, a while after they were told to. */
  readonly state: () => "waiting" | "open" | "cancelling" | "ended";
}

/** A reply that stays open until it's answered, failed or cancelled. */
export function held(): Held {
  let state: ReturnType<Held["state"]> = "waiting";
  const start = withResolvers<void>();
  const end = withResolvers<string>();
  // It may fail before, or without, ever being asked for.
  end.promise.catch(() => {});
  return {
    reply: (_, { signal } = {}) => {
      state = "open";
      start.resolve();
      const onAbort = async () => {
        if (state === "ended") return;
        state = "cancelling";
        await setImmediate();
        end.reject(signal?.reason);
      };
      if (signal?.aborted) onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      return end.promise.finally(() => {
        state = "ended";
      });
    },
    started: start.promise,
    answer: end.resolve,
    fail: end.reject,
    state: () => state,
  };
}

/** `Promise.withResolvers`, which Node 20 hasn't. */
export function withResolvers<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

// Array.isArray doesn't narrow a readonly list.
const isList = (value: unknown): value is readonly Reply[] => Array.isArray(value);
