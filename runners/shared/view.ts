/**
 * Shows a run: as a tree that lives while it runs on a terminal, as plain lines in a pipe, as JSON.
 *
 * From effective-agents 0.1.0: runners/shared/view.ts
 */
import { createLogUpdate } from "log-update";
import type { TerminalInput } from "../../patterns/ask-terminal.ts";
import type { Budget } from "../../patterns/layers/budget.ts";
import type { TapeHeader } from "../../patterns/recording.ts";
import type { RunEvent } from "../../patterns/step.ts";
import { collectTrace, type Trace } from "../../patterns/trace-file.ts";
import { harmless, paintFor, plainLine, totalsLine, treeLines, wrap } from "./format.ts";
import type { Mode } from "./source.ts";
import { callsIn, totalsOf } from "./trace.ts";
import { dollars } from "./words.ts";

export interface View {
  /** What it has seen of the run. */
  readonly trace: Trace;
  /** Says where the replies come from. */
  readonly start: (source: TapeHeader | "scripted" | undefined) => void;
  readonly onEvent: (event: RunEvent) => void;
  /** Keeps out of the way while something else has the terminal. */
  readonly aside: <T>(work: () => Promise<T>) => Promise<T>;
  readonly end: (ending: Ending) => void;
  /** Shows how far it came, and what to do. */
  readonly fail: (message: string) => void;
}

export interface Ending {
  readonly result: unknown;
  readonly words: string;
  readonly budget: Budget | undefined;
  /** How many calls a broken recording had answers to. */
  readonly before: number;
  /** Paths of recorded calls that nobody asked for. */
  readonly unused: readonly string[];
}

interface Subject {
  readonly name: string;
  readonly title: string;
  readonly mode: Mode;
  readonly json: boolean;
}

/** Where it's shown. */
export interface Output {
  readonly stdout: NodeJS.WritableStream & {
    readonly isTTY?: boolean;
    readonly columns?: number;
  };
  readonly stderr: NodeJS.WritableStream;
}

/** Where it's shown and asked, and what the environment says of how. */
export interface Place {
  readonly output: Output;
  /** Where a person answers. Default: the process's own. */
  readonly input?: TerminalInput | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** Opens a view on one job's run. */
export function openView(subject: Subject, place: Place): View {
  if (subject.json) return jsonView(subject, place.output);
  const { TERM } = place.env;
  const isTerminal = place.output.stdout.isTTY && TERM !== "dumb";
  return isTerminal ? liveView(subject, place) : plainView(subject, place.output);
}

/** How often the times of calls in flight are drawn anew, in milliseconds. */
const REDRAW_MS = 100;

function liveView(subject: Subject, { output, env }: Place): View {
  const { stdout } = output;
  const trace = collectTrace();
  const paint = paintFor(stdout, env);
  const update = createLogUpdate(stdout);
  let timer: NodeJS.Timeout | undefined;
  let isAside = false;
  const columns = () => stdout.columns || 80;
  const tree = () =>
    treeLines(trace.steps(), { paint, columns: columns(), now: trace.now() }).join("\n");
  let drawnAt = 0;
  const draw = () => {
    if (isAside) return;
    update(tree());
    drawnAt = performance.now();
  };
  const stop = () => {
    clearInterval(timer);
    // Once more and for good: while it lived, a tree higher than the terminal was cut to fit.
    update.clear();
    update.done();
    stdout.write(`${tree()}\n`);
  };
  const totals = () => paint("bold", wrap(totalsLine(totalsOf(callsIn(trace.steps()))), columns()));
  return {
    trace,
    start: (source) => {
      const title = wrap(`${subject.name}  ${subject.title}`, columns());
      const bold = paint("bold", subject.name) + title.slice(subject.name.length);
      stdout.write(`${bold}\n${paint("dim", wrap(origin(subject, source), columns()))}\n`);
      timer = setInterval(draw, REDRAW_MS);
    },
    onEvent: (event) => {
      trace.onEvent(event);
      // Where much happens at once, as in a replay, the timer shows it.
      if (event.type !== "text" && performance.now() - drawnAt > REDRAW_MS / 2) draw();
    },
    aside: async (work) => {
      isAside = true;
      // With the cursor, which the tree hides.
      update.clear();
      update.done();
      return work().finally(() => {
        isAside = false;
        draw();
      });
    },
    end: ({ words, budget, before, unused }) => {
      stop();
      const money = wrap(moneyLines(budget, before), columns());
      stdout.write(`\n${wrap(harmless(words), columns())}\n\n${totals()}\n${money}\n`);
      warnUnused(unused, output);
    },
    fail: (message) => {
      if (timer) stop();
      if (callsIn(trace.steps()).length > 0) stdout.write(`\n${totals()}\n`);
      output.stderr.write(`${harmless(message)}\n`);
    },
  };
}

function plainView(subject: Subject, output: Output): View {
  const trace = collectTrace();
  const write = (text: string) => output.stdout.write(text);
  return {
    trace,
    start: (source) => write(`${subject.name}  ${subject.title}\n${origin(subject, source)}\n`),
    onEvent: (event) => {
      trace.onEvent(event);
      if (event.type !== "end" || event.kind !== "step" || !event.path.includes("/")) return;
      const steps = trace.steps();
      const step = steps.find(({ path }) => path === event.path);
      const hasSteps = steps.some(({ path }) => path.startsWith(`${event.path}/`));
      const says = step && (step.calls.length > 0 || step.toolCall !== undefined || !hasSteps);
      if (says) write(`${plainLine(step)}\n`);
    },
    aside: (work) => work(),
    end: ({ words, budget, before, unused }) => {
      write(
        `\n${harmless(words)}\n\n${totalsLine(totalsOf(callsIn(trace.steps())))}\n${moneyLines(budget, before)}\n`,
      );
      warnUnused(unused, output);
    },
    fail: (message) => {
      if (callsIn(trace.steps()).length > 0)
        write(`\n${totalsLine(totalsOf(callsIn(trace.steps())))}\n`);
      output.stderr.write(`${harmless(message)}\n`);
    },
  };
}

function jsonView({ name, mode }: Subject, { stdout, stderr }: Output): View {
  const trace = collectTrace();
  let isScripted = false;
  const print = (rest: object) => {
    const calls = callsIn(trace.steps());
    const subject = { pattern: name, mode, ...(isScripted && { isScripted }) };
    const figures = { calls: calls.map(figuresOf), totals: totalsOf(calls) };
    stdout.write(`${JSON.stringify({ ...subject, ...rest, ...figures }, replacer)}\n`);
  };
  return {
    trace,
    start: (source) => {
      isScripted = source === "scripted";
    },
    onEvent: trace.onEvent,
    aside: (work) => work(),
    end: ({ result, before, unused }) =>
      print({ result, ...(before > 0 && { before }), ...(unused.length > 0 && { unused }) }),
    fail: (message) => {
      print({ error: message });
      stderr.write(`${harmless(message)}\n`);
    },
  };
}

function origin({ mode }: Subject, recorded: TapeHeader | "scripted" | undefined): string {
  if (recorded === "scripted") return "scripted: a function plays the API; nothing is spent";
  if (!recorded || mode !== "replay") return mode === "record" ? "recording" : "live";
  const day = recorded.date.slice(0, 10);
  if (recorded.origin === "api")
    return `replayed, recorded from the API on ${day}; nothing is spent`;
  return `replayed, transcribed on ${day}: times and token counts are estimates; nothing is spent`;
}

function moneyLines(budget: Budget | undefined, before: number): string {
  const were = before === 1 ? "was" : "were";
  const free = `${before} of the calls had been recorded before and ${were} not paid again\n`;
  return (before > 0 ? free : "") + budgetLine(budget);
}

function budgetLine(budget: Budget | undefined): string {
  if (!budget) return "";
  const [spent, open] = [budget.spent().usd, budget.unsettled().usd];
  const most = open > 0 ? `, at most ${dollars(spent + open)} with calls that ended unsettled` : "";
  return `budget: ${dollars(spent)} spent${most}\n`;
}

function warnUnused(unused: readonly string[], { stderr }: Output): void {
  if (unused.length === 0) return;
  stderr.write(`The recording holds calls that nobody asked for: ${unused.join(", ")}\n`);
}

/** A call without what was said in it: that is for a trace. */
function figuresOf(call: ReturnType<typeof callsIn>[number]) {
  const {
    outcome: state,
    request: _,
    messagesFrom: __,
    reply: ___,
    error: ____,
    ...figures
  } = call;
  return { state, ...figures };
}

/** An error's own fields aren't enumerable, and JSON would leave them out. */
function replacer(_: string, value: unknown): unknown {
  return value instanceof Error ? { ...value, name: value.name, message: value.message } : value;
}
