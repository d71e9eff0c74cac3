/**
 * The command line of the runners.
 *
 *   npm start                            replays every recording: no key, no network
 *   npm start route                      replays one
 *   npm run live route "my own ticket"   calls the API
 *   npm run record route                 calls the API and records
 *   npm start failures                   the failure lab, which has its own command line
 *
 * Flags go behind `--`, as npm keeps those before it for itself: `npm start route -- --json`.
 */
import { existsSync } from "node:fs";
import type { TerminalInput } from "../../patterns/ask-terminal.ts";
import { UsageError } from "./explain.ts";
import { checkKept, readFlags, readModel, readNumber, readPath } from "./flags.ts";
import { type LoadJob, perform, recordingOf } from "./perform.ts";
import { type Mode, partialOf } from "./source.ts";
import { openSuspension, type Suspension } from "./suspension.ts";
import { openTraceOutput } from "./trace-output.ts";
import type { Output } from "./view.ts";

/** Each is loaded when its turn comes, so that none waits for what another needs. */
export const JOBS: ReadonlyMap<string, LoadJob> = new Map(
  Object.entries({
    chain: () => import("../chain.ts"),
    route: () => import("../route.ts"),
    section: () => import("../section.ts"),
    vote: () => import("../vote.ts"),
    orchestrate: () => import("../orchestrate.ts"),
    refine: () => import("../refine.ts"),
    agent: () => import("../agent.ts"),
    subagent: () => import("../subagent.ts"),
    levels: () => import("../levels.ts"),
    refund: () => import("../refund.ts"),
    context: () => import("../context.ts"),
  }),
);

/** No pattern, and replays nothing: it has a command line of its own. */
const LAB = "failures";

const FLAGS = {
  json: { type: "boolean" },
  pace: { type: "string" },
  model: { type: "string" },
  budget: { type: "string" },
  recording: { type: "string" },
  transcribed: { type: "boolean" },
  trace: { type: "string" },
  suspend: { type: "string" },
  resume: { type: "string" },
  answer: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

const HELP = `npm start [pattern]                    replay all recordings, or one; needs no key
npm run live <pattern> ["your input"]  call the API
npm run record [pattern]               call the API and record; goes on with a recording that broke off

npm start failures [failure]           watch the ways in which agents fail, and what catches each

Patterns: ${[...JOBS.keys()].join(", ")}

Flags go behind --, as in: npm start route -- --json
  --json              print the result and the calls as JSON, a line a pattern
  --pace <number>     replay at a multiple of the recorded time: 1 as it was, default 0, at once
  --model <id>        live and record: the model (else ANTHROPIC_MODEL, else claude-sonnet-5-5, and
                      claude-opus-5-5 for the agents)
  --budget <dollars>  live and record: the most to spend
  --recording <file>  another recording than the one in runners/recordings (with one pattern)
  --transcribed       record: the replies don't come from the API, so times are to be estimated
  --trace <file>      write the run with its prompts and replies, for npm run gallery -- <file>
  --suspend <file>    refund: end at the first question, and keep the run in this file
  --resume <file>     refund: go on with a suspended run, up to the next question
  --answer <text>     with --resume: what the person said; only yes runs what was shown`;

/** Runs a command line, and gives the exit code: 0, 1 for a failure, 2 for a wrong command, 130. */
export async function main(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  output: Output = process,
  stdin?: TerminalInput,
): Promise<number> {
  const lab = labCommand(argv);
  if (lab) {
    // Loaded when it's asked for, so that no pattern waits for it.
    const { main } = await import("./failures-cli.ts");
    return main(lab, env, output);
  }
  try {
    const command = readCommand(argv, env);
    const { mode, jobs, input, flags } = command;
    if (flags.help) {
      output.stdout.write(`${HELP}\n`);
      return 0;
    }
    await checkInput(command);
    const given = readSettings(mode, jobs.length, flags, env);
    const suspension = await readSuspension(command, env);
    const writeTrace = await readTraceOutput(command, env);
    const replayCommand = `npm ${commandOf("replay")}`;
    const settings = { mode, input, ...given, replayCommand, suspension, writeTrace };
    const left = mode === "record" ? fromBroken(jobs, output) : jobs;
    return await perform(left, settings, { env, output, input: stdin });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    output.stderr.write(`${error.message}\n`);
    return 2;
  }
}

/** Recording all of them goes on with the one that broke off: those before it are whole. */
function fromBroken(jobs: Command["jobs"], { stderr }: Output): Command["jobs"] {
  const at = jobs.findIndex(([name]) => existsSync(partialOf(recordingOf(name))));
  if (at < 1) return jobs;
  stderr.write(`Going on with ${jobs[at]?.[0]}, which broke off: those before it are recorded\n`);
  return jobs.slice(at);
}

/** What the failure lab is asked for, if it is. */
function labCommand([mode, ...args]: readonly string[]): readonly string[] | undefined {
  const at = args.findIndex((arg) => !arg.startsWith("-"));
  return mode === "replay" && args[at] === LAB ? args.toSpliced(at, 1) : undefined;
}

function readCommand(argv: readonly string[], env: NodeJS.ProcessEnv) {
  const [mode = "", ...args] = argv;
  if (mode !== "replay" && mode !== "live" && mode !== "record") {
    throw new UsageError(`Start it with npm start, npm run live or npm run record, not "${mode}"`);
  }
  const pattern = args.find((arg) => JOBS.has(arg)) ?? "route";
  checkKept(FLAGS, env, `npm ${commandOf(mode)} ${pattern}`);

  const { values: flags, positionals } = readFlags(args, FLAGS, "npm start -- --help");
  const [name, input, ...rest] = positionals;
  if (rest.length > 0)
    throw new UsageError(`One input at a time: put it in quotes, and flags behind --`);
  if (name === undefined && mode === "live" && !flags.help) {
    throw new UsageError(`Which pattern? npm run live <pattern> ["your input"]; ${LIST}`);
  }
  if (name === LAB) {
    const why = "The failure lab has a command of its own, and asks no model";
    throw new UsageError(`${why}: npm start failures`);
  }
  const job = name === undefined ? undefined : JOBS.get(name);
  if (name !== undefined && !job) throw new UsageError(`There is no pattern "${name}"; ${LIST}`);
  const jobs = name !== undefined && job ? [[name, job] as const] : [...JOBS];
  return { mode, jobs, input, flags } satisfies { mode: Mode; [key: string]: unknown };
}

/** An input of one's own goes with a job that takes one, and with the API, or a recording made of it. */
async function checkInput({ mode, jobs: [first], input, flags }: Command): Promise<void> {
  if (input === undefined || !first) return;
  const [name, load] = first;
  const { job } = await load();
  if (job.takesInput === false) {
    throw new UsageError(`${name} takes no input but its own: leave yours out`);
  }
  if (mode !== "live" && !flags.recording) {
    const isReplay = mode === "replay";
    const why = isReplay ? "" : "Recordings are of the runners' own input. ";
    throw new UsageError(`${why}Your own needs the API: npm run live ${name} "${excerpt(input)}"`);
  }
  if (input.trim() === "") throw new UsageError("The input is empty");
}

const LIST = `there are ${[...JOBS.keys()].join(", ")}`;

type Command = ReturnType<typeof readCommand>;
type Flags = Command["flags"];

function readSettings(mode: Mode, count: number, flags: Flags, env: NodeJS.ProcessEnv) {
  const isReplay = mode === "replay";
  if (flags.pace !== undefined && !isReplay)
    throw new UsageError("--pace goes with npm start only");
  for (const flag of ["model", "budget"] as const) {
    if (flags[flag] === undefined || !isReplay) continue;
    throw new UsageError(
      `--${flag} goes with live and record: a replay costs nothing and asks no model`,
    );
  }
  if (flags.transcribed && mode !== "record")
    throw new UsageError("--transcribed goes with record only");
  if (flags.recording !== undefined && (count > 1 || mode === "live")) {
    throw new UsageError("--recording goes with one pattern, in npm start or npm run record");
  }
  return {
    json: flags.json ?? false,
    pace: readNumber("pace", flags.pace, 0) ?? 0,
    budget: readNumber("budget", flags.budget, Number.MIN_VALUE),
    model: isReplay ? undefined : readModel(flags.model, env),
    recording: flags.recording === undefined ? undefined : readPath(flags.recording, env),
    origin: flags.transcribed ? ("transcribed" as const) : ("api" as const),
  };
}

/** Where the run's trace goes, if it's to be kept. */
async function readTraceOutput({ jobs, flags }: Command, env: NodeJS.ProcessEnv) {
  if (flags.trace === undefined) return undefined;
  if (jobs.length > 1) throw new UsageError("--trace goes with one pattern: name it");
  return openTraceOutput(readPath(flags.trace, env));
}

/** Whether a run is suspended or gone on with, which goes with a job that asks a person. */
async function readSuspension(
  { mode, jobs, input, flags }: Command,
  env: NodeJS.ProcessEnv,
): Promise<Suspension | undefined> {
  const { answer } = flags;
  const [suspend, resume] = [flags.suspend, flags.resume].map((file) =>
    file === undefined ? undefined : readPath(file, env),
  );
  const flag = Object.entries({ suspend, resume, answer }).find(([, value]) => value !== undefined);
  if (!flag) return undefined;
  const [[name = "", load] = [], ...others] = jobs;
  const { job } = (await load?.()) ?? {};
  if (others.length > 0 || !job?.suspends) {
    throw new UsageError(`--${flag[0]} goes with refund, the job that asks a person`);
  }
  if (mode === "record") {
    throw new UsageError(`--${flag[0]} goes with npm start and npm run live: recordings are whole`);
  }
  if (resume !== undefined && input !== undefined)
    throw new UsageError(
      "--resume goes on with the input that the run began with: leave yours out",
    );
  return openSuspension({ suspend, resume, answer }, `npm ${commandOf(mode)} ${name}`);
}

function commandOf(mode: Mode): string {
  return mode === "replay" ? "start" : `run ${mode}`;
}

function excerpt(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
