/**
 * How figures and values are said, on the terminal and on the gallery's page.
 *
 * From effective-agents 0.1.0: runners/shared/words.ts
 */

/** `812 ms`, `1.9 s`, `2 min 5 s`, `1 h 15 min`, `3 d 2 h`; with a tilde where it's an estimate. */
export function duration(ms: number, estimated = false): string {
  return (estimated ? "~" : "") + lengthOf(ms);
}

function lengthOf(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(ms / 3_600_000);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `12,345`: a count. A browser takes a while to load what `toLocaleString` needs for it. */
export function numeral(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 turn`, `3 turns`. */
export function counted(count: number, what: string): string {
  return `${numeral(count)} ${count === 1 ? what : `${what}s`}`;
}

/** US dollars with four places: a call costs fractions of a cent. */
export function dollars(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

/** What a pattern made of a reply, in a few words on one line. */
export function brief(value: unknown): string {
  return wordsOf(value).slice(0, EXCERPT).replace(/\s+/g, " ").trim();
}

function wordsOf(value: unknown): string {
  if (value === true) return "passed";
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return value === undefined ? "" : String(value);
  const fields = new Map<string, unknown>(Object.entries(value));
  const [name, answer, evaluation, tasks] = ["name", "answer", "evaluation", "tasks"].map((key) =>
    fields.get(key),
  );
  // A chain's step, a classification, a vote, a grade, a plan, an agent's run.
  if (fields.has("verdict")) return String(fields.get("output"));
  if (fields.has("label")) return String(name ?? `unknown label: ${fields.get("label")}`);
  if (answer !== undefined) return String(answer);
  if (evaluation !== undefined) return `${evaluation}, ${fields.get("score")} of 10`;
  if (Array.isArray(tasks)) return String(fields.get("problem") ?? `${tasks.length} tasks`);
  if (fields.has("status")) return String(fields.get("status"));
  return JSON.stringify(value);
}

/** More of a value than any terminal's line takes, in characters: a tool's result may hold 20,000. */
const EXCERPT = 2_000;
