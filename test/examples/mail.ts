import { runAgent } from "../../patterns/agent.ts";
import { type Ask, createApproval } from "../../patterns/approve.ts";
import { askOnTerminal } from "../../patterns/ask-terminal.ts";
import { type Tool, ToolError } from "../../patterns/tool.ts";

const onTerminal = askOnTerminal(process.stdin, process.stderr);

/** `sendMail` sends; nothing is sent that a person hasn't seen and said yes to. */
export async function answerMail(
  mail: string,
  sendMail: Tool<{ to: string; text: string }>,
  contacts: ReadonlyMap<string, string>,
  ask: Ask = onTerminal,
) {
  const approve = createApproval({ ask });
  const send = approve(sendMail, {
    preview: ({ to, text }) => {
      const name = contacts.get(to);
      // Nobody is asked about a call that can't be right; the model is told what is wrong with it.
      if (!name) throw new ToolError(`Nobody has the address '${to}'. Answer the sender alone.`);
      return `Sends ${name} a mail of ${text.split(/\s+/).length} words, at once and for good.`;
    },
  });
  const result = await runAgent(`Answer this mail: ${mail}`, { tools: [send] });
  return result.status === "answered" ? result.answer : `No answer: ${result.status}`;
}
