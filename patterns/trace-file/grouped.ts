/**
 * Items by what they have in common, each group in the order of the items. (`Map.groupBy`, which Node 20 lacks.)
 *
 * From effective-agents 0.1.0: patterns/trace-file/grouped.ts
 */

/** The items by their keys, and the keys as they first came. */
export function groupedBy<K, T>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
