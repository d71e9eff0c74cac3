/**
 * A value as JSON holds it, whatever it is: what JSON can't hold becomes a word for it.
 *
 *     { id: 7n, raw: new Map([["a", 1]]), again: itself }  ─►  { id: "7n", raw: [["a", 1]], again: "[circular]" }
 *
 * From effective-agents 0.1.0: patterns/trace-file/plain.ts
 */

/** Deeper than anything that is looked at, and less deep than what overflows the stack. */
const MAX_DEPTH = 100;

/** Copies a value into what `JSON.stringify` writes and `JSON.parse` gives back the same. Never throws. */
export function plain(value: unknown): unknown {
  return copy(value, []);
}

/** @param around The objects that the value is in. */
function copy(value: unknown, around: readonly object[]): unknown {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return `${value}n`;
    case "symbol":
      return String(value);
    case "function":
      return `[function ${value.name}]`;
    case "object":
      if (value === null) return null;
      if (around.includes(value)) return "[circular]";
      if (around.length === MAX_DEPTH) return "[deeper]";
      try {
        return copyObject(value, [...around, value]);
      } catch (error) {
        // A getter of its own, or a proxy.
        return `[unreadable: ${error instanceof Error ? error.message : typeof error}]`;
      }
    default:
      return value;
  }
}

function copyObject(value: object, around: readonly object[]): unknown {
  if (Array.isArray(value)) return Array.from(value, (item) => copy(item, around) ?? null);
  // Only these two: the SDK's errors have the response's headers on them.
  if (value instanceof Error) return { name: String(value.name), message: String(value.message) };
  if (value instanceof Map || value instanceof Set) return copyObject([...value], around);
  if (ArrayBuffer.isView(value)) return `[${value.constructor.name} of ${value.byteLength} bytes]`;
  if ("toJSON" in value && typeof value.toJSON === "function") return copy(value.toJSON(), around);
  const fields = Object.entries(value).flatMap(([key, field]) => {
    const copied = copy(field, around);
    return copied === undefined ? [] : [[key, copied] as const];
  });
  return Object.fromEntries(fields);
}
