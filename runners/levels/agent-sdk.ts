/**
 * Level 3: the Claude Agent SDK. Loop, tools and context are another process's; ours are its limits,
 * and what it may touch (read-only.ts).
 *
 * It takes 400 MB, so it is no dependency: it's loaded if somebody has installed it.
 *
 * From effective-agents 0.1.0: runners/levels/agent-sdk.ts
 */
import { createSandbox } from "../../patterns/repo-tools/sandbox.ts";
import { DENY, ROOT, SYSTEM } from "../agent.ts";
import { reason } from "../shared/explain.ts";
import type { JobContext } from "../shared/job.ts";
import { temporaryFolder } from "../shared/temporary.ts";
import {
  type AgentSdk,
  type AgentSdkOptions,
  type AgentSdkResult,
  environment,
  INSTALL,
  isResult,
  isTurn,
  loadAgentSdk,
} from "./agent-sdk-package.ts";
import { outcomeOf } from "./agent-sdk-result.ts";
import { type Level, MAX_TURNS, type Outcome } from "./level.ts";
import { denyRules, READ_ONLY, readOnlyHook } from "./read-only.ts";

export const agentSdk: Level = {
  name: "agent-sdk",
  title: "the Claude Agent SDK",
  limits: "maxTurns and maxBudgetUsd: an error result, then query() throws",
  errors: "told to the model, a hook's denial too, and the loop goes on",
  isApart: true,
  ask: (question, context) => askAgentSdk(question, context),
};

/** Its limits and the folder that it may read. */
export interface AgentSdkSettings {
  readonly root?: string;
  readonly maxTurns?: number;
  /** In US dollars. Default 1. */
  readonly maxUsd?: number;
  readonly load?: () => Promise<AgentSdk | undefined>;
}

/** Asks, and says how it ended, be it that there was nobody to ask. */
export async function askAgentSdk(
  question: string,
  { model = "claude-opus-5-5", left, signal }: Pick<JobContext, "model" | "left" | "signal">,
  { root = ROOT, maxTurns = MAX_TURNS, maxUsd = 1, load = loadAgentSdk }: AgentSdkSettings = {},
): Promise<Outcome> {
  const sdk = await load();
  if (!sdk) return { status: `not asked: it isn't installed. Install it with: ${INSTALL}` };
  const maxBudgetUsd = Math.min(maxUsd, left());
  if (maxBudgetUsd <= 0) return { status: "not asked: nothing is left of the budget" };
  const sandbox = createSandbox(root, { deny: DENY });
  using home = temporaryFolder("agent-sdk-");
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  signal?.addEventListener("abort", onAbort);
  const options: AgentSdkOptions = {
    abortController: stop,
    cwd: sandbox.root,
    env: environment(home.path),
    hooks: { PreToolUse: [{ onFailure: "block", hooks: [readOnlyHook(sandbox)] }] },
    maxBudgetUsd,
    maxTurns,
    model,
    permissionMode: "dontAsk",
    persistSession: false,
    settings: { permissions: { deny: denyRules(sandbox) } },
    settingSources: [],
    strictMcpConfig: true,
    systemPrompt: SYSTEM,
    tools: [...READ_ONLY],
  };
  const turns = new Set<string>();
  let result: AgentSdkResult | undefined;
  try {
    signal?.throwIfAborted();
    for await (const message of sdk.query({ prompt: question, options })) {
      if (isTurn(message)) turns.add(message.message.id);
      if (isResult(message)) result = message;
    }
  } catch (error) {
    // At a limit it gives a result first. Else what the others have answered is not to be lost with it.
    if (!result) return { status: `no answer: ${reason(error)}` };
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
  return outcomeOf(result, turns.size, options);
}
