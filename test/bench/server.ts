/**
 * A Messages API in a process of its own, whose replies follow from the prompt and whose delay from
 * the path: `/50/v1/messages` answers after 50 ms, `/stagger-7-50/…` its first request after 50 ms, its
 * second after 100, and so on, and `/told/…` after what the prompt's own task says.
 *
 * Started with `fork`; it sends its address to the parent.
 */
import { createServer } from "node:http";

const counts = new Map<string, number>();

const server = createServer(async (request, response) => {
  let raw = "";
  for await (const chunk of request.setEncoding("utf8")) raw += chunk;
  const prompt: string = JSON.parse(raw).messages[0].content;
  const [, how = ""] = request.url?.split("/") ?? [];
  const send = () => {
    response.writeHead(200, { "content-type": "application/json" }).end(message(answer(prompt)));
  };
  const ms = delay(how, prompt);
  if (ms === 0) send();
  else setTimeout(send, ms);
});

server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") process.send?.(`http://127.0.0.1:${address?.port}`);
});
process.on("disconnect", () => process.exit());

function delay(how: string, prompt: string): number {
  if (how === "told") return Number(/takes (\d+) ms<\/task>/.exec(prompt)?.[1] ?? 40);
  if (!how.startsWith("stagger-")) return Number(how);
  const count = (counts.get(how) ?? 0) + 1;
  counts.set(how, count);
  return count * Number(how.split("-")[2]);
}

function answer(prompt: string): string {
  if (prompt.startsWith("Decide which one")) return "It is about money. <label>billing</label>";
  if (prompt.startsWith("Split the request")) return plan(prompt);
  if (prompt.startsWith("Somebody was given a task")) {
    const passes = prompt.includes("<draft>A better draft</draft>");
    const evaluation = passes ? "PASS" : "NEEDS_IMPROVEMENT";
    return `<evaluation>${evaluation}</evaluation>\n<score>${passes ? 9 : 5}</score>\n<feedback>Say more</feedback>`;
  }
  if (prompt.includes("<draft></draft>")) {
    return `<draft>${prompt.includes("<feedback>") ? "A better draft" : "A draft"}</draft>`;
  }
  if (prompt.includes("<vote>")) return "It has no divisors. <vote>yes</vote>";
  return "This is a reply of a few words. ".repeat(10);
}

function plan(prompt: string): string {
  if (!prompt.includes("dependent")) {
    return ["a", "b", "c", "d"].map((id) => `<task id="${id}">Do ${id}</task>`).join("\n");
  }
  return `<task id="read">takes 200 ms</task>
<task id="list">takes 50 ms</task>
<task id="sort" needs="list">takes 100 ms</task>
<task id="compare" needs="read">takes 100 ms</task>
<task id="judge" needs="compare, sort">takes 150 ms</task>`;
}

function message(text: string): string {
  return JSON.stringify({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-5-5",
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 50 },
  });
}
