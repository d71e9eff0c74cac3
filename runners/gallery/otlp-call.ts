/**
 * A span of a model call as a call, by OpenTelemetry's conventions for `gen_ai`.
 */
import { costOf } from "../../patterns/cost.ts";
import type { Usage } from "../../patterns/step.ts";
import { plain } from "../../patterns/trace-file/plain.ts";
import type { TraceCall } from "../../patterns/trace-file.ts";
import { endingOf, type Span, timesOf } from "./otlp-spans.ts";
import { isRecord } from "./trace-shape.ts";

/** Whether it's one. Of an agent's or a tool's span the conventions tell the operation; who tells none calls a model. */
export function isCall({ attributes }: Span): boolean {
  const operation = attributes.get("gen_ai.operation.name");
  if (operation === undefined) return attributes.has("gen_ai.request.model");
  return ["chat", "text_completion", "generate_content"].some((name) => name === operation);
}

/** Makes a call of it. */
export function callOf(span: Span, origin: bigint): TraceCall {
  const { attributes } = span;
  const model = attributes.get("gen_ai.response.model") ?? attributes.get("gen_ai.request.model");
  const usage = usageIn(attributes);
  const usd = typeof model === "string" && usage ? costOf(model, usage) : undefined;
  return {
    ...timesOf(span, origin),
    ...(isCancelled(span) ? { outcome: "cancelled" } : endingOf(span)),
    estimated: false,
    sent: true,
    request: requestIn(attributes),
    reply: replyIn(attributes),
    ...(typeof model === "string" && { model }),
    ...(usage && { usage }),
    ...(usd !== undefined && { usd }),
  };
}

/** The SDK's span of a cancelled call has neither an error nor a response. */
function isCancelled({ name, end, error, attributes }: Span): boolean {
  const isEnded = end !== undefined && !error;
  return isEnded && name === "anthropic.messages.create" && !attributes.has("gen_ai.response.id");
}

/** The conventions count what was read from and written to the cache among the input. */
function usageIn(attributes: Span["attributes"]): Usage | undefined {
  const count = (name: string) => {
    const value = Number(attributes.get(name) ?? Number.NaN);
    return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  };
  const input = count("gen_ai.usage.input_tokens");
  const output = count("gen_ai.usage.output_tokens");
  if (input === undefined || output === undefined) return undefined;
  const read = count("gen_ai.usage.cache_read.input_tokens") ?? 0;
  const written = count("gen_ai.usage.cache_write.input_tokens") ?? 0;
  const tier = attributes.get("anthropic.response.service_tier");
  const written1h = count("anthropic.usage.cache_creation.ephemeral_1h_input_tokens") ?? 0;
  const billed = {
    input_tokens: Math.max(0, input - read - written),
    output_tokens: output,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_1h_input_tokens: written1h },
    ...(typeof tier === "string" && { service_tier: tier }),
  };
  return billed;
}

function requestIn(attributes: Span["attributes"]): unknown {
  const messages = listIn(attributes, "gen_ai.input.messages");
  const system = listIn(attributes, "gen_ai.system_instructions");
  return {
    model: attributes.get("gen_ai.request.model"),
    max_tokens: attributes.get("gen_ai.request.max_tokens"),
    ...(system && { system: system.map(blockOf) }),
    ...(messages && { messages: messages.map(messageOf) }),
  };
}

function replyIn(attributes: Span["attributes"]): unknown {
  const [message] = listIn(attributes, "gen_ai.output.messages") ?? [];
  const stop = attributes.get("anthropic.message.stop_reason");
  return {
    ...(message !== undefined && messageOf(message)),
    ...(stop !== undefined && { stop_reason: stop }),
  };
}

/** A list that is an attribute, or JSON in one. */
function listIn(attributes: Span["attributes"], name: string): readonly unknown[] | undefined {
  const value = attributes.get(name);
  if (typeof value !== "string") return Array.isArray(value) ? value : undefined;
  try {
    const parsed = plain(JSON.parse(value));
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** The conventions' messages have parts, and the API's blocks. */
function messageOf(message: unknown): { readonly role: string; readonly content: unknown } {
  const { role, parts } = isRecord(message) ? message : {};
  return { role: String(role ?? "?"), content: Array.isArray(parts) ? parts.map(blockOf) : [] };
}

function blockOf(part: unknown): unknown {
  const { type, content, id, name, arguments: input, response } = isRecord(part) ? part : {};
  if (type === "text") return { type, text: String(content ?? "") };
  if (type === "reasoning") return { type: "thinking", thinking: String(content ?? "") };
  if (type === "tool_call") return { type: "tool_use", id, name, input };
  if (type === "tool_call_response")
    return { type: "tool_result", tool_use_id: id, content: response };
  return part;
}
