/**
 * Level 1: the loop is ours. Every line that decides what happens next can be read, and changed.
 *
 * From effective-agents 0.1.0: runners/levels/loop.ts
 */
import { runAgent } from "../../patterns/agent.ts";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { DENY, ROOT, SYSTEM, whyNot } from "../agent.ts";
import { counted } from "../shared/words.ts";
import { type Level, MAX_TURNS } from "./level.ts";

export const loop: Level = {
  name: "loop",
  title: "the loop by hand",
  limits: "turns, repeats, outputs, tokens and money: each ends in a status",
  errors: "told to the model with what to do instead; inputs are checked",
  ask: async (question, { llmMessage, model, recorded, signal }) => {
    const result = await runAgent(question, {
      tools: recorded(createRepoTools(ROOT, { deny: DENY })),
      system: SYSTEM,
      model,
      maxTurns: MAX_TURNS,
      llm: llmMessage,
      signal,
    });
    if (result.status !== "answered") return { status: `no answer ${whyNot(result)}` };
    return { answer: result.answer, status: `answered after ${counted(result.turns, "turn")}` };
  },
};
