/** Two ways of doing the same, measured in blocks that take turns, as a ratio. */

/** A ratio's median, and the quartiles around it. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * One's figure by the other's: the median and the quartiles of the ratios pair by pair. What slows the
 * machine down for a while slows both of a pair, which the medians of either over all pairs would mix.
 */
export async function ratios(
  one: () => Promise<number>,
  other: () => Promise<number>,
  pairs: number,
): Promise<Spread> {
  const all: number[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    // Who goes first changes each time, so that neither always pays for what the other left.
    const oneFirst = pair % 2 === 0;
    const first = await (oneFirst ? one : other)();
    const second = await (oneFirst ? other : one)();
    all.push(oneFirst ? first / second : second / first);
  }
  return spread(all);
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN;
  return { median: at(0.5), low: at(0.25), high: at(0.75) };
}

/** How long `work` takes, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
