/**
 * The shape of a run, read from its paths and times: what follows what, and what ran side by side.
 *
 *     steps ─► stages, one after the other ─► in each the items that overlap in time
 *
 *     leaf   a step that calls the model, with the tools and gates that belong to it hung under it
 *     frame  a step with such steps inside it
 *     crowd  many of one kind at once, drawn as one
 *
 * A plan says itself which of its tasks wait for which; otherwise what had ended before a step began
 * is what it may have waited for.
 */
import { isLoop, type Run, SAME_TIME, type Step } from "./run.ts";

export interface Stage {
  readonly items: readonly Item[];
  /** Which of them follow which. */
  readonly edges: readonly (readonly [Item, Item])[];
}

export type Item =
  | { readonly kind: "start" }
  | { readonly kind: "end" }
  | {
      readonly kind: "leaf";
      readonly step: Step;
      readonly hung: readonly Step[];
      /** How many more hang there than are drawn. */
      readonly more: number;
    }
  | {
      readonly kind: "frame";
      readonly step: Step;
      /** Its name, and the names of the only steps in it, one in the other. */
      readonly label: string;
      readonly stages: readonly Stage[];
    }
  | { readonly kind: "crowd"; readonly base: string; readonly steps: readonly Step[] };

/** More of one kind at once than this are a crowd. */
const CROWD = 12;
/** So many steps are hung under another; the list below the drawing has all of them. */
const HUNG = 6;

/** The stages of a whole run, from its start to its end. */
export function shapeOf({ roots }: Pick<Run, "roots">): readonly Stage[] {
  const [root] = roots;
  const inside = roots.length === 1 && root && isFrame(root) ? insideOf(root) : stagesOf(roots);
  return [alone({ kind: "start" }), ...inside, alone({ kind: "end" })];
}

function alone(item: Item): Stage {
  return { items: [item], edges: [] };
}

/** What is drawn as a node each: hung steps are not. */
function isFrame({ children }: Step): boolean {
  return children.some(({ hasCalls }) => hasCalls);
}

/** The stages inside a frame; its own calls come first. */
function insideOf(step: Step): readonly Stage[] {
  const own: Stage[] =
    step.calls.length > 0 ? [alone({ kind: "leaf", step, hung: [], more: 0 })] : [];
  return [...own, ...stagesOf(step.children)];
}

function stagesOf(siblings: readonly Step[]): readonly Stage[] {
  const inOrder = siblings.toSorted((a, b) => a.begin - b.begin || a.index - b.index);
  const groups: Step[][] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const step of inOrder) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group && last && (step.begin < end - SAME_TIME || startTogether(last, step))) {
      group.push(step);
    } else groups.push([step]);
    end = Math.max(end, step.end);
  }
  return groups.map((steps) => stageOf(steps, siblings));
}

/** Steps that took no time overlap with nothing, but an index says that they were started at once. */
function startTogether(a: Step, b: Step): boolean {
  const isFamily = a.base === b.base && a.isIndexed && b.isIndexed && !isLoop(a);
  return isFamily && b.begin - a.begin < SAME_TIME;
}

function stageOf(steps: readonly Step[], siblings: readonly Step[]): Stage {
  const items = new Map<Step, Item>();
  const needs = needsOf(siblings);
  for (const base of new Set(steps.map(({ base }) => base))) {
    const family = steps.filter((step) => step.base === base);
    const crowd: Item | undefined =
      family.length > CROWD ? { kind: "crowd", base, steps: family } : undefined;
    for (const step of family) items.set(step, crowd ?? itemOf(step));
  }
  const edges: (readonly [Item, Item])[] = [];
  const isCrowded = new Set(items.values()).size < items.size;
  for (const step of isCrowded ? [] : steps) {
    for (const before of needs?.get(step) ?? endedJustBefore(step, steps)) {
      const [from, to] = [items.get(before), items.get(step)];
      if (from && to) edges.push([from, to]);
    }
  }
  return { items: [...new Set(items.values())], edges };
}

function itemOf(step: Step): Item {
  if (!isFrame(step)) {
    const hung = descendants(step);
    const drawn = hung.length > HUNG + 1 ? hung.slice(0, HUNG) : hung;
    return { kind: "leaf", step, hung: drawn, more: hung.length - drawn.length };
  }
  const inner = innermost(step);
  const label = step.name + inner.path.slice(step.path.length);
  return { kind: "frame", step, label, stages: insideOf(inner) };
}

/** A frame whose only content is another frame is drawn as one with it. */
function innermost(step: Step): Step {
  const [only, ...others] = step.children;
  const isAround = only && others.length === 0 && step.calls.length === 0 && isFrame(only);
  return isAround ? innermost(only) : step;
}

function descendants({ children }: Step): readonly Step[] {
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/** Those that ended before it began, but for those that another one of them waited for. */
function endedJustBefore(step: Step, steps: readonly Step[]): readonly Step[] {
  const ended = steps.filter((other) => other !== step && other.end <= step.begin + SAME_TIME);
  const latest = ended.reduce((most, { begin }) => Math.max(most, begin), Number.NEGATIVE_INFINITY);
  return ended.filter(({ end, index }) => index !== step.index && end > latest + SAME_TIME);
}

/** Which tasks a plan has made wait for which, where one of the siblings ended with such a plan. */
function needsOf(siblings: readonly Step[]): ReadonlyMap<Step, readonly Step[]> | undefined {
  for (const { trace, base } of siblings) {
    const tasks = tasksIn(trace.value);
    if (!tasks) continue;
    const doneBy = (index: number) =>
      siblings.find(({ name, base: other }) => other !== base && name.endsWith(`[${index}]`));
    const needs = new Map<Step, readonly Step[]>();
    for (const [index, task] of tasks.entries()) {
      const step = doneBy(index);
      const waits = tasks.flatMap(({ id }, at) => (task.needs.includes(id) ? [doneBy(at)] : []));
      if (step)
        needs.set(
          step,
          waits.filter((other) => other !== undefined),
        );
    }
    if (needs.size > 0) return needs;
  }
  return undefined;
}

function tasksIn(value: unknown): readonly { id: string; needs: readonly string[] }[] | undefined {
  const { tasks = value } = Object(value) as { tasks?: unknown };
  if (!Array.isArray(tasks) || tasks.length === 0) return undefined;
  const isTask = (task: unknown) => {
    const { id, needs } = Object(task) as Record<string, unknown>;
    return typeof id === "string" && Array.isArray(needs);
  };
  return tasks.every(isTask) ? tasks : undefined;
}
