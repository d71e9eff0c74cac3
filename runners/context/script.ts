/**
 * The model of the scripted runs: it reads the log hour by hour, and knows of it what it can still see.
 *
 * What it sees is what the API has left: its own words, a summary, what its memory gave it. An hour that is in
 * none of them is read again.
 */
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { Params } from "../../patterns/llm-call.ts";
import type { Play, Turn } from "../failures/scripted.ts";

const FILE = "/memories/notes.md";

export const play: Play = (params) => {
  const { messages, tools = [] } = params;
  const has = (tool: string) => tools.some((known) => "name" in known && known.name === tool);
  const notes = notesIn(messages);
  const latest = textsIn(messages.slice(-1)).join("\n");
  if (has("memory") && messages.length === 1) return view("/memories");
  if (has("memory") && notes.length === 0 && latest.includes(FILE)) return view(FILE);

  const text = notesOn(latest).join("\n");
  const unread = hoursOf(params).filter((hour) => !notes.some((note) => hourOf(note) === hour));
  const calls = unread.slice(0, 2).map((hour) => ["read_log", { hour }] as const);
  if (calls.length > 0) return { text, calls };
  if (/into your memory/.test(taskIn(messages)) && !latest.startsWith("File created")) {
    const input = { command: "create", path: FILE, file_text: `${notes.join("\n")}\n` };
    return { text, calls: [["memory", input]] };
  }
  const failed = notes.filter((note) => !note.endsWith("nothing"));
  if (!has("deliver")) return { text: failed.join("\n") };
  const findings = failed.map((note) => ({
    claim: `The payment of order ${note.split(": ")[1]} failed.`,
    evidence: note,
    source: `read_log({ "hour": ${hourOf(note)} })`,
  }));
  return { calls: [["deliver", { findings, gaps: ["Why they failed: the log doesn't say."] }]] };
};

/** What a compaction keeps: the task, and the notes. */
export function summarize(messages: readonly MessageParam[]): string {
  return `Asked for: ${taskIn(messages)}\nNoted so far:\n${notesIn(messages).join("\n")}`;
}

function view(path: string): Turn {
  return { calls: [["memory", { command: "view", path }]] };
}

/** The hours that are asked for, in the task or in a subagent's brief. */
function hoursOf({ system, messages }: Params): number[] {
  const asked = /hour (\d+) to hour (\d+)/.exec(`${taskIn(messages)} ${system}`);
  const [, first = "", last = ""] = asked ?? [];
  return Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at);
}

function taskIn(messages: readonly MessageParam[]): string {
  return textsIn(messages.slice(0, 1)).join();
}

/** All notes that can be seen, those on what was just read too. */
function notesIn(messages: readonly MessageParam[]): string[] {
  const noted = textsIn(messages).flatMap((text) => text.match(/Hour \d+: \S+/g) ?? []);
  return [...new Set([...noted, ...textsIn(messages.slice(-1)).flatMap(notesOn)])];
}

function notesOn(logs: string): string[] {
  return logs.split("log of ").flatMap((log) => {
    const hour = /^hour (\d+)$/m.exec(log)?.[1];
    const failed = /payment of order (\S+) failed/.exec(log)?.[1] ?? "nothing";
    return hour === undefined ? [] : [`Hour ${hour}: ${failed}`];
  });
}

function hourOf(note: string): number {
  return Number(/\d+/.exec(note));
}

/** All that the model reads, but for its own calls. The task holds an example of a note, and is none. */
function textsIn(messages: readonly MessageParam[]): string[] {
  return messages.flatMap(({ content }) => {
    if (typeof content === "string") return [content.replaceAll(/"Hour .*?"/g, "")];
    return content.flatMap((block) => {
      if (block.type === "text") return [block.text];
      // A summary has its text where a result has it.
      return "content" in block ? [String(block.content)] : [];
    });
  });
}
