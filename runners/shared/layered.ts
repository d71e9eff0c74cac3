/**
 * The door's layers, for what calls the SDK's client by itself, such as its tool runner.
 *
 *     tool runner ─► client ─► step `turn` ─ reported ─ layers ─► recording ─► API
 *
 * So its calls are seen, budgeted and recorded as the door's are, though it never goes through the door.
 * A middleware gets each attempt by itself: one that the SDK makes again is a turn of its own.
 *
 * From effective-agents 0.1.0: runners/shared/layered.ts
 */
import { APIError, type Middleware } from "@anthropic-ai/sdk";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { charge, isUnpaid, newCall } from "../../patterns/door/bill.ts";
import { asMessage } from "../../patterns/door/reply.ts";
import type { Layer, Params, Send } from "../../patterns/llm-call.ts";
import { annotate, callStep, noted, reportCall } from "../../patterns/step.ts";
import { toolCallsIn } from "../../patterns/trace-file/tool-calls.ts";

/** Makes a middleware of layers, to stand before all others. For calls that don't stream. */
export function layered(layers: readonly Layer[]): Middleware {
  return async (request, next, { options, parse }) => {
    // A login is no call.
    if (!options) return next(request);
    const signal = options.signal ?? undefined;
    let response: Response | undefined;
    const send: Send = async () => {
      const bill = charge();
      let isRefused = false;
      let message: Message | undefined;
      annotate({ sent: true, recorded: undefined });
      try {
        response = await next(request);
        const body = await parse<Message>(response);
        if (!response.ok) {
          throw APIError.generate(response.status, body, undefined, response.headers);
        }
        message = asMessage(body);
        return message;
      } catch (error) {
        isRefused = !signal?.aborted && isUnpaid(error);
        throw error;
      } finally {
        if (isRefused || noted("recorded") !== undefined) bill.takeBack();
        else if (message) bill.settle(message);
        else bill.lose();
        signal?.throwIfAborted();
      }
    };
    const whole = layers.reduceRight((inner, layer) => layer(inner), send);
    // What was sent is the SDK's parameters in JSON.
    const params: Params = JSON.parse(String(request.body));
    const turn = async () =>
      said(await reportCall(params, () => newCall(() => whole(params, { signal })), signal));
    try {
      await callStep("turn", turn, signal);
    } catch (error) {
      // The SDK itself decides whether to try again.
      if (!response || response.ok) throw error;
    }
    if (!response) throw new TypeError("No layer may answer in place of the API here");
    return response;
  };
}

/** What a turn came to: its tool calls, or what it said. */
function said(message: Message): string {
  const calls = toolCallsIn(message).join(", ");
  return (
    calls || message.content.map((block) => (block.type === "text" ? block.text : "")).join("")
  );
}
