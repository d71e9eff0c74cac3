/**
 * Which error means what. Three kinds, and nothing lost:
 *
 *     the caller's mistake        TypeError, RangeError   before any call is paid, if it shows by then
 *     the transport's failure     the SDK's own error     untouched; the SDK alone retries
 *     a reply that can't be used  LlmOutputError          with path, stop reason and text
 *
 * Two more end a run and pass through every pattern: the caller's abort, which is always a rejection
 * with the signal's reason; and a `HaltError`, a call that was never made, because the budget ended,
 * a recording doesn't match, or an answer is waited for.
 *
 * From effective-agents 0.1.0: patterns/errors.ts
 */
import { inspect } from "node:util";
import { currentPath } from "./step.ts";

/** A reply that can't be used: refused, cut off, empty, a tag missing, a label unknown, … */
export class LlmOutputError extends Error {
  override readonly name: string = "LlmOutputError";
  /** The path of the call, e.g. `route/classify#2`. */
  readonly path: string;
  /** The reply's text as far as there is any, whole. */
  readonly text: string;
  /** Why the model stopped, or `null` where that isn't known. */
  readonly stopReason: string | null;

  constructor(
    message: string,
    details: {
      readonly text?: string | undefined;
      readonly stopReason?: string | null | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    const path = currentPath();
    super(path ? `${path}: ${message}` : message, "cause" in details ? details : undefined);
    this.path = path;
    this.text = details.text ?? "";
    this.stopReason = details.stopReason ?? null;
  }
}

/** A call that was never made. It ends a run: no pattern settles it, counts it or asks again. */
export class HaltError extends Error {
  override readonly name: string = "HaltError";
  /** The path of the call. */
  readonly path: string;

  constructor(message: string) {
    const path = currentPath();
    super(path ? `${path}: ${message}` : message);
    this.path = path;
  }
}

/** The budget has no room for this call. Patterns return what they have, with status `budget`. */
export class BudgetError extends HaltError {
  override readonly name: string = "BudgetError";
}

/** A tool's call waits for an answer that comes later. An agent's run ends with status `suspended`. */
export class SuspendError extends HaltError {
  override readonly name: string = "SuspendError";
}

/** The recording doesn't hold this call, or holds another one in its place. */
export class RecordingError extends HaltError {
  override readonly name: string = "RecordingError";
}

/** Whether there is nothing in a text that can be seen: blanks, and characters without width. */
export function isBlank(text: string): boolean {
  return !VISIBLE.test(text);
}

const VISIBLE = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Throws a `TypeError` unless `text` is a string with something in it. */
export function checkText(
  name: string,
  text: string,
  rule = "must be a text with something in it",
): void {
  if (typeof text === "string" && !isBlank(text)) return;
  throw new TypeError(`The ${name} ${rule}, got ${shown(text)}`);
}

/** Throws a `TypeError` unless `prompt` is a string with something in it, or a list of blocks. */
export function checkPrompt(prompt: string | readonly unknown[]): void {
  if (Array.isArray(prompt) && prompt.length > 0) return;
  if (typeof prompt === "string" && !isBlank(prompt)) return;
  const rule = "a text with something in it, or a list of content blocks";
  throw new TypeError(`The prompt must be ${rule}, got ${shown(prompt)}`);
}

/** Throws a `RangeError` unless `value` is a whole number from `least` to `most`. */
export function checkCount(
  name: string,
  value: number,
  least: number,
  most: number = Infinity,
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range = most === Infinity ? `of at least ${least}` : `from ${least} to ${most}`;
  throw new RangeError(`${name} must be a whole number ${range}, got ${shown(value)}`);
}

/** A value as an error shows it, so that `"4"` can be told from `4`. */
export function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : inspect(value, { depth: 1 });
}

/** Whatever was thrown, in words: `String` fails on an object without a prototype. */
export function inWords(error: unknown): string {
  return error instanceof Error || typeof error === "string" ? String(error) : shown(error);
}

/** Throws a `TypeError` unless `value` is a function, or may be left out and is. */
export function checkFunction(name: string, value: unknown, optional = false): void {
  if (typeof value === "function" || (optional && value === undefined)) return;
  throw new TypeError(`${name} must be a function, got ${shown(value)}`);
}
