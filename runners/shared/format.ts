/**
 * How a run looks: a line for each step, and a last line with the sums.
 *
 * From effective-agents 0.1.0: runners/shared/format.ts
 */
import { stripVTControlCharacters, styleText } from "node:util";
import type { Outcome, TraceCall, TraceStep } from "../../patterns/trace-file.ts";
import { reason } from "./explain.ts";
import { type Totals, tokensIn, tokensOut } from "./trace.ts";
import { brief, counted, dollars, duration } from "./words.ts";

type Style = Parameters<typeof styleText>[0];

/** Colours a text, or leaves it as it is. */
export type Paint = (style: Style, text: string) => string;

/** Colours where `stream` shows them: not when piped, nor with NO_COLOR, nor on a dumb terminal. */
export function paintFor(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const { NO_COLOR, TERM } = env;
  const colours = stream.isTTY && !NO_COLOR && TERM !== "dumb";
  return colours
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_, text) => text;
}

const SIGNS: Readonly<Record<Outcome | "refused", readonly [string, Style]>> = {
  unfinished: ["…", "cyan"],
  ok: ["✓", "green"],
  failed: ["✗", "red"],
  cancelled: ["⊘", "yellow"],
  refused: ["✗", "yellow"],
};

/** A gate or a check that gives a reason has refused what it saw. */
function signOf({ path, outcome, calls, value }: TraceStep): Outcome | "refused" {
  if (calls.at(-1)?.outcome === "cancelled") return "cancelled";
  const isGate = /(^|\/)(gate|check)(#\d+)?$/.test(path);
  return isGate && typeof value === "string" ? "refused" : outcome;
}

/** What a step's line says beside its path. */
function cells(step: TraceStep, now: number): readonly string[] {
  const { calls, toolCall } = step;
  const last = calls.at(-1);
  const result = said(step, last?.outcome ?? step.outcome, last?.sent);
  if (!last)
    return ["", "", "", [toolCall && harmlessLine(toolCall), result].filter(Boolean).join(" → ")];
  const ms = calls.reduce(
    (sum, call) => sum + (call.outcome === "unfinished" ? now - call.begin : call.ms),
    0,
  );
  const time = duration(Math.max(0, ms), last.estimated);
  const usage = calls.some((call) => call.usage) ? tokens(calls) : "";
  return [time, usage, usage && cost(calls), result];
}

function tokens(calls: readonly TraceCall[]): string {
  const inward = calls.reduce((sum, { usage }) => sum + tokensIn(usage), 0);
  const outward = calls.reduce((sum, { usage }) => sum + tokensOut(usage), 0);
  return `${inward.toLocaleString("en")} in ${outward.toLocaleString("en")} out`;
}

function cost(calls: readonly TraceCall[]): string {
  const known = calls.every(({ usd, usage }) => !usage || usd !== undefined);
  return known ? dollars(calls.reduce((sum, { usd }) => sum + (usd ?? 0), 0)) : "$ unknown";
}

function said({ value, error }: TraceStep, outcome: Outcome, sent = false): string {
  if (outcome === "unfinished") return "";
  if (outcome === "cancelled") return sent ? "cancelled, may be billed" : "cancelled, never sent";
  if (outcome === "ok") return harmlessLine(brief(value));
  // A call has failed a moment before its step has.
  if (!error) return "";
  return harmlessLine(error instanceof Error ? reason(error) : error.message);
}

function shorten(text: string, room: number): string {
  if (text.length <= room) return text;
  // Not between the two halves of one character.
  return `${text.slice(0, room - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** The text without what a terminal would obey: a model's answer may hold anything. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replace(/(?![\n\t])\p{Cc}|\p{Bidi_Control}/gu, "");
}

/** The same on one line, so that nothing in it passes for a line of ours. */
export function harmlessLine(text: string): string {
  return harmless(text).replace(/\s+/g, " ").trim();
}

/** The text with no line longer than `columns`, broken at blanks where there are any. */
export function wrap(text: string, columns: number): string {
  const rest = new RegExp(`(?=.{${columns + 1}})(?:(.{1,${columns}}) +|(.{${columns}}))`, "gu");
  return text.replace(/ +$/gm, "").replace(rest, "$1$2\n");
}

/** What a line of the tree holds beside the name, from wide to narrow: the path before the name, and
 * which of time, tokens and cost. */
const LAYOUTS = [
  { parents: true, figures: [0, 1, 2] },
  { parents: false, figures: [0, 1, 2] },
  { parents: false, figures: [0, 2] },
  { parents: false, figures: [0] },
] as const;

/** So much is to be left for what a step made of its reply. */
const LEAST_ROOM = 16;

/** The tree of a run, one line a step, each at most `columns` wide. */
export function treeLines(
  nodes: readonly TraceStep[],
  { paint, columns, now }: { paint: Paint; columns: number; now: number },
): string[] {
  const depths = nodes.map(({ path }) => path.split("/").length - 1);
  const rows = nodes.map((node, index) => ({
    node,
    branch: branchOf(depths, index),
    cells: depths[index] === 0 ? ["", "", "", ""] : cells(node, now),
  }));
  const layouts = LAYOUTS.map(({ parents, figures }) => {
    const names = rows.map(({ branch, node }) => branch.length + nameOf(node, parents).length + 2);
    const nameWidth = Math.max(...names);
    const widths = figures.map((at) =>
      Math.max(...rows.map(({ cells }) => cells[at]?.length ?? 0)),
    );
    const room = columns - widths.reduce((sum, width) => sum + width + 2, nameWidth + 2);
    return { parents, figures, nameWidth, widths, room };
  });
  const layout = layouts.find(({ room }) => room >= LEAST_ROOM) ?? layouts.at(-1);
  if (!layout) return [];
  const { parents, figures, nameWidth, widths, room } = layout;
  return rows.map(({ node, branch, cells }) => {
    const [sign, style] = SIGNS[signOf(node)];
    const name = shorten(nameOf(node, parents), columns - branch.length - 2);
    const start = name.length - nameOf(node, false).length;
    const left = `${paint("dim", branch)}${paint(style, sign)} ${paint("dim", name.slice(0, Math.max(0, start)))}${name.slice(Math.max(0, start))}`;
    // A tool's step has no figures, and takes their room.
    const rest = node.toolCall ? columns - branch.length - name.length - 4 : room;
    const text = rest > 4 ? shorten(cells[3] ?? "", rest) : "";
    if (node.toolCall) return text ? `${left}  ${text}` : left;
    const numbers = figures.map((at, i) => (cells[at] ?? "").padStart(widths[i] ?? 0)).join("  ");
    const shown = room >= -2 && (numbers.trim() !== "" || text !== "");
    if (!shown) return left;
    const pad = " ".repeat(nameWidth - branch.length - 2 - name.length);
    const right = text ? `${paint("dim", numbers)}  ${text}` : paint("dim", numbers.trimEnd());
    return `${left}${pad}  ${right}`;
  });
}

/** The name of a step, with the path that it's in or without. */
function nameOf({ path }: TraceStep, parents: boolean): string {
  return parents ? path : path.slice(path.lastIndexOf("/") + 1);
}

/** `├─ `, `└─ `, and the lines of the steps around it. */
function branchOf(depths: readonly number[], index: number): string {
  const depth = depths[index] ?? 0;
  let branch = "";
  for (let level = 1; level <= depth; level += 1) {
    const after = depths.slice(index + 1);
    const goesOn = after.find((depth) => depth <= level) === level;
    if (level === depth) branch += goesOn ? "├─ " : "└─ ";
    else branch += goesOn ? "│  " : "   ";
  }
  return branch;
}

/** One ended step as a plain line: for pipes and logs. */
export function plainLine(node: TraceStep): string {
  const [time, usage, usd, text] = cells(node, 0);
  return [node.path, time, usage, usd, shorten(text ?? "", 80)].filter(Boolean).join("  ");
}

/** The last line: calls, tokens, cost, time, and the time saved by running at once. */
export function totalsLine(totals: Totals): string {
  const { calls, ...figures } = figuresOf(totals);
  if (!isMetered(totals)) {
    return `${calls}; their tokens, cost and time need a recording from the API`;
  }
  const { savedMs, estimated } = totals;
  const saved = savedMs >= 50 ? `, ${duration(savedMs, estimated)} saved by running at once` : "";
  return `${[calls, ...Object.values(figures)].join(", ")}${saved}`;
}

/** The sums of a run in words, by what they are of. */
export function figuresOf(totals: Totals) {
  const { answered, failed, cancelled, estimated } = totals;
  const more = [failed && `${failed} failed`, cancelled && `${cancelled} cancelled`].filter(
    Boolean,
  );
  const unknown = totals.unpriced > 0 ? ` and ${totals.unpriced} of unknown cost` : "";
  return {
    calls: `${counted(answered, "call")}${more.length > 0 ? ` (and ${more.join(", ")})` : ""}`,
    tokens: `${totals.tokensIn.toLocaleString("en")} tokens in, ${totals.tokensOut.toLocaleString("en")} out`,
    cost: `${dollars(totals.usd)}${unknown}`,
    time: duration(totals.ms, estimated),
  };
}

/** Of a script's calls only the number is known. */
function isMetered({ answered, metered }: Totals): boolean {
  return answered === 0 || metered > 0;
}
