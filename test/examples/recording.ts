import { expect, test } from "vitest";
import { createLlm } from "../../patterns/llm-call.ts";
import { openRecording, recordedClient } from "../../patterns/recording.ts";
import { vote } from "../../patterns/vote.ts";

test("91 is found to be no prime", async () => {
  // "record" once, with a key; then "replay", without.
  await using recording = await openRecording("primes.jsonl", { mode: "replay" });
  const { llmCall } = createLlm({ client: recordedClient(recording) });

  const result = await vote("Is 91 a prime number? Answer yes or no.", { llm: llmCall });

  expect(result.status === "decided" && result.winner).toBe("no");
});
