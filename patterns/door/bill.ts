/**
 * Counts the requests of a call that may be billed. For budgets.
 *
 *     budget ── billed(bill, …) ── layers ──► charge() ── request ─┬─ answered, lost, cancelled ─► stays
 *                                                                  └─ refused, never sent ─► taken back
 *
 * One call may lead to several requests, where a layer inside of the budget sends it again. The door
 * tells of each; a budget that judged by the error alone would take a layer's own for the API's.
 *
 * From effective-agents 0.1.0: patterns/door/bill.ts
 */
import { HaltError } from "../errors.ts";
import { createScope, currentPath } from "../step.ts";

/** Of one call that a budget has let pass. */
export interface Bill {
  /** The call's path. */
  readonly path: string;
  /** How many of its requests may be billed. */
  requests: number;
}

/** Of the call under way and of those that it was made inside of, whatever their budgets. */
const bills = createScope<readonly Bill[]>();

/** Runs `fn`, and counts the requests of its call. */
export function billed<T>(bill: Bill, fn: () => T): T {
  return bills.run([...(bills.getStore() ?? []), bill], fn);
}

/** Counts a request of the call under way, and gives a function that takes it back. */
export function charge(): () => void {
  const own = bills.getStore()?.filter(({ path }) => path === currentPath()) ?? [];
  for (const bill of own) bill.requests += 1;
  return () => {
    for (const bill of own) bill.requests -= 1;
  };
}

/** Refused before it was sent, or answered with an HTTP error: neither is billed. */
export function isUnpaid(error: unknown): boolean {
  if (error instanceof HaltError) return true;
  return error instanceof Error && "status" in error && typeof error.status === "number";
}
