/**
 * Performs jobs: opens the recording or the API for each, shows what happens, prints the result.
 */
import { rename } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { RecordingError } from "../../patterns/errors.ts";
import { type Budget, createBudget } from "../../patterns/layers/budget.ts";
import { createLlm, type Layer } from "../../patterns/llm-call.ts";
import {
  openRecording,
  type Recording,
  recordedClient,
  type TapeHeader,
} from "../../patterns/recording.ts";
import { observe } from "../../patterns/step.ts";
import { explain } from "./explain.ts";
import type { Job } from "./job.ts";
import { openView, type Place } from "./view.ts";

export type Mode = "replay" | "live" | "record";

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
}

/** Performs the jobs one after the other. Gives the exit code: 0, 1 for a failure, 130 for Ctrl-C. */
export async function perform(
  jobs: readonly (readonly [name: string, job: Job])[],
  settings: Settings,
  place: Place,
): Promise<number> {
  const interrupt = new AbortController();
  const onInterrupt = () => {
    if (interrupt.signal.aborted) return;
    interrupt.abort(new Error("interrupted"));
    // npm and tsx pass one Ctrl-C on again. A second one, later, ends the process, as without us.
    setTimeout(() => process.off("SIGINT", onInterrupt), 1_000).unref();
  };
  process.on("SIGINT", onInterrupt);
  let code = 0;
  for (const [name, job] of jobs) {
    code = Math.max(code, await performOne(name, job, settings, place, interrupt.signal));
    if (interrupt.signal.aborted) return 130;
  }
  process.off("SIGINT", onInterrupt);
  return code;
}

async function performOne(
  name: string,
  job: Job,
  settings: Settings,
  place: Place,
  signal: AbortSignal,
): Promise<number> {
  const { mode, input = job.input, json, model } = settings;
  const view = openView({ name, title: job.title, mode, json }, place);
  try {
    await using source = await openSource(name, settings);
    const { recording, client, budget } = source;
    const header = recording?.header;
    const layers: Layer[] = [];
    if (budget) layers.push(budget.layer);
    if (recording) layers.push(recording.layer);
    const { concurrency } = header ?? {};
    const llm = createLlm({ client, model: header?.model ?? model, concurrency, layers }).llmCall;
    view.start(header);
    const { result, words } = await observe(view.onEvent, () => job.run(input, { llm, signal }));
    view.end({
      result,
      words,
      budget,
      unused: mode === "replay" ? (recording?.unused() ?? []) : [],
    });
    await source.keep();
    return 0;
  } catch (error) {
    view.fail(signal.aborted ? "Stopped" : explain(error, mode === "live" ? name : undefined));
    return 1;
  }
}

interface Source extends AsyncDisposable {
  readonly client: Anthropic;
  readonly recording: Recording | undefined;
  readonly budget: Budget | undefined;
  /** Puts a finished recording in its place. */
  readonly keep: () => Promise<void>;
}

async function openSource(name: string, settings: Settings): Promise<Source> {
  const { mode, pace, model = MODEL, origin } = settings;
  const own = fileURLToPath(new URL(`../recordings/${name}.jsonl`, import.meta.url));
  const file = settings.recording ?? own;
  // Before anything is written.
  if (mode !== "replay") await checkCredentials(new Anthropic());
  const recording =
    mode === "replay"
      ? await openRecording(file, { mode, pace })
      : mode === "record"
        ? // Beside the old one until it's whole: what broke off can be gone on with, and isn't paid twice.
          await openRecording(`${file}.partial`, { mode: "resume", model, concurrency: 8, origin })
        : undefined;
  if (mode === "record" && recording) checkGoesOn(recording.header, settings);
  const client = recording ? recordedClient(recording) : new Anthropic();
  return {
    client,
    recording,
    budget: settings.budget === undefined ? undefined : createBudget({ usd: settings.budget }),
    keep: async () => {
      await recording?.close();
      if (mode === "record") await rename(`${file}.partial`, file);
    },
    [Symbol.asyncDispose]: async () => recording?.close(),
  };
}

/** What broke off is gone on with as it was begun: its header speaks for all of its calls. */
function checkGoesOn(begun: TapeHeader, { model = begun.model, origin }: Settings): void {
  if (begun.model === model && begun.origin === origin) return;
  throw new RecordingError(
    `The broken recording was begun with ${begun.model} (${begun.origin}), and this is ${model} (${origin}): go on as it was begun, or delete its .partial file`,
  );
}

/** The shared door's default, for the header of a recording. */
const MODEL = "claude-sonnet-5-5";

/** Has the SDK look for a key, a token or a profile as it would for a call, and sends nothing. */
async function checkCredentials(client: Anthropic): Promise<void> {
  const ready = new Error("ready to send");
  const stopped = client.withOptions({ middleware: [() => Promise.reject(ready)], maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "?" }];
  try {
    await stopped.messages.create({ model: MODEL, max_tokens: 1, messages });
  } catch (error) {
    if (error !== ready) throw error;
  }
}
