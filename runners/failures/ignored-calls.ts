/**
 * Ignored calls: of three calls one goes well, and the loop sends back one result.
 *
 * The API wants a result for each call, and refuses the request, and every later one of that history
 * too. So whatever becomes of a call, it gets exactly one result with its id: one that throws, and one
 * of a tool that there isn't.
 */
import { APIError } from "@anthropic-ai/sdk";
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import { runAgent } from "../../patterns/agent.ts";
import type { Layer } from "../../patterns/llm-call.ts";
import { defineTool, ToolError } from "../../patterns/tool.ts";
import { defineFailure } from "./failure.ts";
import { type Play, playedBy, resultsIn, takes } from "./scripted.ts";

const ORDER = takes({ order: { type: "string" } });

const findOrder = defineTool<{ order: string }>({
  name: "find_order",
  description: "Find an order by its number. Returns what is in it, and its state.",
  input_schema: ORDER,
  run: ({ order }) => `${order}: six cups, paid`,
});

const findParcel = defineTool<{ order: string }>({
  name: "find_parcel",
  description: "Find the parcel of an order. Returns where it is.",
  input_schema: ORDER,
  run: ({ order }) => {
    throw new ToolError(`${order} has no parcel yet. Say when it was paid instead.`);
  },
});

/** As the API does, it looks at the history before it answers. */
const play: Play = ({ messages }) => {
  const open = unanswered(messages);
  if (open.length > 0) throw refusal(open);
  if (resultsIn(messages).length > 0) return { text: "A-1017 is paid and not sent yet." };
  const order = "A-1017";
  return {
    calls: [
      ["find_order", { order }],
      ["find_parcel", { order }],
      ["find_invoice", { order }],
    ],
  };
};

/** The ids of calls without a result. */
function unanswered(messages: readonly MessageParam[]): string[] {
  const answered = new Set(resultsIn(messages).map(({ tool_use_id }) => tool_use_id));
  const blocks = messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  return blocks.flatMap((block) =>
    block.type === "tool_use" && !answered.has(block.id) ? [block.id] : [],
  );
}

function refusal(ids: readonly string[]): APIError {
  const message = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}`;
  const error = { type: "invalid_request_error", message };
  return APIError.generate(400, { type: "error", error }, undefined, new Headers());
}

/** Sends back what went well, and forgets the rest. */
export const forgetful: Layer = (next) => (params, call) => {
  const messages = params.messages.map((message) => {
    if (message.role !== "user" || typeof message.content === "string") return message;
    const kept = message.content.filter((block) => !("is_error" in block && block.is_error));
    return { ...message, content: kept };
  });
  return next({ ...params, messages }, call);
};

export const failure = defineFailure({
  name: "ignored-calls",
  title: "ignored calls",
  symptom: "The run dies of a 400 that speaks of ids, and the history can't be gone on with.",
  catches: [
    { file: "patterns/tool-calls.ts", code: "resultOf(call, index, signal, onBudget)" },
    { file: "patterns/tool-calls.ts", code: "tool_use_id: call.id" },
  ],
  run: (catching) =>
    runAgent("Where is order A-1017?", {
      tools: [findOrder, findParcel],
      llm: playedBy(play, ...(catching ? [] : [forgetful])),
    }),
  tell: ({ status, transcript }) => {
    const results = resultsIn(transcript);
    return [
      `${status}; ${results.length} results, and ${unanswered(transcript).length} calls without one`,
      ...results.map(({ tool_use_id, content, is_error }) => {
        return `${tool_use_id}${is_error ? " is_error" : ""}: ${content}`;
      }),
    ];
  },
});
