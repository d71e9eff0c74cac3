/**
 * Seven voters say whether a query is open to SQL injection; the vote stops when it is decided.
 *
 *   npm start vote                       replays the recording
 *   npm run live vote "<code>"           calls the API
 *
 * One reviewer misses an injection now and then, and cries wolf now and then. A majority of seven
 * errs far less, and it seldom takes all seven: the calls that can't change the outcome any more are
 * cancelled.
 *
 * From effective-agents 0.1.0: runners/vote.ts
 */
import { vote } from "../patterns/vote.ts";
import { tagged } from "../patterns/xml.ts";
import { defineJob } from "./shared/job.ts";

const CODE = `export async function listOrders(db: Pool, query: URLSearchParams) {
  const columns = ["created_at", "total", "status"];
  const sort = query.get("sort") ?? "created_at";
  if (!columns.some((column) => sort.startsWith(column))) throw new BadRequest("unknown column");
  const limit = Math.min(Number(query.get("limit")) || 50, 200);
  const { rows } = await db.query(
    \`select id, total, status from orders
      where customer_id = $1
      order by \${sort} \${query.get("dir") === "asc" ? "asc" : "desc"}
      limit \${limit}\`,
    [query.get("customer")],
  );
  return rows;
}`;

export const job = defineJob({
  title: "is this query open to SQL injection? Seven voters, stopped early",
  input: CODE,
  run: (code, { llm, signal }) =>
    vote(
      `Is this function open to SQL injection? An attacker controls every value of the query string, and nothing else. Follow each of these values to the statement. Answer yes or no.

${tagged("code", code, { also: ["vote"] })}`,
      { llm, signal, voters: 7 },
    ),
  tell: (result) => {
    const count = (status: string) => result.ballots.filter((b) => b.status === status).length;
    const counts = result.counts.map(({ answer, votes }) => `${answer}: ${votes}`).join(", ");
    const rest = ["abstained", "failed", "cancelled", "not started"]
      .filter((status) => count(status) > 0)
      .map((status) => `${count(status)} ${status}`);
    const tally = `${counts || "no votes"} (${[`${result.threshold} needed`, ...rest].join(", ")})`;
    const winner = result.status === "decided" ? `: ${result.winner}` : "";
    return `${tally}\n\n${result.status}${winner}`;
  },
});
