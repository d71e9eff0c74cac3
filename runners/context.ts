/**
 * Four ways to keep a long run short: compaction, clearing, a memory, a subagent.
 *
 *   npm start context         plays them against an API that is a function
 *   npm run live context      asks the real one
 *   npm run record context    records it, for `npm start` to replay
 *
 * A run that reads six hours of a log comes to 80,000 tokens, of which a line an hour matters. What is
 * asked of the API is shown as it's sent, and what it did as it says. How many tokens each way saves only the
 * API can tell: without a recording the figures are left out.
 */
import { RecordingError } from "../patterns/errors.ts";
import { observe, step } from "../patterns/step.ts";
import { TASK } from "./context/run.ts";
import { play, summarize } from "./context/script.ts";
import { scriptedClient } from "./context/scripted-api.ts";
import { watch } from "./context/watch.ts";
import { WAYS } from "./context/ways.ts";
import { reason, UsageError } from "./shared/explain.ts";
import { defineJob } from "./shared/job.ts";

export const job = defineJob({
  title: "a log of six hours, read in four ways that keep the run short",
  input: TASK,
  model: "claude-opus-5-5",
  takesInput: false,
  scripted: () => scriptedClient(play, summarize),
  run: (input, { llmMessage: llm, model, isScripted, signal }) =>
    step("context", async () => {
      if (input !== TASK) throw new UsageError("It has a log of its own: leave your input out");
      const reports = [];
      const errors: unknown[] = [];
      for (const { name, title, run } of WAYS) {
        const { onEvent, asked, done, tokens } = watch(isScripted);
        const way = () => step(name, () => run({ llm, model, signal }), signal);
        const came = await observe(onEvent, way).catch((error: unknown) => {
          signal?.throwIfAborted();
          if (error instanceof RecordingError) throw error;
          // What the others came to is paid for.
          errors.push(error);
          return [`nothing: ${reason(error)}`];
        });
        const figures = isScripted ? undefined : tokens();
        reports.push({ name, title, asked: asked(), done: done(), came, tokens: figures });
      }
      if (errors.length === WAYS.length) throw errors[0];
      return reports;
    }),
  tell: (reports) =>
    reports
      .map(({ name, title, asked, done, came, tokens }) => {
        const figures = tokens
          ? `${tokens.all.toLocaleString("en")} in all, ${tokens.most.toLocaleString("en")} the most of one call`
          : "needs a recording from the API";
        return [
          `${name}: ${title}`,
          ...rows("asked for", asked),
          ...rows("done", done),
          ...rows("came of it", came),
          ...rows("tokens in", [figures]),
        ].join("\n");
      })
      .join("\n\n"),
});

function rows(label: string, texts: readonly string[]): string[] {
  return texts.map((text, index) => `  ${(index === 0 ? label : "").padEnd(10)}  ${text}`);
}
