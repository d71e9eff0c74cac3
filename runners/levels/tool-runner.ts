/**
 * Level 2: the SDK's tool runner keeps the loop. What is left to keep are the tools, and to look at how
 * it ended: it says nothing by itself.
 *
 * From effective-agents 0.1.0: runners/levels/tool-runner.ts
 */
import type { BetaRunnableTool } from "@anthropic-ai/sdk/lib/tools/BetaRunnableTool";
import { ToolError as ToldError } from "@anthropic-ai/sdk/lib/tools/ToolError";
import type { BetaMessage } from "@anthropic-ai/sdk/resources/beta/messages";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { type Tool, ToolError } from "../../patterns/tool.ts";
import { DENY, ROOT, SYSTEM } from "../agent.ts";
import { halting } from "../shared/halting.ts";
import { counted } from "../shared/words.ts";
import { type Level, MAX_TURNS, type Outcome } from "./level.ts";

export const toolRunner: Level = {
  name: "tool-runner",
  title: "the SDK's tool runner",
  limits: "max_iterations, which ends it without a word; others are yours",
  errors: "told to the model as they are thrown; inputs aren't checked",
  ask: async (question, { client, model = "claude-opus-5-5", recorded, signal: given }) => {
    const { tools, signal } = halting(recorded(createRepoTools(ROOT, { deny: DENY })), given);
    const runner = client.beta.messages.toolRunner(
      {
        model,
        max_tokens: 16_000,
        cache_control: { type: "ephemeral" },
        system: SYSTEM,
        messages: [{ role: "user", content: question }],
        tools: tools.map(runnable),
        max_iterations: MAX_TURNS,
        // Else the server holds the conversation, and a recording holds only the ends of it.
        thread: false,
      },
      { signal },
    );
    let turns = 0;
    let last: BetaMessage | undefined;
    let answer = "";
    try {
      for await (const message of runner) {
        turns += 1;
        // A paused turn is gone on with, and its words are the answer's beginning.
        answer = (last?.stop_reason === "pause_turn" ? answer : "") + wordsIn(message);
        last = message;
      }
    } finally {
      signal.throwIfAborted();
    }
    return outcomeOf(last, answer, turns);
  },
};

/** Our tool as the runner takes it. */
function runnable({ name, description, input_schema, run }: Tool): BetaRunnableTool<unknown> {
  return {
    name,
    description,
    // The same schema: the SDK's type is one that may be changed.
    input_schema: { ...input_schema },
    parse: (input) => input,
    run: async (input, context) => {
      const { toolUse, signal } = context ?? {};
      try {
        return await run(input, { callId: toolUse?.id ?? "", signal: signal ?? undefined });
      } catch (error) {
        // The runner puts "Error: " before what any other class says.
        if (error instanceof ToolError) throw new ToldError(error.message);
        throw error;
      }
    },
  };
}

function wordsIn({ content }: BetaMessage): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** The runner ends as it ends, and only the last turn's stop reason tells why. */
function outcomeOf(last: BetaMessage | undefined, answer: string, turns: number): Outcome {
  const after = `after ${counted(turns, "turn")}`;
  switch (last?.stop_reason) {
    case "end_turn":
    case "stop_sequence":
      if (!answer.trim()) return { status: `no answer ${after}: it ended without a word` };
      return { answer, status: `answered ${after}` };
    case "tool_use": {
      if (turns < MAX_TURNS) return { status: `no answer ${after}: it stopped for no tool` };
      const hint = "which the runner doesn't say; raise it or ask a narrower question";
      return { status: `no answer after max_iterations=${turns}, ${hint}` };
    }
    default:
      return { status: `no answer ${after}: it stopped for ${last?.stop_reason}` };
  }
}
