/**
 * A budget in dollars, calls, or both, shared by all that goes through one door.
 *
 *     call ─► may cost at most r ─┬─ fits ──────────────► reserve r ─► send ─► settle what it cost
 *                                 ├─ once others settle ─► wait
 *                                 └─ never ─────────────► BudgetError, nothing is sent
 *
 * It reserves before it spends, so that calls in flight together can't overdraw it. What a request may
 * cost at most is its bytes, taken for tokens, at the price of writing them to the cache, and its
 * `max_tokens` at the output price: lower `max_tokens` where a small budget must allow several calls.
 * Where that is no bound (a URL, a server tool, the fast mode, …), a limit in dollars is refused. What the
 * API adds by itself for tools, a few hundred tokens, is covered since a token has about four bytes: unless
 * the request is tiny.
 *
 * A call that ends without saying what it used (cancelled, connection lost) may have been billed. It
 * stays reserved, as `unsettled`: read such a total as "at most". So does a reply whose price isn't
 * known, such as one of another tier, and what that did cost may even be more; of one that read from the
 * cache of a model without a price for that, no more stays reserved than it did cost at most.
 *
 * A call is one call, however often the SDK retries it. An attempt that was lost, and may have been
 * billed, isn't seen: for a strict limit set `maxRetries: 0` on the client. A layer that sends a call
 * again, or elsewhere, goes before the budget (`layers: [retry, budget.layer]`): behind it all its requests
 * are counted, but one alone was reserved for. What a layer behind it answers by itself costs nothing.
 *
 * Copy along: cost.ts, errors.ts, fan-out.ts, llm-call.ts, step.ts, usage.ts, door/, layers/budget/
 * From effective-agents 0.1.0: patterns/layers/budget.ts
 */
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import {
  CACHE_WRITE,
  costAtMost,
  costOf,
  PRICES,
  type Prices,
  priceOf,
  unboundedPart,
} from "../cost.ts";
import { type Bill, billed, openBills } from "../door/bill.ts";
import { checkCount, shown } from "../errors.ts";
import type { Layer, Params } from "../llm-call.ts";
import {
  type Amount,
  add,
  amountOf,
  close,
  createHold,
  type Hold,
  openLedger,
  reserve,
  type Sum,
  sumOf,
} from "./budget/ledger.ts";

export type { Amount } from "./budget/ledger.ts";

/** The limits: at least one of the two. */
export interface BudgetOptions {
  /** The most to spend, in US dollars. Default: no limit. */
  readonly usd?: number | undefined;
  /** The most requests to make. Default: no limit. */
  readonly calls?: number | undefined;
  /** Prices by model. Default: the table in cost.ts. */
  readonly prices?: Prices | undefined;
}

/** A budget, and where it stands. */
export interface Budget {
  /** For `createLlm({ layers })` or `llm.with({ layers })`. One budget may serve several doors, and
   * counts a call once that goes through two of them. */
  readonly layer: Layer;
  /** What calls did cost. */
  readonly spent: () => Amount;
  /** What the calls in flight may cost at most. */
  readonly reserved: () => Amount;
  /** What was reserved for calls that ended without saying what they cost. */
  readonly unsettled: () => Amount;
}

/**
 * Makes a budget.
 *
 * @throws {RangeError} `usd` is not a number above 0, `calls` not a whole number of at least 1, or
 *   neither is given. Under a limit in dollars a call throws it too, before it is sent, if what it may
 *   cost at most isn't known.
 *
 * @example
 * const budget = createBudget({ usd: 0.5 });
 * const { llmCall } = createLlm({ layers: [budget.layer] });
 * const result = await orchestrate(request, { llm: llmCall });
 * budget.spent(); // { usd: 0.0812, calls: 6 }
 */
export function createBudget(options: BudgetOptions): Budget {
  const { usd = Number.POSITIVE_INFINITY, calls = Number.POSITIVE_INFINITY } = options;
  const { prices = PRICES } = options;
  checkLimits(options);
  const ledger = openLedger({ usd, calls });

  /** What a reply did cost, or, where that can't be told, may have. */
  const bookReply = ({ model, usage }: Message, most: Sum) => {
    const cost = costOf(model, usage, prices);
    if (cost !== undefined) return add(ledger.spent, sumOf({ usd: cost, calls: 1 }));
    const atMost = costAtMost(model, usage, prices);
    add(ledger.unsettled, atMost === undefined ? most : sumOf({ usd: atMost, calls: 1 }));
  };

  const layer: Layer = (next) => async (params, call) => {
    const open = openBills();
    const outer = open.own.filter(isHold);
    // A door may have this budget twice.
    if (outer.some((hold) => hold.ledger === ledger)) return next(params, call);
    const most = sumOf({ usd: mostItMayCost(params, prices, usd), calls: 1 });
    const hold = createHold(ledger, most, bookReply);
    await reserve(hold, { outer, around: open.around.filter(isHold), signal: call.signal });
    try {
      call.signal?.throwIfAborted();
      return await billed(hold, () => next(params, call));
    } finally {
      close(hold);
    }
  };

  return {
    layer,
    spent: () => amountOf(ledger.spent),
    reserved: () => amountOf(ledger.held),
    unsettled: () => amountOf(ledger.unsettled),
  };
}

function isHold(bill: Bill): bill is Hold {
  return "ledger" in bill;
}

function mostItMayCost(params: Params, prices: Prices, limit: number): number {
  const price = priceOf(params.model, prices);
  const unbounded = unboundedPart(params);
  if (!price || unbounded) {
    if (limit === Number.POSITIVE_INFINITY) return 0;
    const why = price
      ? `can't tell what ${unbounded} may cost at most: leave it out, or give a limit in calls instead`
      : `needs the price of "${params.model}": give prices`;
    throw new RangeError(`A budget in dollars ${why}`);
  }
  const body = JSON.stringify(params);
  const write = body.includes('"ttl":"1h"') ? CACHE_WRITE["1h"] : CACHE_WRITE["5m"];
  const input = Buffer.byteLength(body) * price.input * write;
  return (input + params.max_tokens * price.output) / 1_000_000;
}

function checkLimits({ usd, calls }: BudgetOptions): void {
  if (calls !== undefined) checkCount("calls", calls, 1);
  if (usd !== undefined && !(Number.isFinite(usd) && usd > 0)) {
    throw new RangeError(`usd must be a number above 0, got ${shown(usd)}`);
  }
  if (usd === undefined && calls === undefined) {
    throw new RangeError("A budget needs a limit: usd, calls, or both");
  }
}
