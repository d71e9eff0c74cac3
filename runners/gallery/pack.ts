/**
 * A value as JSON in which each long text stands once.
 *
 *     [{ value: "200 lines", reply: "200 lines" }]  ─►  [["200 lines"], [{ value: "\0" + 0, reply: "\0" + 0 }]]
 *
 * What an agent's tool gave is the tool's value, a part of the next request and a part of the transcript.
 * Compression doesn't find it again, since it looks back a few pages only.
 */

/** Shorter ones aren't worth it, in characters. */
const LEAST = 64;
/** What stands for a text begins with it, and so do texts that would be taken for that. */
const MARK = "\0";

/** Writes a value that JSON can hold. */
export function pack(value: unknown): string {
  const counts = new Map<string, number>();
  walk(value, (text) => {
    counts.set(text, (counts.get(text) ?? 0) + 1);
    return text;
  });
  const places = new Map<string, number>();
  for (const [text, count] of counts) {
    const isWorthIt = text.length >= LEAST && count > 1;
    if (isWorthIt || text.startsWith(MARK)) places.set(text, places.size);
  }
  const packed = walk(value, (text) => {
    const place = places.get(text);
    return place === undefined ? text : `${MARK}${place}`;
  });
  return JSON.stringify([[...places.keys()], packed]);
}

/** Reads what `pack` has written. */
export function unpack(text: string): unknown {
  // As pack writes it, and nobody else.
  const [texts, packed] = JSON.parse(text) as [readonly string[], unknown];
  return filled(packed, texts);
}

/** The same value, in which each text stands again: a copy of all that a page holds would take a while. */
function filled(value: unknown, texts: readonly string[]): unknown {
  if (typeof value === "string") {
    return value.startsWith(MARK) ? (texts[Number(value.slice(MARK.length))] ?? "") : value;
  }
  if (typeof value !== "object" || value === null) return value;
  for (const [key, field] of Object.entries(value)) {
    const whole = filled(field, texts);
    // Few fields are such a text, and to set all of them takes as long as to read them.
    if (whole !== field) Reflect.set(value, key, whole);
  }
  return value;
}

/** A copy with each text changed. */
function walk(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => walk(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, walk(field, change)]),
  );
}
