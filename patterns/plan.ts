/**
 * Asks for a plan: tasks with ids, and what each waits for. For `orchestrate`.
 *
 *     request ─► <task id="a">…</task>                ─► a ──► b
 *                <task id="b" needs="a">…</task>
 *
 * A plan is a program that a model wrote, so it's checked like one before anything runs: the number
 * of tasks, blank tasks, ids that are missing, repeated or unknown, and circles. A faulty plan goes
 * back once, with the fault in words.
 *
 * From effective-agents 0.1.0: patterns/plan.ts
 */
import { LlmOutputError } from "./errors.ts";
import type { LlmCall } from "./llm-call.ts";
import { step } from "./step.ts";
import { parseTags, tagged } from "./xml.ts";

/** A part of the request, as the planner wrote it. */
export interface Task {
  readonly id: string;
  readonly text: string;
  /** The ids of the tasks whose results it waits for. */
  readonly needs: readonly string[];
}

/**
 * Has `request` split into at most `maxTasks` tasks.
 *
 * @throws {LlmOutputError} The plan was unusable twice.
 *
 * @example
 * await makePlan("Compare A with B", 3, llmCall); // [{ id: "a", text: "Read A", needs: [] }, …]
 */
export async function makePlan(
  request: string,
  maxTasks: number,
  llm: LlmCall,
): Promise<readonly Task[]> {
  const prompt = planPrompt(request, maxTasks);
  let plan = await askForPlan(prompt, maxTasks, llm);
  if (plan.error) plan = await askForPlan(prompt + rePlan(plan), maxTasks, llm);
  if (plan.error) throw plan.error;
  return plan.tasks;
}

interface Plan {
  readonly tasks: readonly Task[];
  /** Why it can't be used, or `undefined`. */
  readonly problem: string | undefined;
  /** The whole reply. */
  readonly text: string;
  readonly error: LlmOutputError | undefined;
}

function askForPlan(prompt: string, maxTasks: number, llm: LlmCall): Promise<Plan> {
  return step("plan", async () => {
    const text = await llm(prompt);
    const { tasks, problem } = readPlan(text, maxTasks);
    // Made here, so that it has the path of this call.
    const error = problem ? new LlmOutputError(`Unusable plan: ${problem}`, { text }) : undefined;
    return { tasks, problem, text, error };
  });
}

function readPlan(reply: string, maxTasks: number): Pick<Plan, "tasks" | "problem"> {
  try {
    const tasks = readTasks(reply);
    return { tasks, problem: problemOf(tasks, maxTasks) };
  } catch (error) {
    if (!(error instanceof LlmOutputError)) throw error;
    return { tasks: [], problem: error.message.replace(`${error.path}: `, "") };
  }
}

function readTasks(reply: string): Task[] {
  return parseTags(reply, ["task"]).map(({ text, attributes }) => {
    const task = { id: "", needs: "" };
    for (const [name, value] of attributes) {
      const known = name.toLowerCase();
      // What it waits for must not get lost under another name.
      if (known !== "id" && known !== "needs")
        throw new LlmOutputError(`a task has the attribute ${known}; id and needs are all`);
      task[known] = value;
    }
    const needs = task.needs.split(/[\s,]+/).filter(Boolean);
    return { id: task.id.trim(), text: text.trim(), needs };
  });
}

function problemOf(tasks: readonly Task[], maxTasks: number): string | undefined {
  if (tasks.length === 0) return "it has no <task>";
  if (tasks.length > maxTasks) return `it has ${tasks.length} tasks, and ${maxTasks} is the most`;
  const ids = new Set<string>();
  for (const { id, text } of tasks) {
    if (!/^[^\s,]+$/.test(id)) return `a task has the id ${JSON.stringify(id)}, not a single word`;
    if (ids.has(id)) return `two tasks have the id ${id}`;
    if (text === "") return `task ${id} is blank`;
    ids.add(id);
  }
  for (const { id, needs } of tasks) {
    const unknown = needs.find((need) => !ids.has(need));
    if (unknown) return `task ${id} needs ${unknown}, and there is no such task`;
  }
  const circle = waitForEachOther(tasks);
  return circle.length > 0 ? `these tasks wait for each other: ${circle.join(", ")}` : undefined;
}

/** The ids that are left when all that could be done is taken away, again and again, and then all that
 * nobody who is left waits for. */
function waitForEachOther(tasks: readonly Task[]): readonly string[] {
  const left = withoutFree(new Map(tasks.map(({ id, needs }) => [id, needs])));
  return [...withoutFree(reversed(left)).keys()];
}

/** The tasks, each with those that it needs, or that need it. */
type Edges = ReadonlyMap<string, readonly string[]>;

/** Takes away what has no edges, then what had edges to that only, and so on. */
function withoutFree(edges: Edges): Edges {
  const waiters = reversed(edges);
  const open = new Map([...edges].map(([id, needs]) => [id, needs.length]));
  const free = [...edges.keys()].filter((id) => open.get(id) === 0);
  // The list grows as it is gone through.
  for (const id of free) {
    for (const waiter of waiters.get(id) ?? []) {
      const rest = (open.get(waiter) ?? 0) - 1;
      open.set(waiter, rest);
      if (rest === 0) free.push(waiter);
    }
  }
  const gone = new Set(free);
  return new Map([...edges].filter(([id]) => !gone.has(id)));
}

/** The edges turned round, without those to tasks that have been taken away. */
function reversed(edges: Edges): Edges {
  const result = new Map([...edges.keys()].map((id): [string, string[]] => [id, []]));
  for (const [id, needs] of edges) for (const need of needs) result.get(need)?.push(id);
  return result;
}

function planPrompt(request: string, maxTasks: number): string {
  return `Split the request below into tasks that different workers can do at the same time. Each worker sees the request, its own task and the results of the tasks that it needs, and nothing else: say in each task all that its worker must know.

${tagged("request", request, { also: ["task"] })}

Write ${maxTasks} tasks at the most, and no more than the request deserves. Give each a short id, a single word. Where a task can't start without the result of others, name their ids in needs; leave needs out wherever you can, since tasks without it run at once. Don't plan a task that puts the results together: that is done for you. Write them like this:

<task id="first">What to do</task>
<task id="second" needs="first">What to do with the result of first</task>`;
}

function rePlan({ problem = "", text }: Plan): string {
  const also = ["request", "task"];
  return `

Your last plan can't be used, since it has a fault:

${tagged("fault", problem, { also })}

Write the whole plan again, without that fault. Your last plan was:

${tagged("last_plan", text, { also })}`;
}
