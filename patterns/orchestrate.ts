/**
 * A planner splits the request into tasks, workers do them, and one call combines the results.
 *
 *     request ─► plan ─┬─► worker[0] ──┬──────────────┐
 *                      ├─► worker[1] ──┴─► worker[2] ─┼─► combine ─► output
 *                      └─► worker[3] ─────────────────┘
 *
 * Use when the parts of a task can't be known beforehand: which files to change, which sources to
 * read. Where they are known, use `section`: it needs no planner.
 *
 * Costs a call for the plan, two when the first plan is unusable, one for each task (8 at most, by
 * default) and one to combine. A task starts the moment the tasks it needs are done; the rest of
 * the time all run at once.
 *
 * In Anthropic's "Building effective agents": orchestrator-workers.
 * Copy along: errors.ts, fan-out.ts, llm-call.ts, plan.ts, step.ts, xml.ts, door/
 * From effective-agents 0.1.0: patterns/orchestrate.ts
 */
import { BudgetError, checkCount, checkFunction, checkText, HaltError, inWords } from "./errors.ts";
import { checkOnError, type FanOutOptions, fanOut, type Job } from "./fan-out.ts";
import { type Work, withSignal } from "./llm-call.ts";
import { makePlan, type Task } from "./plan.ts";
import { runPattern, step } from "./step.ts";
import { tagged } from "./xml.ts";

/** What a worker gets: its task, the whole request, and the results that the task waited for. */
export interface Assignment extends Task {
  readonly request: string;
  readonly results: readonly { readonly id: string; readonly output: string }[];
}

/** A task and what became of it. `tasks[3]` was done by `worker[3]`. */
export type TaskResult = Task &
  (
    | { readonly status: "done"; readonly output: string }
    | { readonly status: "failed"; readonly error: unknown }
    /** Not started, since a task that it needs has no result, or the budget ended. */
    | { readonly status: "skipped"; readonly reason: string }
  );

/** What `orchestrate` takes beside the request. */
export interface OrchestrateOptions extends FanOutOptions {
  /** The most tasks a plan may have; the planner is told. Default 8. */
  readonly maxTasks?: number | undefined;
  /** Does a task. Default: one call with the request, the task and the results it waited for. */
  readonly worker?: Work<Assignment, string> | undefined;
  /** Gets the combined answer's text as it comes. */
  readonly onText?: ((text: string) => void) | undefined;
}

/** The combined answer, and what became of each task. */
export type OrchestrateResult =
  | {
      readonly status: "completed";
      readonly output: string;
      readonly tasks: readonly TaskResult[];
    }
  | {
      /** The budget ended, with at least one task done and the results not combined. */
      readonly status: "budget";
      readonly error: BudgetError;
      readonly tasks: readonly TaskResult[];
    };

/**
 * Plans the tasks of `request`, does them in parallel as far as they allow, and combines the results.
 *
 * @throws {TypeError} The request is empty.
 * @throws {RangeError} `maxTasks` is not a whole number of at least 1.
 * @throws {LlmOutputError} The plan was unusable twice: no tasks or too many, blank, or with ids
 *   that are missing, repeated, unknown or go round in a circle.
 * @throws {AggregateError} Every task failed, with `onError: "settle"`.
 * @throws The first task's failure, after the others were cancelled, with `onError: "abort"`.
 *
 * @example
 * const result = await orchestrate("Write a guide for moving from v1 to v2: …");
 * // { status: "completed", output: "# Moving to v2 …", tasks: [{ id: "config", status: "done", … }] }
 */
export async function orchestrate(
  request: string,
  options: OrchestrateOptions = {},
): Promise<OrchestrateResult> {
  const { maxTasks = 8, worker = doTask, onError, onText, signal } = options;
  checkText("request", request);
  checkCount("maxTasks", maxTasks, 1);
  checkFunction("worker", worker);
  checkOnError(onError);
  const llm = withSignal(signal, options.llm);

  const run = async (): Promise<OrchestrateResult> => {
    const plan = await makePlan(request, maxTasks, llm);
    const started: Promise<TaskResult>[] = [];
    const perform = async (task: Task, signal: AbortSignal): Promise<TaskResult> => {
      // From here on all have been started, those too that come later in the plan.
      await undefined;
      const { id, text, needs } = task;
      const needed = started.filter((_, index) => needs.includes(plan[index]?.id ?? ""));
      const results = await Promise.all(needed);
      const missing = results.find((result) => !isDone(result));
      if (missing)
        return { id, text, needs, status: "skipped", reason: `${missing.id} has no result` };
      const assignment = { id, text, needs, request, results: results.filter(isDone) };
      const context = { llm: withSignal(signal, options.llm), signal };
      const name = `worker[${plan.indexOf(task)}]`;
      try {
        const output = await step(name, () => worker(assignment, context), signal);
        checkText(`result of task ${id}`, output);
        return { id, text, needs, status: "done", output };
      } catch (error) {
        if (onError !== "settle" || error instanceof HaltError || signal.aborted) throw error;
        return { id, text, needs, status: "failed", error };
      }
    };

    const jobs = plan.map(
      (task, index): Job<TaskResult> =>
        ({ signal }) => {
          const result = perform(task, signal);
          started[index] = result;
          return result;
        },
    );
    const { results, budget } = await fanOut(jobs, { onError, signal });
    const tasks = results.map((result, index): TaskResult => {
      if (result.status === "fulfilled") return result.value;
      // The budget's alone: any other failure was thrown, or is a result of its own.
      const { id = "", text = "", needs = [] } = plan[index] ?? {};
      return { id, text, needs, status: "skipped", reason: "the budget ended" };
    });
    if (!tasks.some(isDone)) throw budget ?? allFailed(tasks);
    if (budget) return { status: "budget", error: budget, tasks };
    try {
      const output = await step("combine", () => llm(combinePrompt(request, tasks), { onText }));
      checkText("combined answer", output);
      return { status: "completed", output, tasks };
    } catch (error) {
      if (error instanceof BudgetError) return { status: "budget", error, tasks };
      throw error;
    }
  };
  return runPattern("orchestrate", run, signal);
}

function isDone(task: TaskResult): task is Extract<TaskResult, { status: "done" }> {
  return task.status === "done";
}

function allFailed(tasks: readonly TaskResult[]): AggregateError {
  const errors = tasks.flatMap((task) => (task.status === "failed" ? [task.error] : []));
  return new AggregateError(errors, "Every task failed");
}

const doTask: Work<Assignment, string> = ({ request, id, text, results }, { llm }) => {
  const also = ["request", "result", "task"];
  const parts = [
    tagged("request", request, { also, raw: true }),
    ...results.map(({ id, output }) =>
      tagged("result", output, { attributes: { task: id }, also, raw: true }),
    ),
    tagged("task", text, { attributes: { id }, also, raw: true }),
  ];
  return llm(`You do one task of a larger request. Others do the other tasks, and the results are put together afterwards.

${parts.join("\n\n")}

Do the task, only the task, and answer with its result alone.`);
};

function combinePrompt(request: string, tasks: readonly TaskResult[]): string {
  const also = ["request", "result", "missing"];
  const parts = tasks.map((task) => {
    const attributes = { task: task.id };
    if (isDone(task)) return tagged("result", task.output, { attributes, also, raw: true });
    const why =
      task.status === "failed" ? `failed: ${inWords(task.error)}` : `skipped: ${task.reason}`;
    return tagged("missing", `${task.text} (${why})`, { attributes, also, raw: true });
  });
  const rest = tasks.every(isDone)
    ? ""
    : " Some tasks have no result: don't make up what they would have said, and tell the reader what is missing.";
  return `The request below was split into tasks, and each was done by somebody else. Put their results together into one answer to the request.

${[tagged("request", request, { also, raw: true }), ...parts].join("\n\n")}

Use what the results say, settle what contradicts, drop what repeats.${rest} Answer with the result alone.`;
}
