/**
 * The selected step: what the pattern made of it, then each of its calls with prompt, reply, stop
 * reason, usage and cost.
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
import type { Call, Run, Step } from "./run.ts";
import { STATES } from "./words.ts";

/** Fills the panel with a step. */
export function showDetails(panel: HTMLElement, run: Run, step: Step, onClose: () => void): void {
  const close = h("button", { type: "button", class: "quiet", "aria-label": "Close" }, "Close");
  close.addEventListener("click", onClose);
  const title = h("h2", { tabindex: -1 }, step.path);
  const made = madeOf(step);
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
      summary(run, step),
      made
        ? section(step.parent ? "What the pattern made of it" : "What came of the run", made)
        : undefined,
      ...step.calls.map((call, index) => callView(run, call, index, step.calls.length)),
    ),
  );
}

function section(title: string, ...children: readonly (Node | undefined)[]): HTMLElement {
  return h("section", { class: "part" }, h("h3", {}, title), ...children);
}

/** State and times in a line. */
function summary(run: Run, step: Step): HTMLElement {
  const { outcome, begin, end, trace } = step;
  const items: (readonly [string, string])[] = [["state", STATES[outcome]]];
  if (!run.isInBeats) {
    items.push(
      ["began", duration(begin, run.isEstimated)],
      ["took", duration(end - begin, run.isEstimated)],
    );
  }
  if (run.critical.has(step)) items.push(["path", "critical"]);
  const list = h(
    "dl",
    { class: "facts-line" },
    ...items.map(([name, value]) =>
      h("div", { "data-fact": name }, h("dt", {}, name), h("dd", {}, value)),
    ),
  );
  list.dataset.state = outcome;
  return h(
    "div",
    {},
    list,
    trace.toolCall ? h("p", { class: "call-name" }, h("code", {}, trace.toolCall)) : undefined,
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
  { trace, begin, end, outcome }: Call,
  index: number,
  of: number,
): HTMLElement {
  const { reply, error, model } = trace;
  const { content, stop_reason: stop } = Object(reply) as {
    content?: unknown;
    stop_reason?: unknown;
  };
  const title = of > 1 ? `Call ${index + 1} of ${of}` : "Call";
  const time = run.isInBeats ? "" : ` · ${duration(end - begin, run.isEstimated)}`;
  const stopped =
    outcome === "cancelled"
      ? `cancelled, ${trace.sent ? "after it was sent: it may be billed" : "before it was sent"}`
      : STATES[outcome];
  return h(
    "div",
    { class: "call-view" },
    section(
      title,
      h("p", { class: "note" }, `${model ?? modelOf(trace)} · ${stopped}${time}`),
      error && h("p", { class: "error text" }, `${error.name}: ${error.message}`),
      usageTable(trace),
    ),
    section("Prompt", ...promptViews(run, trace)),
    reply === undefined
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
