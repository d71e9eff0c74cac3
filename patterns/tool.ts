/**
 * A tool for the agent's loop: what the model is told about it, and the function that runs.
 *
 *     tool_use ─► input_schema holds? ─► run(input) ─┬─ text ──────► tool_result
 *                                                    └─ ToolError ─► tool_result, is_error
 *
 * Name and description are prompts: they say when to call it and what comes back. Whatever the model
 * can put right is a `ToolError`, and its message says what is wrong and what to do instead. Any other
 * error is a bug or the machine's, and not for the model.
 *
 * From effective-agents 0.1.0: patterns/tool.ts
 */

/** The JSON schema of a tool's input. An alias, since the SDK's type takes no interface. */
export type InputSchema = {
  readonly type: "object";
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: string[];
  readonly additionalProperties: false;
};

/** What a tool gets beside its input. */
export interface ToolContext {
  /** The id of the model's call. A run that goes on after a break has the same one. */
  readonly callId: string;
  readonly signal: AbortSignal | undefined;
}

/** A tool. The loop checks the input against `input_schema` before it calls `run`. */
export interface Tool<Input = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input_schema: InputSchema;
  /** Whether the API holds the model to the schema. Default: the API's, which is false. */
  readonly strict?: boolean | undefined;
  /** For the API's own tools that run here (memory, bash, text editor): which one it is. The API has their
   * description and schema, and is sent only this and the name. Default: a tool of your own. */
  readonly type?: "memory_20250818" | "bash_20250124" | "text_editor_20250728" | undefined;
  readonly run: (input: Input, context: ToolContext) => string | Promise<string>;
}

/** A call that can't be answered. The message is for the model: what is wrong, what to do instead. */
export class ToolError extends Error {
  override readonly name: string = "ToolError";
}

/**
 * Types a tool's `run` by the input that its schema describes.
 *
 * @example
 * const add = defineTool<{ a: number; b: number }>({
 *   name: "add",
 *   description: "Adds two numbers and returns the sum.",
 *   input_schema: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"],
 *     additionalProperties: false,
 *   },
 *   run: ({ a, b }) => String(a + b),
 * });
 */
export function defineTool<Input>(tool: Tool<Input>): Tool {
  // The loop holds the input to the schema, which the compiler can't compare with the type.
  return tool as Tool;
}
