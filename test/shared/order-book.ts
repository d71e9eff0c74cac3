/** Order books for tests: two orders that can be refunded, and one that was. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Order, openOrderBook, saveOrders } from "../../runners/refund/order-book.ts";
import { folder } from "./folder.ts";

export const customer = "hanna@example.org";
export const KETTLE: Order = {
  id: "5107",
  date: "2026-11-19",
  customer,
  item: "Kettle",
  paid: 4_990,
  refunds: [],
};
export const COFFEE: Order = { ...KETTLE, id: "5121", item: "Coffee", paid: 2_900 };
export const BURRS: Order = {
  ...KETTLE,
  id: "5098",
  paid: 1_800,
  refunds: [{ callId: "before", cents: 1_800, reason: "Wrong size" }],
};
/** A new order book. */
export async function newBook(orders: readonly Order[] = [KETTLE, COFFEE, BURRS]) {
  const file = join(await folder(), "orders.json");
  await saveOrders(file, orders);
  return { file, book: openOrderBook(file) };
}

/** The refunds in a book that has no other than these two orders'. */
export async function refundsIn(file: string): Promise<string[]> {
  // What JSON holds has no types.
  const orders = JSON.parse(await readFile(file, "utf8")) as Order[];
  return orders
    .flatMap(({ refunds }) => refunds.map(({ callId }) => callId))
    .filter((id) => id !== "before");
}
