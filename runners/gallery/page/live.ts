/**
 * Runs the pattern for real, on the server that has served the page, and shows it as it happens.
 *
 *     POST /api/run ─► events: run, step, text, spent, end          POST /api/stop ─► stops it
 */
import type { TraceFile, TraceStep } from "../../../patterns/trace-file.ts";
import { dollars } from "../../shared/words.ts";
import { byId, setText } from "./dom.ts";

/** How the panel shows what it gets. */
interface Show {
  readonly follow: (trace: TraceFile, isOver: boolean) => void;
  readonly grow: (now: number) => void;
}

/** Brings the panel to life. */
export function startLive(pattern: string, { follow, grow }: Show): void {
  const form = byId("live").querySelector("form");
  const [input, stop, said] = [
    byId<HTMLTextAreaElement>("input"),
    byId<HTMLButtonElement>("stop"),
    byId("live-said"),
  ];
  const run = form?.querySelector<HTMLButtonElement>("[type=submit]");
  let id: string | undefined;
  let leave = new AbortController();
  void showSpending(pattern);
  const setRunning = (isRunning: boolean) => {
    const [before, now] = isRunning ? [run, stop] : [stop, run];
    if (now) now.disabled = false;
    // What is disabled loses the focus.
    if (document.activeElement === before) now?.focus();
    if (before) before.disabled = true;
  };
  stop.addEventListener("click", () => {
    setText(said, "Stopping…");
    // Before it has a name, leaving is what stops it.
    if (id === undefined) leave.abort(new Error("Stopped"));
    else void post("/api/stop", { run: id });
  });
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (run?.ariaDisabled === "true") return;
    [id, leave] = [undefined, new AbortController()];
    setRunning(true);
    setText(said, "Running…");
    const live = createLiveTrace(pattern);
    const rest = eachMoment(() => live.isGoingOn() && grow(live.now()));
    try {
      const response = await post("/api/run", { pattern, input: input.value }, leave.signal);
      if (!response.ok) throw new Error(await response.text());
      for await (const { event, data } of eventsOf(response)) {
        const fields = Object(data) as Record<string, unknown>;
        if (event === "run") id = String(fields.run);
        if (event === "spent") showSpent(fields);
        if (event === "step") {
          live.add(data as TraceStep); // the server is the page's own
          follow(live.trace(), false);
        }
        if (event === "end") setText(said, String(fields.error ?? fields.words ?? "Done"));
      }
    } catch (error) {
      setText(said, error instanceof Error ? error.message : String(error));
    }
    rest();
    // However it has ended: nothing more is heard of it.
    const trace = live.trace();
    if (trace.steps.length > 0) follow(trace, true);
    setRunning(false);
  });
}

/** Calls a function each frame, or for whoever wants less motion each second, until it's told to stop. */
function eachMoment(act: () => void): () => void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    const timer = setInterval(act, 1000);
    return () => clearInterval(timer);
  }
  const next = () => {
    act();
    frame = requestAnimationFrame(next);
  };
  let frame = requestAnimationFrame(next);
  return () => cancelAnimationFrame(frame);
}

function post(url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body) };
  return fetch(url, signal ? { ...options, signal } : options);
}

/** What other pages have spent, too. */
async function showSpending(pattern: string): Promise<void> {
  const url = `/api/spent?pattern=${encodeURIComponent(pattern)}`;
  const response = await fetch(url).catch(() => undefined);
  if (response?.ok) showSpent(Object(await response.json()));
}

/** Tells what was spent, what is reserved, and what is left; where that pays no call, nothing is run. */
function showSpent(spending: Record<string, unknown>): void {
  const { usd, reservedUsd, unsettledUsd, leftUsd, paysCall } = spending;
  const [spent, inFlight, cancelled] = [Number(usd), Number(reservedUsd), Number(unsettledUsd)];
  setText(byId("spent"), dollars(spent));
  byId<HTMLMeterElement>("meter").value = spent + inFlight + cancelled;
  const sentences = [
    inFlight > 0 && `${dollars(inFlight)} reserved for calls in flight.`,
    cancelled > 0 &&
      `${dollars(cancelled)} reserved for calls that were cancelled and may be billed.`,
    `${dollars(Number(leftUsd))} left${paysCall ? "." : ", which pays no more calls: start the server again with --budget."}`,
  ];
  setText(byId("left"), sentences.filter(Boolean).join(" "));
  byId("live").querySelector("[type=submit]")?.setAttribute("aria-disabled", String(!paysCall));
}

/** A trace that grows. */
interface LiveTrace {
  readonly add: (step: TraceStep) => void;
  readonly trace: () => TraceFile;
  /** In milliseconds since its start. */
  readonly now: () => number;
  /** Whether it has begun and hasn't ended. */
  readonly isGoingOn: () => boolean;
}

function createLiveTrace(name: string): LiveTrace {
  const steps = new Map<string, TraceStep>();
  const startedAt = new Date();
  const now = () => Date.now() - startedAt.getTime();
  return {
    add: (step) => steps.set(step.path, step),
    now,
    isGoingOn: () => [...steps.values()].some(({ outcome }) => outcome === "unfinished"),
    trace: () => {
      const at = now();
      return {
        format: "effective-agents/trace",
        version: 1,
        name,
        origin: "live",
        startedAt: startedAt.toISOString(),
        steps: [...steps.values()].map((step) => untilNow(step, at)),
      };
    },
  };
}

/** What hasn't ended lasts until now. */
function untilNow(step: TraceStep, now: number): TraceStep {
  const lasts = <T extends { begin: number; ms: number; outcome: string }>(span: T): T =>
    span.outcome === "unfinished" ? { ...span, ms: Math.max(span.ms, now - span.begin) } : span;
  return { ...lasts(step), calls: step.calls.map(lasts) };
}

/** The server-sent events of a response. */
async function* eventsOf(response: Response): AsyncGenerator<{ event: string; data: unknown }> {
  if (!response.body) return;
  let rest = "";
  for await (const chunk of textOf(response.body)) {
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split("\n")
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).trimStart())
          .join("\n");
      const data = field("data");
      if (data) yield { event: field("event"), data: JSON.parse(data) };
    }
  }
}

async function* textOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    yield decoder.decode(chunk.value, { stream: true });
  }
}
