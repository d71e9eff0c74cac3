/**
 * Runs the tool calls of one turn, all at once, and gives one result for each.
 *
 *     tool_use ─► known? ─► valid input? ─► run ─► text, capped ─► tool_result
 *                  │ no       │ no           │ throws
 *                  └──────────┴──────────────┴─► tool_result, is_error, what to do instead
 *
 * The API wants exactly one result for each call, whatever became of it. So a call to a tool that
 * doesn't exist, with an input that doesn't fit, or that throws gets a result too, whose text teaches
 * the model what does exist. Only three things end the run at once: the caller's abort, two calls under
 * one id, and a tool's own call to a model that a recording doesn't hold. Where the budget ends inside of a
 * tool, that is the tool's result, and the run ends after the turn. A call that waits for an answer from
 * outside (suspend.ts) has no result yet. Whatever becomes of one call, the others keep their results.
 *
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, step.ts, tool.ts, tool-input.ts, door/
 * From effective-agents 0.1.0: patterns/tool-calls.ts
 */
import { inspect } from "node:util";
import type {
  ContentBlock,
  ToolResultBlockParam,
  ToolUnion,
  ToolUseBlock,
} from "@anthropic-ai/sdk/resources/messages";
import {
  BudgetError,
  checkFunction,
  HaltError,
  LlmOutputError,
  SuspendError,
  shown,
} from "./errors.ts";
import type { LlmParams } from "./llm-call.ts";
import { step } from "./step.ts";
import { type Tool, ToolError } from "./tool.ts";
import { type InputCheck, inputChecks } from "./tool-input.ts";

/** Runs a turn's calls. One that is among `done` isn't run again. */
export type RunTools = (
  calls: readonly ToolUseBlock[],
  signal: AbortSignal | undefined,
  done?: readonly ToolResultBlockParam[],
) => Promise<Outcome>;

/** What came of a turn's calls. */
export interface Outcome {
  /** In the order of the calls. A call that was suspended has none. */
  readonly results: ToolResultBlockParam[];
  /** The budget of a call to a model that a tool would have made ended. */
  readonly budget: BudgetError | undefined;
}

/** The tool calls in a turn. */
export function toolCalls(content: readonly ContentBlock[]): ToolUseBlock[] {
  return content.filter((block) => block.type === "tool_use");
}

/**
 * The room for a turn whose call was cut off in `room` tokens: twice as much, up to four times what it began
 * with. `undefined` if it had the most.
 */
export function moreRoom(room: number, first: number): number | undefined {
  const most = Math.max(first, Math.min(first * 4, MAX_OUTPUT_TOKENS));
  return room < most ? Math.min(room * 2, most) : undefined;
}

/** The most that a model writes, and that the API takes for `max_tokens`: https://platform.claude.com/docs/en/models
 * (Claude Opus 5.5 and Sonnet 5; 64,000 for Claude Haiku 4.5). */
const MAX_OUTPUT_TOKENS = 128_000;

/** What the API gets of the tools. It refuses a request with any field more. */
export function definitionsOf(tools: readonly Tool[]): ToolUnion[] {
  return tools.map(({ name, description, input_schema, strict, type }) => {
    const options = strict === undefined ? {} : { strict };
    // Each such type goes with one name, and the API says so if it's another.
    if (type) return { type, name, ...options } as ToolUnion;
    return { name, description, input_schema, ...options };
  });
}

/**
 * Prepares tools to be called by a model.
 *
 * @param maxChars How much of a tool's output the model gets, in characters: 100 or more.
 * @throws {TypeError} A name is taken twice or isn't made of letters, digits, `_` and `-` (1 to 64),
 *   or a tool's schema isn't a valid JSON Schema of an object.
 */
export function prepareTools(tools: readonly Tool[], maxChars: number): RunTools {
  if (!Array.isArray(tools)) throw new TypeError(`tools must be a list, got ${shown(tools)}`);
  const checkOf = inputChecks();
  const known = new Map<string, { readonly tool: Tool; readonly faultIn: InputCheck }>();
  for (const tool of tools) {
    const { name } = Object(tool) as Tool;
    if (typeof name !== "string" || !/^[\w-]{1,64}$/.test(name)) {
      throw new TypeError(`A tool's name must match [A-Za-z0-9_-]{1,64}, got ${shown(name)}`);
    }
    checkFunction(`run of tool "${name}"`, tool.run);
    if (known.has(name)) throw new TypeError(`Tools need names of their own, got two "${name}"`);
    known.set(name, { tool, faultIn: checkOf(tool) });
  }

  const run = async ({ id, name, input }: ToolUseBlock, signal: AbortSignal | undefined) => {
    const found = known.get(name);
    if (!found) {
      const names = [...known.keys()].join(", ") || "none";
      throw new ToolError(`There is no tool '${name}'. The tools are: ${names}.`);
    }
    const { tool, faultIn } = found;
    const fault = faultIn(input);
    if (fault) throw new ToolError(fault);
    // A copy, since the call itself goes back to the model, and must go back unchanged.
    return tool.run(structuredClone(input), { callId: id, signal });
  };

  const resultOf = async (
    call: ToolUseBlock,
    index: number,
    signal: AbortSignal | undefined,
    onBudget: (error: BudgetError) => void,
  ) => {
    const result = { type: "tool_result", tool_use_id: call.id } as const;
    try {
      const output = await step(`tool[${index}]`, () => run(call, signal), signal);
      return { ...result, content: capped(output, maxChars) };
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SuspendError) return undefined;
      if (error instanceof BudgetError) onBudget(error);
      else if (error instanceof HaltError) throw error;
      return { ...result, content: capped(messageOf(error, call.name), maxChars), is_error: true };
    }
  };

  return async (calls, signal, done = []) => {
    const ids = new Set(calls.map(({ id }) => id));
    if (ids.size < calls.length) {
      throw new LlmOutputError("Two tool calls of one turn have the same id", {
        stopReason: "tool_use",
      });
    }
    let budget: BudgetError | undefined;
    const onBudget = (error: BudgetError) => {
      budget ??= error;
    };
    const settled = await Promise.allSettled(
      calls.map((call, index) => {
        const earlier = done.find(({ tool_use_id }) => tool_use_id === call.id);
        return earlier ?? resultOf(call, index, signal, onBudget);
      }),
    );
    const results = settled.flatMap((result) => {
      if (result.status === "rejected") throw result.reason;
      return result.value ?? [];
    });
    return { results, budget };
  };
}

/** Throws a `TypeError` where the API would refuse every request: a forced tool while thinking is on. */
export function checkToolChoice({ thinking, tool_choice }: LlmParams): void {
  const isForced = tool_choice?.type === "any" || tool_choice?.type === "tool";
  if (!isForced || !thinking || thinking.type === "disabled") return;
  throw new TypeError(
    `tool_choice "${tool_choice.type}" forces a tool, which the API refuses with thinking "${thinking.type}"`,
  );
}

function messageOf(error: unknown, name: string): string {
  if (error instanceof ToolError) return error.message;
  const message = error instanceof Error ? error.message : inspect(error);
  return `'${name}' failed: ${message}. Try another way, or go on without it.`;
}

/** Never empty, since the model would take that for a fault of its own, and never endless. */
function capped(output: unknown, maxChars: number): string {
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  if (text.trim() === "") return "(no output)";
  if (text.length <= maxChars) return wellFormed(text);
  const kept = wellFormed(text.slice(0, maxChars - NOTE_CHARS));
  return `${kept}\n[truncated: ${text.length - kept.length} more characters; ask for less at a time]`;
}

/** Room for the note, so that with it a result is no longer than it may be. */
const NOTE_CHARS = 80;

/** Half a character, by a cut or in the tool's own output, makes the API refuse the whole request. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}
