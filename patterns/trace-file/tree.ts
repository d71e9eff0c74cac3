/**
 * The order of a run's steps: each before the steps inside it, siblings as they started.
 *
 * From effective-agents 0.1.0: patterns/trace-file/tree.ts
 */
import type { Span } from "./clock.ts";
import { groupedBy } from "./grouped.ts";

interface Step extends Span {
  readonly path: string;
  readonly calls: readonly Span[];
}

/**
 * Orders steps that are given as they started, and has each last as long as what is inside it.
 *
 * @param isReplay Whether a step's own times are only where the clock stood, so that those of what is
 *   inside it count instead.
 */
export function inTreeOrder<S extends Step>(steps: readonly S[], isReplay: boolean): S[] {
  const paths = new Set(steps.map(({ path }) => path));
  const children = groupedBy(steps, ({ path }) => {
    const parent = parentOf(path);
    // What is observed within a step of the caller's own has that one's path, and is outermost here.
    return paths.has(parent) ? parent : "";
  });
  const inside = (parent: string): S[] =>
    (children.get(parent) ?? []).flatMap((step) => {
      const below = inside(step.path);
      return [{ ...step, ...around(step, [...below, ...step.calls], isReplay) }, ...below];
    });
  return inside("");
}

function around(own: Span, parts: readonly Span[], isReplay: boolean): Span {
  const [first, ...rest] = isReplay ? parts : [own, ...parts];
  if (!first) return { begin: own.begin, ms: own.ms };
  let { begin } = first;
  let end = begin + first.ms;
  for (const part of rest) {
    begin = Math.min(begin, part.begin);
    end = Math.max(end, part.begin + part.ms);
  }
  return { begin, ms: end - begin };
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
