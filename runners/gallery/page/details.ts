/**
 * The selected step, as far as it's known at the moment: what the pattern made of it, then each of its
 * calls with prompt, reply, stop reason, usage and cost.
 */
import type { TraceCall } from "../../../patterns/trace-file.ts";
import { tokensIn } from "../../shared/trace.ts";
import { dollars, duration, numeral } from "../../shared/words.ts";
import { h } from "./dom.ts";
import {
  contentViews,
  folded,
  foldedMessages,
  json,
  type Message,
  messageView,
  text,
} from "./messages.ts";
import { type State, stateAt } from "./moment.ts";
import type { Call, Run, Step } from "./run.ts";
import { STATES } from "./words.ts";

/** What the details are of, and where they lead. */
interface Details {
  readonly run: Run;
  readonly step: Step;
  /** The moment. */
  readonly time: number;
  readonly onClose: () => void;
  /** Goes to the moment at which the step has ended. */
  readonly onEnd: () => void;
}

/** What is known of a step at a moment, in a word for each of its parts: the details tell no more. */
export function knownAt(step: Step, time: number): string {
  return [step, ...step.calls].map((span) => stateAt(span, time)).join(" ");
}

/** Fills the panel with a step. */
export function showDetails(
  panel: HTMLElement,
  { run, step, time, onClose, onEnd }: Details,
): void {
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close" }, "Close");
  close.addEventListener("click", onClose);
  const title = h("h2", { tabindex: -1 }, step.path);
  const state = stateAt(step, time);
  const made = isOver(state) ? madeOf(step) : undefined;
  const calls = step.calls.filter((call) => stateAt(call, time) !== "waiting");
  const toEnd = h("button", { type: "button" }, "See how it ended");
  toEnd.addEventListener("click", onEnd);
  panel.replaceChildren(
    h("div", { class: "bar" }, title, close),
    h(
      "div",
      {
        class: "details-body",
        tabindex: 0,
        role: "group",
        "aria-label": `Details of ${step.path}`,
      },
      summary(run, step, state),
      made
        ? section(step.parent ? "What the pattern made of it" : "What came of the run", made)
        : undefined,
      ...calls.map((call, index) => callView(run, call, stateAt(call, time), index, calls.length)),
      isOver(state) || step.outcome === "unfinished" ? undefined : h("p", { class: "part" }, toEnd),
    ),
  );
}

function section(title: string, ...children: readonly (Node | false | undefined)[]): HTMLElement {
  return h("section", { class: "part" }, h("h3", {}, title), ...children);
}

function isOver(state: State): boolean {
  return state !== "waiting" && state !== "flight";
}

/** State and times in a line. */
function summary(run: Run, step: Step, state: State): HTMLElement {
  const { begin, end, trace } = step;
  const items: (readonly [string, string])[] = [["state", STATES[state]]];
  if (!run.isInBeats && state !== "waiting") {
    items.push(["began", duration(begin, run.isEstimated)]);
    if (isOver(state)) items.push(["took", duration(end - begin, run.isEstimated)]);
  }
  if (run.critical.has(step)) items.push(["path", "critical"]);
  const list = h(
    "dl",
    { class: "facts-line" },
    ...items.map(([name, value]) =>
      h("div", { "data-fact": name }, h("dt", {}, name), h("dd", {}, value)),
    ),
  );
  list.dataset.state = state;
  return h(
    "div",
    {},
    list,
    trace.toolCall && state !== "waiting"
      ? h("p", { class: "call-name" }, h("code", {}, trace.toolCall))
      : undefined,
  );
}

function madeOf({ trace }: Step): HTMLElement | undefined {
  const { value, error } = trace;
  if (error) return h("p", { class: "error text" }, `${error.name}: ${error.message}`);
  if (value === undefined) return undefined;
  if (typeof value === "string") return text(value);
  if (typeof value !== "object" || value === null) return h("p", { class: "text" }, String(value));
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  const isPlain = !Array.isArray(value) && entries.length <= 8;
  if (!isPlain) return folded("as JSON", json(value));
  const rows = entries.flatMap(([name, field]) => [
    h("dt", {}, name),
    h("dd", {}, fieldView(field)),
  ]);
  return h("dl", { class: "fields" }, ...rows);
}

function fieldView(field: unknown): Node {
  if (typeof field === "string") return text(field);
  if (typeof field === "object" && field !== null) {
    const count = Array.isArray(field) ? field.length : Object.keys(field).length;
    return folded(Array.isArray(field) ? `${count} in a list` : `${count} fields`, json(field));
  }
  return document.createTextNode(String(field));
}

function callView(
  run: Run,
  { trace, begin, end }: Call,
  state: State,
  index: number,
  of: number,
): HTMLElement {
  const { reply, error, model } = trace;
  const { content, stop_reason: stop } = Object(reply) as {
    content?: unknown;
    stop_reason?: unknown;
  };
  const title = of > 1 ? `Call ${index + 1} of ${of}` : "Call";
  const isKnown = isOver(state);
  const isTimed = isKnown && !run.isInBeats;
  const time = isTimed ? ` · ${duration(end - begin, run.isEstimated)}` : "";
  const stopped =
    state === "cancelled"
      ? `cancelled, ${trace.sent ? "after it was sent: it may be billed" : "before it was sent"}`
      : STATES[state];
  return h(
    "div",
    { class: "call-view" },
    section(
      title,
      h("p", { class: "note" }, `${(isKnown && model) || modelOf(trace)} · ${stopped}${time}`),
      isKnown && error && h("p", { class: "error text" }, `${error.name}: ${error.message}`),
      isKnown && usageTable(trace),
    ),
    section("Prompt", ...promptViews(run, trace)),
    !isKnown || reply === undefined
      ? undefined
      : section(
          "Reply",
          h("div", { class: "message", "data-role": "assistant" }, ...contentViews(content)),
          stop === undefined
            ? undefined
            : h("p", { class: "stop" }, "stop reason ", h("code", {}, String(stop))),
        ),
  );
}

function modelOf({ request }: TraceCall): string {
  return String((Object(request) as { model?: unknown }).model ?? "model unknown");
}

/** System prompt, messages, and the other parameters folded. */
function promptViews(run: Run, { request, messagesFrom }: TraceCall): readonly HTMLElement[] {
  if (request === undefined) return [h("p", { class: "note" }, "The trace doesn't hold it.")];
  const { system, messages, ...rest } = Object(request) as Record<string, unknown>;
  const list: readonly Message[] = Array.isArray(messages) ? messages : [];
  const views: HTMLElement[] = [];
  if (system !== undefined) views.push(messageView({ role: "system", content: system }));
  if (messagesFrom) {
    const { path, count } = messagesFrom;
    views.push(foldedMessages(count, () => messagesOf(run, path).slice(0, count)));
  }
  views.push(...list.map(messageView));
  views.push(folded("other parameters", json(rest)));
  return views;
}

/** What the first call at a path sent, with what it in turn took from another. */
export function messagesOf(
  run: Run,
  path: string,
  seen: readonly string[] = [],
): readonly Message[] {
  const call = run.byPath.get(path)?.calls[0]?.trace;
  // A file may say anything: one whose calls go round in a circle must not hang the page.
  if (!call || seen.includes(path)) return [];
  const { messages } = Object(call.request) as { messages?: unknown };
  const own: readonly Message[] = Array.isArray(messages) ? messages : [];
  const { messagesFrom } = call;
  if (!messagesFrom) return own;
  return [
    ...messagesOf(run, messagesFrom.path, [...seen, path]).slice(0, messagesFrom.count),
    ...own,
  ];
}

function usageTable({ usage, usd, estimated }: TraceCall): HTMLElement | undefined {
  if (!usage) return undefined;
  const about = estimated ? "~" : "";
  const { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } =
    usage;
  const rows = [
    ["input", input_tokens],
    ["cache write", cache_creation_input_tokens],
    ["cache read", cache_read_input_tokens],
    ["output", output_tokens],
  ] as const;
  const cells = rows.flatMap(([name, count]) =>
    count === undefined || count === null || (count === 0 && name.startsWith("cache"))
      ? []
      : [h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, about + numeral(count)))],
  );
  const total = h(
    "tr",
    { class: "total" },
    h("th", { scope: "row" }, "cost"),
    h("td", {}, usd === undefined ? "unknown" : about + dollars(usd)),
  );
  const caption = `${about}${numeral(tokensIn(usage))} tokens in`;
  return h("table", { class: "usage", title: caption }, h("tbody", {}, ...cells, total));
}
