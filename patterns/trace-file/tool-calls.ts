/**
 * A model's tool calls, as a line of text can show them.
 *
 * From effective-agents 0.1.0: patterns/trace-file/tool-calls.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";

/** The tool calls of a reply, such as `search({"pattern": "x"})`. */
export function toolCallsIn({ content }: Pick<Message, "content">): string[] {
  return content
    .filter((block) => block.type === "tool_use")
    .map(({ name, input }) => `${name}(${shown(input)})`);
}

/** `{"pattern": "x"}`, each value cut to a length that a line can take. */
function shown(input: unknown): string {
  const fields = Object.entries(Object(input)).map(([key, value]) => {
    const text = JSON.stringify(value) ?? "";
    return `${JSON.stringify(key)}: ${text.length > 80 ? `${text.slice(0, 79)}…` : text}`;
  });
  return `{${fields.join(", ")}}`;
}
