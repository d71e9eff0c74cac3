/**
 * The runs that the gallery shows: the recordings replayed, and what is scripted run anew.
 */
import { existsSync } from "node:fs";
import { FIRST_TOKEN_MS, OUTPUT_TOKENS_PER_SECOND } from "../../patterns/recording/clock.ts";
import { observe, type RunEvent } from "../../patterns/step.ts";
import { collectTrace, type TraceFile } from "../../patterns/trace-file.ts";
import type { Failure, Outcome } from "../failures/failure.ts";
import type { Job } from "../shared/job.ts";
import { factsOf, recordingOf, runJob } from "../shared/perform.ts";
import { openSource } from "../shared/source.ts";

/** Replays a job's recording, or runs its script; `undefined` where it has neither. */
export async function recordedRun(name: string, job: Job): Promise<TraceFile | undefined> {
  const { title, input, scripted } = job;
  const file = recordingOf(name);
  if (!existsSync(file) && !scripted) return undefined;
  await using source = await openSource({ mode: "replay", file, scripted });
  const trace = collectTrace();
  const { result } = await runJob(job, input, source, {
    onEvent: source.isScripted ? withEstimatedTimes(trace.onEvent) : trace.onEvent,
    mode: "replay",
    left: () => Infinity,
    asking: (script) => script,
    suspension: undefined,
    signal: undefined,
  });
  return trace.file({ title, ...factsOf(source, "replay"), result });
}

/** A failure of the lab, with the catch in place. */
export interface CaughtRun {
  readonly trace: TraceFile;
  readonly caught: Outcome;
  /** What came of the same run without the catch. */
  readonly uncaught: Outcome;
}

/** Runs a failure of the lab. */
export async function failureRun(failure: Failure): Promise<CaughtRun> {
  const trace = collectTrace();
  const caught = await observe(withEstimatedTimes(trace.onEvent), () => failure.run(true));
  const uncaught = await failure.run(false);
  return { trace: trace.file({ origin: "scripted", title: failure.title }), caught, uncaught };
}

/**
 * Gives a scripted model's calls the times that a model's would have, estimated as those of a transcribed
 * recording are: a call begins when all that had ended before it have.
 */
function withEstimatedTimes(onEvent: (event: RunEvent) => void): (event: RunEvent) => void {
  const begins = new Map<string, number>();
  let now = 0;
  return (event) => {
    if (event.type === "text" || event.kind === "step") return onEvent(event);
    if (event.type === "start") {
      begins.set(event.path, now);
      return onEvent(event);
    }
    const begin = begins.get(event.path) ?? now;
    const seconds = (event.usage?.output_tokens ?? 0) / OUTPUT_TOKENS_PER_SECOND;
    const ms = Math.round(FIRST_TOKEN_MS + seconds * 1_000);
    now = Math.max(now, begin + ms);
    onEvent({ ...event, notes: { ...event.notes, recorded: { begin, ms, estimated: true } } });
  };
}
