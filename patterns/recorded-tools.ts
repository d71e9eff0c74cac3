/**
 * Tools that give what they gave when a recording was made.
 *
 *     tool_use toolu_7 ─► is its result in a recorded request?
 *                           ├─ yes ─► that result, and nothing runs
 *                           └─ no ──► the tool itself
 *
 * Use when an agent's run is replayed, or gone on with. What its tools look at may have changed since, and
 * then the next turn would be another request. What was never told to a model runs, in a replay too: the
 * calls of the turn that a run ended with or broke off in. A tool that writes must bear that, as a gated
 * one does whose gate has a `done` (approve.ts).
 *
 * Costs nothing: the results are on the tape already, in the request that reported them to the model.
 * Not for tools that call a model themselves: their calls are on the tape, and replay by themselves.
 *
 * Copy along: errors.ts, recording.ts, recording/, step.ts, tool.ts
 * From effective-agents 0.1.0: patterns/recorded-tools.ts
 */
import { isDeepStrictEqual } from "node:util";
import type { MessageParam, ToolResultBlockParam } from "@anthropic-ai/sdk/resources/messages";
import { RecordingError } from "./errors.ts";
import type { Recording } from "./recording.ts";
import { type Tool, ToolError } from "./tool.ts";

/**
 * The same tools for runs of an agent whose calls go through `recording`. While it's recorded, they are
 * the tools themselves. A call throws a `RecordingError` where another has the same id and another result,
 * as on a server whose ids aren't unique.
 *
 * @example
 * const tools = recordedTools(createRepoTools("."), recording);
 * const result = await runAgent(question, { tools, llm: llmMessage });
 */
export function recordedTools(tools: readonly Tool[], recording: Recording): readonly Tool[] {
  const results = new Map<string, ToolResultBlockParam>();
  const ambiguous = new Set<string>();
  for (const { request } of recording.calls) {
    for (const result of lastResults(request?.body)) {
      const other = results.get(result.tool_use_id);
      if (other && !isDeepStrictEqual(other, result)) ambiguous.add(result.tool_use_id);
      results.set(result.tool_use_id, result);
    }
  }
  return tools.map((tool) => ({
    ...tool,
    run: (input, context) => {
      const { callId } = context;
      if (ambiguous.has(callId)) {
        throw new RecordingError(`The recording has two results of a tool's call ${callId}`);
      }
      const result = results.get(callId);
      if (!result) return tool.run(input, context);
      const text = String(result.content);
      if (result.is_error) throw new ToolError(text);
      return text;
    },
  }));
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
