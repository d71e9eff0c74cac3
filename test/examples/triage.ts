import { route } from "../../patterns/route.ts";

export async function triage(ticket: string) {
  const result = await route(ticket, {
    routes: {
      billing: {
        when: "charges, refunds, invoices",
        run: (ticket, { llm }) => llm(`Write a short, polite reply to: ${ticket}`),
      },
      bug: {
        when: "something in the product doesn't work",
        run: (ticket) => ({ title: ticket.slice(0, 60), open: true }),
      },
    },
  });
  // Checking the route narrows the output: a string here, a bug report there.
  return result.route === "billing" ? result.output : `Bug filed: ${result.output.title}`;
}
