/**
 * A migration guide is planned, written in parts, and put together.
 *
 *   npm start orchestrate                    replays the recording
 *   npm run live orchestrate "<request>"     calls the API
 *
 * Nobody says beforehand how many parts it takes: that depends on the two versions. Some parts wait
 * for others, and start the moment they are done.
 *
 * From effective-agents 0.1.0: runners/orchestrate.ts
 */
import { orchestrate } from "../patterns/orchestrate.ts";
import { defineJob } from "./shared/job.ts";

const REQUEST = `Write the guide for moving from version 2 to version 3 of our HTTP client "courier". It has four parts:
1. the before and after of each change as code, each under a short heading;
2. a checklist in the order in which to do things, which names those headings, with the minutes that each step takes in a code base with 40 calls, judged by the code under the heading;
3. three sentences for a manager: how long it takes by that checklist, what can go wrong, what it's good for;
4. the smallest whole program in version 3.

Version 2:
import courier from "courier";
const api = courier.create({ base: "https://api.example.com", retries: 3, timeout: 5000, json: true });
api.interceptors.request.push((req) => { req.headers["x-team"] = "core"; return req; });
api.get("/users", { query: { page: 1 } }, (err, res) => { … });       // callbacks
res.body      // parsed, if json: true
err.code      // "ETIMEDOUT", "ESTATUS", "ENETWORK"

Version 3:
import { Courier, StatusError, TimeoutError, NetworkError } from "courier";
const api = new Courier({ baseUrl: "https://api.example.com", retry: { attempts: 3 }, timeoutMs: 5000 });
api.use(async (request, next) => next(request.with({ headers: { "x-team": "core" } })));
const response = await api.get("/users", { search: { page: 1 } });    // promises
await response.json()      // a method now; also text(), bytes()
error instanceof TimeoutError
Retries: only GET, HEAD and PUT are retried, unless retry.methods says otherwise (version 2 retried all).
Needs Node 20 (version 2: Node 14). ES modules only.`;

export const job = defineJob({
  title: "a migration guide, planned, written in parts, put together",
  input: REQUEST,
  run: (request, { llm, signal }) => orchestrate(request, { llm, signal, maxTasks: 5 }),
  tell: (result) => {
    const tasks = result.tasks.map(({ id, needs, status }) => {
      const after = needs.length > 0 ? ` (after ${needs.join(", ")})` : "";
      return `- ${id}${after}: ${status}`;
    });
    const answer = result.status === "completed" ? opening(result.output) : result.error.message;
    return `${answer}\n\n${tasks.join("\n")}\n\n${result.status}`;
  },
});

/** The first lines of a long answer; `-- --json` prints it whole. */
function opening(text: string): string {
  const lines = text.split("\n");
  if (lines.length <= 30) return text;
  return [...lines.slice(0, 20), `… and ${lines.length - 20} more lines`].join("\n");
}
