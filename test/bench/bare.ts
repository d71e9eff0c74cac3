/** The bare SDK: a worker that sends prompts, and makes nothing of the replies. */
import { AsyncLocalStorage } from "node:async_hooks";
import Anthropic from "@anthropic-ai/sdk";
import { type Group, inLanes, obey } from "./protocol.ts";

const [, , url, who] = process.argv;

export function clientOf(baseURL: string | undefined): Anthropic {
  return new Anthropic({ apiKey: "none", baseURL, maxRetries: 0, logLevel: "off" });
}

/** One call as our door makes it by default. */
export async function bareCall(client: Anthropic, prompt: string): Promise<string> {
  const { content } = await client.messages.create({
    model: "claude-sonnet-5-5",
    max_tokens: 16_000,
    messages: [{ role: "user", content: prompt }],
  });
  const [block] = content;
  return block?.type === "text" ? block.text : "";
}

/** Sends the prompts of each group at once, and the groups one after the other. */
async function sendAll(client: Anthropic, groups: readonly Group[]): Promise<void> {
  for (const group of groups) {
    const [first = ""] = group;
    if (group.length === 1) await bareCall(client, first);
    else await Promise.all(group.map((prompt) => bareCall(client, prompt)));
  }
}

// The bench itself imports the functions above.
if (process.argv[1] === import.meta.filename) {
  const client = clientOf(url);
  const scope = who === "scoped" ? new AsyncLocalStorage<number>() : undefined;
  const scoped = (index: number, send: () => Promise<unknown>) =>
    scope ? scope.run(index, send) : send();
  obey(async (order) => {
    if (order.do === "load") {
      const { calls, inFlight } = order;
      await inLanes(calls, inFlight, (index) =>
        scoped(index, () => bareCall(client, `Call ${index}`)),
      );
    } else if (order.do === "repeat" && typeof order.work !== "string") {
      const { work, times, lanes } = order;
      await inLanes(times, lanes, (index) => scoped(index, () => sendAll(client, work)));
    }
    return undefined;
  });
}
