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
  ["/memories/../../outside.txt", "no name in it begins with a dot"],
  ["/memories/link/outside.txt", "via symlink"],
  ["/memories/link", "via symlink"],
  ["/memories/no\0thing", "what can't be seen"],
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

test.for([
  "/memoriesevil.md",
  "/memories/a\n9B\t/memories/forged.md",
  "/memories/\u202Egpj.exe",
  "/memories/\u200b",
  "/memories/.hidden",
  "/memories/a/.tmp/b.md",
  "/memories/node_modules/a.md",
  "/memories/a\\b.md",
  "/memories//a.md",
  "/memories/ ",
  "/memories/a ",
  "/memories/\u2800",
  "/memories/x\u3164",
])("takes no name that a listing would hide or show as another: %j", async (path) => {
  const root = await folder();
  const call = callerOf(root);
  await call({ command: "create", path: NOTES, file_text: "a" });
  for (const input of [
    { command: "create", path, file_text: "mine" },
    { command: "rename", old_path: NOTES, new_path: path },
  ]) {
    await expect(call(input)).rejects.toThrow("is no path in this memory");
  }
  expect(await readdir(join(root, "memories"), { recursive: true })).toEqual(["notes.md"]);
});

test("takes no path by a field that its command hasn't", async () => {
  const root = await folder();
  const call = callerOf(root);
  const more = { old_path: NOTES, new_path: "/memories/b.md" };
  const hidden = { command: "create", path: "/memories/.hidden", file_text: "mine", ...more };
  await expect(call(hidden)).rejects.toThrow(/is no path in this memory|takes no old_path/);
  await expect(call({ command: "view", path: NOTES, ...more })).rejects.toThrow(
    "'view' takes no old_path.",
  );
  expect(await readdir(join(root, "memories")).catch(() => [])).toEqual([]);
});

test("takes names of any language, and a folder's with a slash at its end", async () => {
  const call = callerOf(await folder());
  const path = "/memories/año 1/記憶-🦊.md";
  await call({ command: "create", path, file_text: "a" });
  expect(await call({ command: "view", path: "/memories/" })).toContain(path.slice(-8));
  expect(await call({ command: "view", path })).toMatch(/1\ta$/);
});

test("replaces a text of several lines, and shows where", async () => {
  const root = await folder();
  const call = callerOf(root);
  const lines = Array.from({ length: 9 }, (_, index) => `line ${index + 1}`);
  await call({ command: "create", path: NOTES, file_text: lines.join("\n") });
  const [old_str, new_str] = ["line 4\nline 5", "$& four\nand a half\nfive"];
  const said = await call({ command: "str_replace", path: NOTES, old_str, new_str });
  const kept = await readFile(join(root, "memories/notes.md"), "utf8");
  expect(kept).toBe(lines.join("\n").replace(old_str, () => new_str));
  expect(said).toBe(
    [
      "The memory file has been edited. Here is the snippet showing the change (with line numbers):",
      ...["2\tline 2", "3\tline 3", "4\t$& four", "5\tand a half", "6\tfive"],
      ...["7\tline 6", "8\tline 7"],
    ]
      .map((line, index) => (index === 0 ? line : `     ${line}`))
      .join("\n"),
  );
  expect(await readdir(join(root, "memories"))).toEqual(["notes.md"]);
});

test.for([
  ["a a", "a", "1, 1"],
  ["x\naaa", "aa", "2, 2"],
  ["a\nb\na\nb", "a\nb", "1, 3"],
])("replaces nothing where a text isn't unique: %j", async ([file_text = "", old_str, lines]) => {
  const root = await folder();
  const call = callerOf(root);
  await call({ command: "create", path: NOTES, file_text });
  const replacing = call({ command: "str_replace", path: NOTES, old_str, new_str: "c" });
  await expect(replacing).rejects.toThrow(
    `Multiple occurrences of old_str \`${old_str}\` in lines: ${lines}. Please ensure it is unique`,
  );
  expect(await readFile(join(root, "memories/notes.md"), "utf8")).toBe(file_text);
});

test("takes and shows no file of more than 100,000 bytes", async () => {
  const root = await folder();
  const call = callerOf(root);
  const most = "ä".repeat(50_000);
  await call({ command: "create", path: NOTES, file_text: most });
  await writeFile(join(root, "memories/large.md"), `${most}b`);
  for (const input of [
    { command: "create", path: "/memories/more.md", file_text: `${most}b` },
    { command: "insert", path: NOTES, insert_line: 0, insert_text: "b" },
    { command: "view", path: "/memories/large.md" },
    { command: "str_replace", path: "/memories/large.md", old_str: "b", new_str: "" },
  ]) {
    await expect(call(input)).rejects.toThrow("and a file has at most 100,000: keep less");
  }
  await call({ command: "create", path: "/memories/b.md", file_text: "b" });
  const growing = call({
    command: "str_replace",
    path: "/memories/b.md",
    old_str: "b",
    new_str: `${most}b`,
  });
  await expect(growing).rejects.toThrow("comes to 100,001 bytes");
  expect(await readFile(join(root, "memories/notes.md"), "utf8")).toBe(most);
  expect(await readFile(join(root, "memories/b.md"), "utf8")).toBe("b");
  // It's not for ever.
  await call({ command: "delete", path: "/memories/large.md" });
});

test.for([
  [0, 2],
  [-1, 2],
  [4, 5],
  [3, 2],
  [1, 0],
])("has no lines from %i to %i of three", async (view_range) => {
  const call = callerOf(await folder());
  await call({ command: "create", path: NOTES, file_text: "one\ntwo\nthree" });
  const viewing = call({ command: "view", path: NOTES, view_range });
  await expect(viewing).rejects.toThrow("There is no such view_range: the file has 3 lines.");
  expect(await call({ command: "view", path: NOTES, view_range: [3, 99] })).toMatch(/3\tthree$/);
  expect(await call({ command: "view", path: NOTES, view_range: [2, -1] })).toMatch(/2\ttwo\n/);
});

test("loses no change of two runs that remember in one folder at once", async () => {
  const root = await folder();
  const callers = [callerOf(root), callerOf(join(root, "memories", ".."))];
  await callers[0]?.({ command: "create", path: NOTES, file_text: "" });
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  await Promise.all(
    lines.map((insert_text, index) =>
      callers[index % 2]?.({ command: "insert", path: NOTES, insert_line: index, insert_text }),
    ),
  );
  const kept = await readFile(join(root, "memories/notes.md"), "utf8");
  expect(kept.split("\n").filter(Boolean)).toEqual(lines);
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
