/**
 * The books of a budget: what is spent, unsettled and held, and who waits for room.
 *
 *     reserve ─┬─ there is room ──────► held ─► given back
 *              ├─ once others settle ─► waits, in order
 *              └─ never ──────────────► BudgetError
 *
 * Who comes while others wait, waits behind them, and whoever fits goes. A call that waits holds nothing,
 * of another budget neither: two calls under the same two budgets would wait for each other.
 *
 * Dollars are counted in whole billionths, so that their sums are exact.
 *
 * From effective-agents 0.1.0: patterns/layers/budget/ledger.ts
 */
import { setImmediate } from "node:timers";
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

/** Room for one call. */
export interface Hold {
  readonly ledger: Ledger;
  /** The call's path. */
  readonly path: string;
  /** The most that it may cost. */
  readonly most: Readonly<Sum>;
}

/** A call that waits until all of its holds can be taken. */
interface Waiter {
  readonly wanted: readonly Hold[];
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
 * Takes a hold, and waits for room where others will make some.
 *
 * @param outer What the same call holds of other budgets. While it waits, it gives that back.
 * @throws {BudgetError} There is no room, and none will come.
 */
export async function reserve(
  own: Hold,
  outer: readonly Hold[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const wanted = [...outer, own];
  let lacking = own.ledger.waiting.size > 0 ? own : takeAll([own]);
  while (lacking) {
    if (!fits(lacking, "alone")) throw refusal(lacking, "alone");
    for (const hold of outer) giveBack(hold);
    lacking = await nextTurn(lacking.ledger, wanted, signal);
  }
}

/**
 * Takes a hold at once. For a call made inside of another one under the same budget, which waits for it.
 *
 * @throws {BudgetError} There is no room now.
 */
export function reserveNow(own: Hold): void {
  if (takeAll([own])) throw refusal(own);
}

/** Gives back what was held, if it still is. Those that fit then go when what the call has led to is done:
 * that may cancel them. */
export function giveBack(hold: Hold): void {
  const { holds, held } = hold.ledger;
  if (!holds.delete(hold)) return;
  add(held, hold.most, -1);
  passSoon(hold.ledger);
}

/** Whether it has been taken, and not yet given back. */
export function isHeld(hold: Hold): boolean {
  return hold.ledger.holds.has(hold);
}

/** Takes all of them or none, and gives the first that there is no room for. */
function takeAll(wanted: readonly Hold[]): Hold | undefined {
  const lacking = wanted.find((hold) => !fits(hold));
  if (lacking) return lacking;
  for (const hold of wanted) {
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

function roomIn(ledger: Ledger, unit: keyof Sum, alone?: "alone"): number {
  const { limit, spent, unsettled, held } = ledger;
  return limit[unit] - spent[unit] - unsettled[unit] - (alone ? 0 : held[unit]);
}

function refusal({ ledger, most }: Hold, alone?: "alone"): BudgetError {
  const { usd, calls } = amountOf(ledger.limit);
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
  wanted: readonly Hold[],
  signal: AbortSignal | undefined,
): Promise<Hold | undefined> {
  const { controller, release } = follow(signal);
  const { signal: own } = controller;
  try {
    own.throwIfAborted();
    return await new Promise((wake, reject) => {
      const waiter = { wanted, wake };
      const leave = () => {
        ledger.waiting.delete(waiter);
        reject(own.reason);
      };
      ledger.waiting.add(waiter);
      own.addEventListener("abort", leave, { once: true });
      passSoon(ledger);
    });
  } finally {
    release();
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
    if (lacking?.ledger === ledger && fits(lacking, "alone")) continue;
    ledger.waiting.delete(waiter);
    waiter.wake(lacking);
  }
}
