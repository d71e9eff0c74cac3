/**
 * The books of a budget: what is spent, unsettled and held, and who waits for room.
 *
 *     reserve ─┬─ there is room ──────► held ─► given back
 *              ├─ once others settle ─► waits, in order
 *              └─ never ──────────────► BudgetError
 *
 * Who comes while others wait, waits behind them, and whoever fits goes. A call that waits holds nothing,
 * of another budget neither: two calls under the same two budgets would wait for each other. One made inside
 * of another call, by a layer of it, can't give back what that one holds. It waits as long as somebody is
 * under way who doesn't wait, and then it's refused.
 *
 * Dollars are counted in whole billionths, so that their sums are exact.
 *
 * From effective-agents 0.1.0: patterns/layers/budget/ledger.ts
 */
import { setImmediate } from "node:timers";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import type { Bill } from "../../door/bill.ts";
import { BudgetError } from "../../errors.ts";
import { follow } from "../../fan-out.ts";

/** An amount of money, in US dollars, and of requests. */
export interface Amount {
  readonly usd: number;
  readonly calls: number;
}

/** The same in billionths of a dollar, and growing. */
export interface Sum {
  nanos: number;
  calls: number;
}

/** A budget's books. */
export interface Ledger {
  readonly limit: Readonly<Sum>;
  readonly spent: Sum;
  readonly unsettled: Sum;
  readonly held: Sum;
  /** What `held` is the sum of. */
  readonly holds: Set<Hold>;
  /** Those that wait for room here, in order. */
  readonly waiting: Set<Waiter>;
  /** Whether it will be looked who of them fits. */
  willPass: boolean;
}

/** Room for one call, and its bill. */
export interface Hold extends Bill {
  readonly ledger: Ledger;
  /** The most that a request of it may cost. */
  readonly most: Readonly<Sum>;
  /** The request under way that the room is for. Any more at once are unsettled from the start. */
  request: object | undefined;
  /** How many attempts of the call wait for room under further budgets. */
  queued: number;
  /** How many calls made inside of this one wait for room. */
  waits: number;
  isClosed: boolean;
}

/** What a call comes with that asks for room. */
export interface Asking {
  /** What the same call holds of other budgets. While it waits, it gives that back. */
  readonly outer: readonly Hold[];
  /** What the calls hold that it's made inside of. They wait for it, and keep that. */
  readonly around: readonly Hold[];
  readonly signal: AbortSignal | undefined;
}

/** A call that waits until all of its holds can be taken. */
interface Waiter {
  readonly wanted: readonly Hold[];
  readonly around: readonly Hold[];
  /** Gets the one that there is no room for, or `undefined` when all have been taken. */
  readonly wake: (lacking: Hold | undefined) => void;
}

/** Opens the books, with nothing in them. */
export function openLedger(limit: Amount): Ledger {
  return {
    limit: sumOf(limit),
    spent: sumOf(NOTHING),
    unsettled: sumOf(NOTHING),
    held: sumOf(NOTHING),
    holds: new Set(),
    waiting: new Set(),
    willPass: false,
  };
}

const NANO = 1e9;
const NOTHING: Amount = { usd: 0, calls: 0 };

/** Dollars in billionths. */
export function sumOf({ usd, calls }: Amount): Sum {
  return { nanos: Math.round(usd * NANO), calls };
}

/** Billionths in dollars. */
export function amountOf({ nanos, calls }: Readonly<Sum>): Amount {
  return { usd: nanos / NANO, calls };
}

/** Adds an amount, once or so many times. */
export function add(total: Sum, { nanos, calls }: Readonly<Sum>, times = 1): void {
  total.nanos += nanos * times;
  total.calls += calls * times;
}

/**
 * Makes a hold, still to be taken.
 *
 * @param bookReply Writes down what a reply did cost.
 */
export function createHold(
  ledger: Ledger,
  most: Sum,
  bookReply: (message: Message, most: Sum) => void,
): Hold {
  const charge = () => {
    const request = {};
    if (isHeld(hold)) hold.request ??= request;
    const hasRoom = () => hold.request === request;
    if (!hasRoom()) addUnsettled(hold, 1);
    return {
      settle(message: Message) {
        // With that it's unsettled, whether it had room or not.
        if (hasRoom()) release(hold);
        addUnsettled(hold, -1);
        bookReply(message, most);
      },
      lose() {
        if (hasRoom()) release(hold);
      },
      takeBack() {
        if (!hasRoom()) return addUnsettled(hold, -1);
        // The room stays, for another attempt: unless that waits for another budget.
        hold.request = undefined;
        if (hold.queued > 0) release(hold);
      },
    };
  };
  const hold: Hold = {
    ledger,
    most,
    charge,
    request: undefined,
    queued: 0,
    waits: 0,
    isClosed: false,
  };
  return hold;
}

/**
 * Takes a hold, and waits for room where others will make some.
 *
 * @throws {BudgetError} There is no room, and none will come.
 */
export async function reserve(own: Hold, { outer, around, signal }: Asking): Promise<void> {
  const wanted = [...outer, own];
  for (const hold of outer) hold.queued += 1;
  for (const hold of around) hold.waits += 1;
  try {
    let lacking = own.ledger.waiting.size > 0 ? own : takeAll(wanted);
    while (lacking) {
      if (isHopeless(lacking, around)) throw refusal(lacking);
      for (const hold of outer) release(hold);
      lacking = await nextTurn(lacking.ledger, { wanted, around }, signal);
    }
  } finally {
    for (const hold of outer) hold.queued -= 1;
    for (const hold of around) hold.waits -= 1;
  }
}

/** Ends a call. */
export function close(hold: Hold): void {
  release(hold);
  hold.isClosed = true;
}

function addUnsettled({ ledger, most }: Hold, requests: number): void {
  add(ledger.unsettled, most, requests);
  passSoon(ledger);
}

/** Gives back what is held. A request that it was for becomes unsettled. Those that fit then go when what the
 * call has led to is done: that may cancel them. */
function release(hold: Hold): void {
  if (hold.request) addUnsettled(hold, 1);
  hold.request = undefined;
  const { holds, held } = hold.ledger;
  if (holds.delete(hold)) add(held, hold.most, -1);
  passSoon(hold.ledger);
}

function isHeld(hold: Hold): boolean {
  return hold.ledger.holds.has(hold);
}

/** Takes all of them or none, and gives the first that there is no room for. Another attempt of the same call
 * may have taken one already, or have ended the call. */
function takeAll(wanted: readonly Hold[]): Hold | undefined {
  const missing = wanted.filter((hold) => !hold.isClosed && !isHeld(hold));
  const lacking = missing.find((hold) => !fits(hold));
  if (lacking) return lacking;
  for (const hold of missing) {
    hold.ledger.holds.add(hold);
    add(hold.ledger.held, hold.most);
  }
  return undefined;
}

/** Whether there is room, or would be if nothing were held. */
function fits({ ledger, most }: Hold, alone?: "alone"): boolean {
  return (
    most.nanos <= roomIn(ledger, "nanos", alone) && most.calls <= roomIn(ledger, "calls", alone)
  );
}

/** Whether no room will come: there's none in all, or, for a call made inside of others, all that is held is
 * held by calls that wait themselves. */
function isHopeless(hold: Hold, around: readonly Hold[]): boolean {
  if (fits(hold)) return false;
  const isStuck = around.length > 0 && [...hold.ledger.holds].every(waitsItself);
  return isStuck || !fits(hold, "alone");
}

function waitsItself({ waits, queued, request }: Hold): boolean {
  return waits > 0 || (queued > 0 && request === undefined);
}

function roomIn(ledger: Ledger, unit: keyof Sum, alone?: "alone"): number {
  const { limit, spent, unsettled, held } = ledger;
  return limit[unit] - spent[unit] - unsettled[unit] - (alone ? 0 : held[unit]);
}

function refusal(hold: Hold): BudgetError {
  const { ledger, most } = hold;
  const { usd, calls } = amountOf(ledger.limit);
  const alone = fits(hold, "alone") ? undefined : "alone";
  if (most.calls > roomIn(ledger, "calls", alone)) {
    return new BudgetError(`The budget of ${calls} calls is used up`);
  }
  const left = roomIn(ledger, "nanos", alone);
  const [has, costs] = [left, most.nanos].map((nanos) => (nanos / NANO).toFixed(4));
  const why = `has $${has} left, and this call may cost $${costs}`;
  return new BudgetError(`The budget of $${usd} ${why}: lower max_tokens, or raise the budget`);
}

/** Waits until all of them are taken, or one of them needs another queue or no queue: it gives that one. */
async function nextTurn(
  ledger: Ledger,
  asking: Omit<Waiter, "wake">,
  signal: AbortSignal | undefined,
): Promise<Hold | undefined> {
  const follower = follow(signal);
  const { signal: own } = follower.controller;
  try {
    own.throwIfAborted();
    return await new Promise((wake, reject) => {
      const waiter = { ...asking, wake };
      const leave = () => {
        ledger.waiting.delete(waiter);
        reject(own.reason);
      };
      ledger.waiting.add(waiter);
      own.addEventListener("abort", leave, { once: true });
      passSoon(ledger);
    });
  } finally {
    follower.release();
  }
}

function passSoon(ledger: Ledger): void {
  if (ledger.willPass || ledger.waiting.size === 0) return;
  ledger.willPass = true;
  setImmediate(pass, ledger);
}

/** Lets all go that fit, and those that never will. */
function pass(ledger: Ledger): void {
  ledger.willPass = false;
  for (const waiter of ledger.waiting) {
    const lacking = takeAll(waiter.wanted);
    if (lacking?.ledger === ledger && !isHopeless(lacking, waiter.around)) continue;
    ledger.waiting.delete(waiter);
    waiter.wake(lacking);
  }
}
