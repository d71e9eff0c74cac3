import { expect, test } from "vitest";
import { chain } from "../patterns/chain.ts";
import { BudgetError, RecordingError, shown } from "../patterns/errors.ts";
import type { OnError } from "../patterns/fan-out.ts";
import { createBudget } from "../patterns/layers/budget.ts";
import { createLlm, type Layer, type LlmOptions } from "../patterns/llm-call.ts";
import { orchestrate } from "../patterns/orchestrate.ts";
import { refine } from "../patterns/refine.ts";
import { route } from "../patterns/route.ts";
import { section } from "../patterns/section.ts";
import { currentPath } from "../patterns/step.ts";
import { vote } from "../patterns/vote.ts";
import { type Answer, hold, rejection, reply, startServer } from "./shared/server.ts";

const textOf = (exchange: Parameters<Answer>[0]) =>
  exchange.body.messages.map(({ content }) => content).join("\n");

/** Answers each kind of prompt as a model would. */
const answer: Answer = (exchange) => {
  const prompt = textOf(exchange);
  const kinds: readonly (readonly [string, string])[] = [
    ["Decide which one", "<label>compare</label>"],
    [
      "Split the request",
      '<task id="a">A</task><task id="b" needs="a">B</task><task id="c">C</task>',
    ],
    ["You do one task", "a result"],
    ["was split into tasks", "all results"],
    ["<vote>answer</vote>", "<vote>yes</vote>"],
    ["wrote the draft", "<evaluation>PASS</evaluation><score>9</score><feedback/>"],
    ["Answer with the whole result", "<draft>a draft</draft>"],
  ];
  const [, text = "?"] = kinds.find(([start]) => prompt.includes(start)) ?? [];
  reply(text)(exchange);
};

/** All patterns inside one another. Each hands its own model and signal on. */
function everything(
  options: Pick<LlmOptions, "client" | "concurrency" | "layers">,
  onError: OnError,
) {
  const paths: string[] = [];
  const keepPath: Layer = (next) => (params, call) => {
    paths.push(currentPath());
    return next(params, call);
  };
  const door = createLlm({ ...options, layers: [keepPath, ...(options.layers ?? [])] });
  const run = (signal?: AbortSignal) =>
    route("Compare A, B and C", {
      llm: door.llmCall,
      signal,
      routes: {
        compare: {
          when: "always",
          run: (input, context) =>
            section(input, {
              ...context,
              onError,
              sections: {
                left: (text, context) => orchestrate(text, { ...context, onError }),
                right: (text, context) =>
                  orchestrate(text, {
                    ...context,
                    onError,
                    worker: async ({ text }, context) => {
                      const poll = await vote(text, { ...context, voters: 3, onError });
                      return poll.status === "decided" ? poll.winner : poll.status;
                    },
                  }),
                checked: (text, context) =>
                  chain(text, {
                    ...context,
                    steps: [
                      {
                        name: "draft",
                        run: async (text, context) => {
                          const best = await refine(text, { ...context, criteria: "It's short" });
                          return best.draft;
                        },
                      },
                    ],
                  }),
              },
            }),
        },
      },
    });
  return { run, paths };
}

test.for([1, 2, 8])("ends with everything nested at %i calls at once", async (concurrency) => {
  const server = await startServer(answer);
  const { run, paths } = everything({ client: server.client(), concurrency }, "abort");
  const { route, output } = await run();
  expect(route).toBe("compare");
  expect(output.status).toBe("completed");
  expect(output.outputs).toMatchObject({
    left: { status: "completed", output: "all results" },
    right: {
      status: "completed",
      tasks: [{ output: "yes" }, { output: "yes" }, { output: "yes" }],
    },
    checked: { status: "completed", output: "a draft" },
  });
  expect(server.peak()).toBeLessThanOrEqual(concurrency);
  expect(new Set(paths).size).toBe(paths.length);
  expect(paths).toEqual(
    expect.arrayContaining([
      "route/classify",
      "route/compare/section/left/orchestrate/plan",
      "route/compare/section/left/orchestrate/worker[2]",
      "route/compare/section/left/orchestrate/combine",
      "route/compare/section/right/orchestrate/worker[1]/vote/voter[2]",
      "route/compare/section/checked/chain/draft/refine/round[0]/grade",
    ]),
  );
});

test.for<readonly [number, OnError]>([
  [1, "abort"],
  [2, "settle"],
])(
  "rejects with the caller's reason from the inmost call out, at %i calls at once (%s)",
  async ([concurrency, onError]) => {
    let asked = 0;
    const server = await startServer((exchange) => {
      asked += 1;
      (asked > 3 ? hold : answer)(exchange);
    });
    const { run } = everything({ client: server.client(), concurrency }, onError);
    const controller = new AbortController();
    const running = run(controller.signal);
    const open = await server.received(3 + concurrency);
    controller.abort("stop");
    expect(await rejection(running)).toBe("stop");
    await open.gone;
    expect(server.requests).toHaveLength(3 + concurrency);
  },
);

test.for<OnError>(["abort", "settle"])(
  "passes a recording's miss in the inmost call out, and cancels all else (%s)",
  async (onError) => {
    const server = await startServer((exchange) => {
      const isFirst = textOf(exchange).includes("Decide which one");
      (isFirst ? answer : hold)(exchange);
    });
    let missed: RecordingError | undefined;
    const miss: Layer = (next) => async (params, call) => {
      if (!currentPath().endsWith("/draft")) return next(params, call);
      await server.received(3);
      missed = new RecordingError("Not on the tape");
      throw missed;
    };
    const { run } = everything({ client: server.client(), layers: [miss] }, onError);
    const error = await rejection(run());
    expect(error).toBe(missed);
    expect(error).toMatchObject({
      path: "route/compare/section/checked/chain/draft/refine/round[0]/draft",
    });
    await Promise.all(server.requests.slice(1).map(({ gone }) => gone));
  },
);

test.for([
  [1, 1],
  [2, 2],
  [6, 1],
  [6, 2],
  [9, 1],
  [9, 8],
  [12, 2],
])(
  "ends when a budget of %i calls does, at %i calls at once, and never makes more",
  async ([calls = 1, concurrency]) => {
    const server = await startServer(answer);
    const budget = createBudget({ calls });
    const options = { client: server.client(), concurrency, layers: [budget.layer] };
    const [outcome] = await Promise.allSettled([everything(options, "settle").run()]);
    expect(server.requests.length).toBeLessThanOrEqual(calls);
    // A vote's cancelled call may have been billed, and stays reserved.
    expect(budget.spent().calls + budget.unsettled().calls).toBe(calls);
    expect(budget.reserved().calls).toBe(0);
    if (outcome.status === "rejected") {
      expect(outcome.reason).toBeInstanceOf(BudgetError);
      return;
    }
    const { output } = outcome.value;
    const inner = Object.values(output.outputs).flatMap((item) =>
      item?.status === "fulfilled" ? [item.value.status] : [],
    );
    expect([output.status, ...inner]).toContain("budget");
  },
);

/** Each pattern with what it needs, and options that callers without types may hand in. */
const PATTERNS: Readonly<Record<string, (options: object) => Promise<unknown>>> = {
  chain: (options) =>
    chain("Hi", { steps: [{ name: "a", run: (text, { llm }) => llm(text) }], ...options }),
  route: (options) => route("Hi", { routes: { a: { when: "always", run: () => 1 } }, ...options }),
  section: (options) => section("Hi", { sections: { a: () => 1 }, ...options }),
  vote: (options) => vote("Well?", options),
  orchestrate: (options) => orchestrate("Hi", options),
  refine: (options) => refine("Hi", { criteria: "good", ...options }),
};
/** A section may give anything. */
const OF_TEXT = Object.keys(PATTERNS).filter((name) => name !== "section");

test.for(
  OF_TEXT.flatMap((name) =>
    [undefined, null, 7, { text: "Hi" }].map((reply) => [name, reply] as const),
  ),
)("%s says what is wrong with an llm that gives %j", async ([name, reply]) => {
  const llm = async () => reply;
  const error = await rejection(PATTERNS[name]?.({ llm }) ?? Promise.resolve());
  expect(error).toBeInstanceOf(TypeError);
  expect(String(error)).toContain(`must be a text`);
  expect(String(error)).toContain(`got ${shown(reply)}`);
});

test.for(Object.keys(PATTERNS))(
  "%s says what is wrong with its llm and its signal",
  async (name) => {
    for (const [option, rule] of [
      ["llm", "llm must be a function"],
      ["signal", "signal must be an AbortSignal"],
    ] as const) {
      const error = await rejection(PATTERNS[name]?.({ [option]: {} }) ?? Promise.resolve());
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).toContain(`${rule}, got {}`);
    }
  },
);
