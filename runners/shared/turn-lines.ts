/**
 * A line for each turn of an agent, fed by `observe`:
 *
 *     turn 1 | tool_use | in=812 out=64 cache_read=0 | search({"pattern": "retr(y|ies)"})
 *
 * From effective-agents 0.1.0: runners/shared/turn-lines.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import type { RunEvent } from "../../patterns/step.ts";
import { toolCallsIn } from "../../patterns/trace-file/tool-calls.ts";
import { harmlessLine } from "./format.ts";

/** Makes an observer that writes a line when a turn has ended. */
export function turnLines(write: (line: string) => void): (event: RunEvent) => void {
  const replies = new Map<string, Message>();
  const failed = new Set<string>();
  return (event) => {
    if (event.type !== "end") return;
    // The value of a call that was answered is its message.
    if (event.kind === "call" && event.value) replies.set(event.path, event.value as Message);
    if (event.kind === "step" && event.outcome === "failed") failed.add(event.path);
    const turn = /turn\[(\d+)\]$/.exec(event.path)?.[1];
    const reply = replies.get(event.path);
    if (event.kind !== "step" || turn === undefined || !reply) return;
    const { input_tokens, output_tokens, cache_read_input_tokens } = reply.usage;
    const calls = toolCallsIn(reply).map((call, index) => {
      const error = failed.has(`${event.path}/tool[${index}]`) ? " ERROR" : "";
      return `${call}${error}`;
    });
    // Whatever the types say, a server may leave counts out.
    const [read, written, cached] = [input_tokens, output_tokens, cache_read_input_tokens].map(
      (count) => count ?? 0,
    );
    const usage = `in=${read} out=${written} cache_read=${cached}`;
    const parts = [`turn ${Number(turn) + 1}`, reply.stop_reason, usage, calls.join(", ")];
    write(harmlessLine(parts.filter(Boolean).join(" | ")));
  };
}
