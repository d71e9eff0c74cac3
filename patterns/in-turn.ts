/**
 * Does what is asked for one place, such as a file, one after the other, however many ask at once.
 *
 *     ask ─► end of what was asked of that place before ─► work ─► result
 *
 * Within one process: two would need a lock.
 *
 * From effective-agents 0.1.0: patterns/in-turn.ts
 */

/** Runs `work` once all has ended that was asked of `place` before, whatever came of that. */
export type InTurn = <T>(place: string, work: () => Promise<T>) => Promise<T>;

/** Makes the queues, one for each place. */
export function createTurns(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return (place, work) => {
    const mine = (last.get(place) ?? Promise.resolve()).then(work);
    const end = mine.catch(() => {}).finally(() => last.get(place) === end && last.delete(place));
    last.set(place, end);
    return mine;
  };
}
