import { createServer } from "node:http";
import { createBudget } from "../../patterns/layers/budget.ts";
import type { Llm } from "../../patterns/llm-call.ts";
import { orchestrate } from "../../patterns/orchestrate.ts";
import { observe } from "../../patterns/step.ts";

/** POST a request; progress and the answer come back as server-sent events. */
export function createGuideServer(llm: Llm) {
  return createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (event: string, data: unknown) =>
      response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

    // One door for the process caps the calls in flight; each request brings its own budget.
    const { llmCall } = llm.with({ layers: [createBudget({ usd: 0.5 }).layer] });
    try {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk;
      const result = await observe(
        (event) => {
          if (event.type !== "text" && event.kind === "step")
            send(event.type, { path: event.path });
        },
        () => orchestrate(text, { llm: llmCall, signal: gone.signal }),
      );
      send("result", result);
    } catch (error) {
      // A reader who has left gets no answer, and the calls were cancelled with the connection.
      if (!gone.signal.aborted) send("error", { message: String(error) });
    }
    response.end();
  });
}
