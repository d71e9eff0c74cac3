/**
 * `list_files`: what is in a folder, or all that fits a glob, with sizes.
 *
 *     src/lib/
 *     src/app.ts 1234 bytes
 *     src/latest.ts -> src/app.ts 1234 bytes
 *     [truncated at 3 entries; give a narrower path or glob]
 *
 * From effective-agents 0.1.0: patterns/repo-tools/list-files.ts
 */
import { defineTool, type Tool, ToolError } from "../tool.ts";
import { createFilter } from "./filter.ts";
import { createPause, type Pause } from "./pause.ts";
import { type Entry, locate, type Place, type Sandbox } from "./sandbox.ts";
import { createNotes, createResult, quoted, visible } from "./text.ts";
import { walk } from "./walk.ts";

/** How many entries come back at most. */
const MAX_ENTRIES = 500;
/** In characters: a note of what can't be read names three paths, and one says that there is more. */
const ROOM_FOR_NOTES = 1_500;

/** What `list_files` takes. */
export interface ListFilesInput {
  readonly path?: string;
  readonly glob?: string;
}

/** Makes the tool. */
export function listFilesTool(sandbox: Sandbox): Tool {
  return defineTool<ListFilesInput>({
    name: "list_files",
    description:
      "List one folder of the repo, or everything below it that fits a glob. Use it to see how the " +
      "repo is laid out and to find files by name; to find them by content use search. Returns a " +
      "line per entry, sorted, with paths relative to the repo root, as read_file takes them: " +
      "folders end in /, files have their size, links show where they lead. What .gitignore names " +
      "is left out unless its folder is the path asked for; files that may hold secrets are never " +
      `listed. At most ${MAX_ENTRIES} entries come back, with a note [truncated …] if there are more.`,
    input_schema: {
      type: "object",
      properties: {
        path: {
          type: "string",
          description: "The folder, relative to the repo root, such as src. Default: the root",
        },
        glob: {
          type: "string",
          description:
            "Lists all that fits at any depth below the folder: *.ts by name, src/**/*.{ts,tsx} by " +
            "path from the folder on. Default: only what is directly in the folder",
        },
      },
      required: [],
      additionalProperties: false,
    },
    run: ({ path = ".", glob }, { signal }) => list(sandbox, path, glob, createPause(signal)),
  });
}

async function list(
  sandbox: Sandbox,
  path: string,
  glob: string | undefined,
  pause: Pause,
): Promise<string> {
  const folder = locate(sandbox, path);
  const isWanted = glob === undefined ? () => true : createFilter(glob, folder.path);
  const isDeep = glob !== undefined;
  const notes = createNotes();
  const result = createResult(ROOM_FOR_NOTES);
  let count = 0;
  let isCut = false;
  const onUnread = (entry: Entry) => notes.add("can't be read", entry.path);
  for await (const entry of walk(sandbox, folder, { pause, onUnread, isDeep })) {
    const line = isWanted(entry) && describe(sandbox, entry);
    if (!line) continue;
    isCut = count === MAX_ENTRIES || !result.add(line);
    if (isCut) break;
    count += 1;
  }
  const where = quoted(folder.path);
  const nothing = isDeep
    ? `Nothing in ${where} fits ${quoted(glob)}`
    : `There is nothing in ${where}`;
  return result.text(
    count === 0 && `${nothing}, apart from what .gitignore names and what may hold secrets.`,
    isCut && `[truncated at ${count} entries; give a narrower path or glob]`,
    ...notes.all(),
  );
}

/** An entry's line; nothing for a link that leads to nothing that may be shown. */
function describe(sandbox: Sandbox, { path, kind }: Entry): string | undefined {
  let place: Place;
  try {
    place = locate(sandbox, path);
  } catch (error) {
    if (error instanceof ToolError) return undefined;
    throw error;
  }
  const target = place.kind === "folder" ? `${place.path}/` : `${place.path} ${place.size} bytes`;
  return visible(kind === "link" ? `${path} -> ${target}` : target);
}
