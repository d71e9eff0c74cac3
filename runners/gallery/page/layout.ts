/**
 * Where the nodes of a diagram stand. Stages go from left to right and wrap like text where the page is
 * narrow. What runs side by side is a column; where something in it waits for another, dagre places it.
 *
 *     start ─► plan ─┬─► worker[0] ─┐
 *                    └─► worker[1] ─┤
 *        ┌───────────────────────── ┘
 *        └► combine ─► end
 *
 * Texts are set in a font of one width and cut to fit, so nothing has to be measured.
 */
import { Graph, layout } from "@dagrejs/dagre";
import type { Step } from "./run.ts";
import type { Item, Stage } from "./shape.ts";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Placed extends Box {
  readonly item: Item;
}

/** A hung step, with how deep it hangs. */
export interface Hung extends Box {
  readonly step: Step;
  readonly depth: number;
}

/** A line between two items, as an SVG path. */
export interface Line {
  readonly from: Item;
  readonly to: Item;
  readonly path: string;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly Placed[];
  readonly hung: readonly Hung[];
  readonly lines: readonly Line[];
}

/** All on a grid of 4 pixels. */
const NODE = { width: 192, height: 64 };
const HUNG = { height: 24 };
const TERMINAL = { width: 16, height: 16 };
const END = { width: 128, height: 32 };
const FRAME = { side: 20, top: 32, bottom: 16 };
const GAP = { column: 36, row: 8, rows: 40 };
/** The cells of a crowd, and what is around them. */
export const CELL = { pitch: 8, left: 10, top: 32, bottom: 12 };
/** How far a line goes out before it turns to another row. */
const TURN = 10;

/** Lays the stages out in `room` pixels, or in as few more as the widest item takes. */
export function layOut(stages: readonly Stage[], room: number): Layout {
  const sized = stages.map((stage): SizedStage => {
    return { ...stage, sized: stage.items.map((item) => [item, sizeOf(item, room)]) };
  });
  const rows = rowsOf(sized, room);
  let [y, width] = [0, 0];
  const nodes: Placed[] = [];
  const hung: Hung[] = [];
  const lines: Line[] = [];
  let before: Part | undefined;
  for (const row of rows) {
    if (before) y += GAP.rows;
    const part = moved(row, 0, y);
    nodes.push(...part.nodes);
    hung.push(...part.hung);
    lines.push(...part.lines);
    if (before) lines.push(...wrapped(before, part, y - GAP.rows / 2));
    y += part.height;
    width = Math.max(width, part.width);
    before = part;
  }
  return { width, height: y, nodes, hung, lines };
}

/** A row, with where lines come into it and go out of it. */
interface Part extends Layout {
  readonly first: readonly Placed[];
  readonly last: readonly Placed[];
}

function rowsOf(stages: readonly SizedStage[], room: number): readonly Part[] {
  const rows: Part[] = [];
  let begun: SizedStage[] = [];
  let fits: Part | undefined;
  for (const stage of stages) {
    const longer = rowOf([...begun, stage]);
    if (fits && longer.width > room) {
      rows.push(fits);
      begun = [stage];
      fits = rowOf(begun);
    } else {
      begun = [...begun, stage];
      fits = longer;
    }
  }
  return fits ? [...rows, fits] : rows;
}

/** What an item takes, and what is in it. */
interface Sized {
  readonly width: number;
  readonly height: number;
  /** Where lines meet it, from its top. */
  readonly port: number;
  readonly inside?: Layout;
}

interface SizedStage extends Stage {
  readonly sized: readonly (readonly [Item, Sized])[];
}

function sizeOf(item: Item, room: number): Sized {
  if (item.kind === "start") return { ...TERMINAL, port: TERMINAL.height / 2 };
  if (item.kind === "end") return { ...END, port: END.height / 2 };
  if (item.kind === "leaf") {
    const rows = item.hung.length + (item.more > 0 ? 1 : 0);
    const height = NODE.height + rows * HUNG.height + (rows > 0 ? 4 : 0);
    return { width: NODE.width, height, port: NODE.height / 2 };
  }
  if (item.kind === "crowd") {
    const { length } = item.steps;
    const perRow = cellsPerRow(length, room);
    const height = CELL.top + Math.ceil(length / perRow) * CELL.pitch + CELL.bottom;
    return { width: perRow * CELL.pitch + 2 * CELL.left, height, port: height / 2 };
  }
  const inside = layOut(item.stages, room - 2 * FRAME.side);
  const width = inside.width + 2 * FRAME.side;
  const height = inside.height + FRAME.top + FRAME.bottom;
  return { width, height, port: height / 2, inside };
}

/** About three times as wide as high, as far as there is room, and not narrower than other nodes. */
function cellsPerRow(count: number, room: number): number {
  const most = Math.floor((room - 2 * CELL.left) / CELL.pitch);
  return Math.max(20, Math.min(most, Math.ceil(Math.sqrt(3 * count))));
}

/** Where the cells of a crowd stand in its box. */
export function cellsIn({ width }: Pick<Box, "width">, count: number): readonly Point[] {
  const perRow = (width - 2 * CELL.left) / CELL.pitch;
  return Array.from({ length: count }, (_, index) => ({
    x: CELL.left + (index % perRow) * CELL.pitch,
    y: CELL.top + Math.floor(index / perRow) * CELL.pitch,
  }));
}

/** Lays stages out in one row. */
function rowOf(stages: readonly SizedStage[]): Part {
  const sized = new Map(stages.flatMap(({ sized }) => sized));
  const ends = stages.map(endsOf);
  const edges = stages.flatMap(({ edges }, index) => [
    ...edges,
    ...across(ends[index - 1]?.last ?? [], ends[index]?.first ?? []),
  ]);
  const isPlain = stages.every(({ edges }) => edges.length === 0);
  const at = isPlain ? inColumns(stages) : byDagre(sized, edges);
  const nodes: Placed[] = [];
  const hung: Hung[] = [];
  const lines: Line[] = [];
  for (const [item, { width, height, inside }] of sized) {
    const place = { item, width, height, ...(at.places.get(item) ?? { x: 0, y: 0 }) };
    nodes.push(item.kind === "leaf" ? { ...place, height: NODE.height } : place);
    if (item.kind === "leaf") hung.push(...hungOf(item.hung, item.step, place));
    if (!inside) continue;
    const part = moved(
      { ...inside, first: [], last: [] },
      place.x + FRAME.side,
      place.y + FRAME.top,
    );
    nodes.push(...part.nodes);
    hung.push(...part.hung);
    lines.push(...part.lines);
  }
  const placeOf = (item: Item) => {
    const place = at.places.get(item) ?? { x: 0, y: 0 };
    const { width = 0, height = 0, port = 0 } = sized.get(item) ?? {};
    return { item, ...place, width, height, port };
  };
  for (const [from, to] of edges) {
    const [a, b] = [placeOf(from), placeOf(to)];
    const bends = at.bends.get(edgeKey(from, to, sized)) ?? [];
    const points = [{ x: a.x + a.width, y: a.y + a.port }, ...bends, { x: b.x, y: b.y + b.port }];
    lines.push({ from, to, path: curve(points) });
  }
  const placed = (items: readonly Item[]) =>
    items.map((item) => {
      const { port, ...place } = placeOf(item);
      // Lines to another row meet it at its port, which a box of that height has in its middle.
      return { ...place, height: 2 * port };
    });
  const [first, last] = [ends[0]?.first ?? [], ends.at(-1)?.last ?? []];
  const { width, height } = at;
  return { width, height, nodes, hung, lines, first: placed(first), last: placed(last) };
}

/** The items of a stage that wait for none of it, and those that none of it waits for. */
function endsOf({ items, edges }: Stage): { first: readonly Item[]; last: readonly Item[] } {
  const [froms, tos] = [new Set(edges.map(([from]) => from)), new Set(edges.map(([, to]) => to))];
  return {
    first: items.filter((item) => !tos.has(item)),
    last: items.filter((item) => !froms.has(item)),
  };
}

function across(from: readonly Item[], to: readonly Item[]): (readonly [Item, Item])[] {
  return from.flatMap((a) => to.map((b) => [a, b] as const));
}

interface Places {
  readonly width: number;
  readonly height: number;
  readonly places: ReadonlyMap<Item, Point>;
  /** Where a line goes between its ends. */
  readonly bends: ReadonlyMap<string, readonly Point[]>;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Each stage as a column in the middle of the row; an item alone has its port there, for a straight line. */
function inColumns(stages: readonly SizedStage[]): Places {
  const columns = stages.map(({ sized }) => {
    const sizes = sized.map(([, size]) => size);
    const width = Math.max(...sizes.map(({ width }) => width));
    const height = sizes.reduce((sum, { height }) => sum + height + GAP.row, -GAP.row);
    const port = sizes.length === 1 ? (sizes[0]?.port ?? 0) : Math.round(height / 2);
    return { sized, width, height, port };
  });
  const middle = Math.max(...columns.map(({ port }) => port));
  const places = new Map<Item, Point>();
  let [x, height] = [0, 0];
  for (const column of columns) {
    let y = middle - column.port;
    height = Math.max(height, y + column.height);
    for (const [item, size] of column.sized) {
      places.set(item, { x: x + (column.width - size.width) / 2, y });
      y += size.height + GAP.row;
    }
    x += column.width + GAP.column;
  }
  return { width: x - GAP.column, height, places, bends: new Map() };
}

function byDagre(
  sized: ReadonlyMap<Item, Sized>,
  edges: readonly (readonly [Item, Item])[],
): Places {
  const graph = new Graph().setGraph({
    rankdir: "LR",
    ranksep: GAP.column,
    nodesep: GAP.row,
    edgesep: GAP.row,
  });
  const items = [...sized.keys()];
  const nameOf = (item: Item) => String(items.indexOf(item));
  for (const [item, { width, height }] of sized) graph.setNode(nameOf(item), { width, height });
  for (const [from, to] of edges) graph.setEdge(nameOf(from), nameOf(to), {});
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const middles = items.map((item) => {
    const { x = 0, y = 0 } = graph.node(nameOf(item)) as Partial<Point>;
    return { x, y };
  });
  // It may well put the first one below the last.
  const isUpsideDown = middles.some(({ x, y }, index) => {
    const before = middles[index - 1];
    return before?.x === x && before.y > y;
  });
  const upright = ({ x, y }: Point): Point => ({ x, y: isUpsideDown ? height - y : y });
  const places = new Map<Item, Point>();
  for (const [index, [item, size]] of [...sized].entries()) {
    const { x, y } = upright(middles[index] ?? { x: 0, y: 0 });
    places.set(item, { x: Math.round(x - size.width / 2), y: Math.round(y - size.height / 2) });
  }
  const bends = new Map<string, readonly Point[]>();
  for (const { v, w } of graph.edges()) {
    const { points = [] } = graph.edge(v, w) as { points?: readonly Point[] };
    // With one point between the ends the line is direct, and needs none.
    bends.set(`${v} ${w}`, points.length > 3 ? points.slice(1, -1).map(upright) : []);
  }
  return { width: Math.ceil(width), height: Math.ceil(height), places, bends };
}

function edgeKey(from: Item, to: Item, sized: ReadonlyMap<Item, Sized>): string {
  const items = [...sized.keys()];
  return `${items.indexOf(from)} ${items.indexOf(to)}`;
}

function hungOf(steps: readonly Step[], owner: Step, { x, y, width }: Box): Hung[] {
  return steps.map((step, index) => {
    const depth = step.depth - owner.depth - 1;
    const top = y + NODE.height + 4 + index * HUNG.height;
    const indent = 12 + 12 * depth;
    return { step, depth, x: x + indent, y: top, width: width - indent, height: HUNG.height };
  });
}

function moved(part: Part, dx: number, dy: number): Part {
  const move = <T extends Box>(box: T): T => ({ ...box, x: box.x + dx, y: box.y + dy });
  return {
    ...part,
    nodes: part.nodes.map(move),
    hung: part.hung.map(move),
    first: part.first.map(move),
    last: part.last.map(move),
    lines: part.lines.map((line) => ({ ...line, path: shifted(line.path, dx, dy) })),
  };
}

/** Moves a path, whose commands have absolute coordinates in pairs. */
function shifted(path: string, dx: number, dy: number): string {
  return path.replace(
    /(-?[\d.]+),(-?[\d.]+)/g,
    (_, x: string, y: string) => `${Number(x) + dx},${Number(y) + dy}`,
  );
}

/** A line through the points that leaves and arrives level. */
function curve(points: readonly Point[]): string {
  const [start, ...rest] = points;
  if (!start) return "";
  let path = `M${start.x},${start.y}`;
  let from = start;
  for (const to of rest) {
    const middle = (from.x + to.x) / 2;
    path += ` C${middle},${from.y} ${middle},${to.y} ${to.x},${to.y}`;
    from = to;
  }
  return path;
}

/** Lines from the end of a row to the begin of the next, through the gap between them. */
function wrapped(before: Part, next: Part, y: number): Line[] {
  const radius = TURN / 2;
  return before.last.flatMap((a) =>
    next.first.map((b) => {
      const [ax, ay] = [a.x + a.width, a.y + a.height / 2];
      const [bx, by] = [b.x, b.y + b.height / 2];
      const [right, left] = [ax + TURN, bx - TURN];
      const path = [
        `M${ax},${ay} L${right - radius},${ay} Q${right},${ay} ${right},${ay + radius}`,
        `L${right},${y - radius} Q${right},${y} ${right - radius},${y}`,
        `L${left + radius},${y} Q${left},${y} ${left},${y + radius}`,
        `L${left},${by - radius} Q${left},${by} ${left + radius},${by} L${bx},${by}`,
      ].join(" ");
      return { from: a.item, to: b.item, path };
    }),
  );
}
