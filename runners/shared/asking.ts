/**
 * Who answers when a job asks a person: the terminal, the script that was recorded, or a later process.
 *
 *     live ─► the terminal        replay, record ─► the job's script
 *     --suspend, --resume ─► the answer on the command line, in a replay only if it's the script's
 *
 * From effective-agents 0.1.0: runners/shared/asking.ts
 */
import { type ApprovalRequest, type Ask, isYes } from "../../patterns/approve.ts";
import { askOnTerminal } from "../../patterns/ask-terminal.ts";
import { RecordingError, SuspendError } from "../../patterns/errors.ts";
import type { Mode } from "./source.ts";
import type { Suspension } from "./suspension.ts";
import type { Place, View } from "./view.ts";

interface Run {
  readonly mode: Mode;
  readonly suspension?: Suspension | undefined;
}

/** Makes the `ask` of a run out of the script that its recording was made with. */
export function askingFor({ mode, suspension }: Run, place: Place, view: View) {
  return (script: Ask): Ask => {
    if (suspension) return mode === "replay" ? asRecorded(suspension.ask, script) : suspension.ask;
    if (mode !== "live") return script;
    const ask = askOnTerminal(place.input ?? process.stdin, place.output.stderr);
    return (request, context) => view.aside(async () => ask(request, context));
  };
}

/** The answer must be the script's, a yes or none; its words are then too, since they were recorded. */
function asRecorded(ask: Ask, script: Ask): Ask {
  return async (request, context) => {
    const [given, recorded] = [await ask(request, context), await script(request, context)];
    if (isYes(given) === isYes(recorded)) return recorded;
    throw new RecordingError(
      `when it was recorded the answer was "${recorded}"; another one needs the API: npm run live`,
    );
  };
}

/** A question that was asked, and what was said to it. */
export interface Question extends ApprovalRequest {
  said: string;
}

/** The same `ask`, and a list that fills with its questions. */
export function keepQuestions(ask: Ask): {
  readonly ask: Ask;
  readonly questions: readonly Question[];
} {
  const questions: Question[] = [];
  const kept: Ask = async (request, context) => {
    const question = { ...request, said: "(waits for an answer)" };
    questions.push(question);
    try {
      const said = await ask(request, context);
      question.said = said ?? "(no answer)";
      return said;
    } catch (error) {
      if (!(error instanceof SuspendError)) question.said = `(not asked: ${error})`;
      throw error;
    }
  };
  return { ask: kept, questions };
}
