/**
 * Token counts, added up.
 *
 *     reply.usage ─┬─ its own counts ───────────────┬─► sum
 *                  └─ a compaction's, on top of it ─┘
 *
 * A reply before which the API has summed the conversation up (`compact_20260112`) has used more than
 * its own counts say: what the summary took is billed too, and stands in `iterations` alone.
 *
 * Copy along: step.ts
 * From effective-agents 0.1.0: patterns/usage.ts
 */
import type { Usage } from "./step.ts";

/** Token counts to add to. */
export type UsageSum = { -readonly [Key in keyof Usage]-?: number };

/** A sum of nothing yet. */
export function noUsage(): UsageSum {
  return {
    input_tokens: 0,
    output_tokens: 0,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
  };
}

/** Adds all that a reply used to the sum. */
export function addUsage(sum: UsageSum, usage: Usage): void {
  for (const one of [usage, ...compactionsIn(usage)]) {
    // Whatever the types say, a server may leave them out.
    sum.input_tokens += one.input_tokens ?? 0;
    sum.output_tokens += one.output_tokens ?? 0;
    sum.cache_creation_input_tokens += one.cache_creation_input_tokens ?? 0;
    sum.cache_read_input_tokens += one.cache_read_input_tokens ?? 0;
  }
}

/** What the compactions before a reply used: it's on top of the reply's own counts. */
export function compactionsIn(usage: Usage): readonly Usage[] {
  // The beta API's field, which the reply keeps whatever its type says.
  const { iterations } = usage as { readonly iterations?: readonly Iteration[] | null };
  return Array.isArray(iterations) ? iterations.filter((one) => one?.type === "compaction") : [];
}

type Iteration = Usage & { readonly type: string };
