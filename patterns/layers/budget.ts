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
 * billed, isn't seen: for a strict limit set `maxRetries: 0` on the client.
 *
 * Copy along: cost.ts, errors.ts, fan-out.ts, llm-call.ts, step.ts, usage.ts, door/
 * From effective-agents 0.1.0: patterns/layers/budget.ts
 */
import { setImmediate } from "node:timers";
import {
  CACHE_WRITE,
  costAtMost,
  costOf,
  PRICES,
  type Prices,
  priceOf,
  unboundedPart,
} from "../cost.ts";
import { BudgetError, checkCount, shown } from "../errors.ts";
import { follow } from "../fan-out.ts";
import type { Layer, Params } from "../llm-call.ts";
import { annotate, createScope, currentPath, noted } from "../step.ts";

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
  const spent = { usd: 0, calls: 0 };
  const unsettled = { usd: 0, calls: 0 };
  const inFlight = new Set<Hold>();
  const waiting: (() => void)[] = [];

  const fits = (most: Amount, held: Amount) =>
    spent.usd + held.usd + unsettled.usd + most.usd <= usd &&
    spent.calls + held.calls + unsettled.calls + most.calls <= calls;

  const reserve = async (hold: Hold, isInner: boolean, signal: AbortSignal | undefined) => {
    while (!fits(hold.most, sum(inFlight))) {
      // A call made inside of another one can't wait: that one waits for it.
      const held = isInner ? sum(inFlight) : NOTHING;
      if (!fits(hold.most, held)) throw refusal(hold.most, held);
      await nextSettlement(waiting, signal);
    }
    inFlight.add(hold);
  };

  const wakeAll = () => {
    for (const wake of waiting.splice(0)) wake();
  };

  const refusal = (most: Amount, held: Amount) => {
    if (spent.calls + held.calls + unsettled.calls + most.calls > calls) {
      return new BudgetError(`The budget of ${calls} calls is used up`);
    }
    const left = usd - spent.usd - held.usd - unsettled.usd;
    const why = `has $${left.toFixed(4)} left, and this call may cost $${most.usd.toFixed(4)}`;
    return new BudgetError(`The budget of $${usd} ${why}: lower max_tokens, or raise the budget`);
  };

  const layer: Layer = (next) => async (params, call) => {
    const around = holds.getStore() ?? [];
    const own = around.filter((hold) => inFlight.has(hold));
    const path = currentPath();
    // The same call, in a door that has this budget twice.
    if (own.some((hold) => hold.path === path)) return next(params, call);
    const most = { usd: mostItMayCost(params, prices, usd), calls: 1 };
    const hold = { path, most };
    await reserve(hold, own.length > 0, call.signal);
    // What was noted of an earlier request, where a layer sends a call twice, says nothing of this one.
    annotate({ sent: false, recorded: undefined });
    try {
      call.signal?.throwIfAborted();
      const message = await holds.run([...around, hold], () => next(params, call));
      const { model, usage } = message;
      const cost = costOf(model, usage, prices);
      if (noted("recorded") !== undefined) return message;
      if (cost !== undefined) add(spent, { usd: cost, calls: 1 });
      else add(unsettled, { ...most, usd: costAtMost(model, usage, prices) ?? most.usd });
      return message;
    } catch (error) {
      // What the door says, not the error: that may be a sibling's, or a layer's after a paid reply.
      const isSent = noted("sent") === true && noted("recorded") === undefined;
      if (isSent && noted("unpaid") !== true) add(unsettled, most);
      throw error;
    } finally {
      inFlight.delete(hold);
      // When what this call has led to is done: that may cancel those that wait.
      if (waiting.length > 0) setImmediate(wakeAll);
    }
  };

  return {
    layer,
    spent: () => ({ ...spent }),
    reserved: () => sum(inFlight),
    unsettled: () => ({ ...unsettled }),
  };
}

/** What a call in flight has reserved. */
interface Hold {
  readonly path: string;
  readonly most: Amount;
}

/** Of the call under way and of those that it was made inside of, whatever their budgets. */
const holds = createScope<readonly Hold[]>();

const NOTHING: Amount = { usd: 0, calls: 0 };

type Running = { -readonly [Key in keyof Amount]: Amount[Key] };

function add(total: Running, { usd, calls }: Amount): void {
  total.usd += usd;
  total.calls += calls;
}

function sum(holds: Iterable<Hold>): Amount {
  const total = { ...NOTHING };
  for (const { most } of holds) add(total, most);
  return total;
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
  if (usd !== undefined && !(Number.isFinite(usd) && usd > 0)) {
    throw new RangeError(`usd must be a number above 0, got ${shown(usd)}`);
  }
  if (usd === undefined && calls === undefined) {
    throw new RangeError("A budget needs a limit: usd, calls, or both");
  }
}
