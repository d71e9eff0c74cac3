/**
 * The drawing on which the run plays: a node for each step, lines for what followed what.
 *
 * Each node has a strip at its foot that stands for the whole run, with the step's own time marked in
 * it, so that one sees in the nodes themselves what ran at once. At each moment only the nodes whose
 * state has changed are touched, and the strips of those in flight.
 */

import { tokensIn } from "../../shared/trace.ts";
import { brief, counted, dollars, duration } from "../../shared/words.ts";
import { createCrowd } from "./crowd.ts";
import { h, placed, roveFocus, setText, svg } from "./dom.ts";
import { type Hung, type Layout, layOut, type Placed } from "./layout.ts";
import { type State, stateAt } from "./moment.ts";
import type { Run, Span, Step } from "./run.ts";
import { type Item, shapeOf } from "./shape.ts";
import { createSign } from "./sign.ts";
import { ending, STATES, toolWords } from "./words.ts";

export interface Diagram {
  readonly element: HTMLElement;
  readonly show: (run: Run) => void;
  /** Shows the moment; where it plays, what begins is brought into view. */
  readonly update: (time: number, isPlaying: boolean) => void;
  readonly select: (path: string | undefined) => void;
}

/** A node that shows a step. */
interface Shown {
  readonly span: Span;
  state: State | undefined;
  readonly paint: (state: State, time: number) => void;
  /** What is brought into view when it begins. */
  readonly element?: HTMLElement;
}

/** Makes an empty diagram. */
export function createDiagram(onSelect: (path: string) => void): Diagram {
  const sheet = h("div", { class: "sheet" });
  // As wide as the room is, and no higher for what is drawn: watched itself, the diagram would be resized
  // by its own drawing.
  const width = h("div");
  const element = h(
    "div",
    { class: "diagram", role: "group", "aria-label": "Steps drawn" },
    width,
    sheet,
  );
  let run: Run | undefined;
  let shown: readonly Shown[] = [];
  let buttons: ReadonlyMap<string, HTMLElement> = new Map();
  let select: Drawing["select"] = () => {};
  // There is no room until it's first heard of: to ask for it has the browser lay out the page.
  let [time, room, selected]: [number, number, string | undefined] = [0, 0, undefined];

  const draw = () => {
    if (!run || room <= 0) return;
    const focused =
      document.activeElement instanceof HTMLElement ? document.activeElement : undefined;
    const held = sheet.contains(document.activeElement) ? focused?.dataset.path : undefined;
    const layout = layOut(shapeOf(run), room);
    const drawing = drawn(run, layout, onSelect);
    ({ shown, buttons, select } = drawing);
    sheet.style.width = `${layout.width}px`;
    sheet.style.height = `${layout.height}px`;
    sheet.replaceChildren(...drawing.elements);
    roveFocus(sheet, "button");
    mark();
    update(time, false);
    if (held !== undefined) buttons.get(held)?.focus({ preventScroll: true });
  };
  const mark = () => {
    for (const [path, element] of buttons) {
      element.toggleAttribute("data-selected", path === selected);
      element.setAttribute("aria-pressed", `${path === selected}`);
    }
    select(selected);
  };
  const update = (at: number, isPlaying: boolean) => {
    time = at;
    let begun: HTMLElement | undefined;
    for (const each of shown) {
      const state = stateAt(each.span, time);
      if (state === each.state && state !== "flight") continue;
      if (state === "flight" && state !== each.state) begun = each.element ?? begun;
      each.paint(state, time);
      each.state = state;
    }
    if (isPlaying && begun) bringIntoView(element, begun);
  };
  sheet.addEventListener("click", ({ target }) => {
    const button =
      target instanceof Element ? target.closest<HTMLElement>("[data-path]") : undefined;
    if (button?.dataset.path) onSelect(button.dataset.path);
  });
  // A canvas keeps the colours that it was drawn with.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("theme", draw);
  new ResizeObserver(() => {
    if (width.clientWidth === room) return;
    room = width.clientWidth;
    draw();
  }).observe(width);
  return {
    element,
    show: (next) => {
      run = next;
      draw();
    },
    update,
    select: (path) => {
      selected = path;
      mark();
      if (path) buttons.get(path)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    },
  };
}

const PADDING = 20;
/** So much of a value goes into a node, in characters: no more is seen, and all of it would be read aloud. */
const SEEN = 80;

/** Scrolls the drawing, and not the page, so far that the element is seen. */
function bringIntoView(scroller: HTMLElement, element: HTMLElement): void {
  const [outer, inner] = [scroller.getBoundingClientRect(), element.getBoundingClientRect()];
  const isSeen = inner.top >= outer.top && inner.bottom <= outer.bottom;
  if (isSeen && inner.left >= outer.left && inner.right <= outer.right) return;
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
  scroller.scrollBy({
    top: isSeen ? 0 : inner.top - outer.top - PADDING,
    left: inner.left - outer.left - PADDING,
    behavior: isStill ? "instant" : "smooth",
  });
}

interface Drawing {
  readonly elements: readonly Element[];
  readonly shown: readonly Shown[];
  readonly buttons: ReadonlyMap<string, HTMLElement>;
  /** Frames the step's cell, where it is one of a crowd. */
  readonly select: (path: string | undefined) => void;
}

function drawn(run: Run, layout: Layout, onSelect: (path: string) => void): Drawing {
  const crowds: Drawing["select"][] = [];
  const buttons = new Map<string, HTMLElement>();
  const shown: Shown[] = [];
  const elements: Element[] = [];
  const add = (path: string | undefined, element: HTMLElement, ...views: readonly Shown[]) => {
    elements.push(element);
    shown.push(...views);
    if (path) buttons.set(path, element);
  };
  // Frames before what stands in them, and in the order of the run for the focus.
  for (const place of layout.nodes) {
    const { item } = place;
    if (item.kind === "frame") add(item.step.path, ...frame(item, place));
    if (item.kind === "leaf") add(item.step.path, ...node(run, item.step, place));
    if (item.kind === "crowd") {
      const { element, views, select } = crowd(item, place, onSelect);
      add(undefined, element, ...views);
      crowds.push(select);
    }
    if (item.kind === "start") add(undefined, at(place, h("div", { class: "terminal" })));
    if (item.kind === "end") add(run.last?.path, ...end(run, place));
    if (item.kind !== "leaf") continue;
    for (const hung of layout.hung) {
      if (item.hung.includes(hung.step)) add(hung.step.path, ...hungNode(hung));
      if (item.more > 0 && hung.step === item.hung.at(-1))
        add(undefined, moreNode(item.more, hung));
    }
  }
  const { element, lines } = linesOf(run, layout);
  const select = (path: string | undefined) => {
    for (const selectIn of crowds) selectIn(path);
  };
  return { elements: [element, ...elements], shown: [...shown, ...lines], buttons, select };
}

function at<E extends HTMLElement>({ x, y, width, height }: Omit<Placed, "item">, element: E): E {
  const { style } = element;
  style.transform = `translate(${x}px, ${y}px)`;
  style.width = `${width}px`;
  style.height = `${height}px`;
  return element;
}

/** A step that calls the model. */
function node(run: Run, step: Step, place: Placed): [HTMLElement, Shown] {
  const { path, name, trace, calls } = step;
  const sign = createSign();
  const value = h("span", { class: "value" });
  const figures = h("span", { class: "figures" });
  const bar = h("span", { class: "mark-span" });
  const tries = calls.length > 1 && h("span", { class: "tries" }, `×${calls.length}`);
  const element = h(
    "button",
    { type: "button", class: "node", "data-path": path, title: path },
    h("span", { class: "head" }, h("span", { class: "name" }, name), tries, sign.element),
    value,
    figures,
    h("span", { class: "strip", "aria-hidden": "true" }, bar),
  );
  if (run.critical.has(step)) element.dataset.critical = "";
  // The step's own calls: what hangs under it has times of its own.
  const span = calls[0] ? { ...step, end: calls.at(-1)?.end ?? step.end } : step;
  const paint = (now: State, time: number) => {
    const until = Math.max(span.begin, Math.min(time, span.end));
    placed(bar, span.begin, until - span.begin);
    if (element.dataset.state === now) return;
    element.dataset.state = now;
    sign.show(now);
    const isOver = now !== "waiting" && now !== "flight";
    setText(value, isOver ? said(step) : now === "flight" ? STATES.flight : "");
    setText(figures, isOver ? figuresOf(run, step) : "");
  };
  return [
    at(place, element),
    { span: { ...span, outcome: outcomeOf(step) }, state: undefined, paint },
  ];
  function said({ outcome }: Step) {
    if (trace.error) return trace.error.message;
    const { sent } = calls.at(-1)?.trace ?? {};
    if (outcome === "cancelled") return sent ? "cancelled, may be billed" : "cancelled, never sent";
    const tools = step.children.filter(({ trace }) => trace.toolCall).length;
    return brief(trace.value).slice(0, SEEN) || (tools > 0 ? counted(tools, "tool call") : "");
  }
}

/** A step may go on well after its call was cancelled or has failed, and then the call's end is the news. */
function outcomeOf({ calls, outcome }: Step): Step["outcome"] {
  return calls.at(-1)?.outcome === "cancelled" ? "cancelled" : outcome;
}

/** `1.2 s · 312→41 · $0.0010` */
function figuresOf({ isInBeats, isEstimated }: Run, { calls, begin, end }: Step): string {
  if (calls.length === 0)
    return end > begin && !isInBeats ? duration(end - begin, isEstimated) : "";
  const ms = calls.reduce((sum, { begin, end }) => sum + end - begin, 0);
  const inward = calls.reduce((sum, { trace }) => sum + tokensIn(trace.usage), 0);
  const outward = calls.reduce((sum, { trace }) => sum + (trace.usage?.output_tokens ?? 0), 0);
  const prices = calls.flatMap(({ trace }) => (trace.usage ? [trace.usd] : []));
  const usd = prices.reduce((sum: number, price) => sum + (price ?? 0), 0);
  const isPriced = prices.length > 0 && prices.every((price) => price !== undefined);
  return [
    isInBeats ? "" : duration(ms, isEstimated),
    prices.length > 0 ? `${compact(inward)}→${compact(outward)}` : "",
    isPriced && usd > 0 ? dollars(usd) : "",
  ]
    .filter(Boolean)
    .join("  ");
}

function compact(count: number): string {
  return count < 10_000 ? String(count) : `${(count / 1000).toFixed(count < 99_950 ? 1 : 0)}k`;
}

/** A tool's call, a gate, a person's answer: a line under the step that it belongs to. */
function hungNode({ step, ...place }: Hung): [HTMLElement, Shown] {
  const { path, name, trace } = step;
  const sign = createSign();
  const words = trace.toolCall ? toolWords(trace.toolCall) : { name, input: brief(trace.value) };
  const text = trace.toolCall ?? `${name}: ${words.input}`;
  const element = h(
    "button",
    { type: "button", class: "hung", "data-path": path, title: `${path}\n${text}` },
    h("span", { class: "name" }, words.name),
    h("span", { class: "value" }, words.input.slice(0, SEEN)),
    sign.element,
  );
  // A gate that gives a reason, or a tool that says what is wrong, has refused what it saw.
  const paint = (state: State) => {
    const told = state === "ok" && isRefusal(step) ? "refused" : state;
    element.dataset.state = told;
    sign.show(told);
  };
  return [at(place, element), { span: step, state: undefined, paint }];
}

/** What isn't drawn of a long list. */
function moreNode(count: number, { y, height, ...last }: Hung): HTMLElement {
  const note = h("p", { class: "hung-more" }, `and ${count} more, in the list below`);
  return at({ ...last, y: y + height, height }, note);
}

/** Whether a gate or a check has given a reason. */
export function isRefusal({ base, trace }: Step): boolean {
  return /^(gate|check)$/.test(base) && typeof trace.value === "string";
}

function frame(
  { step, label }: Extract<Item, { kind: "frame" }>,
  place: Placed,
): [HTMLElement, Shown] {
  const sign = createSign();
  const element = h(
    "button",
    { type: "button", class: "frame", "data-path": step.path, title: step.path },
    h("span", { class: "head" }, h("span", { class: "name" }, label), sign.element),
  );
  const paint = (state: State) => {
    element.dataset.state = state;
    sign.show(state);
  };
  return [at(place, element), { span: step, state: undefined, paint }];
}

/** Steps that are drawn as a crowd. */
function crowd(
  { one, steps }: Extract<Item, { kind: "crowd" }>,
  place: Placed,
  onSelect: (path: string) => void,
): { element: HTMLElement; views: readonly Shown[]; select: Drawing["select"] } {
  const { element, paint, select } = createCrowd(
    counted(steps.length, one),
    steps.length,
    place,
    (index) => steps[index] && onSelect(steps[index].path),
  );
  const views = steps.map((step, index): Shown => {
    const span = { ...step, outcome: outcomeOf(step) };
    let shown: State | undefined;
    const paintCell = (state: State) => {
      if (state !== shown) paint(index, state);
      shown = state;
    };
    return { span, state: undefined, paint: paintCell };
  });
  return {
    element: at(place, element),
    views,
    select: (path) => select(steps.findIndex((step) => step.path === path)),
  };
}

/** Where the run ends: what came of it. */
function end(run: Run, place: Placed): [HTMLElement, Shown] {
  const { last: root } = run;
  const outcome = root?.outcome ?? "ok";
  const text = outcome === "ok" ? ending(root?.trace.value) : STATES[outcome];
  const name = h("span", { class: "name" });
  const element = h(
    "button",
    { type: "button", class: "end", "data-path": root?.path ?? "", title: text },
    h("span", { class: "visually-hidden" }, "End of the run: "),
    name,
  );
  const paint = (state: State) => {
    element.dataset.state = state;
    setText(name, state === "flight" ? "running" : text);
  };
  const span = { begin: 0, end: endOf(run), outcome };
  return [at(place, element), { span, state: undefined, paint }];
}

function linesOf(run: Run, { width, height, lines }: Layout): { element: Element; lines: Shown[] } {
  const views: Shown[] = [];
  const paths = lines.map(({ from, to, path }) => {
    const element = svg("path", { d: path });
    const [a, b] = [weightOf(run, from), weightOf(run, to)];
    if (a + b > 0) element.dataset.critical = "";
    const arrival = beginOf(run, to);
    const paint = (state: State) => {
      element.dataset.state = state === "waiting" ? "waiting" : "ok";
    };
    const span = { begin: arrival, end: arrival, outcome: "ok" } as const;
    views.push({ span, state: undefined, paint });
    return element;
  });
  const element = svg("svg", { class: "lines", width, height, "aria-hidden": "true" }, ...paths);
  return { element, lines: views };
}

/** 1 for what the end waited for, 0 for what takes no time, and else so little that no sum is above 0. */
function weightOf({ critical, steps }: Run, item: Item): number {
  if (item.kind === "start" || item.kind === "end") return 0;
  const own = item.kind === "crowd" ? item.steps : [item.step];
  if (own.every(({ begin, end }) => begin === end)) return 0;
  const isIn = ({ path }: Step) =>
    own.some((step) => path === step.path || path.startsWith(`${step.path}/`));
  return steps.some((step) => critical.has(step) && isIn(step)) ? 1 : -1;
}

/** When the run ends, as far as that is known. */
function endOf({ end, goesOn }: Run): number {
  return goesOn ? Number.POSITIVE_INFINITY : end;
}

function beginOf(run: Run, item: Item): number {
  const end = endOf(run);
  if (item.kind === "start") return 0;
  if (item.kind === "end") return end;
  if (item.kind === "crowd")
    return item.steps.reduce((first, { begin }) => Math.min(first, begin), end);
  return item.step.begin;
}
