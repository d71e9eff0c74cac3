/**
 * What keeps level 3 read-only, and inside one folder: three built-in tools, a hook, and rules.
 *
 *     tools: Read, Glob, Grep        the model is shown no others (`allowedTools` would only approve)
 *     PreToolUse hook                each call: one of the three? inside the root? no secret?
 *     permissions.deny               what the hook can't see: the lines that Grep finds in a folder
 *
 * The hook looks where a path really leads, as the repo tools do.
 *
 * From effective-agents 0.1.0: runners/levels/read-only.ts
 */
import { readdirSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { locate, type Sandbox } from "../../patterns/repo-tools/sandbox.ts";
import { isSecret } from "../../patterns/repo-tools/secrets.ts";
import { ToolError } from "../../patterns/tool.ts";

/** The built-in tools that only read. */
export const READ_ONLY: readonly string[] = ["Read", "Glob", "Grep"];

/** What a hook is asked; before a tool is used, about which. */
export interface HookInput {
  readonly hook_event_name: string;
  readonly tool_name?: string;
  readonly tool_input?: unknown;
}

/** Makes the hook: it denies, with a reason for the model, or leaves the call to the permissions. */
export function readOnlyHook(sandbox: Sandbox) {
  return async (use: HookInput) => {
    const permissionDecisionReason = refusal(sandbox, use);
    if (permissionDecisionReason === undefined) return {};
    const decision = { hookEventName: "PreToolUse", permissionDecision: "deny" } as const;
    return { hookSpecificOutput: { ...decision, permissionDecisionReason } };
  };
}

function refusal(sandbox: Sandbox, { tool_name = "", tool_input }: HookInput): string | undefined {
  if (!READ_ONLY.includes(tool_name)) {
    return `'${tool_name}' may change something. You may read, with ${READ_ONLY.join(", ")}.`;
  }
  // A model's input may be anything; what isn't a text makes the hook fail, and then the call is blocked.
  const { file_path, path = ".", pattern } = Object(tool_input);
  if (tool_name === "Glob" && mayLeadOut(pattern)) {
    return `'${pattern}' may lead out of the folder. Use names relative to it, * and ?, and {a,b} of plain names, such as '**/*.{ts,tsx}'.`;
  }
  try {
    const given = resolve(sandbox.root, tool_name === "Read" ? file_path : path);
    locate(sandbox, relative(sandbox.root, given));
    return undefined;
  } catch (error) {
    if (error instanceof ToolError) return error.message;
    throw error;
  }
}

/** Whether a glob goes up or begins elsewhere, or could once it's read: what else a glob has, such as
 * `[.][.]` or `.{.,x}`, has too many ways. */
function mayLeadOut(glob: string): boolean {
  const plain = glob.replace(/\{[\w-]+(,[\w-]+)*\}/g, "x");
  const goesUp = plain.split("/").some((part) => /^\.[.?*]+$/.test(part));
  return goesUp || plain.startsWith("/") || !/^[\p{L}\p{N}_.*?@+$/-]+$/u.test(plain);
}

/** Rules that deny what is hidden in the folder now, for searches too. Each path by itself, as theirs
 * are other globs than ours. */
export function denyRules(sandbox: Sandbox): string[] {
  return [...hiddenIn(sandbox, sandbox.root)].flatMap((path) => {
    const whole = path
      .split(sep)
      .join("/")
      .replace(/[*?[\]{}!\\]/g, "\\$&");
    // Two slashes: from the file system's root.
    return [`Read(/${whole})`, `Read(/${whole}/**)`];
  });
}

/** The paths of what is hidden. Links aren't followed. */
function* hiddenIn(sandbox: Sandbox, folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const parts = relative(sandbox.root, path).split(sep);
    if (isSecret(parts) || sandbox.denies(parts)) yield path;
    else if (entry.isDirectory()) yield* hiddenIn(sandbox, path);
  }
}
