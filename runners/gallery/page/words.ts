/**
 * How states, tool calls and times are said on the page, beside what the terminal says too.
 */
import { brief, duration } from "../../shared/words.ts";
import type { State } from "./moment.ts";

/** What a state is called. */
export const STATES: Readonly<Record<State | "refused", string>> = {
  waiting: "not started",
  flight: "in flight",
  ok: "done",
  failed: "failed",
  cancelled: "cancelled",
  unfinished: "unfinished",
  refused: "refused",
};

/** A state without colour. */
export const SIGNS: Readonly<Record<State | "refused", string>> = {
  waiting: "",
  flight: "●",
  ok: "✓",
  failed: "✕",
  cancelled: "⊘",
  unfinished: "…",
  refused: "↺",
};

/** A tool's call without the signs of its JSON: `search({"pattern": "x"})` is `search` and `x`. */
export function toolWords(toolCall: string): { readonly name: string; readonly input: string } {
  const [, name = toolCall, input = ""] = /^([^(]*)\(\{?(.*?)\}?\)$/s.exec(toolCall) ?? [];
  return { name, input: input.replace(/"[\w-]+": /g, "").replace(/"/g, "") };
}

/** How a run ended, in a few words, from what its outermost step ended with. */
export function ending(value: unknown): string {
  const { status, route, winner } = Object(value) as Record<string, unknown>;
  if (typeof route === "string") return route;
  if (typeof status !== "string") return "result";
  return typeof winner === "string" ? `${status}: ${brief(winner)}` : status;
}

/** Round times from 0 up to `end`, at most seven. */
export function axisTicks(end: number): number[] {
  if (!(end > 0)) return [0];
  const rough = end / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  // No time is said in less than a millisecond.
  const step = Math.max(1, power * ([1, 2, 5].find((one) => one * power >= rough * 0.9) ?? 10));
  const count = Math.min(7, Math.floor((end * 0.96) / step) + 1);
  return Array.from({ length: count }, (_, index) => index * step);
}

/** `0`, `50 s`, `1 min 40 s`: a round time. */
export function tickWords(tick: number): string {
  return tick === 0 ? "0" : duration(tick).replace(".0 s", " s").replace(" min 0 s", " min");
}
