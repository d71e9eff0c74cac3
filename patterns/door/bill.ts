/**
 * Who is told of the requests that may be billed: the budgets that a call has passed.
 *
 *     door ─ newCall ─► budget ─ billed ─► layers ─► charge ─► request ─┬─ answered ─► settle
 *                                                                      ├─ refused, never sent ─► takeBack
 *                                                                      └─ lost, cancelled ─► lose
 *
 * One call may lead to no request, where a layer knows the answer, or to several, where it asks again: so each
 * request is counted where it goes out. What came back doesn't tell: it may be the layer's own.
 *
 * From effective-agents 0.1.0: patterns/door/bill.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import { HaltError } from "../errors.ts";
import { createScope } from "../step.ts";

/** Counts the requests of one call. */
export interface Bill {
  /** Counts one that may be billed. */
  readonly charge: () => Charge;
}

/** A request that may be billed. */
export interface Charge {
  /** It was answered. */
  readonly settle: (message: Message) => void;
  /** It ended without an answer, and may be billed all the same. */
  readonly lose: () => void;
  /** It isn't billed. */
  readonly takeBack: () => void;
}

/** The bills that are open where code runs. */
export interface OpenBills {
  /** Of the call under way. */
  readonly own: readonly Bill[];
  /** Of the calls that it is made inside of: by a layer of theirs, say. */
  readonly around: readonly Bill[];
}

const NONE: OpenBills = { own: [], around: [] };
const scope = createScope<OpenBills>();

/** The bills that are open here. */
export function openBills(): OpenBills {
  return scope.getStore() ?? NONE;
}

/** Runs `fn` as a call of its own, whose requests are on none of the bills that are open here. */
export function newCall<T>(fn: () => T): T {
  const { own, around } = openBills();
  if (own.length === 0) return fn();
  return scope.run({ own: [], around: [...around, ...own] }, fn);
}

/** Runs `fn`, with the requests of the call under way on one more bill. */
export function billed<T>(bill: Bill, fn: () => T): T {
  const { own, around } = openBills();
  return scope.run({ own: [...own, bill], around }, fn);
}

/** Runs `fn` outside of all calls: nobody waits for what it starts. */
export function apart<T>(fn: () => T): T {
  return scope.getStore() ? scope.run(NONE, fn) : fn();
}

/** Counts a request on all bills of the call under way. */
export function charge(): Charge {
  const charges = openBills().own.map((bill) => bill.charge());
  return {
    settle(message) {
      for (const { settle } of charges) settle(message);
    },
    lose() {
      for (const { lose } of charges) lose();
    },
    takeBack() {
      for (const { takeBack } of charges) takeBack();
    },
  };
}

/** Refused before it was sent, or answered with an HTTP error: neither is billed. */
export function isUnpaid(error: unknown): boolean {
  if (error instanceof HaltError) return true;
  return error instanceof Error && "status" in error && typeof error.status === "number";
}
