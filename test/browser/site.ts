/**
 * Pages made of traces that are written in the tests, so that what they show is known.
 */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TraceFile } from "../../patterns/trace-file.ts";
import { buildAssets } from "../../runners/gallery/page/assets.ts";
import { renderIndex, renderPage } from "../../runners/gallery/page/html.ts";
import type { PageData } from "../../runners/gallery/page-data.ts";
import { FAN_OUT, longTrace, traceOf, variedTrace } from "../shared/traces.ts";

/** Has signs that HTML knows. */
export const CODE = `export async function plan(task: string) {
  if (1 < 2 && task) return step("worker", () => \`<b>\${task}</b>\`);
  return step("combine", () => "&lt;");
}
`;

const RUNNER = "export const job = { run: () => plan('x') };\n";

const PAGES: PageData["pages"] = [
  { name: "plan", kind: "workflow", sentence: "Plans." },
  { name: "own", kind: "own", sentence: "A run of your own." },
];

/** The page of a pattern that has run `trace`. */
function patternPage(name: string, trace: TraceFile): PageData {
  return {
    name,
    kind: "workflow",
    article: "orchestrator-workers",
    sentence: "Plans the tasks, and does them at once.",
    drawing: "task ─┬─► worker ─┬─► combine\n      └─► worker ─┘",
    useWhen: "the parts can't be known beforehand.",
    costs: "a call for each task.",
    command: `npm start ${name}`,
    copying: { inClone: "npx build", inApp: `npx add ${name}.json` },
    copyAlong: ["errors.ts", "step.ts"],
    sources: [
      {
        file: "patterns/plan.ts",
        code: CODE,
        html: highlighted(CODE),
        steps: { worker: 2, combine: 3 },
      },
      { file: "runners/plan.ts", code: RUNNER, html: highlighted(RUNNER), steps: { plan: 1 } },
    ],
    trace,
    pages: PAGES,
    isLive: false,
  };
}

/** As a highlighter writes it. */
function highlighted(code: string): string {
  const lines = code.split("\n").map((line) => {
    const text = line.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    return `<span class="line"><span style="--shiki-light:#24292e;--shiki-dark:#e1e4e8">${text}</span></span>`;
  });
  return `<pre class="shiki" tabindex="0"><code>${lines.join("\n")}</code></pre>`;
}

/** A run with one of every state, retried once, with tools and with a text that is long. */
export const MIXED = traceOf({
  run: { at: [0, 9000], outcome: "failed", error: { name: "Error", message: "It has failed" } },
  "run/turn[0]": { at: [0, 2000], call: {} },
  "run/turn[0]/tool[0]": { at: [2000, 2100], call: false, toolCall: 'search({"pattern": "a|b"})' },
  "run/fail[0]": {
    at: [2100, 4000],
    outcome: "failed",
    error: { name: "APIConnectionError", message: "Connection error." },
  },
  "run/fail[1]": { at: [2100, 4200], outcome: "cancelled", call: { sent: false } },
  "run/wait": { at: [4200, 9000], outcome: "unfinished" },
});

/** A run of almost an hour, with a title that has no end and no space. */
export const SLOW = traceOf(
  { run: { at: [0, 3_500_000] }, "run/call": { at: [0, 3_499_000], call: { estimated: true } } },
  { title: "long".repeat(400) },
);

/** Names that are longer than what they stand in. */
const LONG_NAME = "a-name-without-an-end-".repeat(8);
export const LONG_NAMED = traceOf({
  run: { at: [0, 4000], value: { status: LONG_NAME } },
  [`run/${LONG_NAME}`]: { at: [0, 2000], call: {} },
  [`run/${LONG_NAME}/tool[0]`]: {
    at: [1900, 2000],
    call: false,
    toolCall: `${LONG_NAME}({"pattern": "a|b"})`,
  },
  [`run/frame-${LONG_NAME}`]: { at: [2000, 4000] },
  [`run/frame-${LONG_NAME}/inside`]: { at: [2000, 4000], call: {} },
});

/** As wide as a module's drawing may be. */
const WIDE_DRAWING = "input ─► one ─► two ─► three ─► four ─► five ─► six ─► output";

/** Markup, scripts and a turn of the direction wherever a trace can hold a text. */
export function hostileTrace(): TraceFile {
  const evil = '</script><script>alert("x")</script><img src=x onerror="alert(1)">\u202e';
  return traceOf(
    {
      [`run${evil.replaceAll("/", "")}`]: {
        at: [0, 1000],
        value: { [evil]: evil, status: evil },
        call: {
          request: {
            model: evil,
            system: evil,
            messages: [
              { role: evil, content: evil },
              { role: "user", content: [{ type: "tool_result", content: evil, is_error: true }] },
              {
                role: "assistant",
                content: [{ type: "tool_use", name: evil, input: { [evil]: evil } }],
              },
              { role: "user", content: [{ type: evil, text: evil }] },
            ],
          },
          reply: { content: [{ type: "text", text: evil }], stop_reason: evil },
          model: evil,
          error: { name: evil, message: evil },
        },
      },
    },
    { title: evil, result: evil },
  );
}

/** Writes the pages; gives their folder. */
export async function makeSite(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "gallery-"));
  const assets = await buildAssets();
  const write = (data: PageData) =>
    writeFile(join(folder, `${data.name}.html`), renderPage(data, assets));
  await write(patternPage("plan", FAN_OUT));
  await write(patternPage("mixed", MIXED));
  await write(patternPage("slow", SLOW));
  await write(patternPage("long", longTrace(2000)));
  await write({ ...patternPage("named", LONG_NAMED), drawing: WIDE_DRAWING });
  await write(patternPage("varied", variedTrace(3000)));
  const hostile = hostileTrace();
  await write({ ...patternPage("hostile", hostile), sentence: hostile.title ?? "" });
  const { trace: _, ...own } = { ...patternPage("own", FAN_OUT), kind: "own" as const };
  await write({ ...own, sources: [], drawing: "", command: "", copyAlong: [] });
  const card = { ...patternPage("plan", FAN_OUT), calls: 3, usd: 0.0012, estimated: true };
  const choices = [
    { text: "**One call may do.** Most end here." },
    { text: "Parts → **plan**.", to: "plan" },
  ];
  await writeFile(join(folder, "index.html"), renderIndex({ cards: [card], choices }, assets));
  return folder;
}
