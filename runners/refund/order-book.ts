/**
 * A shop's order book in a JSON file, with what was paid back.
 *
 *     refund ─► in turn ─► read ─► this call id in it? ─┬─ yes ─► that refund, and nothing is written
 *                                                       └─ no ──► still right? ─► write, atomically
 *
 * A refund and the id of the call that was approved stand in the same write: it's in the book with its id,
 * or not at all, so a run that starts again can't pay twice. For one process at a time; where several
 * write, it's a database's work, with the call's id as a unique key.
 *
 * From effective-agents 0.1.0: runners/refund/order-book.ts
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createTurns } from "../../patterns/in-turn.ts";
import { ToolError } from "../../patterns/tool.ts";
import { writeAtomically } from "../shared/atomic-file.ts";

/** An order. Amounts are in cents of a euro. */
export interface Order {
  readonly id: string;
  readonly date: string;
  readonly customer: string;
  readonly item: string;
  readonly paid: number;
  readonly refunds: readonly Refund[];
}

/** What was paid back. */
export interface Refund {
  /** The id of the call that was approved. */
  readonly callId: string;
  readonly cents: number;
  readonly reason: string;
}

/** What is to be paid back. */
export interface RefundInput {
  readonly order: string;
  readonly cents: number;
  readonly reason: string;
}

/** An order book. Each look reads the file anew. */
export interface OrderBook {
  readonly orders: () => Promise<readonly Order[]>;
  /** Writes a refund, or does nothing where that call's is written. Throws as `checkRefund` does. */
  readonly refund: (callId: string, input: RefundInput) => Promise<void>;
}

/** By file: however often a book is opened, it's written in turn. */
const inTurn = createTurns();

/** Opens the book in a file, which must be there. */
export function openOrderBook(file: string): OrderBook {
  // The book's own file, which nobody else writes.
  const orders = async () => JSON.parse(await readFile(file, "utf8")) as readonly Order[];

  const write = async (callId: string, input: RefundInput) => {
    const all = await orders();
    if (refundOf(all, callId, input)) return;
    const order = checkRefund(all, input);
    const { cents, reason } = input;
    const refunds = [...order.refunds, { callId, cents, reason }];
    await saveOrders(
      file,
      all.map((one) => (one === order ? { ...order, refunds } : one)),
    );
  };

  return {
    orders,
    refund: (callId, input) => inTurn(resolve(file), () => write(callId, input)),
  };
}

/** Writes a whole book. */
export function saveOrders(file: string, orders: readonly Order[]): Promise<void> {
  return writeAtomically(file, `${JSON.stringify(orders, null, 2)}\n`);
}

/**
 * The refund that was made for a call, and its order.
 *
 * @throws {ToolError} The id was another refund's: what that one paid is no answer to this call.
 */
export function refundOf(orders: readonly Order[], callId: string, input: RefundInput) {
  for (const order of orders) {
    const refund = order.refunds.find((one) => one.callId === callId);
    if (!refund) continue;
    if (order.id === input.order && refund.cents === input.cents) return { order, refund };
    throw new ToolError(
      `The call id ${callId} is that of another refund, so nothing was paid for this call. Go on without it, and say so.`,
    );
  }
  return undefined;
}

/** The order, if that much of it can be paid back. Else throws a `ToolError` that says why it can't. */
export function checkRefund(orders: readonly Order[], { order: id, cents }: RefundInput): Order {
  const order = orders.find((one) => one.id === id);
  if (!order) {
    throw new ToolError(
      `There is no order '${id}'. Look the customer's orders up with find_orders.`,
    );
  }
  const before = refunded(order);
  if (before === order.paid) {
    throw new ToolError(
      `Order ${id} was refunded before, all ${euros(before)} of it. Nothing is left to pay back: tell the customer so.`,
    );
  }
  if (cents > order.paid - before) {
    throw new ToolError(
      `${euros(cents)} is more than can be paid back for order ${id}: ${euros(order.paid)} was paid, and ${euros(before)} of it refunded. Ask for ${euros(order.paid - before)} at the most.`,
    );
  }
  return order;
}

/** What was paid back of an order, in cents. */
export function refunded({ refunds }: Order): number {
  return refunds.reduce((sum, { cents }) => sum + cents, 0);
}

/** `5107: 49.90 EUR paid, 0.00 EUR refunded`. */
export function balance(order: Order): string {
  return `${order.id}: ${euros(order.paid)} paid, ${euros(refunded(order))} refunded`;
}

/** `49.90 EUR`. */
export function euros(cents: number): string {
  return `${(cents / 100).toFixed(2)} EUR`;
}
