/**
 * The run on the page: diagram, controls, waterfall and details, which all follow one clock and one
 * selection.
 *
 *     player ─► time ─► diagram, transport, waterfall       a click on either ─► selection ─► all
 */
import type { TraceFile } from "../../../patterns/trace-file.ts";
import { counted, dollars, duration } from "../../shared/words.ts";
import { knownAt, showDetails } from "./details.ts";
import { createDiagram } from "./diagram.ts";
import { byId, h, setText } from "./dom.ts";
import { savingsOf, totalsAt } from "./moment.ts";
import { type Change, createPlayer, type Player } from "./player.ts";
import { type Run, runOf } from "./run.ts";
import type { SourcePane } from "./source.ts";
import { createTransport, timeWords } from "./transport.ts";
import { createWaterfall } from "./waterfall.ts";
import { ending, STATES } from "./words.ts";

export interface Viewer {
  readonly player: Player;
  /** Shows another run, from its end. */
  readonly open: (trace: TraceFile) => void;
  /** Shows more of a run that goes on, at its newest moment or at the one that is held, or all of it when
   * it's over. Whoever reads or points at a step isn't disturbed. */
  readonly follow: (trace: TraceFile, isOver: boolean) => void;
  /** Has a run that goes on last until `now`, in milliseconds since the run's start. */
  readonly grow: (now: number) => void;
  readonly select: (path: string | undefined) => void;
}

/** Fills the page's section with a run. */
export function startViewer(first: TraceFile, source: SourcePane | undefined): Viewer {
  const [section, panel] = [byId("run"), byId("details")];
  const select = (path: string | undefined) => {
    const step = path === undefined ? undefined : player.run().byPath.get(path);
    const isIn = panel.contains(document.activeElement);
    if (step && !isIn) goBack = focused();
    chosen = step?.path;
    panel.hidden = !step;
    document.body.toggleAttribute("data-details", step !== undefined);
    known = undefined;
    renew();
    diagram.select(step?.path);
    waterfall.select(step?.path);
    source?.mark(step?.path);
    if (!step && isIn) goBack?.();
  };
  /** Tells the details anew where more of the step is known at the moment, or less. */
  const renew = () => {
    const [run, time] = [player.run(), player.time()];
    const step = chosen === undefined ? undefined : run.byPath.get(chosen);
    if (!step || known === knownAt(step, time)) return;
    const scrolled = known === undefined ? 0 : panel.querySelector(".details-body")?.scrollTop;
    known = knownAt(step, time);
    const isReading = panel.contains(document.activeElement);
    const onClose = () => select(undefined);
    showDetails(panel, { run, step, time, onClose, onEnd: () => player.seek(step.end) });
    panel.querySelector(".details-body")?.scrollTo(0, scrolled ?? 0);
    if (isReading) panel.querySelector("h2")?.focus();
  };
  /** Gives the focus back to what has it, drawn anew meanwhile or not. */
  const focused = () => {
    const element = document.activeElement;
    const path = element?.closest<HTMLElement>("[data-path]")?.dataset.path;
    const place = [diagram.element, waterfall.element].find((part) => part.contains(element));
    return () => {
      const again = path && place?.querySelector(`[data-path="${CSS.escape(path)}"]`);
      const target = again || element;
      if (target instanceof HTMLElement) target.focus({ preventScroll: true });
    };
  };
  let chosen: string | undefined;
  /** What the details tell. */
  let known: string | undefined;
  let goBack: (() => void) | undefined;
  const title = h("h2", { class: "run-title" });
  const origin = h("p", { class: "origin" });
  const diagram = createDiagram(select);
  const waterfall = createWaterfall(select);
  const saved = h("p", { class: "saved" });
  const status = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  const transport = createTransport(() => player);
  section.replaceChildren(
    h("header", { class: "run-head" }, h("div", {}, title, origin), transport.sums),
    diagram.element,
    transport.element,
    waterfall.element,
    h("footer", { class: "run-foot" }, saved, legend()),
    status,
  );

  // Who has chosen a step by the keyboard goes to its details, and comes back by Escape.
  section.addEventListener("click", ({ target, detail }) => {
    const isByKey = detail === 0 && target instanceof Element && target.closest("[data-path]");
    if (isByKey) panel.querySelector("h2")?.focus();
  });

  let telling: ReturnType<typeof setTimeout> | undefined;
  const tell = () => {
    clearTimeout(telling);
    telling = setTimeout(() => setText(status, told(player)), AT_REST_MS);
  };
  const onChange = (change: Change) => {
    const [run, time] = [player.run(), player.time()];
    if (change === "run" || change === "length")
      section.style.setProperty("--end", String(run.end || 1));
    if (change === "run") {
      setText(title, capitalised(run.trace.title ?? run.trace.name));
      setText(origin, ORIGINS[run.trace.origin] ?? "");
      setText(saved, savedText(run));
      transport.show(run);
      diagram.show(run);
      waterfall.show(run);
    }
    if (change === "length") waterfall.grow(run.end);
    const isGoing = player.isGoing();
    diagram.update(time, isGoing);
    transport.update(run, time, isGoing);
    if (change !== "length" && (change !== "time" || !isGoing)) tell();
    waterfall.update(time, change === "time");
    renew();
  };
  const follow = (trace: TraceFile, isOver: boolean) => {
    later = isPressed ? () => follow(trace, isOver) : undefined;
    if (later) return;
    if (trace.startedAt !== player.run().trace.startedAt) select(undefined);
    const refocus = focused();
    player.load(runOf(trace, !isOver));
    refocus();
  };
  // A click is one only if what was pressed is still there.
  let isPressed = false;
  let later: (() => void) | undefined;
  section.addEventListener("pointerdown", () => {
    isPressed = true;
  });
  for (const type of ["pointerup", "pointercancel"]) {
    window.addEventListener(type, () => {
      isPressed = false;
      setTimeout(() => later?.());
    });
  }
  const player = createPlayer(runOf(first), onChange);
  onChange("run");
  return {
    player,
    open: (trace) => {
      later = undefined;
      select(undefined);
      player.load(runOf(trace));
    },
    follow,
    grow: player.grow,
    select,
  };
}

/** What somebody hears is told when the time has rested for so long, and not at each step of a slider. */
const AT_REST_MS = 200;

const ORIGINS: Readonly<Record<string, string>> = {
  api: "Recorded from the API.",
  transcribed:
    "Replies written by a Claude model for exactly these prompts; times and tokens are estimates (~).",
  scripted: "A scripted model; the times say the order only.",
  live: "A run as it happened.",
};

/** Safari gives no style to the first letter of a text that is cut after some lines. */
function capitalised(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}

/** What somebody hears who doesn't see it. */
function told(player: Player): string {
  const [run, time] = [player.run(), player.time()];
  if (player.isGoing() && !run.goesOn) return "Playing";
  const { inFlight, answered, failed, cancelled } = totalsAt(run, time);
  const { last: root } = run;
  if (time >= run.end && root && !run.goesOn) {
    const came = root.outcome === "ok" ? ending(root.trace.value) : STATES[root.outcome];
    return `The run has ended: ${came}. ${counted(answered, "call")}`;
  }
  const sums = [
    `${inFlight} in flight`,
    `${answered} done`,
    failed > 0 && `${failed} failed`,
    cancelled > 0 && `${cancelled} cancelled`,
  ];
  return `At ${timeWords(run, time)}: ${sums.filter(Boolean).join(", ")}`;
}

/** What running at once and stopping early have saved, in words. */
function savedText(run: Run): string {
  const { cancelled, neverSent, usd } = savingsOf(run);
  const { savedMs: ms } = totalsAt(run, run.end);
  const about = run.isEstimated;
  const sentences: string[] = [];
  if (ms >= 50 && !run.isInBeats) {
    const took = duration(run.end, about);
    sentences.push(
      `Took ${took}; one call after the other it would have been ${duration(ms, about)} more.`,
    );
  }
  if (cancelled > 0) {
    const sent = cancelled - neverSent;
    const billed = [
      neverSent > 0 && `${neverSent} never sent`,
      sent > 0 && `${sent} may be billed`,
    ];
    const worth = usd === undefined ? "" : `, worth about ${dollars(usd)}`;
    sentences.push(
      `${counted(cancelled, "call")} cancelled (${billed.filter(Boolean).join(", ")})${worth}.`,
    );
  }
  return sentences.join(" ");
}

function legend(): HTMLElement {
  const items = ["flight", "ok", "failed", "cancelled"] as const;
  return h(
    "ul",
    { class: "legend", "aria-label": "Colours" },
    ...items.map((state) => h("li", { "data-state": state }, h("i"), STATES[state])),
    h("li", { "data-critical": true }, h("i"), "critical path"),
  );
}
