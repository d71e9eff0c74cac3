/**
 * Play, step, speed, a slider over time, and the sums so far.
 */

import { tokensIn } from "../../shared/trace.ts";
import { counted, dollars, duration, numeral } from "../../shared/words.ts";
import { h, setText } from "./dom.ts";
import { type TotalsAt, totalsAt } from "./moment.ts";
import type { Player } from "./player.ts";
import type { Run } from "./run.ts";

export interface Transport {
  readonly element: HTMLElement;
  /** The sums so far. */
  readonly sums: HTMLElement;
  readonly show: (run: Run) => void;
  readonly update: (run: Run, time: number, isGoing: boolean) => void;
}

/** The slider's own unit: it goes from 0 to this. */
const WHOLE = 10_000;
/** A run that plays whole does so in this many milliseconds. */
const WHOLE_MS = 10_000;

/** Makes the controls of a player. */
export function createTransport(player: () => Player): Transport {
  const button = (label: string, path: string, id: string, act: () => void) => {
    const element = h("button", { type: "button", id, title: label });
    element.append(icon(path));
    element.addEventListener("click", act);
    return element;
  };
  const back = button("Previous event", "M14 4v12L6 10zM5 4v12", "back", () => player().step(-1));
  const next = button("Next event", "M6 4v12l8-6zM15 4v12", "next", () => player().step(1));
  const play = button("Play", PLAY, "play", () => player().toggle());
  play.classList.add("primary");
  const speed = h("select", { id: "speed", "aria-label": "Speed" });
  const slider = h("input", {
    type: "range",
    id: "time",
    min: 0,
    max: WHOLE,
    step: 1,
    "aria-label": "Time in the run",
  });
  // An output is read at each change, and this one changes with each frame.
  const clock = h("output", { class: "clock", for: "time", "aria-live": "off" });
  const sums = h("dl", { class: "sums" });
  const cells = new Map(
    ["in flight", "calls", "tokens", "cost"].map((name) => {
      const value = h("dd");
      sums.append(h("div", { "data-sum": name }, h("dt", {}, name), value));
      return [name, value] as const;
    }),
  );
  speed.addEventListener("change", () => player().setRate(Number(speed.value)));
  slider.addEventListener("input", () => {
    // Before the pause, which shows the moment of it.
    const to = (Number(slider.value) / WHOLE) * player().run().end;
    player().pause();
    player().seek(to);
  });
  const element = h(
    "div",
    { class: "transport" },
    h("div", { class: "controls" }, back, play, next, speed, clock),
    h("div", { class: "slider-row" }, h("span", { class: "plot" }, slider)),
  );
  return {
    element,
    sums,
    show: (run) => {
      speed.replaceChildren(
        ...speedsOf(run).map(([label, rate]) => h("option", { value: rate }, label)),
      );
      player().setRate(Number(speed.value));
      // As wide as they'll get, so that nothing moves while they grow.
      for (const [name, text] of sumsOf(run, totalsAt(run, run.end))) {
        const cell = cells.get(name);
        if (cell) cell.style.minWidth = `calc(${text.length}ch + 1px)`;
      }
    },
    update: (run, time, isGoing) => {
      const label = isGoing ? "Pause" : run.goesOn ? "Follow" : "Play";
      if (play.title !== label) {
        play.title = label;
        play.replaceChildren(icon(isGoing ? PAUSE : PLAY));
      }
      slider.value = String(run.end > 0 ? Math.round((time / run.end) * WHOLE) : WHOLE);
      slider.style.setProperty("--done", String(run.end > 0 ? time / run.end : 1));
      const whole = run.isInBeats ? "the run" : duration(run.end, run.isEstimated);
      const held = run.goesOn && !isGoing ? "held at " : "";
      const at = `${held}${timeWords(run, time)} of ${whole}`;
      setText(clock, at);
      slider.setAttribute("aria-valuetext", at);
      const totals = totalsAt(run, time);
      const { inFlight, unpriced } = totals;
      for (const [name, text] of sumsOf(run, totals)) {
        const cell = cells.get(name);
        if (cell) setText(cell, text);
      }
      cells.get("in flight")?.parentElement?.toggleAttribute("data-some", inFlight > 0);
      cells
        .get("cost")
        ?.setAttribute("title", unpriced > 0 ? `${counted(unpriced, "call")} of unknown cost` : "");
    },
  };
}

/** A moment of a run: its time, or where times mean nothing, how much of the run is past. */
export function timeWords({ isInBeats, isEstimated, end }: Run, time: number): string {
  return isInBeats ? `${Math.round((100 * time) / (end || 1))} %` : duration(time, isEstimated);
}

/** The sums in words. */
function sumsOf(run: Run, totals: TotalsAt): ReadonlyMap<string, string> {
  const { inFlight, answered, failed, cancelled } = totals;
  const others = [failed && `${failed} failed`, cancelled && `${cancelled} cancelled`];
  const about = run.isEstimated ? "~" : "";
  // A scripted model may count no tokens, and then 0 would be wrong.
  const isCounted = run.calls.some(({ trace }) => tokensIn(trace.usage) > 0);
  return new Map([
    ["in flight", String(inFlight)],
    ["calls", [answered, ...others.filter(Boolean)].join(" + ")],
    ["tokens", isCounted ? `${numeral(totals.tokensIn)} → ${numeral(totals.tokensOut)}` : "–"],
    [
      "cost",
      isCounted ? `${about}${dollars(totals.usd)}${totals.unpriced > 0 ? " + ?" : ""}` : "–",
    ],
  ]);
}

function speedsOf(run: Run): readonly (readonly [label: string, rate: number])[] {
  const whole = Math.max(run.end / WHOLE_MS, 1e-6);
  if (run.isInBeats)
    return [
      ["1 beat a second", 1],
      ["2 beats a second", 2],
      ["4 beats a second", 4],
    ];
  const real = [1, 2, 5, 10, 30, 100].map((rate) => [`${rate}× recorded`, rate] as const);
  return [["Whole in 10 s", whole], ...real];
}

const PLAY = "M6 3.5v13l10-6.5z";
const PAUSE = "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z";

function icon(path: string): SVGSVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
  shape.setAttribute("d", path);
  element.setAttribute("viewBox", "0 0 20 20");
  element.setAttribute("aria-hidden", "true");
  element.append(shape);
  return element;
}
