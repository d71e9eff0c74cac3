/**
 * Many steps of a kind, a cell each, on one canvas: thousands of elements would take longer to paint than
 * a frame lasts. The list below the drawing has the same steps for the keyboard.
 */
import { h } from "./dom.ts";
import { type Box, CELL, cellsIn } from "./layout.ts";
import type { State } from "./moment.ts";

export interface Crowd {
  readonly element: HTMLElement;
  /** Draws the cell of one step. */
  readonly paint: (index: number, state: State) => void;
  /** Frames the cell of one step, or none. */
  readonly select: (index: number) => void;
}

/** Makes a crowd of so many in a box of this size. `onSelect` is told which one was clicked. */
export function createCrowd(
  title: string,
  count: number,
  { width, height }: Pick<Box, "width" | "height">,
  onSelect: (index: number) => void,
): Crowd {
  const scale = devicePixelRatio;
  const canvas = h("canvas", {
    width: width * scale,
    height: height * scale,
    "aria-hidden": "true",
  });
  const pen = canvas.getContext("2d");
  const [cells, colours] = [cellsIn({ width }, count), coloursNow()];
  const mark = h("i");
  const inList = h("span", { class: "visually-hidden" }, ", each in the list below");
  pen?.scale(scale, scale);
  canvas.addEventListener("click", ({ offsetX, offsetY }) => {
    const isIn = (from: number, at: number) => at >= from && at < from + CELL.pitch;
    onSelect(cells.findIndex(({ x, y }) => isIn(x, offsetX) && isIn(y, offsetY)));
  });
  return {
    element: h("div", { class: "crowd" }, canvas, h("p", { class: "name" }, title, inList), mark),
    paint: (index, state) => {
      const cell = cells[index];
      if (!cell || !pen) return;
      const size = CELL.pitch - 1;
      pen.clearRect(cell.x, cell.y, size, size);
      pen.fillStyle = colours[state];
      // A cancelled or unfinished one is half of a cell, so that it's told by its form too.
      if (state !== "cancelled" && state !== "unfinished") pen.fillRect(cell.x, cell.y, size, size);
      else {
        pen.beginPath();
        pen.moveTo(cell.x, cell.y + size);
        pen.lineTo(cell.x + size, cell.y);
        pen.lineTo(cell.x + size, cell.y + size);
        pen.fill();
      }
    },
    select: (index) => {
      const cell = cells[index];
      mark.hidden = !cell;
      if (cell) mark.style.translate = `${cell.x}px ${cell.y}px`;
    },
  };
}

/** The style sheet's colours in the present theme. */
function coloursNow(): Readonly<Record<State, string>> {
  const probe = document.body.appendChild(h("i"));
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    waiting: colour("line"),
    flight: colour("flight"),
    ok: colour("ok"),
    failed: colour("failed"),
    cancelled: colour("cancelled"),
    unfinished: colour("flight"),
  };
  probe.remove();
  return colours;
}
