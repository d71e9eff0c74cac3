/**
 * The shape of a run, read from its paths and times: what follows what, and what ran side by side.
 *
 *     steps ─► stages, one after the other ─► in each the items that overlap in time
 *
 *     leaf   a step that calls the model, with the tools and gates that belong to it hung under it
 *     frame  a step with such steps inside it
 *     crowd  many of one kind, or more than can be looked at, drawn as one
 *
 * A plan says itself which of its tasks wait for which; otherwise what had ended before a step began
 * is what it may have waited for.
 */
import { groupedBy } from "../../../patterns/trace-file/grouped.ts";
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
  | {
      readonly kind: "crowd";
      /** What one of them is called: `voter`. */
      readonly one: string;
      readonly steps: readonly Step[];
    };

/** More of one kind than this are a crowd, unless they are the rounds of a loop. */
const CROWD = 12;
/** More that run side by side than this are one too, of whatever kinds they are. */
const WIDE = 24;
/** Where more than this follow one another, those between the first and the last few stages are one. */
const LONG = 60;
const FEW = 2;
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

/** What is drawn as one item, and when. */
interface Unit {
  readonly item: Item;
  readonly begin: number;
  readonly end: number;
  /** The step, or of a crowd the first one. */
  readonly step: Step;
}

function stagesOf(siblings: readonly Step[]): readonly Stage[] {
  const groups: Unit[][] = [];
  const needs = needsOf(siblings);
  let end = Number.NEGATIVE_INFINITY;
  for (const unit of unitsOf(siblings)) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    // What one plan has in it is one stage, since not all that began later waited for all before.
    const isPlanned = last && needs?.has(last.step) && needs.has(unit.step);
    const isBeside = unit.begin < end - SAME_TIME || (last && startTogether(last.step, unit.step));
    if (group && (isPlanned || isBeside)) group.push(unit);
    else groups.push([unit]);
    end = Math.max(end, unit.end);
  }
  return shortened(groups).map((units) => stageOf(units, needs));
}

/** In the order in which they began. */
function unitsOf(siblings: readonly Step[]): readonly Unit[] {
  const families = groupedBy(siblings, ({ base }) => base);
  const units = [...families].flatMap(([base, steps]): readonly Unit[] => {
    if (steps.length > CROWD && !steps.every(isLoop)) return crowdOf(base, steps);
    return steps.map((step) => ({ item: itemOf(step), step, begin: step.begin, end: step.end }));
  });
  return units.sort((a, b) => a.begin - b.begin || a.step.index - b.step.index);
}

/** The groups with no more in them than can be looked at. */
function shortened(groups: readonly (readonly Unit[])[]): readonly (readonly Unit[])[] {
  const narrow = groups.map((units) =>
    units.length > WIDE ? crowdOf("step", units.flatMap(stepsOf)) : units,
  );
  if (narrow.flat().length <= LONG || narrow.length <= 2 * FEW + 1) return narrow;
  const between = narrow.slice(FEW, -FEW).flat().flatMap(stepsOf);
  return [...narrow.slice(0, FEW), crowdOf("more step", between), ...narrow.slice(-FEW)];
}

/** Steps as one item; `one` is what one of them is called. */
function crowdOf(one: string, steps: readonly Step[]): readonly Unit[] {
  const [step] = steps;
  if (!step) return [];
  const begin = steps.reduce((first, { begin }) => Math.min(first, begin), step.begin);
  const end = steps.reduce((last, { end }) => Math.max(last, end), step.end);
  return [{ item: { kind: "crowd", one, steps }, step, begin, end }];
}

function stepsOf({ item, step }: Unit): readonly Step[] {
  return item.kind === "crowd" ? item.steps : [step];
}

/** Steps that took no time overlap with nothing, but an index says that they were started at once. */
function startTogether(a: Step, b: Step): boolean {
  const isFamily = a.base === b.base && a.isIndexed && b.isIndexed && !isLoop(a);
  return isFamily && b.begin - a.begin < SAME_TIME;
}

function stageOf(units: readonly Unit[], needs: Needs | undefined): Stage {
  const edges: (readonly [Item, Item])[] = [];
  for (const unit of units) {
    const waitedFor = needs?.get(unit.step);
    const before = waitedFor
      ? units.filter(({ step }) => waitedFor.includes(step))
      : endedJustBefore(unit, units);
    for (const { item } of before) edges.push([item, unit.item]);
  }
  return { items: units.map(({ item }) => item), edges };
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
function endedJustBefore(unit: Unit, units: readonly Unit[]): readonly Unit[] {
  const ended = units.filter((other) => other !== unit && other.end <= unit.begin + SAME_TIME);
  const latest = ended.reduce((most, { begin }) => Math.max(most, begin), Number.NEGATIVE_INFINITY);
  return ended.filter(({ end }) => end > latest + SAME_TIME);
}

/** Which steps waited for which. */
type Needs = ReadonlyMap<Step, readonly Step[]>;

/** Which tasks a plan has made wait for which, where one of the siblings ended with such a plan. */
function needsOf(siblings: readonly Step[]): Needs | undefined {
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
