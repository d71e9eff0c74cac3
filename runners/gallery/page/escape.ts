/**
 * Text as HTML.
 */

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** The text so that it means itself, between tags and inside of a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
}

/** JSON so that it can stand in a `<script>`. */
export function inScript(json: string): string {
  return json.replaceAll("<", "\\u003c");
}
