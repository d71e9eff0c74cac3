import { runAgent } from "../../patterns/agent.ts";
import { createRepoTools } from "../../patterns/repo-tools.ts";
import { defineTool, ToolError } from "../../patterns/tool.ts";

export async function ask(question: string, root: string, owners: ReadonlyMap<string, string>) {
  const ownerOf = defineTool<{ folder: string }>({
    name: "owner_of",
    description: "Who answers for a folder at the top of the repo. Returns a name and an address.",
    input_schema: {
      type: "object",
      properties: { folder: { type: "string", description: "Such as src" } },
      required: ["folder"],
      additionalProperties: false,
    },
    run: ({ folder }) => {
      const owner = owners.get(folder);
      if (owner) return owner;
      // What the model can put right is told to it, as the result of its call.
      throw new ToolError(`Nobody owns '${folder}'. Owned are: ${[...owners.keys()].join(", ")}.`);
    },
  });
  const result = await runAgent(question, { tools: [...createRepoTools(root), ownerOf] });
  return result.status === "answered" ? result.answer : `No answer: ${result.status}`;
}
