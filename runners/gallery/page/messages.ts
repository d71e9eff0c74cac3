/**
 * Prompts and replies as people read them: who says what, text as text, tool calls as calls.
 *
 * What stands in them was written by models and by whoever wrote to these. It is shown by text nodes
 * alone, and anything of an unknown form as JSON.
 */

import { counted, numeral } from "../../shared/words.ts";
import { h, setText } from "./dom.ts";

/** A message of a request. */
export interface Message {
  readonly role?: unknown;
  readonly content?: unknown;
}

/** Shows one message. */
export function messageView(message: Message): HTMLElement {
  // What somebody's file holds may be anything.
  const { role, content } = Object(message) as Message;
  const who = typeof role === "string" ? role : "?";
  return h(
    "div",
    { class: "message", "data-role": who },
    h("p", { class: "who" }, who),
    ...contentViews(content),
  );
}

/** Shows the content of a message: a text, or a list of blocks. */
export function contentViews(content: unknown): readonly HTMLElement[] {
  if (typeof content === "string") return [text(content)];
  if (!Array.isArray(content)) return content === undefined ? [] : [json(content)];
  return content.map(blockView);
}

function blockView(block: unknown): HTMLElement {
  const fields = Object(block) as Record<string, unknown>;
  const { type } = fields;
  if (type === "text" && typeof fields.text === "string") return text(fields.text);
  if (type === "thinking") {
    return folded("thinking", text(said(fields.thinking)));
  }
  if (type === "redacted_thinking")
    return h("p", { class: "note" }, "Thinking, not shown by the API");
  if (type === "tool_use" || type === "server_tool_use") {
    const head = h("p", { class: "call-name" }, h("code", {}, said(fields.name)));
    return h("div", { class: "tool-use" }, head, inputView(fields.input));
  }
  if (type === "tool_result") {
    const views = contentViews(fields.content);
    const label = fields.is_error === true ? "result: error" : "result";
    const result = h("div", { class: "tool-result" }, h("p", { class: "who" }, label), ...views);
    if (fields.is_error === true) result.dataset.error = "";
    return result;
  }
  if (type === "image" || type === "document") return h("p", { class: "note" }, `A ${type}`);
  return json(block);
}

/** A text as it is, anything else as JSON. */
function said(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A tool's input: a field a line, texts as they are. */
function inputView(input: unknown): HTMLElement {
  const entries = Object.entries(Object(input) as Record<string, unknown>);
  if (entries.length === 0) return h("p", { class: "note" }, "no input");
  const rows = entries.flatMap(([name, value]) => [
    h("dt", {}, name),
    h("dd", {}, typeof value === "string" ? value : JSON.stringify(value)),
  ]);
  return h("dl", { class: "input" }, ...rows);
}

/** A longer text than this is folded at first, in characters. */
const LONG = 2_400;

/** A text with its line breaks; a long one opens on demand. */
export function text(value: string): HTMLElement {
  if (value.length <= LONG) return h("p", { class: "text" }, value);
  const shown = h("p", { class: "text" }, `${value.slice(0, LONG)}…`);
  const all = `Show all ${numeral(value.length)} characters`;
  const more = h("button", { type: "button", class: "quiet" }, all);
  more.addEventListener("click", () => {
    setText(shown, value);
    more.remove();
  });
  return h("div", {}, shown, more);
}

/** Something that opens on demand. */
export function folded(title: string, ...children: readonly Node[]): HTMLElement {
  return h("details", { class: "fold" }, h("summary", {}, title), ...children);
}

/** Messages that are made when they are asked for: a history is long. */
export function foldedMessages(count: number, messages: () => readonly Message[]): HTMLElement {
  const fold = folded(`${counted(count, "earlier message")}, sent again`);
  fold.addEventListener("toggle", () => fold.append(...messages().map(messageView)), {
    once: true,
  });
  return fold;
}

/** Any value. */
export function json(value: unknown): HTMLElement {
  return h("pre", { class: "json" }, JSON.stringify(value, undefined, 2) ?? "undefined");
}
