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
  const step = roundFrom((end / 5) * 0.9);
  const count = Math.min(7, Math.floor((end * 0.96) / step) + 1);
  return Array.from({ length: count }, (_, index) => index * step);
}

const [MINUTE, DAY] = [60_000, 86_400_000];
/** The parts of an hour and of a day that are round, in minutes. */
const ROUND_MINUTES = [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];

/** The shortest round time of at least `least` milliseconds. */
function roundFrom(least: number): number {
  const minutes = ROUND_MINUTES.find((one) => one * MINUTE >= least);
  if (least > 20_000 && minutes !== undefined) return minutes * MINUTE;
  // No time is said in less than a millisecond.
  const unit = minutes === undefined ? DAY : 1;
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least / unit)));
  const round = [1, 2, 5].find((one) => one * power * unit >= least) ?? 10;
  return round * power * unit;
}

/** `0`, `50 s`, `1 min 30 s`, `2 h`: a round time. */
export function tickWords(tick: number): string {
  return tick === 0 ? "0" : duration(tick).replace(/\.0(?= s)| 0 (s|min|h)$/, "");
}
