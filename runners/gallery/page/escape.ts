/**
 * Text as HTML, and as what it says.
 */
import { visible } from "../../../patterns/repo-tools/text.ts";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** The text so that it means itself, between tags and inside of a quoted attribute. */
export function escaped(text: string): string {
  return straight(text).replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
}

/** The text with each character that turns the direction of others written as its code: `<U+202E>`. */
export function straight(text: string): string {
  return text.replace(/\p{Bidi_Control}/gu, visible);
}

/** JSON so that it can stand in a `<script>`. */
export function inScript(json: string): string {
  return json.replaceAll("<", "\\u003c");
}
