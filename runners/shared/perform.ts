/**
 * Performs jobs: opens the source of each one's replies, shows what happens, prints the result.
 *
 * From effective-agents 0.1.0: runners/shared/perform.ts
 */
import { fileURLToPath } from "node:url";
import { createBudget } from "../../patterns/layers/budget.ts";
import { observe } from "../../patterns/step.ts";
import { askingFor } from "./asking.ts";
import { explain } from "./explain.ts";
import { interruptible } from "./interrupt.ts";
import type { Job } from "./job.ts";
import { type Mode, openSource } from "./source.ts";
import type { Suspension } from "./suspension.ts";
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
  /** Where a run is kept that waits for an answer. Default: it doesn't wait, but asks. */
  readonly suspension?: Suspension | undefined;
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
  try {
    const budget =
      settings.budget === undefined ? undefined : createBudget({ usd: settings.budget });
    const usualModel = job.model;
    await using source = await openSource({ ...settings, file, usualModel, budget });
    const { door, header, model, recorded } = source;
    const { llmCall: llm, llmMessage } = door;
    const asking = askingFor(settings, place, view);
    const context = { llm, llmMessage, model, recorded, asking, suspension, signal };
    view.start(header);
    const { result, words } = await observe(view.onEvent, () => job.run(input, context));
    // A part of a run asks for a part of the recording.
    view.end({ result, words, budget, unused: suspension ? [] : source.unused() });
    await source.keep();
    return 0;
  } catch (error) {
    view.fail(signal.aborted ? "Stopped" : explain(error, mode === "live" ? name : undefined));
    return 1;
  }
}

function recordingOf(name: string): string {
  return fileURLToPath(new URL(`../recordings/${name}.jsonl`, import.meta.url));
}
