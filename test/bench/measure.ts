/** Two ways of doing the same, measured in many small blocks that take turns, as a ratio. */

/** A ratio's median, and the quartiles around it. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Ours by the bare one's: the ratio of their medians, and the quartiles of the ratios pair by pair. A
 * pair's own ratio says little where a neighbour takes the core for half a block.
 */
export async function ratios(
  ours: () => Promise<number>,
  bare: () => Promise<number>,
  pairs: number,
): Promise<Spread> {
  const all: number[] = [];
  const [our, their]: [number[], number[]] = [[], []];
  for (let pair = 0; pair < pairs; pair += 1) {
    // Who goes first changes each time, so that neither always pays for what the other left.
    const ourFirst = pair % 2 === 0;
    const first = await (ourFirst ? ours : bare)();
    const second = await (ourFirst ? bare : ours)();
    all.push(ourFirst ? first / second : second / first);
    our.push(ourFirst ? first : second);
    their.push(ourFirst ? second : first);
  }
  return { ...spread(all), median: spread(our).median / spread(their).median };
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
