/**
 * A memory over a folder: what lasts, what leads out of it, and what the model is told.
 *
 * From effective-agents 0.1.0: test/memory.test.ts
 */
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runAgent } from "../patterns/agent.ts";
import { createMemory } from "../patterns/memory.ts";
import { observe } from "../patterns/step.ts";
import { ToolError } from "../patterns/tool.ts";
import { definitionsOf } from "../patterns/tool-calls.ts";
import { folder } from "./shared/folder.ts";
import { strictApi, turn, use } from "./shared/strict-api.ts";

const NOTES = "/memories/notes.md";

/** Calls the tool as the loop does, past its check of the input. */
function callerOf(root: string, signal?: AbortSignal) {
  const memory = createMemory(root);
  return async (input: object) => memory.run(input, { callId: "t1", signal });
}

/** Has a model make these calls, a turn each, and gives the results that it was sent. */
async function resultsOf(root: string, ...calls: readonly object[]) {
  const turns = calls.map((input, index) => turn("tool_use", use(`t${index}`, "memory", input)));
  const api = strictApi([...turns, turn("end_turn", "Done")]);
  await runAgent("Remember", { tools: [createMemory(root)], llm: api.llm, maxTurns: 20 });
  expect(api.refusals).toEqual([]);
  const { messages } = JSON.parse(api.sent.at(-1) ?? "{}");
  return messages.slice(2).flatMap(({ role, content }: { role: string; content: unknown[] }) => {
    return role === "user" ? content : [];
  });
}

test("is told to the API by its type and name alone", async () => {
  const root = await folder();
  expect(definitionsOf([createMemory(root)])).toEqual([
    { type: "memory_20250818", name: "memory" },
  ]);
  // Nothing is made before it's needed.
  expect(await readdir(root)).toEqual([]);
});

test("keeps files for a later run", async () => {
  const root = await folder();
  await callerOf(root)({ command: "create", path: NOTES, file_text: "Ask Ann.\n" });
  expect(await readFile(join(root, "memories/notes.md"), "utf8")).toBe("Ask Ann.\n");
  const later = callerOf(root);
  const listing = await later({ command: "view", path: "/memories" });
  // A folder's size is another on each file system, and would be in a recording.
  expect(String(listing).split("\n").slice(1)).toEqual(["-\t/memories", `9B\t${NOTES}`]);
  expect(await later({ command: "view", path: NOTES })).toContain("Ask Ann.");
});

test("changes, moves and deletes what it keeps", async () => {
  const root = await folder();
  const call = callerOf(root);
  await call({ command: "create", path: NOTES, file_text: "one\nthree\n" });
  await call({ command: "insert", path: NOTES, insert_line: 1, insert_text: "two\n" });
  await call({ command: "str_replace", path: NOTES, old_str: "one", new_str: "" });
  await call({ command: "rename", old_path: NOTES, new_path: "/memories/a/b.md" });
  expect(await readFile(join(root, "memories/a/b.md"), "utf8")).toBe("\ntwo\nthree\n");
  expect(await call({ command: "view", path: "/memories/a/b.md", view_range: [2, 2] })).toMatch(
    /2\ttwo$/,
  );
  await call({ command: "delete", path: "/memories/a" });
  expect(await readdir(join(root, "memories"))).toEqual([]);
});

test("loses no change of a turn that makes several at once", async () => {
  const root = await folder();
  await callerOf(root)({ command: "create", path: NOTES, file_text: "" });
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const calls = lines.map((line, index) =>
    use(`t${index}`, "memory", {
      command: "insert",
      path: NOTES,
      insert_line: index,
      insert_text: line,
    }),
  );
  const api = strictApi([turn("tool_use", ...calls), turn("end_turn", "Done")]);
  await runAgent("Remember", { tools: [createMemory(root)], llm: api.llm });
  const kept = await readFile(join(root, "memories/notes.md"), "utf8");
  expect(kept.split("\n").filter(Boolean)).toEqual(lines);
});

test.for([
  ["../outside.txt", "must start with /memories"],
  ["/etc/passwd", "must start with /memories"],
  ["/memories/../../outside.txt", "would escape /memories"],
  ["/memories/link/outside.txt", "via symlink"],
  ["/memories/link", "via symlink"],
  ["/memories/no\0thing", "ERR_INVALID_ARG_VALUE"],
])("lets no path out: %j", async ([path = "", why = ""]) => {
  const root = await folder();
  await mkdir(join(root, "elsewhere"));
  await mkdir(join(root, "store/memories"), { recursive: true });
  await writeFile(join(root, "elsewhere/outside.txt"), "secret");
  await writeFile(join(root, "outside.txt"), "secret");
  await symlink(join(root, "elsewhere"), join(root, "store/memories/link"));
  const call = callerOf(join(root, "store"));
  for (const input of [
    { command: "view", path },
    { command: "create", path, file_text: "mine" },
    { command: "str_replace", path, old_str: "secret", new_str: "mine" },
    { command: "insert", path, insert_line: 0, insert_text: "mine" },
    { command: "delete", path },
    { command: "rename", old_path: path, new_path: "/memories/taken" },
    { command: "rename", old_path: "/memories/link", new_path: path },
  ]) {
    const error = await call(input).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ToolError);
    expect(String(error)).toMatch(input.command === "rename" ? /symlink|memories|ERR/ : why);
    expect(String(error)).not.toContain(root);
  }
  expect(await readFile(join(root, "elsewhere/outside.txt"), "utf8")).toBe("secret");
  expect(await readFile(join(root, "outside.txt"), "utf8")).toBe("secret");
});

test("tells the model what is wrong with a call, and what to do instead", async () => {
  const root = await folder();
  const results = await resultsOf(
    root,
    { command: "view", path: NOTES },
    { command: "forget", path: NOTES },
    { command: "create", path: NOTES },
    { command: "str_replace", path: NOTES, old_str: "a" },
    { command: "view", path: NOTES, view_range: [1] },
    { command: "str_replace", path: NOTES, old_str: "", new_str: "a" },
    { command: "create", path: NOTES, file_text: "a\na\n" },
    { command: "create", path: NOTES, file_text: "b" },
    { command: "str_replace", path: NOTES, old_str: "a", new_str: "b" },
    { command: "insert", path: NOTES, insert_line: 99, insert_text: "b" },
    { command: "view", path: `${NOTES}/more` },
    { command: "delete", path: "/memories" },
  );
  const texts = results.map(({ content, is_error }: { content: string; is_error?: boolean }) => {
    return `${is_error ? "error" : "ok"}: ${content}`;
  });
  expect(texts).toEqual([
    expect.stringMatching(/^error: The path .* does not exist.*View \/memories to see/),
    expect.stringMatching(/^error: The input of 'memory' doesn't fit: command .*"view"/),
    "error: 'create' also needs file_text.",
    "error: 'str_replace' also needs new_str.",
    expect.stringMatching(/^error: .*view_range must NOT have fewer than 2 items/),
    expect.stringMatching(/^error: .*old_str must NOT have fewer than 1 characters/),
    "ok: File created successfully at: /memories/notes.md",
    expect.stringMatching(/^error: .*already exists/),
    expect.stringMatching(/^error: .*lines: 1, 2/),
    expect.stringMatching(/^error: .*insert_line/),
    expect.stringMatching(/^error: 'view' failed \(ENOTDIR\)\. View \/memories/),
    expect.stringMatching(/^error: Cannot delete the \/memories directory itself/),
  ]);
  expect(await readFile(join(root, "memories/notes.md"), "utf8")).toBe("a\na\n");
});

test("says to go on without it where the machine fails, and not where the folder is", async () => {
  const root = await folder();
  await writeFile(join(root, "file"), "no folder");
  const call = callerOf(join(root, "file"));
  const failing = call({ command: "view", path: "/memories" });
  await expect(failing).rejects.toThrow(
    "'view' failed (ENOTDIR). View /memories to see what is there, or go on without it.",
  );
  await expect(failing).rejects.toHaveProperty("cause.code", "ENOTDIR");
  await expect(failing).rejects.not.toThrow(root);
});

test("writes nothing after an abort", async () => {
  const root = await folder();
  const stop = new AbortController();
  const call = callerOf(root, stop.signal);
  const first = call({ command: "create", path: NOTES, file_text: "one" });
  const second = call({ command: "create", path: "/memories/more.md", file_text: "two" });
  stop.abort(new Error("enough"));
  await expect(first).rejects.toThrow("enough");
  await expect(second).rejects.toThrow("enough");
  expect(await readdir(root)).toEqual([]);
});

test.for(["", "  ", undefined, 5])("refuses %j for a folder", (root) => {
  expect(() => createMemory(root as string)).toThrow(TypeError);
});

test("is a step like any other tool", async () => {
  const paths: string[] = [];
  const root = await folder();
  await observe(
    ({ type, path }) => type === "end" && paths.push(path),
    () => resultsOf(root, { command: "create", path: NOTES, file_text: "a" }),
  );
  expect(paths).toContain("agent/turn[0]/tool[0]");
});
