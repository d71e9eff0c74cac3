/**
 * Tools that give what they gave when a recording was made.
 *
 *     agent/turn[2]/tool[0] ─► are its results in the request of agent/turn[3]?
 *                                ├─ yes ─► that result, and nothing runs
 *                                └─ no ──► the tool itself
 *
 * Use when an agent's run is replayed, or gone on with. What its tools look at may have changed since, and
 * then the next turn would be another request. What a run that broke off had not told to a turn that was
 * answered runs again: a tool that writes must bear that, as one does that is `done` in approve.ts.
 *
 * Costs nothing: the results are on the tape already, in the request that reported them to the model.
 * Not for tools that call a model themselves: their calls are on the tape, and replay by themselves.
 *
 * Copy along: errors.ts, recording.ts, recording/, step.ts, tool.ts
 */
import type { MessageParam, ToolResultBlockParam } from "@anthropic-ai/sdk/resources/messages";
import type { Recording } from "./recording.ts";
import { currentPath } from "./step.ts";
import { type Tool, ToolError } from "./tool.ts";

/**
 * The same tools for a run of `runAgent` whose calls go through `recording`. While it's recorded, they are
 * the tools themselves.
 *
 * @example
 * const tools = recordedTools(createRepoTools("."), recording);
 * const result = await runAgent(question, { tools, llm: llmMessage });
 */
export function recordedTools(tools: readonly Tool[], recording: Recording): readonly Tool[] {
  const results = new Map<string, ToolResultBlockParam>();
  for (const { path, request } of recording.calls) {
    for (const [index, result] of lastResults(request?.body).entries()) {
      results.set(`${turnBefore(path)}/tool[${index}]`, result);
    }
  }
  return tools.map((tool) => ({
    ...tool,
    run: (input, context) => {
      const result = results.get(currentPath());
      if (!result) return tool.run(input, context);
      const text = String(result.content);
      if (result.is_error) throw new ToolError(text);
      return text;
    },
  }));
}

/** `agent/turn[2]` of `agent/turn[3]`. */
function turnBefore(path: string): string {
  return path.replace(/\d+(?=\]$)/, (turn) => String(Number(turn) - 1));
}

/** The results that a request reports, as the loop sends them: after the last turn, before what is said
 * beside them. */
function lastResults(body: unknown): readonly ToolResultBlockParam[] {
  // What went out through the SDK has the SDK's types.
  const { messages = [] } = (body ?? {}) as { readonly messages?: readonly MessageParam[] };
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(last + 1).flatMap(({ content }) => {
    const blocks = typeof content === "string" ? [] : content;
    return blocks.filter((block) => block.type === "tool_result");
  });
}
