/**
 * Files that outlive a run: the API's memory tool, over a folder.
 *
 *     run 1 ─► create /memories/notes.md ─┐
 *                                         ├─ folder/memories/notes.md
 *     run 2 ─► view /memories/notes.md ◄──┘
 *
 * Use when a later run is to know what an earlier one found out, or when a run's results are cleared
 * (context.ts) and something of them must last. The API tells the model to look into its memory first. A
 * file has at most 100,000 bytes; how many there are isn't limited.
 *
 * Costs no call of its own, but each look-up and each note takes a tool call, and mostly a turn. What is
 * in there was written by a model, after texts that may come from anywhere: give each user a folder of
 * their own, and take what you read there for material.
 *
 * In Anthropic's "Effective context engineering for AI agents": structured note-taking.
 * Copy along: in-turn.ts, tool.ts, memory/
 * From effective-agents 0.1.0: patterns/memory.ts
 */
import { resolve } from "node:path";
import { inspect } from "node:util";
import type { BetaMemoryTool20250818Command as Command } from "@anthropic-ai/sdk/resources/beta/messages";
import { BetaLocalFilesystemMemoryTool, betaMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";
import { createTurns } from "./in-turn.ts";
import { checkRange, checkSize, fileAt, replace } from "./memory/file.ts";
import { defineTool, type Tool, ToolError } from "./tool.ts";

/**
 * Makes a memory of a folder. The model's `/memories` is its subfolder `memories`, made when it's first
 * needed, readable by its owner alone. No path and no link leads out of it, and no name is taken that its
 * listing wouldn't show. What is asked of a folder at once, by however many runs of this process, is done
 * one after the other, so that no change is lost; two processes would need a lock.
 *
 * @throws {TypeError} The folder is no path.
 *
 * @example
 * const result = await runAgent(task, { tools: [createMemory("/var/lib/app/alice")] });
 */
export function createMemory(folder: string): Tool {
  if (typeof folder !== "string" || folder.trim() === "") {
    throw new TypeError(`The memory's folder must be a path, got ${inspect(folder)}`);
  }
  const place = resolve(folder);
  return defineTool<Command>({
    name: "memory",
    // The API has its own description of it, and of its schema; this one holds the input to it.
    type: "memory_20250818",
    description: "Read and write files that last beyond this conversation.",
    input_schema: {
      type: "object",
      properties: PROPERTIES,
      required: ["command"],
      additionalProperties: false,
    },
    run: (input, { signal }) =>
      inTurn(place, async () => {
        signal?.throwIfAborted();
        return perform(place, input);
      }),
  });
}

/** By folder. */
const inTurn = createTurns();

async function perform(folder: string, given: Command): Promise<string> {
  const { command } = given;
  const missing = NEEDED[command].filter((field) => !Object.hasOwn(given, field));
  if (missing.length > 0) throw new ToolError(`'${command}' also needs ${missing.join(" and ")}.`);
  const taken = ["command", ...NEEDED[command], ...(command === "view" ? ["view_range"] : [])];
  const input = { ...given };
  for (const [field, value] of Object.entries(given)) {
    if (!taken.includes(field)) throw new ToolError(`'${command}' takes no ${field}.`);
    if (!field.endsWith("path")) continue;
    // A folder may be named with a slash at its end.
    const path = value.replace(/\/$/, "");
    if (!PATH.test(path)) throw new ToolError(`${JSON.stringify(value)} ${PATH_RULE}`);
    Object.assign(input, { [field]: path });
  }
  try {
    const memory = await BetaLocalFilesystemMemoryTool.init(folder);
    if (input.command === "create") checkSize(input.path, Buffer.byteLength(input.file_text));
    const reads = !["create", "delete", "rename"].includes(command);
    const file = reads && "path" in input ? await fileAt(folder, input.path) : undefined;
    if (file && input.command === "view") checkRange(input.view_range, file);
    if (file && input.command === "insert") {
      checkSize(input.path, Buffer.byteLength(file.text + input.insert_text));
    }
    // The SDK's own compares line by line: it finds no text of several lines, nor the second in one line.
    if (file && input.command === "str_replace") return await replace(file, input);
    return withoutFolderSizes(String(await betaMemoryTool(memory).run(input)));
  } catch (error) {
    if (error instanceof ToolError) throw error;
    throw new ToolError(faultOf(command, error), { cause: error });
  }
}

/** A folder's size is the file system's, and says nothing of what is in it. */
function withoutFolderSizes(listing: string): string {
  if (!listing.startsWith("Here're the files and directories")) return listing;
  const [head = "", folder = "", ...entries] = listing.split("\n");
  const named = entries.map((entry) => (entry.endsWith("/") ? entry.replace(/^\S+/, "-") : entry));
  return [head, folder.replace(/^\S+/, "-"), ...named].join("\n");
}

/** The machine's own errors would tell the model where the folder is. */
function faultOf(command: string, error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === undefined)
    return `${message.replace(/\.$/, "")}. View /memories to see what is there.`;
  return `'${command}' failed (${code}). View /memories to see what is there, or go on without it.`;
}

/** What each command takes, all of it needed but for `view_range`. */
const NEEDED: Readonly<Record<Command["command"], readonly string[]>> = {
  view: ["path"],
  create: ["path", "file_text"],
  str_replace: ["path", "old_str", "new_str"],
  insert: ["path", "insert_line", "insert_text"],
  delete: ["path"],
  rename: ["old_path", "new_path"],
};

/** Only names that a listing shows, as what they are: it leaves out hidden items and node_modules. */
const PATH =
  /^\/memories(\/(?!node_modules(\/|$)|[\s.])(?:(?![/\\\u2800])[^\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}])+(?<!\s))*$/u;
const PATH_RULE =
  "is no path in this memory. A path must start with /memories; no name in it begins with a dot, begins or ends with a blank, holds a backslash or what can't be seen, or is node_modules.";

const PROPERTIES = {
  command: { type: "string", enum: Object.keys(NEEDED) },
  path: { type: "string" },
  file_text: { type: "string" },
  old_str: { type: "string", minLength: 1 },
  new_str: { type: "string" },
  insert_line: { type: "integer", minimum: 0 },
  insert_text: { type: "string" },
  old_path: { type: "string" },
  new_path: { type: "string" },
  view_range: { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 2 },
} as const;
