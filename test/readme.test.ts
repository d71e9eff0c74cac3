/** What the README says is so: its outputs, numbers, commands, links, and the examples it shows. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, cp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { APIError } from "@anthropic-ai/sdk";
import { afterEach, expect, test, vi } from "vitest";
import { createLlm } from "../patterns/llm-call.ts";
import type { TapeLine } from "../patterns/recording/tape.ts";
import { openRecording, recordedClient } from "../patterns/recording.ts";
import type { Routes } from "../patterns/route.ts";
import { step } from "../patterns/step.ts";
import { vote } from "../patterns/vote.ts";
import { linesOfCode } from "../runners/shared/lines-of-code.ts";
import { slogan } from "./examples/budget.ts";
import { sortTickets } from "./examples/tickets.ts";
import { traced } from "./examples/trace.ts";
import { folder } from "./shared/folder.ts";
import { fillIn, inStep, README, SPANISH } from "./shared/readme.ts";
import { ROOT, run } from "./shared/runner.ts";
import { withResolvers } from "./shared/scripted.ts";
import { type Answer, type Exchange, fails, reply, startServer } from "./shared/server.ts";
import { onlyTrace } from "./shared/traces.ts";

const readme = await readFile(README, "utf8");
const spanish = await readFile(SPANISH, "utf8");
/** Starting Node takes a second, and more on a busy machine. */
const CHILD = { timeout: 60_000 };
/** And there are a dozen of them. */
const ALL = { timeout: 300_000 };

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** A server of the test's own in place of the API. */
async function serve(...answers: [Answer, ...Answer[]]) {
  const server = await startServer(...answers);
  vi.stubEnv("ANTHROPIC_BASE_URL", server.url);
  vi.stubEnv("ANTHROPIC_API_KEY", "none");
  return server;
}

function promptOf({ body }: Exchange): string {
  return String(body.messages[0]?.content);
}

// The text

test("shows files, outputs and numbers as they are: else run npm run readme", ALL, async () => {
  expect(await fillIn(readme)).toBe(readme);
});

test("what is shown is put in anew, whatever stood there", CHILD, async () => {
  const old = `<!-- file: .gitignore -->
\`\`\`sh
old
\`\`\`
<!-- output: npm start nothing -->
<!-- table: npm start failures too-much -- --table -->

| old |
[fold.ts](patterns/fold.ts) | 9999 |
`;
  const source = await readFile(join(ROOT, "patterns/fold.ts"), "utf8");
  const ignored = (await readFile(join(ROOT, ".gitignore"), "utf8")).trimEnd();
  const filled = await fillIn(old);
  expect(filled).toContain(`\`\`\`sh\n${ignored}\n\`\`\``);
  expect(filled).toContain(`| ${linesOfCode(source)} |`);
  expect(filled).toMatch(
    / -->\n\n\| failure .*\n\|-.*\n\| \[a tool that returns too much\].*\n\[fold/,
  );
});

test("says the same in Spanish, with the same code, tables, commands and links", () => {
  expect(inStep(spanish, readme)).toBe(spanish);
  const shapeOf = (text: string) => {
    const prose = text.replace(/^```[\s\S]*?^```$/gm, "```");
    return {
      lines: prose.split("\n").map((line) => /^(#+ |- |\||<!--.*|```|$)?/.exec(line)?.[0]),
      code: prose.match(/`[^`\n]+`/g),
      cells: prose.split("\n").map((line) => (line.startsWith("|") ? line.split("|").length : 0)),
      links: [...prose.matchAll(/\]\(([^)#\s]+)\)/g)].map(([, to]) => to?.replace(".es", "")),
    };
  };
  expect(shapeOf(spanish)).toEqual(shapeOf(readme));
  const headings = [...spanish.matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => anchorOf(text));
  for (const [, to = ""] of spanish.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(to);
});

test("counts lines that are neither blank nor comment", () => {
  expect(linesOfCode("/**\n * Doc\n */\n\nconst a = 1; // one\n  // two\nb();\n")).toBe(2);
});

test("names only npm commands and patterns that there are", async () => {
  const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const runners = await readdir(join(ROOT, "runners"));
  const commands = [...readme.matchAll(/npm (?:run )?([a-z]+)(?: ([a-z]+)\b)?/g)];
  expect(commands.length).toBeGreaterThan(10);
  for (const [command, script = "", pattern] of commands) {
    const known = script === "install" || Object.hasOwn(scripts, script);
    expect(known, command).toBe(true);
    const takesPattern = ["start", "live", "record"].includes(script) && pattern !== undefined;
    if (takesPattern) expect(runners, command).toContain(`${pattern}.ts`);
  }
});

test("links only to files that there are", () => {
  const links = [...readme.matchAll(/\]\(([^)\s]+)\)/g)].map(([, to = ""]) => to);
  const named = [...readme.matchAll(/`((?:patterns|runners|test)\/[^`\s]*)`/g)];
  const relative = links.filter((to) => !/^(https:\/\/|#)/.test(to));
  const headings = [...readme.matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => anchorOf(text));
  for (const to of links.filter((link) => link.startsWith("#"))) {
    expect(headings).toContain(to.slice(1));
  }
  expect(relative.length).toBeGreaterThan(5);
  for (const path of [...relative, ...named.map(([, path = ""]) => path)]) {
    expect(existsSync(join(ROOT, path)), path).toBe(true);
  }
});

/** A heading's anchor, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\w\s-]/gu, "")
    .replaceAll(" ", "-");
}

test("shows every example, and each once", async () => {
  const shown = [...readme.matchAll(/<!-- file: test\/examples\/(\S+) -->/g)];
  const examples = await readdir(join(ROOT, "test/examples"));
  expect(shown.map(([, name]) => name).toSorted()).toEqual(examples.toSorted());
});

test("the budget in the table of commands lets its command through", async () => {
  const [, usd = ""] = /--budget ([\d.]+)/.exec(readme) ?? [];
  await serve(reply("<label>other</label>"));
  expect(await run(["live", "route", "--budget", usd])).toMatchObject({ code: 0, stderr: "" });
});

// The examples

test("triage.ts: a ticket gets the billing reply, or becomes a bug", async () => {
  // The shared door's client is made once, at its first call, here or in another file.
  vi.resetModules();
  const { triage } = await import("./examples/triage.ts");
  const server = await serve((exchange) => {
    const prompt = promptOf(exchange);
    if (prompt.startsWith("Write a short")) return reply("We are sorry.")(exchange);
    reply(`<label>${prompt.includes("twice") ? "billing" : "bug"}</label>`)(exchange);
  });
  expect(await triage("I was charged twice this month")).toBe("We are sorry.");
  expect(await triage("The page is white")).toBe("Bug filed: The page is white");
  const [classify, billing] = server.requests.map(promptOf);
  expect(classify).toContain("charges, refunds, invoices");
  expect(classify).toContain("something in the product doesn't work");
  expect(billing).toBe("Write a short, polite reply to: I was charged twice this month");
  expect(server.requests).toHaveLength(3);
});

test("agent.ts: it asks for an owner, is told who there is, and answers", async () => {
  vi.resetModules();
  const { ask } = await import("./examples/agent.ts");
  const use = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
  const stop = { stop_reason: "tool_use" };
  const server = await serve(
    reply([use("a", "owner_of", { folder: "app" }), use("b", "list_files", {})], stop),
    reply([use("c", "owner_of", { folder: "src" })], stop),
    reply("Ask Ada."),
  );
  const root = await folder();
  await writeFile(join(root, "a.txt"), "text");
  expect(await ask("Who owns the app?", root, new Map([["src", "Ada <ada@example.org>"]]))).toBe(
    "Ask Ada.",
  );
  const results = server.requests.map(({ body }) => body.messages.at(-1)?.content);
  expect(results).toMatchObject([
    "Who owns the app?",
    [
      { tool_use_id: "a", is_error: true, content: "Nobody owns 'app'. Owned are: src." },
      { tool_use_id: "b", content: "a.txt 4 bytes" },
    ],
    [{ tool_use_id: "c", content: "Ada <ada@example.org>" }],
  ]);
});

test("mail.ts: sends what a person said yes to, and nothing to an address nobody has", async () => {
  vi.resetModules();
  const { answerMail } = await import("./examples/mail.ts");
  const mail = (id: string, to: string) => {
    return { type: "tool_use", id, name: "send_mail", input: { to, text: "See you at nine." } };
  };
  const calls = [mail("a", "ada@example.org"), mail("b", "eve@example.org")];
  const server = await serve(
    reply([...calls, mail("c", "bob@example.org")], { stop_reason: "tool_use" }),
    reply("Ada knows."),
  );
  const sent: string[] = [];
  const sendMail = {
    name: "send_mail",
    description: "Sends a mail.",
    input_schema: {
      type: "object" as const,
      properties: { to: { type: "string" }, text: { type: "string" } },
      required: ["to", "text"],
      additionalProperties: false as const,
    },
    run: ({ to }: { to: string }) => `Sent, as number ${sent.push(to)}.`,
  };
  const contacts = new Map([
    ["ada@example.org", "Ada"],
    ["bob@example.org", "Bob"],
  ]);
  const asked: string[] = [];
  const ask = ({ call, effect }: { call: string; effect: string }) => {
    asked.push(effect);
    return call.includes("ada") ? "yes" : "no";
  };
  expect(await answerMail("When?", sendMail, contacts, ask)).toBe("Ada knows.");
  expect(asked).toEqual([
    "Sends Ada a mail of 4 words, at once and for good.",
    "Sends Bob a mail of 4 words, at once and for good.",
  ]);
  expect(sent).toEqual(["ada@example.org"]);
  expect(server.requests[1]?.body.messages.at(-1)?.content).toMatchObject([
    { tool_use_id: "a", content: "Sent, as number 1." },
    {
      tool_use_id: "b",
      content: "Nobody has the address 'eve@example.org'. Answer the sender alone.",
    },
    { tool_use_id: "c", content: expect.stringContaining("the person who was asked said 'no'") },
  ]);
});

const graded = (evaluation: string, score: number) =>
  `<feedback>Shorter.</feedback><evaluation>${evaluation}</evaluation><score>${score}</score>`;

test("budget.ts: gives an accepted slogan, and what it cost", async () => {
  const log = vi.spyOn(console, "error").mockReturnValue();
  await serve(reply("<draft>Bread that gets up first</draft>"), reply(graded("PASS", 9)));
  const { status, draft, spent } = await slogan(0.5);
  expect([status, draft]).toEqual(["accepted", "Bread that gets up first"]);
  // Twice 12 tokens in and 3 out.
  expect(spent).toBeCloseTo((2 * (12 * 2 + 3 * 10)) / 1e6, 10);
  expect(log.mock.calls).toEqual([
    ["claude-sonnet-5-5", 3],
    ["claude-sonnet-5-5", 3],
  ]);
});

test("budget.ts: when the money ends, the best draft so far comes back", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  const usage = { usage: { input_tokens: 100, output_tokens: 900 } };
  const server = await serve(
    reply("<draft>Rolls that rock</draft>", usage),
    reply(graded("NEEDS_IMPROVEMENT", 4), usage),
    reply("<draft>Dough you see it</draft>", usage),
  );
  const { status, draft, spent } = await slogan(0.03);
  expect([status, draft]).toEqual(["budget", "Rolls that rock"]);
  expect(spent).toBeLessThanOrEqual(0.03);
  expect(server.requests.length).toBeGreaterThanOrEqual(2);
});

test("trace.ts: keeps a run that ends, and one that fails", async () => {
  const file = join(await folder(), "run.json");
  expect(await traced(file, () => step("run", () => "done"))).toBe("done");
  const read = async () => onlyTrace(await readFile(file, "utf8"));
  expect(await read()).toMatchObject({ name: "run", origin: "live", steps: [{ value: "done" }] });
  const failing = traced(file, () => step("run", () => Promise.reject(new Error("no"))));
  await expect(failing).rejects.toThrow("no");
  expect(await read()).toMatchObject({ steps: [{ outcome: "failed", error: { message: "no" } }] });
});

/** Tickets 0, 2, 4, … are about money; 3 and 7 are refused by the API. */
const BAD = [3, 7];
const TICKETS = Array.from({ length: 10 }, (_, index) => `Ticket no. ${index}.`);

function ticketIn(prompt: string): number {
  return Number(/Ticket no\. (\d+)\./.exec(prompt)?.[1]);
}

const answerTicket: Answer = (exchange) => {
  const prompt = promptOf(exchange);
  const ticket = ticketIn(prompt);
  if (BAD.includes(ticket)) return fails(400)(exchange);
  if (prompt.startsWith("Answer")) return reply(`Re ${ticket}`)(exchange);
  reply(`<label>${ticket % 2 === 0 ? "billing" : "bug"}</label>`)(exchange);
};

function routesWith(onDone: () => void) {
  return {
    billing: {
      when: "money",
      run: async (ticket, { llm }) => {
        const text = await llm(`Answer: ${ticket}`);
        onDone();
        return text;
      },
    },
    bug: { when: "anything else", run: () => onDone() },
  } satisfies Routes;
}

test("tickets.ts: killed half-way, it goes on and asks nothing twice that had succeeded", async () => {
  const file = join(await folder(), "tickets.jsonl");
  const half = withResolvers<void>();
  let [done, killed] = [0, false];
  const held: Exchange[] = [];
  await serve((exchange) => {
    if (ticketIn(promptOf(exchange)) < 5 || killed) answerTicket(exchange);
    else held.push(exchange);
  });
  const first = sortTickets(
    TICKETS,
    routesWith(() => ++done === 4 && half.resolve()),
    file,
  );
  await half.promise;
  // What a kill leaves behind at this moment.
  const left = join(await folder(), "tickets.jsonl");
  await copyFile(file, left);

  const again = await serve(answerTicket);
  const outcomes = await sortTickets(
    TICKETS,
    routesWith(() => {}),
    left,
  );
  expect(outcomes.map(({ route, error }) => route ?? error)).toEqual([
    ...["billing", "bug", "billing"],
    expect.any(APIError),
    ...["billing", "bug", "billing"],
    expect.any(APIError),
    ...["billing", "bug"],
  ]);
  const paid = [0, 1, 2, 4];
  expect(again.requests.map(promptOf).filter((prompt) => paid.includes(ticketIn(prompt)))).toEqual(
    [],
  );
  // 3, 5, 6, 7, 8 and 9 to classify, 6 and 8 to answer.
  expect(again.requests).toHaveLength(8);

  killed = true;
  for (const exchange of held) answerTicket(exchange);
  await first;
});

test("tickets.ts: at most twenty are under way, and each waits for a lane", async () => {
  const file = join(await folder(), "tickets.jsonl");
  const many = Array.from({ length: 45 }, (_, index) => `Ticket no. ${2 * index + 10}.`);
  const held: Exchange[] = [];
  const server = await serve((exchange) => {
    if (server.requests.length <= 20) held.push(exchange);
    else answerTicket(exchange);
  });
  const outcomes = sortTickets(
    many,
    routesWith(() => {}),
    file,
  );
  await server.received(20);
  expect(held.every((exchange) => !promptOf(exchange).startsWith("Answer"))).toBe(true);
  for (const exchange of held) answerTicket(exchange);
  expect((await outcomes).map(({ route }) => route)).toEqual(many.map(() => "billing"));
  expect(server.requests).toHaveLength(90);
  expect(server.peak()).toBe(20);
});

test("tickets.ts: a changed prompt ends the job instead of being asked anew", async () => {
  const file = join(await folder(), "tickets.jsonl");
  const server = await serve(answerTicket);
  await sortTickets(
    TICKETS,
    routesWith(() => {}),
    file,
  );
  const before = server.requests.length;
  const { billing, bug } = routesWith(() => {});
  const changed = { billing, bug: { ...bug, when: "whatever is left" } };
  await expect(sortTickets(TICKETS, changed, file)).rejects.toThrow(
    "route/classify has changed since it was recorded",
  );
  const asked = server.requests.slice(before).map((exchange) => ticketIn(promptOf(exchange)));
  // Those had no reply on the tape.
  expect(BAD).toEqual(expect.arrayContaining(asked));
});

test("recording.ts: runs in a project of its own, on a recording made before", CHILD, async () => {
  const project = await folder();
  await cp(join(ROOT, "patterns"), join(project, "patterns"), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(project, "node_modules"));
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  const [, shown = ""] =
    /test\/examples\/recording\.ts -->\n```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  await writeFile(join(project, "primes.test.ts"), shown);
  const server = await serve(reply("7 × 13. <vote>no</vote>"));
  const [, question = ""] = /vote\("(.*?)"/.exec(shown) ?? [];
  {
    await using recording = await openRecording(join(project, "primes.jsonl"), { mode: "record" });
    const { llmCall } = createLlm({ client: recordedClient(recording) });
    await vote(question, { llm: llmCall });
  }
  const asked = server.requests.length;
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const { PATH } = process.env;
  const options = { cwd: project, env: { PATH } };
  const args = [vitest, "run", "--root", project, "--reporter=json"];
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  const report = JSON.parse(stdout.slice(stdout.indexOf("{")));
  expect(report).toMatchObject({ numPassedTests: 1, numFailedTests: 0 });
  expect(server.requests).toHaveLength(asked);
  const lines = (await readFile(join(project, "primes.jsonl"), "utf8")).trimEnd().split("\n");
  const paths = lines.slice(1).map((line) => (JSON.parse(line) as TapeLine).path); // JSON has no types
  expect(paths).toEqual(expect.arrayContaining(["vote/voter[0]", "vote/voter[1]"]));
});
