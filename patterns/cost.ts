/**
 * What a call costs, in US dollars.
 *
 *     usage = input + cache writes + cache reads + output     each class at its model's own price
 *
 * The API counts the four apart: `input_tokens` holds neither cache class. Where it summed the
 * conversation up first (a compaction), that call's counts come on top. What isn't known is never guessed:
 * a model that isn't in the table, a class without a price, a reply without its counts, a tier or a server
 * tool that is billed otherwise make the cost `undefined`, not 0 and not another model's. `unboundedPart`
 * says the same of a request, before it is sent.
 *
 * Copy along: step.ts, usage.ts
 * From effective-agents 0.1.0: patterns/cost.ts
 */
import type { Usage } from "./step.ts";
import { compactionsIn } from "./usage.ts";

/** Prices of one model, in US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Reading from the cache. Left out where it isn't known. */
  readonly cacheRead?: number;
  /** Where the figures are from, and the day they were read. */
  readonly source: string;
}

/** Prices by model id. */
export type Prices = ReadonlyMap<string, Price>;

/** The current models' prices. Where sources contradict each other, a class is left out. */
export const PRICES: Prices = new Map<string, Price>([
  [
    "claude-opus-5-5",
    {
      input: 4,
      output: 20,
      cacheRead: 0.2,
      source: "https://platform.claude.com/docs/en/models/opus-5-5/overview, 2026-12-01",
    },
  ],
  [
    // Cache reads are left out: the page says $0.20, and several price trackers $0.10 since October.
    "claude-sonnet-5-5",
    {
      input: 2,
      output: 10,
      source: "https://platform.claude.com/docs/en/models/sonnet-5-5/overview, 2026-12-01",
    },
  ],
]);

/** Writing to the cache costs this many times the input price, by how long the entry lives: so for
 * both models above, on the same pages. */
export const CACHE_WRITE: { readonly "5m": number; readonly "1h": number } = {
  "5m": 1.25,
  "1h": 2,
};

/** Counts of a reply beside the tokens, that change what it costs. */
interface Billed extends Usage {
  readonly cache_creation?: {
    readonly ephemeral_5m_input_tokens?: number;
    readonly ephemeral_1h_input_tokens?: number;
  } | null;
  readonly service_tier?: string | null;
  readonly speed?: string | null;
  readonly inference_geo?: string | null;
  readonly server_tool_use?: object | null;
  /** Beta: what the reply was made of. All but its messages and compactions are another model's. */
  readonly iterations?: readonly { readonly type: string }[] | null;
}

/**
 * The price of a model: its exact id, or that id with a date after it (`claude-opus-5-5-20261015`).
 *
 * @example
 * priceOf("claude-opus-5-5")?.output; // 20
 */
export function priceOf(model: string, prices: Prices = PRICES): Price | undefined {
  return prices.get(model) ?? prices.get(model.replace(/-\d{8}$/, ""));
}

/**
 * What a call cost in US dollars, or `undefined` where that can't be known.
 *
 * @example
 * costOf("claude-sonnet-5-5", { input_tokens: 1_000, output_tokens: 200 }); // 0.004
 */
export function costOf(model: string, usage: Billed, prices: Prices = PRICES): number | undefined {
  const price = priceOf(model, prices);
  const { input_tokens: input, output_tokens: output } = usage;
  // Whatever the types say, a server may leave them out, and null times a price is 0.
  const isCounted = [input, output].every((count) => Number.isFinite(count) && count >= 0);
  if (!price || !isCounted || !isStandard(usage)) return undefined;
  const written = usage.cache_creation_input_tokens ?? 0;
  const { ephemeral_5m_input_tokens = 0, ephemeral_1h_input_tokens: written1h = 0 } =
    usage.cache_creation ?? {};
  const written5m = Math.max(written - written1h, ephemeral_5m_input_tokens);
  const read = usage.cache_read_input_tokens ?? 0;
  if (read > 0 && price.cacheRead === undefined) return undefined;
  const perMillion =
    input * price.input +
    written5m * price.input * CACHE_WRITE["5m"] +
    written1h * price.input * CACHE_WRITE["1h"] +
    read * (price.cacheRead ?? 0) +
    output * price.output;
  let usd = perMillion / 1_000_000;
  for (const compaction of compactionsIn(usage)) {
    usd += costOf(model, compaction, prices) ?? Number.NaN;
  }
  return Number.isFinite(usd) ? usd : undefined;
}

/**
 * The same, but where a model's price of cache reads isn't known they count at its input price, which they
 * never exceed. For limits: a figure to show is `costOf`'s.
 *
 * @example
 * costAtMost("claude-sonnet-5-5", { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 9_000 }); // 0.018
 */
export function costAtMost(
  model: string,
  usage: Billed,
  prices: Prices = PRICES,
): number | undefined {
  const price = priceOf(model, prices);
  if (!price) return undefined;
  const { cacheRead = price.input } = price;
  return costOf(model, usage, new Map([[model, { ...price, cacheRead }]]));
}

/** Other tiers, the fast mode, a bound region and the server's tools have prices of their own. */
function isStandard(usage: Billed): boolean {
  const { service_tier, speed, inference_geo, server_tool_use, iterations } = usage;
  const toolRequests = Object.values(server_tool_use ?? {}).some((count) => count > 0);
  return (
    !toolRequests &&
    (iterations ?? []).every(({ type }) => type === "message" || type === "compaction") &&
    (service_tier ?? "standard") === "standard" &&
    (speed ?? "standard") === "standard" &&
    ["global", "not_available"].includes(inference_geo ?? "global")
  );
}

/**
 * What keeps a request's cost from being bounded by its bytes and `max_tokens` at the model's prices,
 * or `undefined` where nothing does. A parameter that isn't known here is such a part too.
 *
 * @example
 * unboundedPart({ model: "claude-opus-5-5", max_tokens: 9, speed: "fast" }); // "a speed other than standard"
 */
export function unboundedPart(request: object): string | undefined {
  const parameters: [string, unknown][] = Object.entries(request);
  for (const [name, value] of parameters) {
    if (value === undefined || value === null || BOUNDED.has(name)) continue;
    const [what, isBounded] = BOUNDED_IF.get(name) ?? [`the parameter ${name}`];
    if (!isBounded?.(value)) return what;
  }
  return undefined;
}

/** Parameters that make a request cost no more than their bytes, whatever they say. */
const BOUNDED: ReadonlySet<string> = new Set(
  (
    "model max_tokens stream betas billing_policy cache_control diagnostics fallback_credit_token " +
    "metadata output_config output_format stop_sequences temperature thinking tool_choice top_k " +
    "top_p user_profile_id workspace_id"
  ).split(" "),
);

/** Parameters that do for some values, and what the others are called. */
const BOUNDED_IF: ReadonlyMap<string, readonly [string, (value: unknown) => boolean]> = new Map([
  ["messages", ["a file or a URL in messages", isInline]],
  ["system", ["a file or a URL in system", isInline]],
  ["tools", ["a tool of the API's own in tools", (tools) => listOf(tools).every(isCustom)]],
  ["speed", ["a speed other than standard", (speed) => speed === "standard"]],
  ["service_tier", ["another service_tier", (tier) => tier === "auto" || tier === "standard_only"]],
  ["inference_geo", ["an inference_geo other than global", (geo) => geo === "global"]],
  ["context_management", ["a compaction in context_management", isClearing]],
]);

/** What messages, blocks and tools are made of, as far as it matters here. */
interface Part {
  readonly type?: unknown;
  readonly content?: unknown;
  readonly source?: Part | null;
}

/** Blocks and sources whose content the API gets from somewhere else. */
const ELSEWHERE: ReadonlySet<unknown> = new Set(["url", "file", "container_upload"]);

/** Whether all that is sent is in the request itself, in tool results and documents too. */
function isInline(parts: unknown): boolean {
  return listOf(parts).every((part) => {
    const { type, content, source } = part ?? {};
    const isElsewhere = [type, source?.type].some((kind) => ELSEWHERE.has(kind));
    return !isElsewhere && isInline(content) && isInline(source?.content);
  });
}

/** What is cleared isn't sent. A compaction is a call of its own, and nothing says how long. */
function isClearing(management: unknown): boolean {
  // What isn't an object has no edits, and the API refuses it.
  const { edits } = Object(management) as { readonly edits?: unknown };
  return listOf(edits).every((edit) => String(edit?.type).startsWith("clear_"));
}

/** Whether it's a tool that runs here: the API's own cost more than their bytes. */
function isCustom(tool: Part | null): boolean {
  return RUN_HERE.has(tool?.type ?? "custom");
}

const RUN_HERE: ReadonlySet<unknown> = new Set([
  ...["custom", "memory_20250818", "bash_20250124", "text_editor_20250728"],
]);

function listOf(value: unknown): readonly (Part | null)[] {
  return Array.isArray(value) ? value : [];
}
