/**
 * The Claude Agent SDK, if it's installed, and as much of its types as level 3 uses. They are written down
 * here since the compiler must do without the package; `npm run test:levels` compares the two.
 *
 * From effective-agents 0.1.0: runners/levels/agent-sdk-package.ts
 */
import type { readOnlyHook } from "./read-only.ts";

/** A text to the compiler, so that it looks for nothing. */
const PACKAGE: string = "@anthropic-ai/claude-agent-sdk";

/** How to install it. Without `--no-save` all who install this project would load it. */
export const INSTALL = `npm install --no-save ${PACKAGE}@0.3.333`;

/** Loads it; gives `undefined` where it isn't installed. */
export async function loadAgentSdk(name = PACKAGE): Promise<AgentSdk | undefined> {
  try {
    return await import(name);
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error;
    if (isMissing && error.code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** What the process gets of ours: whom to ask, and nothing of a person's own settings. */
export function environment(home: string): Record<string, string | undefined> {
  const passed = /^(PATH|SYSTEMROOT|ANTHROPIC_.*|.*_PROXY|NODE_EXTRA_CA_CERTS)$/i;
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => passed.test(name))),
    HOME: home,
    CLAUDE_CONFIG_DIR: home,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_ERROR_REPORTING: "1",
    DISABLE_TELEMETRY: "1",
  };
}

export interface AgentSdk {
  readonly query: (run: {
    readonly prompt: string;
    readonly options: AgentSdkOptions;
  }) => AsyncIterable<AgentSdkMessage>;
}

export interface AgentSdkOptions {
  readonly abortController: AbortController;
  readonly cwd: string;
  readonly env: Record<string, string | undefined>;
  readonly hooks: {
    readonly PreToolUse: { onFailure: "block"; hooks: ReturnType<typeof readOnlyHook>[] }[];
  };
  readonly maxBudgetUsd: number;
  readonly maxTurns: number;
  readonly model: string;
  readonly permissionMode: "dontAsk";
  readonly persistSession: boolean;
  readonly settings: { readonly permissions: { readonly deny: string[] } };
  readonly settingSources: [];
  readonly strictMcpConfig: boolean;
  readonly systemPrompt: string;
  readonly tools: string[];
}

export interface AgentSdkMessage {
  readonly type: string;
}

/** What the model said in a turn: several messages may be of one. */
export interface AgentSdkTurn extends AgentSdkMessage {
  readonly message: { readonly id: string };
  /** Where it's no turn but the text of an error. */
  readonly error?: string;
}

/** The last message of a run. */
export interface AgentSdkResult extends AgentSdkMessage {
  /** `success`, or the limit or the failure that ended it. */
  readonly subtype: string;
  /** Also where the answer of a success is an error's text. */
  readonly is_error: boolean;
  /** The answer of a success. */
  readonly result?: string;
  readonly stop_reason: string | null;
  readonly errors?: readonly string[];
  readonly duration_ms: number;
  readonly total_cost_usd: number;
  /** By model: it may use others beside the one that was asked for. */
  readonly modelUsage: Readonly<Record<string, AgentSdkUsage>>;
}

export interface AgentSdkUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadInputTokens: number;
  readonly cacheCreationInputTokens: number;
}

/** Whether a message is of one of the model's turns. */
export function isTurn(message: AgentSdkMessage): message is AgentSdkTurn {
  return message.type === "assistant" && !("error" in message && message.error);
}

/** Whether a message is the last one. */
export function isResult(message: AgentSdkMessage): message is AgentSdkResult {
  return message.type === "result";
}
