/**
 * Votes: how they are counted, when they stop, and who is cancelled.
 *
 * From effective-agents 0.1.0: test/vote.test.ts
 */
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BudgetError, HaltError, LlmOutputError, RecordingError } from "../patterns/errors.ts";
import type { OnError } from "../patterns/fan-out.ts";
import { fold } from "../patterns/fold.ts";
import type { LlmCall } from "../patterns/llm-call.ts";
import { observe, type RunEvent } from "../patterns/step.ts";
import { type Ballot, type VoteOptions, vote } from "../patterns/vote.ts";
import { held, type Reply, scripted } from "./shared/scripted.ts";
import { rejection } from "./shared/server.ts";

const policies: readonly OnError[] = ["abort", "settle"];
const says = (answer: string) => `I think so. <vote>${answer}</vote>`;

/** Has voters answer in the order of `answers`, each as soon as the one before has been counted. */
async function voteInTurn(
  answers: readonly Reply[],
  options: VoteOptions,
  order = answers.map((_, index) => index),
) {
  const voters = answers.map(() => held());
  const script = voters.map(({ reply }, index): [string, Reply] => [`vote/voter[${index}]`, reply]);
  const model = scripted(Object.fromEntries(script));
  const run = vote("Is it?", { voters: answers.length, ...options, llm: model.llm });
  run.catch(() => {});
  for (const index of order) {
    const answer = answers[index];
    if (answer instanceof Error) voters[index]?.fail(answer);
    else if (typeof answer === "string") voters[index]?.answer(answer);
    await setImmediate();
  }
  return { run, voters, ...model };
}

const states = (ballots: readonly Ballot[]) => ballots.map(({ status }) => status);

test("puts the same question to each voter at once, and counts the answers", async () => {
  const { llm, prompts, paths } = scripted([says("Yes"), says("yes."), "<vote>no</vote>"]);
  const result = await vote("Is it?", { llm, voters: 3, threshold: 3 });
  expect(result).toEqual({
    status: "undecided",
    threshold: 3,
    counts: [
      { answer: "Yes", votes: 2 },
      { answer: "no", votes: 1 },
    ],
    ballots: [
      { status: "voted", answer: "Yes", reply: says("Yes") },
      { status: "voted", answer: "yes.", reply: says("yes.") },
      { status: "voted", answer: "no", reply: "<vote>no</vote>" },
    ],
  });
  const [asked = ""] = prompts();
  expect(asked.startsWith("Is it?\n\n")).toBe(true);
  expect(asked).toContain("<vote>answer</vote>");
  expect(prompts()).toEqual([asked, asked, asked]);
  expect(paths()).toEqual(["vote/voter[0]", "vote/voter[1]", "vote/voter[2]"]);
});

test("puts a question of its own to each voter of a list", async () => {
  const { llm, prompts } = scripted([says("a"), says("a")]);
  const result = await vote(["One $&?", "Two </vote>?"], { llm });
  expect(result).toMatchObject({ status: "decided", winner: "a", threshold: 2 });
  expect(prompts()[0]).toMatch(/^One \$&\?\n\n/);
  expect(prompts()[1]).toMatch(/^Two <\/vote>\?\n\n/);
});

test("asks five voters by default, and needs a majority of them", async () => {
  const { llm, calls } = scripted(["A", "A", "B", "B", "B"].map(says));
  expect(await vote("Which?", { llm })).toMatchObject({
    status: "decided",
    winner: "B",
    threshold: 3,
  });
  expect(calls).toHaveLength(5);
});

test.for([
  [["Paris", "paris.", " Paris ", "**Paris**", "London"], 5, { Paris: 4, London: 1 }],
  [["A", "A", "B"], 3, { A: 2, B: 1 }],
  [["C", "C++", "C#", "3.14", "-5", "5"], 6, { C: 1, "C++": 1, "C#": 1, 3.14: 1, "-5": 1, 5: 1 }],
] as const)(
  "counts words as one and leaves apart what differs by a sign: %j",
  async ([answers, threshold, expected]) => {
    const { llm } = scripted(answers.map(says));
    const { counts } = await vote("Which?", { llm, voters: answers.length, threshold });
    const counted = counts.map(({ answer, votes }) => [answer, votes]);
    expect(Object.fromEntries(counted)).toEqual(expected);
  },
);

test("counts votes for what every object has", async () => {
  const answers = ["__proto__", "__proto__", "constructor", "a", "toString"];
  const { llm } = scripted(answers.map(says));
  expect(await vote("Which?", { llm, threshold: 5 })).toMatchObject({
    status: "undecided",
    counts: [
      { answer: "__proto__", votes: 2 },
      { answer: "constructor", votes: 1 },
      { answer: "a", votes: 1 },
      { answer: "toString", votes: 1 },
    ],
  });
  const won = await vote("Which?", { llm: scripted(answers.map(says)).llm, threshold: 2 });
  expect(won).toMatchObject({ status: "decided", winner: "__proto__" });
});

test("gives the winner as its first voter wrote it, in the order of the voters", async () => {
  const answers = [says("Paris"), says("**PARIS**"), says("London")];
  const { run } = await voteInTurn(answers, { threshold: 2 }, [1, 2, 0]);
  expect(await run).toMatchObject({
    status: "decided",
    winner: "Paris",
    counts: [
      { answer: "Paris", votes: 2 },
      { answer: "London", votes: 1 },
    ],
  });
});

test("stops when the outcome is certain, and cancels the voters that can't change it", async () => {
  const { run, voters, calls } = await voteInTurn([says("a"), "", says("a"), "", ""], {}, [0, 2]);
  expect(voters.map(({ state }) => state())).toEqual(["ended", "open", "ended", "open", "open"]);
  voters[4]?.answer(says("a"));
  const result = await run;
  expect(result).toMatchObject({ status: "decided", winner: "a", threshold: 3 });
  expect(states(result.ballots)).toEqual(["voted", "cancelled", "voted", "cancelled", "voted"]);
  expect(voters.map(({ state }) => state())).toEqual(Array(5).fill("ended"));
  expect(calls).toHaveLength(5);
  expect(calls.map(({ options }) => options.signal?.aborted)).toEqual(Array(5).fill(true));
});

test("stops when no answer can get enough votes any more", async () => {
  const answers = [says("a"), says("b"), says("c"), "", ""];
  const { run } = await voteInTurn(answers, { threshold: 4 }, [0, 1, 2]);
  const result = await run;
  expect(result).toMatchObject({ status: "undecided", threshold: 4 });
  expect(states(result.ballots)).toEqual(["voted", "voted", "voted", "cancelled", "cancelled"]);
});

test("reports a voter that was cancelled as cancelled, and not as failed", async () => {
  const events: RunEvent[] = [];
  const { llm } = scripted([says("a"), says("a"), held().reply]);
  await observe(
    (event) => events.push(event),
    () => vote("Which?", { llm, voters: 3 }),
  );
  const ends = events.filter((event) => event.type === "end");
  expect(ends.map(({ path, outcome }) => [path, outcome])).toEqual([
    ["vote/voter[0]", "ok"],
    ["vote/voter[1]", "ok"],
    ["vote/voter[2]", "cancelled"],
    ["vote", "ok"],
  ]);
});

test("counts a tie as undecided, with both answers", async () => {
  const { llm } = scripted([says("a"), says("b"), says("b"), says("a")]);
  expect(await vote("Which?", { llm, voters: 4 })).toMatchObject({
    status: "undecided",
    threshold: 3,
    counts: [
      { answer: "a", votes: 2 },
      { answer: "b", votes: 2 },
    ],
  });
});

test("awaits all voters at a threshold of half or less, so that timing doesn't pick the winner", async () => {
  const answers = [says("a"), says("a"), says("b"), says("b"), says("b")];
  for (const asNeeded of [false, true]) {
    const { run } = await voteInTurn(answers, { threshold: 2, asNeeded });
    const result = await run;
    expect(result).toMatchObject({ status: "decided", winner: "b", threshold: 2 });
    expect(states(result.ballots)).toEqual(Array(5).fill("voted"));
  }
});

test("leaves a tie at the threshold undecided", async () => {
  const { llm } = scripted([says("a"), says("b"), says("b"), says("a"), says("c")]);
  const result = await vote("Which?", { llm, threshold: 2 });
  expect(result).toMatchObject({ status: "undecided", threshold: 2 });
});

test.for([1, 2, 3, 4])("stops early only at a threshold over half: %i of 4", async (threshold) => {
  const order = [...Array(threshold).keys()];
  const { run, voters } = await voteInTurn(Array(4).fill(says("a")), { threshold }, order);
  await setImmediate();
  const rest = voters.slice(threshold);
  expect(rest.map(({ state }) => state())).toEqual(
    rest.map(() => (threshold > 2 ? "ended" : "open")),
  );
  for (const voter of rest) voter.answer(says("a"));
  expect(await run).toMatchObject({ status: "decided", winner: "a" });
});

test("starts only as many voters as could still decide it, and leaves the rest unasked", async () => {
  const { run, paths } = await voteInTurn([says("a"), says("a"), says("a"), "", ""], {
    asNeeded: true,
  });
  const result = await run;
  expect(result).toMatchObject({ status: "decided", winner: "a" });
  expect(states(result.ballots)).toEqual(["voted", "voted", "voted", "not started", "not started"]);
  expect(paths()).toEqual(["vote/voter[0]", "vote/voter[1]", "vote/voter[2]"]);
});

test("starts one more for each that can't decide it any more", async () => {
  const voters = Array.from({ length: 5 }, held);
  const { llm, calls } = scripted(voters.map(({ reply }) => reply));
  const run = vote("Is it?", { llm, asNeeded: true });
  const asked: number[] = [calls.length];
  for (const [index, answer] of ["a", "b", "?", "a", "a"].entries()) {
    voters[index]?.answer(answer === "?" ? "no vote" : says(answer));
    await setImmediate();
    asked.push(calls.length);
  }
  expect(asked).toEqual([3, 3, 4, 5, 5, 5]);
  const result = await run;
  expect(result).toMatchObject({ status: "decided", winner: "a" });
  expect(states(result.ballots)).toEqual(["voted", "voted", "abstained", "voted", "voted"]);
});

test.for(["I say yes.", "<vote></vote>", "<vote>yes", "<vote> \n</vote>", "</vote>"])(
  "counts an unreadable answer as an abstention, and doesn't ask again: %s",
  async (unreadable) => {
    const { llm, calls } = scripted([says("a"), unreadable, unreadable]);
    const result = await vote("Which?", { llm, voters: 3 });
    expect(result).toMatchObject({ status: "undecided", counts: [{ answer: "a", votes: 1 }] });
    expect(states(result.ballots)).toEqual(["voted", "abstained", "abstained"]);
    const { error } = result.ballots[1] as Extract<Ballot, { status: "abstained" }>;
    expect(error).toBeInstanceOf(LlmOutputError);
    expect(error).toMatchObject({ path: "vote/voter[1]", text: unreadable });
    expect(calls).toHaveLength(3);
  },
);

test("counts a reply that was refused or cut off as an abstention", async () => {
  const refuse = () => {
    throw new LlmOutputError("refused", { text: says("a"), stopReason: "refusal" });
  };
  const { llm } = scripted([refuse, says("b"), says("b")]);
  const result = await vote("Which?", { llm, voters: 3 });
  expect(result).toMatchObject({
    status: "decided",
    winner: "b",
    ballots: [
      { status: "abstained", error: { stopReason: "refusal", path: "vote/voter[0]" } },
      {},
      {},
    ],
  });
});

test("needs a majority of the planned voters, and not of those that answered", async () => {
  const { llm } = scripted([says("a"), says("a"), "?", "?", "?"]);
  const result = await vote("Which?", { llm });
  expect(result).toMatchObject({ status: "undecided", counts: [{ answer: "a", votes: 2 }] });
});

test("cancels the other voters when one fails, and throws its error", async () => {
  const broken = new Error("500");
  const { run, voters } = await voteInTurn([says("a"), broken, ""], {}, [0, 1]);
  expect(await rejection(run)).toBe(broken);
  expect(voters[2]?.state()).toBe("ended");
});

test("counts a failed voter when it settles, and goes on without it", async () => {
  const broken = new Error("500");
  for (const asNeeded of [false, true]) {
    const { run } = await voteInTurn([broken, says("a"), broken, says("a"), says("a")], {
      onError: "settle",
      asNeeded,
    });
    expect(await run).toMatchObject({
      status: "decided",
      winner: "a",
      ballots: [
        { status: "failed", error: broken },
        {},
        { status: "failed", error: broken },
        {},
        {},
      ],
    });
  }
});

test("fails when nobody voted and somebody failed: an outage is no tie", async () => {
  const broken = new Error("500");
  const all = await voteInTurn([broken, "unreadable", broken], { onError: "settle" });
  const error = await rejection(all.run);
  expect(error).toBeInstanceOf(AggregateError);
  expect(error).toMatchObject({ errors: [broken, broken] });
  const readable = await voteInTurn(["unreadable", "unreadable"], { onError: "settle" });
  expect(await readable.run).toMatchObject({ status: "undecided", counts: [] });
});

test("decides at a low threshold though the budget ends, where those unheard can't change it", async () => {
  const noMoney = new BudgetError("No money");
  const votes = [says("a"), says("a"), says("a"), says("b"), noMoney];
  const certain = await voteInTurn(votes, { threshold: 2 });
  expect(await certain.run).toMatchObject({ status: "decided", winner: "a" });
  const open = await voteInTurn([says("a"), says("a"), says("b"), says("c"), noMoney], {
    threshold: 2,
  });
  expect(await open.run).toMatchObject({ status: "budget" });
});

test("keeps a certain outcome when a cancelled voter fails in the wake", async () => {
  const wake = new Error("Request was aborted.");
  const rude: LlmCall = (_, { signal } = {}) =>
    new Promise((_, reject) => signal?.addEventListener("abort", () => reject(wake)));
  let asked = 0;
  const llm: LlmCall = (prompt, options) =>
    ++asked > 2 ? rude(prompt, options) : Promise.resolve(says("a"));
  for (const onError of policies) {
    asked = 0;
    const result = await vote("Which?", { llm, voters: 3, onError });
    expect(result).toMatchObject({ status: "decided", winner: "a" });
    expect(result.ballots[2]).toEqual({ status: "failed", error: wake });
  }
});

test.for(policies)(
  "cancels the voters and passes on a call that was not made (%s)",
  async (onError) => {
    for (const error of [new HaltError("No"), new RecordingError("Not taped")]) {
      const { run, voters } = await voteInTurn([says("a"), error, ""], { onError }, [0, 1]);
      expect(await rejection(run)).toBe(error);
      expect(voters[2]?.state()).toBe("ended");
    }
  },
);

test("passes on a call that was not made in the wake of a certain outcome", async () => {
  const error = new RecordingError("Not taped");
  const script: Reply[] = [
    says("a"),
    says("a"),
    (_, { signal }) =>
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(error))),
  ];
  const run = vote("Which?", { llm: scripted(script).llm, voters: 3, onError: "settle" });
  expect(await rejection(run)).toBe(error);
});

test.for(policies)(
  "lets the voters end when the budget ends, and gives the counts so far (%s)",
  async (onError) => {
    const error = new BudgetError("No money");
    const { run, voters } = await voteInTurn([says("a"), error, "", ""], { onError }, [0, 1]);
    expect(voters[2]?.state()).toBe("open");
    voters[2]?.answer(says("b"));
    voters[3]?.answer("no vote");
    const result = await run;
    expect(result).toMatchObject({
      status: "budget",
      error,
      counts: [
        { answer: "a", votes: 1 },
        { answer: "b", votes: 1 },
      ],
    });
    expect(states(result.ballots)).toEqual(["voted", "not started", "voted", "abstained"]);
  },
);

test.for(policies)("decides without the voters that the budget kept away (%s)", async (onError) => {
  const { run } = await voteInTurn([new BudgetError("No money"), says("a"), says("a")], {
    onError,
  });
  const result = await run;
  expect(result).toMatchObject({ status: "decided", winner: "a" });
  expect(states(result.ballots)).toEqual(["not started", "voted", "voted"]);
});

test("decides nothing at a threshold of half or less when the budget kept voters away", async () => {
  const error = new BudgetError("No money");
  const { llm } = scripted([says("a"), says("a"), error, error, error]);
  const result = await vote("Which?", { llm, threshold: 2 });
  expect(result).toMatchObject({ status: "budget", error, counts: [{ answer: "a", votes: 2 }] });
});

test.for(policies)("rejects when the budget ends without any vote (%s)", async (onError) => {
  const error = new BudgetError("No money");
  const { llm } = scripted(["no vote", error, error]);
  expect(await rejection(vote("Which?", { llm, voters: 3, onError }))).toBe(error);
});

test.for(policies)(
  "rejects with the reason of the caller's abort: voters (%s)",
  async (onError) => {
    for (const asNeeded of [false, true]) {
      const controller = new AbortController();
      const { signal } = controller;
      const { run, voters } = await voteInTurn(
        [says("a"), "", "", "", ""],
        { onError, asNeeded, signal },
        [0],
      );
      const started = voters.filter(({ state }) => state() !== "waiting");
      controller.abort("stop");
      expect(await rejection(run)).toBe("stop");
      expect(started).toHaveLength(asNeeded ? 3 : 5);
      expect(started.map(({ state }) => state())).toEqual(started.map(() => "ended"));
      const late = voters.filter((voter) => !started.includes(voter));
      expect(late.map(({ state }) => state())).toEqual(late.map(() => "waiting"));
    }
  },
);

test.for(policies)("rejects when the abort comes with the deciding vote (%s)", async (onError) => {
  const controller = new AbortController();
  const last = () => {
    controller.abort("stop");
    return says("a");
  };
  const { llm } = scripted([says("a"), last, says("a")]);
  const run = vote("Which?", { llm, voters: 3, onError, signal: controller.signal });
  expect(await rejection(run)).toBe("stop");
});

test.for(policies)("asks no voter under a signal that has fired (%s)", async (onError) => {
  const { llm, calls } = scripted(["never"]);
  const run = vote("Which?", { llm, onError, signal: AbortSignal.abort("late") });
  expect(await rejection(run)).toBe("late");
  expect(calls).toEqual([]);
});

test.for<readonly [ErrorConstructor, string, unknown, object]>([
  [TypeError, "question must be", "", {}],
  [TypeError, "question must be", ["a", " "], {}],
  [TypeError, "question must be", ["a", 7], {}],
  [TypeError, "voters goes with one", ["a", "b"], { voters: 2 }],
  [TypeError, "", undefined, {}],
  [TypeError, "", null, {}],
  [RangeError, "voters must be a whole number from 1 to 100, got 0", [], {}],
  [RangeError, "got 101", Array(101).fill("a"), {}],
  [RangeError, "got 0", "Which?", { voters: 0 }],
  [RangeError, "got 101", "Which?", { voters: 101 }],
  [RangeError, "got 2.5", "Which?", { voters: 2.5 }],
  [
    RangeError,
    "threshold must be a whole number from 1 to 3, got 4",
    "?",
    { voters: 3, threshold: 4 },
  ],
  [RangeError, "got 0", "Which?", { threshold: 0 }],
  [RangeError, "got NaN", "Which?", { threshold: Number.NaN }],
  [TypeError, "onError must be", "Which?", { onError: "ignore" }],
])(
  "refuses the caller's mistake before any voter is asked: %o %s",
  async ([kind, message, question, wrong]) => {
    const { llm, calls } = scripted(["never"]);
    const error = await rejection(vote(question as string, { llm, ...wrong }));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ message: expect.stringContaining(message) });
    expect(calls).toEqual([]);
  },
);

test("takes one voter, and a hundred", async () => {
  const one = await vote("Which?", { llm: scripted([says("a")]).llm, voters: 1 });
  expect(one).toMatchObject({ status: "decided", winner: "a", threshold: 1 });
  const many = scripted(Array(100).fill(says("a")));
  expect(await vote("Which?", { llm: many.llm, voters: 100 })).toMatchObject({ threshold: 51 });
  expect(many.calls).toHaveLength(100);
});

/** What becomes of a voter in a random vote, and when. */
const anyVote = fc.integer({ min: 1, max: 7 }).chain((voters) =>
  fc.record({
    threshold: fc.integer({ min: Math.floor(voters / 2) + 1, max: voters }),
    answers: fc.array(fc.constantFrom("a", "A.", "b", "c", "?", "!"), {
      minLength: voters,
      maxLength: voters,
    }),
    order: fc.shuffledSubarray([...Array(voters).keys()], { minLength: voters }),
    asNeeded: fc.boolean(),
  }),
);

test("comes to the same outcome as counting everybody, whatever the order of the answers", async () => {
  const sameOutcome = fc.asyncProperty(anyVote, async ({ threshold, answers, order, asNeeded }) => {
    const voters = answers.map(held);
    const { llm } = scripted(
      Object.fromEntries(voters.map(({ reply }, index) => [`vote/voter[${index}]`, reply])),
    );
    const run = vote("Which?", {
      llm,
      voters: answers.length,
      threshold,
      asNeeded,
      onError: "settle",
    });
    // Listened to from the start, since it may fail at any of the answers.
    const ended = run.catch((error) => {
      expect(error).toBeInstanceOf(AggregateError);
    });
    for (const index of order) {
      const [voter, answer = "?"] = [voters[index], answers[index]];
      if (answer === "!") voter?.fail(new Error("500"));
      else voter?.answer(answer === "?" ? "unreadable" : says(answer));
      await setImmediate();
    }
    const result = await ended;

    const all = answers.filter((answer) => answer !== "?" && answer !== "!").map(fold);
    const winner = all.find((one) => all.filter((other) => other === one).length >= threshold);
    if (!result) {
      expect(winner).toBeUndefined();
      return;
    }
    const outcome = result.status === "decided" ? fold(result.winner) : result.status;
    expect(outcome).toBe(winner ?? "undecided");
    expect(result.ballots).toHaveLength(answers.length);
    for (const [index, { status }] of result.ballots.entries()) {
      const own =
        new Map([
          ["?", "abstained"],
          ["!", "failed"],
        ]).get(answers[index] ?? "") ?? "voted";
      const dropped = asNeeded ? ["cancelled", "not started"] : ["cancelled"];
      expect([own, ...dropped]).toContain(status);
      expect(voters[index]?.state()).toBe(status === "not started" ? "waiting" : "ended");
    }
    const counted = result.counts.reduce((sum, { votes }) => sum + votes, 0);
    expect(counted).toBe(states(result.ballots).filter((status) => status === "voted").length);
  });
  await fc.assert(sameOutcome, { numRuns: 100 });
});

test("narrows a vote's result by its status", async () => {
  const { llm } = scripted([says("a")]);
  const result = await vote("Which?", { llm, voters: 1 });
  // @ts-expect-error Only a decided vote has a winner.
  result.winner;
  if (result.status === "decided") {
    const winner: string = result.winner;
    expect(winner).toBe("a");
  } else if (result.status === "budget") {
    const error: BudgetError = result.error;
    expect(error).toBeDefined();
  }
  const [ballot] = result.ballots;
  // @ts-expect-error Only a voter that voted has an answer.
  ballot?.answer;
  if (ballot?.status === "voted") expect(ballot.answer).toBe("a");
  // @ts-expect-error A question is a text.
  await rejection(vote(7, { llm }));
});
