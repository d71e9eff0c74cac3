/**
 * Where a run's replies come from: a recording, the API, or the API with a recording made of it.
 *
 * From effective-agents 0.1.0: runners/shared/source.ts
 */
import { existsSync } from "node:fs";
import { rename } from "node:fs/promises";
import Anthropic from "@anthropic-ai/sdk";
import { RecordingError } from "../../patterns/errors.ts";
import type { Budget } from "../../patterns/layers/budget.ts";
import { createLlm, type Layer, type Llm } from "../../patterns/llm-call.ts";
import { recordedTools } from "../../patterns/recorded-tools.ts";
import { holdTape } from "../../patterns/recording/lock.ts";
import { openRecording, recordedClient, type TapeHeader } from "../../patterns/recording.ts";
import type { Tool } from "../../patterns/tool.ts";
import { layered } from "./layered.ts";

export type Mode = "replay" | "live" | "record";

/** How to open a source. */
export type SourceSettings = Common &
  (
    | { readonly mode: "live"; readonly file?: string }
    /** With the recording's file. */
    | { readonly mode: "replay" | "record"; readonly file: string }
  );

interface Common {
  /** The model to ask. Default: whatever the run asks for. */
  readonly model?: string | undefined;
  /** What that is, for the header of a new recording. Default `claude-sonnet-5-5`. */
  readonly usualModel?: string | undefined;
  /** Of a replay: how much of the recorded time passes. Default 0. */
  readonly pace?: number | undefined;
  /** What there is to spend, of this source or of several. Default: no limit. */
  readonly budget?: Budget | undefined;
  /** Of a replay without a recording: plays the API. Default: then there is nothing to replay. */
  readonly scripted?: (() => Anthropic) | undefined;
  /** Of a new recording: where the replies come from. Default `api`. */
  readonly origin?: TapeHeader["origin"] | undefined;
}

type RecordSettings = Common & { readonly file: string };

/** An open source. */
export interface Source extends AsyncDisposable {
  readonly door: Llm;
  /** The SDK's client, with the door's layers around each of its calls. */
  readonly client: Anthropic;
  /** The recording's, if there is one. */
  readonly header: TapeHeader | undefined;
  /** Whether a script plays the API. */
  readonly isScripted: boolean;
  /** The model to ask: the recording's own, or the one that was asked for. */
  readonly model: string | undefined;
  /** The tools as a run may use them: in a replay they give what they gave when it was recorded. */
  readonly recorded: (tools: readonly Tool[]) => readonly Tool[];
  /** Paths of recorded calls that a replay didn't ask for. */
  readonly unused: () => readonly string[];
  /** Puts a finished recording in its place. */
  readonly keep: () => Promise<void>;
}

/** The shared door's default. */
const MODEL = "claude-sonnet-5-5";

/**
 * Opens a source.
 *
 * @throws What the SDK throws where there is no key, before anything is written or sent.
 * @throws {RecordingError} There is nothing to replay, a broken recording was begun otherwise, or another
 *   process is recording to this file.
 */
export async function openSource(settings: SourceSettings): Promise<Source> {
  const { mode, file, pace } = settings;
  // Before anything is written.
  if (mode !== "replay") await checkCredentials(new Anthropic());
  const script = mode === "replay" && !existsSync(file) ? settings.scripted : undefined;
  const partial = mode === "record" ? await openPartial({ ...settings, file }) : undefined;
  const isReplayed = mode === "replay" && !script;
  const recording = isReplayed ? await openRecording(file, { mode, pace }) : partial?.recording;
  const layers: Layer[] = [];
  if (settings.budget) layers.push(settings.budget.layer);
  if (recording) layers.push(recording.layer);
  const { header } = recording ?? {};
  const model = header?.model ?? settings.model;
  const client = recording ? recordedClient(recording) : (script?.() ?? new Anthropic());
  return {
    door: createLlm({
      client,
      concurrency: header?.concurrency,
      model,
      layers,
    }),
    client: client.withOptions({ middleware: [layered(layers), ...client.middleware] }),
    header,
    isScripted: script !== undefined,
    model,
    recorded: (tools) => (recording ? recordedTools(tools, recording) : tools),
    unused: () => (mode === "replay" ? (recording?.unused() ?? []) : []),
    keep: async () => {
      await recording?.close();
      if (mode === "record") await rename(partialOf(file), file);
    },
    [Symbol.asyncDispose]: async () => {
      await recording?.close().finally(partial?.release);
    },
  };
}

/** Where a recording is until it's whole. */
export function partialOf(file: string): string {
  return `${file}.partial`;
}

/** Beside the old one until it's whole: what broke off can be gone on with, and isn't paid twice. */
async function openPartial(settings: RecordSettings) {
  // Until it's in its place: between its end and that, another process would go on with it.
  const release = await holdTape(settings.file);
  try {
    return { recording: await resumePartial(settings), release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function resumePartial({ file, model, usualModel = MODEL, origin = "api" }: RecordSettings) {
  const recording = await openRecording(partialOf(file), {
    mode: "resume",
    model: model ?? usualModel,
    concurrency: 8,
    origin,
  });
  const { header } = recording;
  // Its header speaks for all of its calls.
  if ((model ?? header.model) === header.model && origin === header.origin) return recording;
  await recording.close();
  throw new RecordingError(
    `The broken recording was begun with ${header.model} (${header.origin}), and this is ${model ?? header.model} (${origin}): go on as it was begun, or delete its .partial file`,
  );
}

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
