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
 *
 * A call that ends without saying what it used (cancelled, connection lost) may have been billed. It
 * stays reserved, as `unsettled`: read such a total as "at most".
 *
 * Copy along: cost.ts, errors.ts, fan-out.ts, llm-call.ts, step.ts, door/
 */
import { CACHE_WRITE, costOf, PRICES, type Prices, priceOf } from "../cost.ts";
import { BudgetError, checkCount, HaltError } from "../errors.ts";
import { follow } from "../fan-out.ts";
import type { Layer, Params } from "../llm-call.ts";
import { noted } from "../step.ts";

/** The limits: at least one of the two. */
export interface BudgetOptions {
  /** The most to spend, in US dollars. Default: no limit. */
  readonly usd?: number | undefined;
  /** The most requests to make. Default: no limit. */
  readonly calls?: number | undefined;
  /** Prices by model. Default: the table in cost.ts. */
  readonly prices?: Prices | undefined;
}

/** An amount of money, in US dollars, and of requests. */
export interface Amount {
  readonly usd: number;
  readonly calls: number;
}

/** A budget, and where it stands. */
export interface Budget {
  /** For `createLlm({ layers })` or `llm.with({ layers })`. One budget may serve several doors. */
  readonly layer: Layer;
  /** What calls did cost. */
  readonly spent: () => Amount;
  /** What the calls in flight may cost at most. */
  readonly reserved: () => Amount;
  /** What calls may have cost that ended without saying so. */
  readonly unsettled: () => Amount;
}

/**
 * Makes a budget.
 *
 * @throws {RangeError} `usd` is not a number above 0, `calls` not a whole number of at least 1, or
 *   neither is given. A call to a model without a price throws it too, under a limit in dollars.
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
  const spent = { usd: 0, calls: 0 };
  const reserved = { usd: 0, calls: 0 };
  const unsettled = { usd: 0, calls: 0 };
  const waiting: (() => void)[] = [];

  const fits = (most: Amount, inFlight: Amount) =>
    spent.usd + inFlight.usd + unsettled.usd + most.usd <= usd &&
    spent.calls + inFlight.calls + unsettled.calls + most.calls <= calls;

  const reserve = async (most: Amount, signal: AbortSignal | undefined) => {
    while (!fits(most, reserved)) {
      if (!fits(most, { usd: 0, calls: 0 })) throw refusal(most);
      await nextSettlement(waiting, signal);
    }
    add(reserved, most, 1);
  };

  const refusal = (most: Amount) => {
    if (spent.calls + unsettled.calls + 1 > calls) {
      return new BudgetError(`The budget of ${calls} calls is used up`);
    }
    const left = usd - spent.usd - unsettled.usd;
    return new BudgetError(
      `The budget of $${usd} has $${left.toFixed(4)} left, and this call may cost $${most.usd.toFixed(4)}`,
    );
  };

  const layer: Layer = (next) => async (params, call) => {
    const most = { usd: mostItMayCost(params, prices, usd), calls: 1 };
    await reserve(most, call.signal);
    try {
      call.signal?.throwIfAborted();
      const message = await next(params, call);
      const cost = costOf(message.model, message.usage, prices);
      if (noted("recorded") === undefined) {
        add(cost === undefined ? unsettled : spent, { usd: cost ?? most.usd, calls: 1 }, 1);
      }
      return message;
    } catch (error) {
      const sent = noted("sent") === true && noted("recorded") === undefined;
      if (sent && !isUnpaid(error)) add(unsettled, most, 1);
      throw error;
    } finally {
      add(reserved, most, -1);
      for (const wake of waiting.splice(0)) wake();
    }
  };

  return {
    layer,
    spent: () => ({ ...spent }),
    reserved: () => ({ ...reserved }),
    unsettled: () => ({ ...unsettled }),
  };
}

type Running = { -readonly [Key in keyof Amount]: Amount[Key] };

function add(total: Running, { usd, calls }: Amount, sign: 1 | -1): void {
  total.calls += sign * calls;
  // Adding and taking away leaves a rest of some 1e-17; with nothing reserved it is nothing.
  total.usd = total.calls === 0 ? 0 : total.usd + sign * usd;
}

function mostItMayCost(params: Params, prices: Prices, limit: number): number {
  const price = priceOf(params.model, prices);
  if (!price) {
    if (limit === Number.POSITIVE_INFINITY) return 0;
    throw new RangeError(`A budget in dollars needs the price of "${params.model}": give prices`);
  }
  const body = JSON.stringify(params);
  const write = body.includes('"ttl":"1h"') ? CACHE_WRITE["1h"] : CACHE_WRITE["5m"];
  const input = Buffer.byteLength(body) * price.input * write;
  return (input + params.max_tokens * price.output) / 1_000_000;
}

/** Refused before it was sent, or answered with an HTTP error: neither is billed. */
function isUnpaid(error: unknown): boolean {
  if (error instanceof HaltError) return true;
  return error instanceof Error && "status" in error && typeof error.status === "number";
}

async function nextSettlement(
  waiting: (() => void)[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const { controller, release } = follow(signal);
  try {
    controller.signal.throwIfAborted();
    await new Promise<void>((wake) => {
      waiting.push(wake);
      controller.signal.addEventListener("abort", () => wake(), { once: true });
    });
    controller.signal.throwIfAborted();
  } finally {
    release();
  }
}

function checkLimits({ usd, calls }: BudgetOptions): void {
  if (calls !== undefined) checkCount("calls", calls, 1);
  if (usd !== undefined && !(usd > 0 && usd < Number.POSITIVE_INFINITY)) {
    throw new RangeError(`usd must be a number above 0, got ${usd}`);
  }
  if (usd === undefined && calls === undefined) {
    throw new RangeError("A budget needs a limit: usd, calls, or both");
  }
}
