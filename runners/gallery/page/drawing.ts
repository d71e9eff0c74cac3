/**
 * Draws a module's own ASCII drawing as lines: the characters say what, and this only how.
 *
 *     ─ │ ┌ ┬ ┐ ├ ┼ ┤ └ ┴ ┘  half lines from the middle of a cell     ► ◄ ▲ ▼  arrow heads
 */
import { escaped } from "./escape.ts";

const CELL = { width: 8, height: 18 };
const [MIDDLE, CENTRE] = [CELL.width / 2, CELL.height / 2];

/** Which sides of its cell a character reaches: north, east, south, west. */
const REACH: Readonly<Record<string, string>> = {
  "─": "ew",
  "│": "ns",
  "┌": "es",
  "┐": "sw",
  "└": "ne",
  "┘": "nw",
  "├": "nes",
  "┤": "nsw",
  "┬": "esw",
  "┴": "new",
  "┼": "nesw",
};

const HALVES: Readonly<Record<string, string>> = {
  n: `V0`,
  e: `H${CELL.width}`,
  s: `V${CELL.height}`,
  w: `H0`,
};

/** Each reaches the side that it points away from. */
const HEADS: Readonly<Record<string, string>> = {
  "►": `M0,${CENTRE}H3M2,${CENTRE - 3.5}L7.5,${CENTRE}L2,${CENTRE + 3.5}Z`,
  "◄": `M${CELL.width},${CENTRE}H5M6,${CENTRE - 3.5}L0.5,${CENTRE}L6,${CENTRE + 3.5}Z`,
  "▲": `M${MIDDLE},${CELL.height}V11M0.5,12L${MIDDLE},6L7.5,12Z`,
  "▼": `M${MIDDLE},0V7M0.5,6L${MIDDLE},12L7.5,6Z`,
};

/** Makes an SVG element of a drawing in box-drawing characters; screen readers get its words. */
export function drawingSvg(drawing: string): string {
  const rows = drawing.split("\n").map((row) => [...row]);
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const [lines, heads, texts]: [string[], string[], string[]] = [[], [], []];
  const words: string[] = [];
  for (const [y, row] of rows.entries()) {
    for (const [x, char] of row.entries()) {
      for (const side of REACH[char] ?? "") lines.push(half(side, x, y));
      if (HEADS[char]) heads.push(shiftedPath(HEADS[char], x, y));
    }
    for (const { 0: word, index } of row
      .join("")
      .matchAll(/[^\s─│┌┐└┘├┤┬┴┼►◄▲▼]+( [^\s─│┌┐└┘├┤┬┴┼►◄▲▼]+)*/g)) {
      const [left, base] = [index * CELL.width, y * CELL.height + CENTRE + 4.5];
      words.push(word);
      texts.push(`<text x="${left}" y="${base}">${escaped(word)}</text>`);
    }
  }
  const [width, height] = [columns * CELL.width, rows.length * CELL.height];
  return `<svg class="drawing" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(words.join(", "))}"><path class="lines" d="${lines.join("")}"/><path class="heads" d="${heads.join("")}"/>${texts.join("")}</svg>`;
}

function half(side: string, x: number, y: number): string {
  return shiftedPath(`M${MIDDLE},${CENTRE}${HALVES[side]}`, x, y);
}

/** Moves a path into the cell at column `x` and row `y`. */
function shiftedPath(path: string, x: number, y: number): string {
  const [dx, dy] = [x * CELL.width, y * CELL.height];
  return path
    .replace(
      /([ML])([\d.]+),([\d.]+)/g,
      (_, c, px, py) => `${c}${Number(px) + dx},${Number(py) + dy}`,
    )
    .replace(/H([\d.]+)/g, (_, px) => `H${Number(px) + dx}`)
    .replace(/V([\d.]+)/g, (_, py) => `V${Number(py) + dy}`);
}
