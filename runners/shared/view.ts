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
import { dollars, harmless, paintFor, plainLine, totalsLine, treeLines, wrap } from "./format.ts";
import type { Mode } from "./source.ts";
import { createTrace, totalsOf } from "./trace.ts";

export interface View {
  readonly start: (recorded: TapeHeader | undefined) => void;
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
  const isTerminal = place.output.stdout.isTTY && place.env.TERM !== "dumb";
  return isTerminal ? liveView(subject, place) : plainView(subject, place.output);
}

/** How often the times of calls in flight are drawn anew, in milliseconds. */
const REDRAW_MS = 100;

function liveView(subject: Subject, { output, env }: Place): View {
  const { stdout } = output;
  const trace = createTrace();
  const paint = paintFor(stdout, env);
  const update = createLogUpdate(stdout);
  const startedAt = Date.now();
  let timer: NodeJS.Timeout | undefined;
  let isAside = false;
  const columns = () => stdout.columns || 80;
  const tree = () =>
    treeLines(trace.nodes(), { paint, columns: columns(), now: Date.now() - startedAt }).join("\n");
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
  const totals = () => paint("bold", wrap(totalsLine(totalsOf(trace.calls())), columns()));
  return {
    start: (recorded) => {
      const title = wrap(`${subject.name}  ${subject.title}`, columns());
      const bold = paint("bold", subject.name) + title.slice(subject.name.length);
      stdout.write(`${bold}\n${paint("dim", wrap(origin(subject, recorded), columns()))}\n`);
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
    end: ({ words, budget, unused }) => {
      stop();
      const money = wrap(budgetLine(budget), columns());
      stdout.write(`\n${wrap(harmless(words), columns())}\n\n${totals()}\n${money}\n`);
      warnUnused(unused, output);
    },
    fail: (message) => {
      if (timer) stop();
      if (trace.calls().length > 0) stdout.write(`\n${totals()}\n`);
      output.stderr.write(`${harmless(message)}\n`);
    },
  };
}

function plainView(subject: Subject, output: Output): View {
  const trace = createTrace();
  const write = (text: string) => output.stdout.write(text);
  return {
    start: (recorded) => write(`${subject.name}  ${subject.title}\n${origin(subject, recorded)}\n`),
    onEvent: (event) => {
      trace.onEvent(event);
      if (event.type !== "end" || event.kind !== "step" || !event.path.includes("/")) return;
      const node = trace.nodes().find(({ path }) => path === event.path);
      const hasSteps = trace.nodes().some(({ path }) => path.startsWith(`${event.path}/`));
      const says = node && (node.calls.length > 0 || node.toolCall !== undefined || !hasSteps);
      if (says) write(`${plainLine(node)}\n`);
    },
    aside: (work) => work(),
    end: ({ words, budget, unused }) => {
      write(
        `\n${harmless(words)}\n\n${totalsLine(totalsOf(trace.calls()))}\n${budgetLine(budget)}\n`,
      );
      warnUnused(unused, output);
    },
    fail: (message) => {
      if (trace.calls().length > 0) write(`\n${totalsLine(totalsOf(trace.calls()))}\n`);
      output.stderr.write(`${harmless(message)}\n`);
    },
  };
}

function jsonView({ name, mode }: Subject, { stdout, stderr }: Output): View {
  const trace = createTrace();
  const print = (rest: object) => {
    const totals = totalsOf(trace.calls());
    stdout.write(
      `${JSON.stringify({ pattern: name, mode, ...rest, calls: trace.calls(), totals }, replacer)}\n`,
    );
  };
  return {
    start: () => {},
    onEvent: trace.onEvent,
    aside: (work) => work(),
    end: ({ result, unused }) => print({ result, ...(unused.length > 0 && { unused }) }),
    fail: (message) => {
      print({ error: message });
      stderr.write(`${harmless(message)}\n`);
    },
  };
}

function origin({ mode }: Subject, recorded: TapeHeader | undefined): string {
  if (!recorded || mode !== "replay") return mode === "record" ? "recording" : "live";
  const day = recorded.date.slice(0, 10);
  if (recorded.origin === "api")
    return `replayed, recorded from the API on ${day}; nothing is spent`;
  return `replayed, transcribed on ${day}: times and token counts are estimates; nothing is spent`;
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

/** An error's own fields aren't enumerable, and JSON would leave them out. */
function replacer(_: string, value: unknown): unknown {
  return value instanceof Error ? { ...value, name: value.name, message: value.message } : value;
}
