/**
 * Three subagents look into one question about this repository, all at once: what is promised to its
 * readers, what the code does, and what the tests prove. One call puts together what they found.
 *
 *   npm start subagent                       replays the recording
 *   npm run live subagent "<question>"       asks the API about this repository
 *
 * None sees what another reads: each hands over a page of findings, and what it could not verify. Where
 * one delivers nothing, that is a gap too. Whether the sources exist is looked up in the files of today.
 *
 * From effective-agents 0.1.0: runners/subagent.ts
 */
import { checkCitations } from "../patterns/citations.ts";
import { fanOut } from "../patterns/fan-out.ts";
import { createRepoTools } from "../patterns/repo-tools.ts";
import { step } from "../patterns/step.ts";
import { type Brief, type Delivery, runSubagent, UndeliveredError } from "../patterns/subagent.ts";
import { tagged } from "../patterns/xml.ts";
import { DENY, ROOT } from "./agent.ts";
import { defineJob } from "./shared/job.ts";

const QUESTION =
  "Calls to the model are in flight when the user closes the tab, or when the budget ends. What becomes of them, what may they still cost, and how does the program learn what they cost?";

/** What each of the three looks at, and where. */
const VIEWS = {
  promised: "what its README and the comments in patterns/ promise to those who use it",
  done: "what the code in patterns/ does, whatever its comments say",
  proven: "what the tests in test/ prove: what they assert, and not what their titles say",
};

/** What was delivered on one of them. */
type Report = Delivery & { readonly name: string; readonly status: string };

const briefFor = (question: string, view: string): Brief => ({
  objective: `Find out ${view}, as far as this question goes: ${question}`,
  purpose:
    "Somebody is about to run this in production. They want to know what is promised, kept and proven, and above all what is promised and not proven.",
  boundaries: `Only ${view}. Others look at the rest at the same time: ${Object.values(VIEWS).join("; ")}. Don't judge, and don't propose anything.`,
  context:
    "The repository is a collection of LLM workflow patterns in TypeScript, and your tools read its files. README.md is for its users, patterns/ holds the modules, test/ their tests.",
  stopWhen:
    "You can say for each part of the question what you found, or that there is nothing about it. Five to ten findings are plenty.",
  maxSteps: 8,
});

const combinePrompt = (question: string, reports: readonly Report[]) => {
  const parts = reports.map(({ name, findings, gaps }) => {
    const attributes = { of: name };
    const text = JSON.stringify({ findings, gaps }, null, 2);
    return tagged("report", text, { attributes, also: ["question"], raw: true });
  });
  return `Three people looked into a question about a code repository, each at something else: ${Object.values(VIEWS).join("; ")}. Answer the question from their reports alone.

${tagged("question", question, { also: ["report"], raw: true })}

${parts.join("\n\n")}

Begin with the answer, in two or three sentences. Then, in a few points: what is promised and proven, what is done and not proven, and where the reports contradict each other. Put its source in parentheses behind each claim, as it stands in the report. End with what is open. At most 300 words.`;
};

export const job = defineJob({
  title: "what is promised, done and proven: three subagents on one question about this repository",
  input: QUESTION,
  model: "claude-opus-5-5",
  run: (question, { llm, llmMessage, model, recorded, signal }) =>
    step("research", async () => {
      const tools = recorded(createRepoTools(ROOT, { deny: DENY }));
      const jobs = Object.entries(VIEWS).map(([name, view], index) => {
        const work = async (signal: AbortSignal): Promise<Report> => {
          const options = { tools, model, llm: llmMessage, signal };
          const delivered = runSubagent(briefFor(question, view), options).catch(toGap);
          const { status, findings, gaps } = await delivered;
          return { name, status, findings, gaps };
        };
        return ({ signal }: AbortController) => step(`brief[${index}]`, () => work(signal), signal);
      });
      // Any other failure cancels the rest.
      const { results, budget } = await fanOut(jobs, { onError: "abort", signal });
      if (budget) throw budget;
      const reports = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const answer = await llm(combinePrompt(question, reports), { name: "combine", signal });
      const sources = reports.flatMap(({ findings }) => findings.map(({ source }) => source));
      const cited = [...sources, answer].join("\n");
      const checked = await checkCitations(cited, ROOT, { deny: DENY, signal });
      return { answer, reports, checked };
    }),
  tell: ({ answer, reports, checked }) => {
    const gaps = reports.flatMap(({ name, gaps }) => gaps.map((gap) => `- ${name}: ${gap}`));
    const bad = checked.flatMap(({ text, problem }) => (problem ? [`- ${text}: ${problem}`] : []));
    const held = `SOURCES\n${checked.length - bad.length} of ${checked.length} cited places exist`;
    const endings = reports.map(
      ({ name, status, findings, gaps }) =>
        `${name}: ${status} (findings: ${findings.length}, gaps: ${gaps.length})`,
    );
    return `${answer}\n\n${["GAPS", ...gaps].join("\n")}\n\n${[held, ...bad].join("\n")}\n\n${endings.join("\n")}`;
  },
});

/** A subagent that never delivered is a gap in the whole, and not its end. */
function toGap(error: unknown): Omit<Report, "name"> {
  if (!(error instanceof UndeliveredError)) throw error;
  return { status: "undelivered", findings: [], gaps: [error.message] };
}
