/**
 * What the runs of the lab are made of: a model that is a function, and a short way to a tool's schema.
 */
import type {
  ContentBlock,
  Message,
  MessageParam,
  StopReason,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import { charge } from "../../patterns/door/bill.ts";
import { createLlm, type Layer, type LlmMessage, type Params } from "../../patterns/llm-call.ts";
import type { InputSchema } from "../../patterns/tool.ts";

/** What the model does in a turn. */
export interface Turn {
  readonly text?: string;
  readonly calls?: readonly (readonly [tool: string, input: unknown])[];
  /** Default `tool_use` where there are calls, else `end_turn`. */
  readonly stop?: StopReason;
}

/** Plays the model: gives its turn by the request alone, as a real one does. */
export type Play = (params: Params) => Turn;

/**
 * A door behind which a function plays the model: no network, no key. The layers come before it, as
 * they come before the API.
 */
export function playedBy(play: Play, ...layers: readonly Layer[]): LlmMessage {
  const model: Layer = () => async (params) => {
    const message = messageOf(params, play(params));
    // It costs what the API's would.
    charge().settle(message);
    return message;
  };
  return createLlm({ layers: [...layers, model] }).llmMessage;
}

/** The results of all tool calls so far. */
export function resultsIn(messages: readonly MessageParam[]): ToolResultBlockParam[] {
  return messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((block) => (block.type === "tool_result" ? [block] : [])),
  );
}

/** The schema of an input in which every field is needed. */
export function takes(properties: InputSchema["properties"]): InputSchema {
  const required = Object.keys(properties);
  return { type: "object", properties, required, additionalProperties: false };
}

/** What the API would give for such a turn. */
export function messageOf(params: Params, { text, calls = [], stop }: Turn): Message {
  const content: ContentBlock[] = text ? [{ type: "text", text, citations: null }] : [];
  for (const [index, [name, input]] of calls.entries()) {
    const id = `toolu_${params.messages.length}_${index}`;
    content.push({ type: "tool_use", id, name, input, caller: { type: "direct" } });
  }
  return {
    id: `msg_${params.messages.length}`,
    type: "message",
    role: "assistant",
    model: params.model,
    content,
    container: null,
    diagnostics: null,
    stop_reason: stop ?? (calls.length > 0 ? "tool_use" : "end_turn"),
    stop_sequence: null,
    stop_details: null,
    usage: {
      input_tokens: tokens([params.system, params.tools, params.messages]),
      output_tokens: tokens(content),
      output_tokens_details: null,
      cache_creation: null,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      inference_geo: null,
      server_tool_use: null,
      service_tier: null,
      speed: null,
    },
  };
}

/** About as many as there would be: four characters to a token. */
export function tokens(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4);
}
