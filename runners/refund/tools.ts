/**
 * The tools of a refund agent: one that looks orders up, and one that pays back, behind a gate.
 *
 * From effective-agents 0.1.0: runners/refund/tools.ts
 */
import type { Approve } from "../../patterns/approve.ts";
import { defineTool, type Tool } from "../../patterns/tool.ts";
import {
  checkRefund,
  euros,
  type OrderBook,
  type RefundInput,
  refunded,
  refundOf,
} from "./order-book.ts";

/** Makes the tools for an order book. */
export function createRefundTools(book: OrderBook, approve: Approve): readonly Tool[] {
  const findOrders = defineTool<{ customer: string }>({
    name: "find_orders",
    description:
      "Lists a customer's orders: number, date, what was bought, what was paid. Refunds aren't listed here; refund checks them.",
    input_schema: {
      type: "object",
      properties: { customer: { type: "string", description: "The customer's e-mail address" } },
      required: ["customer"],
      additionalProperties: false,
    },
    run: async ({ customer }) => {
      const own = (await book.orders()).filter(
        (order) => order.customer === customer.toLowerCase(),
      );
      const lines = own.map(
        ({ id, date, item, paid }) => `${id} | ${date} | ${item} | ${euros(paid)}`,
      );
      return lines.join("\n") || `No orders of '${customer}'.`;
    },
  });

  const refund = approve<RefundInput>(
    {
      name: "refund",
      description:
        "Pays money back for one order. Whether that can be done is checked first, then a person is asked, and only their yes pays. Gives what was paid, or why nothing was.",
      input_schema: {
        type: "object",
        properties: {
          order: { type: "string", description: "The order's number" },
          cents: {
            type: "integer",
            minimum: 1,
            description: "How much, in cents: 950 for 9.50 EUR",
          },
          reason: { type: "string", description: "Why, in one sentence, for whoever decides" },
        },
        required: ["order", "cents", "reason"],
        additionalProperties: false,
      },
      run: async (input, { callId }) => {
        await book.refund(callId, input);
        return paidBack(input.order, input.cents);
      },
    },
    {
      preview: async (input) => {
        const order = checkRefund(await book.orders(), input);
        const before =
          refunded(order) > 0 ? `${euros(refunded(order))} refunded before` : "no refund yet";
        return `Pays ${euros(input.cents)} back to ${order.customer} for order ${order.id} (${order.item}; ${euros(order.paid)} paid, ${before}). It can't be undone.`;
      },
      done: async (callId, input) => {
        const found = refundOf(await book.orders(), callId, input);
        return found && paidBack(found.order.id, found.refund.cents);
      },
    },
  );
  return [findOrders, refund];
}

function paidBack(order: string, cents: number): string {
  return `Refunded ${euros(cents)} for order ${order}. The customer sees it within three working days.`;
}
