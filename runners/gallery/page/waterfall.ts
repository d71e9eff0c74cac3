/**
 * The steps as rows under one another, with time from left to right.
 *
 * Only the rows that are seen exist, and a veil covers what is yet to come: going through time moves the
 * veil, and touches a row only where its state changes. So a run of thousands of calls is as quick as
 * one of ten.
 */

import { duration } from "../../shared/words.ts";
import { h, placed, setText } from "./dom.ts";
import { type State, stateAt } from "./moment.ts";
import type { Run, Span, Step } from "./run.ts";
import { createSign, type Sign } from "./sign.ts";
import { axisTicks, tickWords, toolWords } from "./words.ts";

export interface Waterfall {
  readonly element: HTMLElement;
  readonly show: (run: Run) => void;
  /** Shows the moment, and if asked to, what began last. */
  readonly update: (time: number, isFollowing: boolean) => void;
  /** Has the run, and what goes on in it, last until `now`. */
  readonly grow: (now: number) => void;
  readonly select: (path: string | undefined) => void;
}

/** The height of a row, as the style sheet has it. */
const ROW = 24;
/** So many more are made above and below those that are seen, for whoever scrolls. */
const SPARE = 6;

interface Row {
  readonly step: Step;
  readonly element: HTMLButtonElement;
  readonly sign: Sign;
  readonly took: HTMLElement;
  readonly bars: readonly { readonly span: Span; readonly element: HTMLElement }[];
}

/** Makes an empty waterfall. */
export function createWaterfall(onSelect: (path: string) => void): Waterfall {
  const veil = h("div", { class: "veil" });
  const grid = h("div", { class: "grid-lines" });
  const over = h(
    "div",
    { class: "over", "aria-hidden": "true" },
    h("div", { class: "plot" }, grid, veil),
  );
  const list = h("div", { class: "rows-inner" }, over);
  const scroller = h(
    "div",
    { class: "rows", role: "group", "aria-label": "Steps over time" },
    list,
  );
  const axis = h("div", { class: "axis plot" });
  const head = h("div", { class: "axis-row", "aria-hidden": "true" }, axis);
  const element = h("div", { class: "waterfall" }, head, scroller);
  const rows = new Map<number, Row>();
  let run: Run | undefined;
  let byBegin: readonly Step[] = [];
  let [time, end, focusable] = [0, 0, 0];
  let selected: string | undefined;
  // As they were when last heard of: to ask for them has the browser lay out the page.
  let [scrolled, height] = [0, 0];
  /** Where the list stands, as far as it has been told to scroll. */
  let stands = 0;

  /** Makes the rows that are seen, and `spare` ones around them; drops those that are further off. */
  const settle = (spare = SPARE) => {
    if (!run) return;
    const first = Math.max(0, Math.floor(scrolled / ROW) - spare);
    const last = Math.min(run.steps.length, Math.ceil((scrolled + height) / ROW) + spare) - 1;
    for (const [index, row] of rows) {
      const isKept = (index >= first && index <= last) || row.element === document.activeElement;
      if (isKept) continue;
      row.element.remove();
      rows.delete(index);
    }
    for (let index = first; index <= last; index += 1) {
      const step = run.steps[index];
      if (!step || rows.has(index)) continue;
      const row = rowOf(run, step);
      rows.set(index, row);
      // In the order of the steps, for whoever goes through them without seeing them.
      list.insertBefore(row.element, rows.get(index + 1)?.element ?? null);
      paint(row);
    }
    if (focusable < first || focusable > last) focusable = first;
    mark();
  };
  const mark = () => {
    for (const [index, { step, element }] of rows) {
      element.tabIndex = index === focusable ? 0 : -1;
      element.setAttribute("aria-pressed", String(step.path === selected));
    }
  };
  const paint = ({ step, element, sign, took, bars }: Row) => {
    const state = stateAt(step, time);
    const isNew = element.dataset.state !== state;
    if (isNew) {
      element.dataset.state = state;
      sign.show(state);
    }
    if (isNew || state === "flight") setText(took, tookSoFar(step, state));
    for (const { span, element } of bars) {
      const state = stateAt(span, time);
      if (element.dataset.state !== state) element.dataset.state = state;
    }
  };
  /** How long a step has taken until the moment, and no more than is known by then. */
  const tookSoFar = (step: Step, state: State) => {
    if (!run || run.isInBeats || state === "waiting") return "";
    return duration(Math.min(time, step.end) - step.begin, run.isEstimated);
  };
  const update = (at: number) => {
    time = at;
    const share = end > 0 ? time / end : 1;
    veil.style.transform = `translateX(${100 * share}%)`;
    for (const row of rows.values()) paint(row);
  };
  /** Marks round times up to the end. */
  const rule = () => {
    const ticks = run?.isInBeats ? [] : axisTicks(end);
    axis.replaceChildren(
      ...ticks.map((tick) => placed(h("span", {}, tickWords(tick)), tick)),
      run?.isInBeats ? h("span", { class: "note" }, "in order; no time was measured") : "",
    );
    grid.replaceChildren(...ticks.map((tick) => placed(h("i"), tick)));
  };
  /** Brings what began last into view. Each frame of a slider may show other rows: none is made in vain. */
  const follow = () => {
    const begun = byBegin.findLast(({ begin }) => begin <= time);
    if (begun) reveal(begun.index, 0);
  };
  /** Last of all changes, since it has the browser lay them out. */
  const scroll = () => {
    if (stands === scrolled) return;
    stands = scrolled;
    scroller.scrollTop = scrolled;
  };
  const focusRow = (index: number) => {
    focusable = index;
    reveal(index);
    settle();
    scroll();
    rows.get(index)?.element.focus({ preventScroll: true });
  };
  const reveal = (index: number, spare = SPARE) => {
    const [top, bottom] = [index * ROW, (index + 1) * ROW];
    if (top >= scrolled && bottom <= scrolled + height) return;
    scrolled = top < scrolled ? top : bottom - height;
    settle(spare);
  };
  const indexOf = (target: EventTarget | null) => {
    const row = target instanceof Element ? target.closest<HTMLElement>(".row") : undefined;
    return row ? Number(row.dataset.index) : -1;
  };

  const onScroll = () => {
    stands = scroller.scrollTop;
    if (stands === scrolled) return;
    scrolled = stands;
    settle();
  };
  scroller.addEventListener("scroll", onScroll, { passive: true });
  scroller.addEventListener("click", ({ target }) => {
    const step = run?.steps[indexOf(target)];
    if (step) onSelect(step.path);
  });
  scroller.addEventListener("focusin", ({ target }) => {
    if (indexOf(target) < 0) return;
    focusable = indexOf(target);
    mark();
  });
  scroller.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const from = indexOf(event.target);
    if (!move || from < 0 || !run) return;
    event.preventDefault();
    focusRow(Math.min(run.steps.length - 1, Math.max(0, from + move)));
  });
  new ResizeObserver(() => {
    height = scroller.clientHeight;
    element.style.setProperty("--gutter", `${scroller.offsetWidth - scroller.clientWidth}px`);
    settle();
  }).observe(scroller);

  return {
    element,
    show: (next) => {
      run = next;
      byBegin = run.steps.toSorted((a, b) => a.begin - b.begin || a.index - b.index);
      for (const { element } of rows.values()) element.remove();
      rows.clear();
      list.style.height = `${run.steps.length * ROW}px`;
      scrolled = Math.max(0, Math.min(scrolled, run.steps.length * ROW - height));
      end = run.end;
      rule();
      settle();
      update(time);
    },
    update: (at, isFollowing) => {
      time = at;
      if (isFollowing) follow();
      update(at);
      scroll();
    },
    grow: (now) => {
      end = now;
      rule();
    },
    select: (path) => {
      selected = path;
      const step = path === undefined ? undefined : run?.byPath.get(path);
      if (step) {
        focusable = step.index;
        reveal(step.index);
      }
      settle();
      scroll();
    },
  };
}

/** Whether it goes on: until when isn't known. */
function isOpen({ end }: Span): boolean {
  return !Number.isFinite(end);
}

function rowOf(run: Run, step: Step): Row {
  const { critical } = run;
  const plot = h("span", { class: "plot" });
  const bars: { span: Span; element: HTMLElement }[] = [];
  const add = (kind: string, span: Span) => {
    const ms = isOpen(span) ? 0 : span.end - span.begin;
    const element = placed(h("i", { class: kind, "data-open": isOpen(span) }), span.begin, ms);
    if (critical.has(step) && kind !== "extent") element.dataset.critical = "";
    plot.append(element);
    bars.push({ span, element });
  };
  if (step.children.length > 0) add("extent", step);
  for (const call of step.calls) add("call", call);
  if (step.calls.length === 0 && step.children.length === 0) {
    add(step.end > step.begin ? "work" : "tick", step);
  }
  const sign = createSign();
  const took = h("span");
  const { toolCall } = step.trace;
  const label = h("span", { class: "label" }, toolCall ? toolWords(toolCall).name : step.name);
  label.style.paddingInlineStart = `${12 * step.depth}px`;
  const element = h(
    "button",
    {
      type: "button",
      class: "row",
      title: toolCall ? `${step.path}\n${toolCall}` : step.path,
      "data-index": step.index,
      "data-path": step.path,
    },
    label,
    plot,
    h("span", { class: "took" }, sign.element, took),
  );
  element.style.top = `${step.index * ROW}px`;
  return { step, element, sign, took, bars };
}
