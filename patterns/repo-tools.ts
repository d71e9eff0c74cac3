/**
 * Three tools with which a model reads a code repository, and can do nothing else to it.
 *
 *     list_files ─┐                            ┌─ folder, names, sizes
 *     search ─────┼─► sandbox ─► one root only ┼─ path:line: text
 *     read_file ──┘                            └─ N| text
 *
 * Use when an agent is to answer questions about a folder of files and to cite `path:N` for what it
 * says. They write nothing, run nothing and ask nobody, so they need no approval.
 *
 * No path leads out of the root: not by `..`, not by a link, not by a swap while a file is opened
 * (repo-tools/sandbox.ts says what is left). No tool shows what may hold secrets
 * (repo-tools/secrets.ts), nor what `deny` names. What the model gets wrong is a `ToolError` that says
 * what to do instead. A result has at most 20,000 characters and a note of what is missing. Nothing
 * invisible in a file gets through as it is, a terminal's escapes least of all.
 *
 * Copy along: tool.ts, repo-tools/
 * From effective-agents 0.1.0: patterns/repo-tools.ts
 */
import { listFilesTool } from "./repo-tools/list-files.ts";
import { readFileTool } from "./repo-tools/read-file.ts";
import { createSandbox, type SandboxOptions } from "./repo-tools/sandbox.ts";
import { searchTool } from "./repo-tools/search.ts";
import type { Tool } from "./tool.ts";

/**
 * Makes the three tools for the folder `root`. They may be called at once, and often.
 *
 * @param options.deny Globs, such as `customers/` or `*.csv`, of what no tool shows, beside secrets.
 *   Default none.
 * @throws {TypeError} There is no such folder, it's one of the kernel's, such as /proc, or a glob of
 *   `deny` is none.
 *
 * @example
 * const [listFiles, readFile, search] = createRepoTools("/home/me/project");
 * await search.run({ pattern: "export function \\w+Price\\(" }, { signal });
 * // src/price.ts:12: export function totalPrice(order: Order): number {
 */
export function createRepoTools(
  root: string,
  options: Pick<SandboxOptions, "deny"> = {},
): readonly [listFiles: Tool, readFile: Tool, search: Tool] {
  const sandbox = createSandbox(root, options);
  return [listFilesTool(sandbox), readFileTool(sandbox), searchTool(sandbox)];
}
