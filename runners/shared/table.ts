/**
 * A table, whose cells are wrapped so that it's as wide as the terminal, or a list where that is too narrow.
 *
 *             first      second             first
 *     calls   3 calls    2 calls              calls   3 calls
 *     limits  turns and  turns                limits  turns and money
 *             money                         second …
 *
 * From effective-agents 0.1.0: runners/shared/table.ts
 */
import { wrap } from "./format.ts";

/** A row: what it's about, and a cell for each column. */
export type TableRow = readonly [label: string, ...cells: string[]];

/** From here on a table of some columns can be read, in characters. */
const LEAST_COLUMNS = 80;
const GAP = "  ";

/** Lays it out. Below 80 columns it's a list, to be wrapped as any text. */
export function table(
  heads: readonly string[],
  rows: readonly TableRow[],
  columns: number,
): string {
  const labels = Math.max(...rows.map(([label]) => label.length));
  if (columns < LEAST_COLUMNS) {
    const blocks = heads.map((head, index) => {
      const lines = rows.map(([label, ...cells]) => {
        return `${GAP}${label.padEnd(labels)}${GAP}${cells[index] ?? ""}`;
      });
      return [head, ...lines].join("\n");
    });
    return blocks.join("\n\n");
  }
  const width = Math.floor((columns - labels) / heads.length) - GAP.length;
  const lineOf = ([label, ...cells]: TableRow) => {
    const wrapped = cells.map((cell) => wrap(cell, width).split("\n"));
    const height = Math.max(...wrapped.map(({ length }) => length));
    return Array.from({ length: height }, (_, at) => {
      const parts = wrapped.map((lines) => (lines[at] ?? "").padEnd(width));
      return [(at === 0 ? label : "").padEnd(labels), ...parts].join(GAP).trimEnd();
    });
  };
  const rule = heads.map(() => "─".repeat(width));
  return [["", ...heads] as const, ["", ...rule] as const, ...rows].flatMap(lineOf).join("\n");
}
