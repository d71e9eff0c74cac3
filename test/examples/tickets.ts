import { HaltError } from "../../patterns/errors.ts";
import { createLlm } from "../../patterns/llm-call.ts";
import { openRecording, recordedClient } from "../../patterns/recording.ts";
import { type Routes, route } from "../../patterns/route.ts";
import { step } from "../../patterns/step.ts";

const LANES = 20;

/** Sorts any number of tickets. Killed half-way, it goes on from `file`: no answer is paid twice. */
export async function sortTickets(tickets: readonly string[], routes: Routes, file: string) {
  await using recording = await openRecording(file, { mode: "resume", concurrency: LANES });
  // A long job meets every rate limit: let the SDK wait and try again more often than twice.
  const client = recordedClient(recording, { maxRetries: 8 });
  const { llmCall: llm } = createLlm({ client, concurrency: LANES, layers: [recording.layer] });

  const outcomes: { route?: string; error?: unknown }[] = [];
  const stop = new AbortController();
  const queue = tickets.entries();
  const lane = async () => {
    // All lanes take from one queue, so that at most LANES tickets are under way.
    for (const [index, ticket] of queue) {
      try {
        const sort = () => route(ticket, { routes, llm, signal: stop.signal });
        outcomes[index] = await step(`ticket[${index}]`, sort, stop.signal);
      } catch (error) {
        if (error instanceof HaltError) stop.abort(error);
        if (stop.signal.aborted) return;
        outcomes[index] = { error };
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  stop.signal.throwIfAborted();
  return outcomes;
}
