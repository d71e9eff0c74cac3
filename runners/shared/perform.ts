/**
 * Performs jobs: opens the source of each one's replies, shows what happens, prints the result.
 *
 * From effective-agents 0.1.0: runners/shared/perform.ts
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Budget, createBudget } from "../../patterns/layers/budget.ts";
import { observe, type RunEvent } from "../../patterns/step.ts";
import { notesOf } from "../../patterns/trace-file/clock.ts";
import type { RunFacts } from "../../patterns/trace-file.ts";
import { askingFor } from "./asking.ts";
import { explain } from "./explain.ts";
import { interruptible } from "./interrupt.ts";
import type { Job, JobContext, JobResult } from "./job.ts";
import { type Mode, openSource, partialOf, type Source } from "./source.ts";
import type { Suspension } from "./suspension.ts";
import type { WriteTrace } from "./trace-output.ts";
import { openView, type Place } from "./view.ts";

export interface Settings {
  readonly mode: Mode;
  /** Default: the job's own. */
  readonly input: string | undefined;
  readonly json: boolean;
  readonly pace: number;
  /** In US dollars. */
  readonly budget: number | undefined;
  readonly model: string | undefined;
  /** The recording's file. Default: the pattern's own. */
  readonly recording: string | undefined;
  readonly origin: "api" | "transcribed";
  /** The command that replays a job, followed by the job's name. */
  readonly replayCommand: string;
  /** Where a run is kept that waits for an answer. Default: it doesn't wait, but asks. */
  readonly suspension?: Suspension | undefined;
  /** Writes the run's trace, if it's to be kept. */
  readonly writeTrace?: WriteTrace | undefined;
}

/** Loads the module of a runner. */
export type LoadJob = () => Promise<{ readonly job: Job }>;

/** Performs the jobs one after the other. Gives the exit code: 0, 1 for a failure, 130 for Ctrl-C. */
export async function perform(
  jobs: readonly (readonly [name: string, load: LoadJob])[],
  settings: Settings,
  place: Place,
): Promise<number> {
  return interruptible(async (signal) => {
    let code = 0;
    for (const [name, load] of jobs) {
      const { job } = await load();
      code = Math.max(code, await performOne(name, job, settings, place, signal));
      if (signal.aborted) return 130;
    }
    return code;
  });
}

async function performOne(
  name: string,
  job: Job,
  settings: Settings,
  place: Place,
  signal: AbortSignal,
): Promise<number> {
  const { mode, input = job.input, json, suspension } = settings;
  const { recording: file = recordingOf(name) } = settings;
  const view = openView({ name, title: job.title, mode, json }, place);
  let facts: RunFacts = { origin: "live", title: job.title };
  let isOpen = false;
  let before = 0;
  const onEvent = (event: RunEvent) => {
    if (mode === "record" && isReplayed(event)) before += 1;
    view.onEvent(event);
  };
  let code = 0;
  try {
    const budget =
      settings.budget === undefined ? undefined : createBudget({ usd: settings.budget });
    const usualModel = job.model;
    const { scripted } = job;
    await using source = await openSource({ ...settings, file, usualModel, budget, scripted });
    isOpen = true;
    const asking = askingFor(settings, place, view);
    const left = () => leftOf(budget, settings);
    view.start(source.isScripted ? "scripted" : source.header);
    facts = { ...facts, ...factsOf(source, mode) };
    const around = { mode, left, asking, suspension, signal, columns: columnsOf(place.output) };
    const { result, words } = await runJob(job, input, source, { ...around, onEvent });
    facts = { ...facts, result };
    // A part of a run asks for a part of the recording.
    view.end({ result, words, budget, before, unused: suspension ? [] : source.unused() });
    await source.keep();
  } catch (error) {
    const replay = mode === "live" ? `${settings.replayCommand} ${name}` : undefined;
    const why = signal.aborted ? "Stopped" : explain(error, replay);
    const kept = mode === "record" && isOpen ? keptAt(partialOf(file)) : "";
    view.fail(why + kept);
    code = 1;
  }
  // Of a run that failed too, as far as it came.
  if (view.trace.steps().length > 0) await settings.writeTrace?.(view.trace, facts);
  return code;
}

/** Whether a call was answered by what a broken recording holds. */
function isReplayed(event: RunEvent): boolean {
  return event.type === "end" && event.kind === "call" && notesOf(event).recorded !== undefined;
}

/** A bad reply is kept too, and would be bad again. */
function keptAt(partial: string): string {
  if (!existsSync(partial)) return "";
  return `\nWhat was recorded is kept: run it again to go on, or delete ${partial} to begin anew`;
}

/** What runs around a job. */
interface Around
  extends Pick<JobContext, "mode" | "left" | "asking" | "suspension" | "signal" | "columns"> {
  readonly onEvent: (event: RunEvent) => void;
}

/** Runs a job on the replies of a source. */
export async function runJob(
  job: Job,
  input: string,
  { door, client, model, recorded, isScripted }: Source,
  { onEvent, ...around }: Around,
): Promise<JobResult> {
  const { llmCall: llm, llmMessage } = door;
  const context = { llm, llmMessage, client, model, recorded, isScripted, ...around };
  return observe(isScripted ? unmetered(onEvent) : onEvent, () => job.run(input, context));
}

/** Without the token counts, which a script makes up. */
function unmetered(onEvent: (event: RunEvent) => void): (event: RunEvent) => void {
  return (event) => {
    if (event.type !== "end") return onEvent(event);
    const { usage: _, ...rest } = event;
    onEvent(rest);
  };
}

/** How long a line may be, in characters: in a pipe as long as most can be read. */
function columnsOf({ stdout }: Place["output"]): number {
  return stdout.isTTY ? stdout.columns || 80 : 100;
}

function leftOf(budget: Budget | undefined, { budget: usd = Infinity }: Settings): number {
  return budget ? usd - budget.spent().usd - budget.unsettled().usd : usd;
}

/** What the source says of the run. A replay's trace is that of the run that was recorded. */
export function factsOf({ header, isScripted }: Source, mode: Mode): RunFacts {
  if (isScripted) return { origin: "scripted" };
  if (!header) return { origin: "live" };
  return { origin: header.origin, ...(mode === "replay" && { startedAt: header.date }) };
}

/** Where a pattern's own recording is. */
export function recordingOf(name: string): string {
  return fileURLToPath(new URL(`../recordings/${name}.jsonl`, import.meta.url));
}
