/**
 * What a job is run with, as `perform` makes it, over a client of the test's own.
 *
 *     const { words } = await job.run(job.input, jobContext(server.client()));
 */
import type Anthropic from "@anthropic-ai/sdk";
import { createLlm, type Layer } from "../../patterns/llm-call.ts";
import type { JobContext } from "../../runners/shared/job.ts";
import { layered } from "../../runners/shared/layered.ts";

/** Makes it: live, with tools that are what they are and no limit, unless something else is given. */
export function jobContext(
  client: Anthropic,
  { layers = [], ...more }: Partial<JobContext> & { readonly layers?: readonly Layer[] } = {},
): JobContext {
  const { llmCall: llm, llmMessage } = createLlm({ client, layers });
  return {
    mode: "live",
    isScripted: false,
    llm,
    llmMessage,
    client: client.withOptions({ middleware: [layered(layers), ...client.middleware] }),
    model: undefined,
    left: () => Infinity,
    recorded: (tools) => tools,
    asking: (script) => script,
    suspension: undefined,
    signal: undefined,
    ...more,
  };
}
