/**
 * Every model call has a path: `orchestrate/worker[3]`, `refine/round[1]/grade`, `route/classify#2`.
 *
 *     step("route") ── step("classify") ── model call     route/classify
 *                   └─ step("billing") ─── model call     route/billing
 *
 * `step` pushes a name on the path, opens an OpenTelemetry span of that name and passes the result
 * through. The outermost step is a run. Things started together take a bracketed index, loops their
 * round; both are the index into the result's own array. A name used again inside one step counts
 * up (`classify#2`), and the counters live on that step, so two runs never number each other's calls.
 *
 * The path is the name in the trace and the key in a recording, by which a broken run is gone on with.
 * `observe` reports what happens inside a function: the one seam for a terminal, a log, a browser, a test.
 *
 * From effective-agents 0.1.0: patterns/step.ts
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { type Span, SpanStatusCode, trace } from "@opentelemetry/api";

/** Token counts of one reply, under the API's own names. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens?: number | null;
  readonly cache_read_input_tokens?: number | null;
}

/** What `observe` reports. */
export type RunEvent = StartEvent | TextEvent | EndEvent;

interface Where {
  /** Where it happened, e.g. `vote/voter[0]`. A call has the path of the step that makes it. */
  readonly path: string;
  /** When, in milliseconds since the Unix epoch. */
  readonly at: number;
}

/** A step or a call starts. */
export interface StartEvent extends Where {
  readonly type: "start";
  readonly kind: "step" | "call";
  /** A call's request parameters. */
  readonly input?: unknown;
}

/** A piece of a streamed reply arrived. It is provisional until the call has ended. */
export interface TextEvent extends Where {
  readonly type: "text";
  readonly text: string;
}

/** A step or a call has ended. */
export interface EndEvent extends Where {
  readonly type: "end";
  readonly kind: "step" | "call";
  /** Cancelled: it ended with the reason of the signal that it ran under. */
  readonly outcome: "ok" | "failed" | "cancelled";
  /** How long it took, in milliseconds. */
  readonly ms: number;
  /** A step's result (the label read, the gate's verdict), or a call's whole `Message`. */
  readonly value?: unknown;
  readonly error?: unknown;
  /** Of an answered call: the model that answered, and its token counts. */
  readonly model?: string;
  readonly usage?: Usage;
  /** What layers and middleware said of the call with `annotate`. */
  readonly notes?: Readonly<Record<string, unknown>>;
}

type OnEvent = (event: RunEvent) => void;

/** One step under way. `observe` makes one too, with an empty path outside of a run. */
interface Frame {
  readonly path: string;
  readonly signal: AbortSignal | undefined;
  readonly observers: readonly OnEvent[];
  /** How often each name was used inside this step. */
  readonly names: Map<string, number>;
  /** What was said with `annotate` of the call under way. */
  readonly notes: Map<string, unknown>;
}

const frames = createScope<Frame>();

/** A value for all that a function does, and starts. */
export interface Scope<T> {
  readonly getStore: () => T | undefined;
  readonly run: <R>(value: T, fn: () => R) => R;
}

/**
 * Makes a scope, by Node's `AsyncLocalStorage`. A bundle for the browser has nothing in its place: there no
 * value is kept, so that the page loads, and the door's first call says that it's for the server only.
 */
export function createScope<T>(): Scope<T> {
  if (AsyncLocalStorage) return new AsyncLocalStorage<T>();
  return { getStore: () => undefined, run: (_, fn) => fn() };
}

/** The path of the step under way, or `""` outside of any. */
export function currentPath(): string {
  return frames.getStore()?.path ?? "";
}

/**
 * Runs `fn` as a step called `name` of the step under way, or as a run of its own.
 *
 * @param signal What it runs under, by default the surrounding step's. If it has fired, `fn` isn't
 *   started and the signal's reason is thrown.
 * @throws {TypeError} The name is empty, or holds a `/` or a `#`.
 *
 * @example
 * const label = await step("classify", async () => readLabel(await llmCall(prompt)));
 */
export function step<T>(
  name: string,
  fn: () => T | PromiseLike<T>,
  signal?: AbortSignal,
): Promise<T> {
  return promiseOf(() => {
    checkName(name);
    return enter(name, fn, signal);
  });
}

/**
 * Runs a pattern as a step. Once the caller has aborted it rejects with the signal's reason, whatever
 * else came of it: work that doesn't listen to the signal may have ended well, or failed, meanwhile. What
 * is nothing but a fan-out needs it not, since `fanOut` does the same.
 */
export function runPattern<T>(
  name: string,
  fn: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  const run = async () => {
    try {
      return await fn();
    } finally {
      signal?.throwIfAborted();
    }
  };
  return step(name, run, signal);
}

/** Throws a `TypeError` unless `name` can be part of a path: for names that a caller hands in. */
export function checkName(name: string): void {
  if (typeof name !== "string" || name.trim() === "" || name.includes("/") || name.includes("#")) {
    const got = typeof name === "string" ? JSON.stringify(name) : inspect(name, { depth: 1 });
    throw new TypeError(`A step's name must be non-empty, without "/" and "#", got ${got}`);
  }
}

/**
 * Runs `fn`, which makes one model call, in the step that the call belongs to. A named call is a step.
 * The first unnamed call made in a step is the step's own and has its path; each further one becomes
 * a step (`call#2`), so that no two calls share a path.
 */
export function callStep<T>(
  name: string | undefined,
  fn: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  if (name !== undefined) return step(name, () => ownCall(fn), signal);
  return promiseOf(() => {
    const frame = frames.getStore();
    if (!frame?.path) return enter("call", () => ownCall(fn), signal);
    checkSignal(signal ?? frame.signal);
    const unnamed = numbered(frame, "call");
    return unnamed === "call" ? fn() : enter(unnamed, () => ownCall(fn), signal);
  });
}

/** Runs a step's own call, and counts it: one that a layer makes inside of it becomes `call#2`. */
function ownCall<T>(fn: () => Promise<T>): Promise<T> {
  frames.getStore()?.names.set("call", 1);
  return fn();
}

/** Reports that a request goes to the model, and how it ends. For the door. */
export function reportCall<T extends { readonly model: string; readonly usage: Usage }>(
  input: unknown,
  fn: () => Promise<T>,
  own?: AbortSignal,
): Promise<T> {
  const frame = frames.getStore() ?? newFrame("", undefined, []);
  frame.notes.clear();
  if (frame.observers.length === 0) return fn();
  const describe = ({ model, usage }: T) => ({ model, usage });
  return report(frame, { kind: "call", signal: own ?? frame.signal, input, describe }, fn);
}

/** Adds what a layer or a middleware knows of the call under way to the event that ends it. */
export function annotate(notes: Readonly<Record<string, unknown>>): void {
  const frame = frames.getStore();
  for (const [key, value] of Object.entries(notes)) frame?.notes.set(key, value);
}

/** What was said with `annotate` of the call under way, e.g. `noted("recorded")` on a replay. */
export function noted(key: string): unknown {
  return frames.getStore()?.notes.get(key);
}

/** Reports a piece of streamed text of the call under way. */
export function reportText(text: string): void {
  const frame = frames.getStore();
  if (frame) emit(frame, { type: "text", text });
}

/**
 * Runs `fn` and reports every step and call inside it, nested patterns and all, as it happens.
 *
 * Events come synchronously and in order. An error thrown by `onEvent` doesn't touch the run: it
 * surfaces as an uncaught exception, as with Node's `diagnostics_channel`.
 *
 * @example
 * const result = await observe((e) => log(e.type, e.path), () => route(ticket, { routes }));
 */
export function observe<T>(onEvent: OnEvent, fn: () => T): T {
  const outer = frames.getStore() ?? newFrame("", undefined, []);
  return frames.run({ ...outer, observers: [...outer.observers, onEvent] }, fn);
}

function enter<T>(
  name: string,
  fn: () => T | PromiseLike<T>,
  own: AbortSignal | undefined,
): T | PromiseLike<T> {
  const parent = frames.getStore();
  const signal = own ?? parent?.signal;
  checkSignal(signal);
  const path = parent?.path ? `${parent.path}/${numbered(parent, name)}` : name;
  const frame = newFrame(path, signal, parent?.observers ?? []);
  const tracer = trace.getTracer("effective-agents");
  return tracer.startActiveSpan(path, (span) => {
    // Most runs are watched by nobody, and then all that's left of a step is its path.
    const isWatched = frame.observers.length > 0 || span.isRecording();
    const subject = { kind: "step", signal, span } as const;
    return frames.run(frame, isWatched ? () => report(frame, subject, fn) : fn);
  });
}

/** What `fn` gives, or throws at once, as a promise: its own where it gives one. An `async` function would
 * make two more, and a call passes through several. */
function promiseOf<T>(fn: () => T | PromiseLike<T>): Promise<T> {
  try {
    return Promise.resolve(fn());
  } catch (error) {
    return Promise.reject(error);
  }
}

interface Subject<T> {
  readonly kind: "step" | "call";
  readonly signal: AbortSignal | undefined;
  readonly span?: Span;
  readonly input?: unknown;
  /** What to say of the result beside the result itself. */
  readonly describe?: (value: T) => Pick<EndEvent, "model" | "usage">;
}

async function report<T>(
  frame: Frame,
  { kind, signal, span, input, describe }: Subject<T>,
  fn: () => T | PromiseLike<T>,
): Promise<T> {
  const startedAt = performance.now();
  const end = (ending: Pick<EndEvent, "outcome" | "value" | "error" | "model" | "usage">) => {
    const ms = performance.now() - startedAt;
    const notes = kind === "call" && frame.notes.size > 0 && Object.fromEntries(frame.notes);
    emit(frame, { type: "end", kind, ms, ...ending, ...(notes && { notes }) });
    span?.end();
  };
  emit(frame, { type: "start", kind, ...(input !== undefined && { input }) });
  try {
    const value = await fn();
    end({ outcome: "ok", value, ...describe?.(value) });
    return value;
  } catch (error) {
    const cancelled = signal?.aborted === true && error === signal.reason;
    if (!cancelled) {
      span?.recordException(error instanceof Error ? error : inspect(error, { depth: 1 }));
      span?.setStatus({ code: SpanStatusCode.ERROR });
    }
    end({ outcome: cancelled ? "cancelled" : "failed", error });
    throw error;
  }
}

/** An event as it's written where it happens; path and time are added here. */
type Bare<E> = E extends RunEvent ? Omit<E, "path" | "at"> : never;

function emit(frame: Frame, event: Bare<RunEvent>): void {
  if (frame.observers.length === 0) return;
  const full: RunEvent = { path: frame.path, at: Date.now(), ...event };
  for (const onEvent of frame.observers) {
    try {
      onEvent(full);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

function newFrame(
  path: string,
  signal: AbortSignal | undefined,
  observers: readonly OnEvent[],
): Frame {
  return { path, signal, observers, names: new Map(), notes: new Map() };
}

/** Throws the reason of a signal that has fired. */
function checkSignal(signal: AbortSignal | undefined): void {
  if (signal && typeof signal.throwIfAborted !== "function") {
    throw new TypeError(`signal must be an AbortSignal, got ${inspect(signal, { depth: 1 })}`);
  }
  signal?.throwIfAborted();
}

function numbered(frame: Frame, name: string): string {
  const count = (frame.names.get(name) ?? 0) + 1;
  frame.names.set(name, count);
  return count === 1 ? name : `${name}#${count}`;
}
