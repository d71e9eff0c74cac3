/**
 * A Messages API that is a function: it does to a conversation what it's asked for, as the real one does,
 * and then a script plays the model, which sees what is left. No network, no key.
 *
 *     request ─► summed up above the trigger? ─► results cleared above theirs? ─► script ─► reply
 */
import Anthropic from "@anthropic-ai/sdk";
import type { Params } from "../../patterns/llm-call.ts";
import { messageOf, type Play } from "../failures/scripted.ts";
import { clear, compact, type Summarize } from "./edits.ts";

/** Makes an SDK client whose requests end here. `summarize` writes what a compaction keeps. */
export function scriptedClient(play: Play, summarize: Summarize): Anthropic {
  return new Anthropic({
    apiKey: "none",
    maxRetries: 0,
    middleware: [
      async ({ body, headers }) => {
        // What the SDK sends, it has made of these parameters.
        const params = JSON.parse(String(body)) as Params;
        const betas = new Headers(headers).get("anthropic-beta") ?? "";
        const edits = editsIn(params, betas);
        const compacted = compact(params, edits.compact, summarize);
        const cleared = clear(compacted, edits.clear);
        const message = messageOf(cleared, play(cleared));
        return Response.json({
          ...message,
          content: [...compacted.summary, ...message.content],
          context_management: { applied_edits: cleared.applied },
        });
      },
    ],
  });
}

function editsIn({ context_management }: Params, betas: string) {
  const { edits = [] } = context_management ?? {};
  const clear = edits.find((edit) => edit.type === "clear_tool_uses_20250919");
  const compact = edits.find((edit) => edit.type === "compact_20260112");
  // As the API refuses it, with a 400.
  const needed = [clear && "context-management-2025-06-27", compact && "compact-2026-01-12"];
  for (const beta of needed) {
    if (beta && !betas.includes(beta)) throw new Error(`context_management needs the beta ${beta}`);
  }
  return { clear, compact };
}
