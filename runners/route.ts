/**
 * A support ticket goes to billing, bug or other, each with its own prompt and type of result.
 *
 *   npm start route                      replays the recording
 *   npm run live route "<ticket>"        calls the API
 *
 * The ticket speaks of an invoice and of a crash: the classifier is told which matters when. A bug
 * becomes a report with fields; money becomes a letter.
 *
 * From effective-agents 0.1.0: runners/route.ts
 */
import type { Context } from "../patterns/llm-call.ts";
import { route } from "../patterns/route.ts";
import { readTags, tagged } from "../patterns/xml.ts";
import { defineJob } from "./shared/job.ts";

const TICKET = `Hi, I wanted to download last month's invoice for our accountant (Team plan, 12 seats) and every time I press "Download PDF" on the billing page the whole tab goes white. Happens in Firefox 144 and Edge, not in Chrome. Private window too, so it's not an extension. Console says something like "RangeError: Invalid time value". My colleague in Lisbon gets the same, the one in Boston doesn't. I don't need a refund or anything, the amount on the card was right, I just need that file before the 5th. — Inês`;

/** Sorts a ticket, and does what its kind asks for. */
export const sortTicket = (ticket: string, { llm, signal }: Context) =>
  route(ticket, {
    llm,
    signal,
    fallback: "other",
    routes: {
      billing: {
        when: "the customer wants something done about money: a charge, a refund, a plan, seats, a tax id",
        run: (ticket, { llm }) =>
          llm(`Write the reply to this support ticket about money. Promise nothing that a person in accounting has not confirmed; say what we will look at, what we need from the customer, and by when they hear from us (one working day). At most 120 words, signed "Billing".

${tagged("ticket", ticket)}

Answer with the reply alone.`),
      },
      bug: {
        when: "something in the product doesn't work as it should, on whatever page, money pages too",
        run: async (ticket, { llm }) => {
          const reply =
            await llm(`Make a bug report for our developers out of this support ticket. Use only what the ticket says; where something that a developer needs is missing, say that it is missing.

${tagged("ticket", ticket, { also: ["title", "severity", "steps", "suspicion"] })}

Answer in this form:

<title>one line, as specific as the ticket allows</title>
<severity>low, medium or high, and why in half a sentence</severity>
<steps>how to make it happen, and who sees it and who doesn't</steps>
<suspicion>the likeliest cause, named as a guess</suspicion>`);
          return readTags(reply, ["title", "severity", "steps", "suspicion"]);
        },
      },
      other: {
        when: "questions how to do something, ideas, praise, spam, and whatever fits nowhere else",
        run: () => ({ queue: "first level" as const }),
      },
    },
  });

export const job = defineJob({
  title: "support ticket → billing, bug or other",
  input: TICKET,
  run: sortTicket,
  tell: (result) => {
    const answer =
      result.route === "bug"
        ? Object.entries(result.output)
            .map(([field, text]) => `${field.toUpperCase()}\n${text.trim()}`)
            .join("\n\n")
        : result.route === "billing"
          ? result.output
          : `Put into the queue "${result.output.queue}"`;
    return `${answer}\n\nrouted to ${result.route}${result.fellBack ? " (fallback)" : ""}`;
  },
});
