/**
 * A tool that writes, sends or pays runs only after a person has said `yes`.
 *
 *     call ─► copy ─► preview ─► ask ─┬─ "yes" ──► the same preview?
 *                        │            │               ├─ yes ─► run
 *                        │ can't be   │ all else      │ no
 *                        └────────────┴───────────────┴─► ToolError
 *
 * Use when a tool changes what can't be changed back. A tool that only looks needs no gate.
 *
 * Costs no call. The person is shown the exact call and its effect in words, and only once it has been
 * checked against the world. What was shown is frozen, and that is what runs: once for each call id, and
 * one call after the other, whatever a turn asks for at once. Whatever isn't `yes` declines: another
 * word, the end of input, an error, no answer in time. The model is told so, and what to do instead.
 *
 * Where the answer takes longer than a process lives, `ask` throws a `SuspendError`: `runAgent` then ends
 * with status `suspended`, and a later process goes on from its result, and asks again.
 *
 * Copy along: errors.ts, repo-tools/text.ts, step.ts, tool.ts, approve/
 * From effective-agents 0.1.0: patterns/approve.ts
 */
import {
  decidedAlready,
  declined,
  failed,
  messageOf,
  notRun,
  outdated,
} from "./approve/refusals.ts";
import {
  checkCount,
  checkFunction,
  checkText,
  HaltError,
  inWords,
  RecordingError,
} from "./errors.ts";
import { quoted, visible } from "./repo-tools/text.ts";
import { step } from "./step.ts";
import { defineTool, type Tool, type ToolContext, ToolError } from "./tool.ts";

/** What a person is asked. Nothing in it that can't be seen: `<U+202E>` where there was such a thing. */
export interface ApprovalRequest {
  /** The id of the model's call. */
  readonly callId: string;
  /** The exact call, such as `refund({ "order": "17", "cents": 950 })`. */
  readonly call: string;
  /** What it does, in words. */
  readonly effect: string;
}

/**
 * Asks a person, and gives what they said, or `undefined` where nobody did. The signal fires when the
 * run is cancelled or the time is up. Throws a `SuspendError` where the answer comes later.
 */
export type Ask = (
  request: ApprovalRequest,
  context: { readonly signal: AbortSignal },
) => string | undefined | Promise<string | undefined>;

/** How a person is asked. */
export interface ApprovalOptions {
  readonly ask: Ask;
  /** How long they have for each answer, in milliseconds. Default 600,000: ten minutes. */
  readonly timeoutMs?: number | undefined;
}

/** What is to be known of a tool before anybody is asked. */
export interface Gate<Input> {
  /**
   * Says in words what the call would do, now, or throws a `ToolError` where it can't be done. It's asked
   * again after the yes: if it says something else by then, the call doesn't run.
   */
  readonly preview: (input: Input, context: ToolContext) => string | Promise<string>;
  /** The result of this call if an earlier process ran it, else `undefined`. It's given to the model
   * again. Let it throw where the id is another call's: not every server makes them unique. */
  readonly done?: (
    callId: string,
    input: Input,
  ) => string | undefined | null | Promise<string | undefined | null>;
}

/** Puts a tool behind the gate. */
export type Approve = <Input>(tool: Tool<Input>, gate: Gate<Input>) => Tool;

/** A timer that is set to more fires at once. */
const MAX_TIMER_MS = 2_147_483_647;

/**
 * Makes a gate: all tools behind it are asked for one after the other. Make one for each run.
 *
 * @throws {TypeError} `ask`, or a tool's `preview`, is no function.
 * @throws {RangeError} `timeoutMs` isn't from 1 to 2,147,483,647.
 *
 * @example
 * const approve = createApproval({ ask: askOnTerminal(process.stdin, process.stderr) });
 * const remove = approve(removeFile, { preview: ({ path }) => `Deletes ${path} for good.` });
 * const result = await runAgent("Clean up", { tools: [listFiles, remove] });
 */
export function createApproval({ ask, timeoutMs = 600_000 }: ApprovalOptions): Approve {
  checkFunction("ask", ask);
  checkCount("timeoutMs", timeoutMs, 1, MAX_TIMER_MS);
  /** The calls that are decided, or being decided. */
  const taken = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();

  return <Input>(tool: Tool<Input>, { preview, done }: Gate<Input>) => {
    checkFunction("preview", preview);
    checkFunction("done", done, true);
    const effectOf = async (input: Input, context: ToolContext) => {
      const effect = await preview(input, context);
      checkText("preview", effect);
      return seen(effect);
    };

    const run = async (input: Input, context: ToolContext) => {
      const { callId, signal } = context;
      let request: ApprovalRequest;
      let objection: string | undefined;
      try {
        signal?.throwIfAborted();
        const earlier = await done?.(callId, input);
        if (typeof earlier === "string") return earlier;
        const call = seen(`${tool.name}(${spaced(input)})`);
        const effect = await effectOf(input, context);
        request = Object.freeze({ callId, call, effect });
        objection = await objectionTo(request, ask, timeoutMs, signal);
      } catch (error) {
        // Nobody has decided anything, so it may be asked for again.
        taken.delete(callId);
        throw error;
      }
      if (objection !== undefined) throw declined(request, objection);
      const now = await effectOf(input, context).catch((error: unknown) => {
        throw error instanceof ToolError || error instanceof HaltError
          ? error
          : notRun(request, error);
      });
      if (now !== request.effect) throw outdated(request, now);
      signal?.throwIfAborted();
      return runApproved(async () => tool.run(input, context), request);
    };

    return defineTool<Input>({
      ...tool,
      run: async (given, context) => {
        checkText("callId", context.callId);
        if (taken.has(context.callId)) throw decidedAlready(context.callId);
        // Now, before anybody else can change it.
        const input = snapshot(given);
        taken.add(context.callId);
        const mine = last.then(() => run(input, context));
        last = mine.catch(() => {});
        return mine;
      },
    });
  };
}

/** Whether it is the word, blanks and the line's end around it apart. */
export function isYes(answer: unknown): boolean {
  return typeof answer === "string" && /^[ \t\r\n]*yes[ \t\r\n]*$/.test(answer);
}

/** Why a call must not run, or `undefined` for a yes. */
async function objectionTo(
  request: ApprovalRequest,
  ask: Ask,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const late = new AbortController();
  // It leaks some bytes on a signal that lives long, which calls that a person answers can bear.
  const either = AbortSignal.any(signal ? [signal, late.signal] : [late.signal]);
  const cut = new Promise<never>((_, reject) => {
    either.addEventListener("abort", () => reject(either.reason), { once: true });
  });
  const tooLate = new Error(`nobody answered within ${timeoutMs / 1000} s`);
  // A timer that keeps the process alive: else it could end without a word, the run with it.
  const timer = setTimeout(() => late.abort(tooLate), timeoutMs);
  try {
    const asked = async () => ask(request, { signal: either });
    const said = await step("ask", () => Promise.race([asked(), cut]), signal);
    if (isYes(said)) return undefined;
    // What plain JavaScript hands over may be anything.
    const words = said === undefined || said === null ? "" : inWords(said).trim();
    return words ? `the person who was asked said ${quoted(words)}` : "nobody answered";
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof HaltError) throw error;
    return error === tooLate ? tooLate.message : `nobody could be asked (${messageOf(error)})`;
  } finally {
    clearTimeout(timer);
  }
}

/** The text with whatever is shown as nothing, or as a blank, written as its code: `a<U+200D>b`. */
function seen(text: string): string {
  return visible(text).replace(/\p{Default_Ignorable_Code_Point}|\u2800/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

async function runApproved(run: () => Promise<string>, request: ApprovalRequest): Promise<string> {
  try {
    return await run();
  } catch (error) {
    // One that waits, or met a budget's end, may have taken effect by then, and must not be run again.
    if (error instanceof ToolError || error instanceof RecordingError) throw error;
    throw failed(request, error);
  }
}

/** A copy that nothing can change. What JSON doesn't show isn't in it, so that what is shown is all. */
function snapshot<Input>(input: Input): Input {
  return JSON.parse(JSON.stringify(input), (_, value) => Object.freeze(value));
}

/** JSON on one line, with blanks between its parts; a line's end inside of a text is `\\n` there. */
function spaced(input: unknown): string {
  return JSON.stringify(input, null, 1).replace(/\n\s*/g, " ");
}
