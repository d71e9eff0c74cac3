/** The SDK's client with the door's layers around each call: what is seen, what it costs, how it ends. */
import type Anthropic from "@anthropic-ai/sdk";
import { APIError } from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { BudgetError, LlmOutputError } from "../patterns/errors.ts";
import { createBudget } from "../patterns/layers/budget.ts";
import type { Layer } from "../patterns/llm-call.ts";
import { openRecording, recordedClient } from "../patterns/recording.ts";
import { observe, step } from "../patterns/step.ts";
import { layered } from "../runners/shared/layered.ts";
import { type Answer, fails, hold, message, raw, reply, startServer } from "./shared/server.ts";
import { tapeFile } from "./shared/tape.ts";

const PARAMS = {
  model: "claude-sonnet-5-5",
  max_tokens: 100,
  messages: [{ role: "user" as const, content: "Hi" }],
};

/** Makes `count` calls in a step, and keeps how each step and call ended. */
async function ask(client: Anthropic, count = 1, signal?: AbortSignal) {
  const ends: unknown[] = [];
  const work = async () => {
    for (let call = 0; call < count; call += 1) {
      await client.messages.create(PARAMS, { signal });
    }
  };
  const asked = observe(
    (event) => {
      if (event.type !== "end" || !event.path.includes("/")) return;
      ends.push([event.kind, event.path, event.outcome === "ok" ? event.value : event.outcome]);
    },
    () => step("run", work),
  );
  const reason = await asked.catch((error: unknown) => error);
  return { ends, reason };
}

async function serve(
  answers: [Answer, ...Answer[]],
  { layers = [], maxRetries = 0 }: { layers?: readonly Layer[]; maxRetries?: number } = {},
) {
  const server = await startServer(...answers);
  return { server, client: server.client({ middleware: [layered(layers)], maxRetries }) };
}

test("each call is a turn, which ends with its tool calls or with what was said", async () => {
  const search = { type: "tool_use", id: "t1", name: "search", input: { pattern: "x" } };
  const { client } = await serve([reply([search], { stop_reason: "tool_use" }), reply("Hello")]);
  const { ends } = await ask(client, 2);
  const whole = expect.objectContaining({ type: "message" });
  expect(ends).toEqual([
    ["call", "run/turn", whole],
    ["step", "run/turn", 'search({"pattern": "x"})'],
    ["call", "run/turn#2", whole],
    ["step", "run/turn#2", "Hello"],
  ]);
});

test("an attempt that fails is seen, and the SDK tries again", async () => {
  const answers: [Answer, Answer] = [fails(529, { "retry-after-ms": "1" }), reply("Hello")];
  const { client } = await serve(answers, { maxRetries: 1 });
  const { ends, reason } = await ask(client);
  expect(reason).toBeUndefined();
  expect(ends).toMatchObject([
    ["call", "run/turn", "failed"],
    ["step", "run/turn", "failed"],
    ["call", "run/turn#2", {}],
    ["step", "run/turn#2", "Hello"],
  ]);
});

test("what fails for good is the SDK's own error, and costs nothing", async () => {
  const budget = createBudget({ usd: 1 });
  const { client } = await serve([fails(400)], { layers: [budget.layer] });
  const { reason } = await ask(client);
  expect(reason).toBeInstanceOf(APIError);
  expect(reason).toMatchObject({ status: 400 });
  expect([budget.spent().usd, budget.unsettled().usd]).toEqual([0, 0]);
});

test("a reply that is no message is an error, and no turn", async () => {
  const { client } = await serve([raw("<html>", { headers: { "content-type": "text/html" } })]);
  expect((await ask(client)).reason).toBeInstanceOf(LlmOutputError);
});

test("a call that the budget doesn't allow isn't made", async () => {
  const budget = createBudget({ calls: 1 });
  const { server, client } = await serve([reply("Hello")], { layers: [budget.layer] });
  const { reason } = await ask(client, 2);
  expect(reason).toBeInstanceOf(BudgetError);
  expect([server.requests.length, budget.spent().calls]).toEqual([1, 1]);
});

test("a layer can't answer in place of the API", async () => {
  const { client } = await serve([hold], { layers: [() => async () => message("Hello")] });
  expect((await ask(client)).reason).toMatchObject({
    message: "No layer may answer in place of the API here",
  });
});

test("a call that is aborted ends as cancelled", async () => {
  const { server, client } = await serve([hold]);
  const controller = new AbortController();
  const asked = ask(client, 1, controller.signal);
  const { gone } = await server.received(1);
  controller.abort("enough");
  expect((await asked).ends).toEqual([
    ["call", "run/turn", "cancelled"],
    ["step", "run/turn", "cancelled"],
  ]);
  await gone;
});

test("each turn is recorded by its own path, and replayed", async () => {
  const file = await tapeFile();
  const server = await startServer(reply("One"), reply("Two"));
  for (const mode of ["record", "replay"] as const) {
    await using recording = await openRecording(file, { mode });
    const recorded = recordedClient(recording, { apiKey: "none", baseURL: server.url });
    const middleware = [layered([recording.layer]), ...recorded.middleware];
    const { ends } = await ask(recorded.withOptions({ middleware }), 2);
    expect(ends).toMatchObject([
      ["call", "run/turn", {}],
      ["step", "run/turn", "One"],
      ["call", "run/turn#2", {}],
      ["step", "run/turn#2", "Two"],
    ]);
  }
  expect(server.requests).toHaveLength(2);
});

test("a login goes through as it is", async () => {
  const next = async () => new Response("token");
  const request = new Request("http://127.0.0.1/");
  const context = { options: undefined };
  // All that a login has, and all that is read of it.
  const login = [request, next, context] as unknown as Parameters<ReturnType<typeof layered>>;
  const response = await layered([])(...login);
  expect(await response.text()).toBe("token");
});
