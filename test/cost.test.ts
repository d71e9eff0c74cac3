/**
 * What a call costs: each kind of token at its own model's price, and unknown where that is unknown.
 *
 * From effective-agents 0.1.0: test/cost.test.ts
 */
import { expect, test } from "vitest";
import {
  CACHE_WRITE,
  costAtMost,
  costOf,
  PRICES,
  type Prices,
  priceOf,
  unboundedPart,
} from "../patterns/cost.ts";
import { message } from "./shared/server.ts";

const MILLION = 1_000_000;
const NOTHING = { input_tokens: 0, output_tokens: 0 };

/** A table with these prices for the model `m`, in dollars per million tokens. */
function table(input: number, output: number, cacheRead?: number): Prices {
  const price = { input, output, source: "test", ...(cacheRead !== undefined && { cacheRead }) };
  return new Map([["m", price]]);
}

test("prices the four classes apart, the cached ones not taken out of the input", () => {
  const usage = {
    input_tokens: 1,
    cache_creation_input_tokens: 287,
    cache_read_input_tokens: 30_433,
    output_tokens: 67,
  };
  expect(costOf("m", usage, table(3, 15, 0.3))).toBeCloseTo(0.01121415, 12);
});

test("prices an hour's cache write twice as high as the input, and five minutes' at 1.25 of it", () => {
  const usage = { ...NOTHING, cache_creation_input_tokens: MILLION };
  const split = { ephemeral_5m_input_tokens: 600_000, ephemeral_1h_input_tokens: 400_000 };
  expect(costOf("m", { ...usage, cache_creation: split }, table(5, 25))).toBeCloseTo(7.75, 10);
  expect(costOf("m", usage, table(5, 25))).toBeCloseTo(6.25, 10);
  expect(costOf("m", { ...usage, cache_creation: null }, table(5, 25))).toBeCloseTo(6.25, 10);
  expect(CACHE_WRITE).toEqual({ "5m": 1.25, "1h": 2 });
});

test("prices what was written to the cache where the sum or the split is missing", () => {
  const split = { ephemeral_5m_input_tokens: 600_000, ephemeral_1h_input_tokens: 400_000 };
  const noSum = { ...NOTHING, cache_creation: split };
  expect(costOf("m", noSum, table(5, 25))).toBeCloseTo(7.75, 10);
  const nothingSplit = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 };
  const usage = { ...NOTHING, cache_creation_input_tokens: MILLION, cache_creation: nothingSplit };
  expect(costOf("m", usage, table(5, 25))).toBeCloseTo(6.25, 10);
});

test("counts a class that is null or missing as none", () => {
  const usage = { input_tokens: 1000, output_tokens: 200 };
  const nulls = {
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    cache_creation: null,
    server_tool_use: null,
    service_tier: null,
    speed: null,
    inference_geo: null,
    iterations: null,
  };
  expect(costOf("claude-sonnet-5-5", usage)).toBeCloseTo(0.004, 12);
  expect(costOf("claude-sonnet-5-5", { ...usage, ...nulls })).toBeCloseTo(0.004, 12);
});

test("finds a model by its exact id, or by that id with a date after it", () => {
  expect(priceOf("claude-opus-5-5")?.output).toBe(20);
  expect(priceOf("claude-opus-5-5-20261015")).toBe(priceOf("claude-opus-5-5"));
});

test.for([
  "claude-opus-5",
  "claude-opus-5-50",
  "claude-opus-5-5-1",
  "claude-opus-5-5-2026101",
  "claude-opus-5-5-20261015-v2",
  "claude-opus-5-5-latest",
  "CLAUDE-OPUS-5-5",
  "anthropic.claude-opus-5-5",
  "constructor",
  "__proto__",
  "toString",
  "",
])("knows no price of %j, and takes none from a model of a similar name", (model) => {
  expect(priceOf(model)).toBe(undefined);
  expect(costOf(model, { input_tokens: 1, output_tokens: 1 })).toBe(undefined);
  expect(costOf(model, NOTHING)).toBe(undefined);
});

test("prices each call by its own model, whatever their order", () => {
  const prices: Prices = new Map([
    ["dear", { input: 5, output: 25, source: "test" }],
    ["cheap", { input: 1, output: 5, source: "test" }],
  ]);
  const usage = { ...NOTHING, input_tokens: MILLION };
  const costs = ["dear", "cheap", "dear"].map((model) => costOf(model, usage, prices));
  expect(costs).toEqual([5, 1, 5]);
});

test("doesn't know the cost where the cache was read and reading has no price", () => {
  const read = { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 1 };
  expect(costOf("m", read, table(3, 15))).toBe(undefined);
  expect(costOf("m", { ...read, cache_read_input_tokens: 0 }, table(3, 15))).toBeCloseTo(18e-6, 12);
  expect(costOf("m", read, table(3, 15, 0))).toBeCloseTo(18e-6, 12);
  expect(costOf("claude-sonnet-5-5", read)).toBe(undefined);
  expect(costOf("claude-opus-5-5", read)).toBeCloseTo(24.2e-6, 12);
});

test("counts cache reads without a price at the most that they can cost, for limits", () => {
  const read = { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 10 };
  expect(costAtMost("claude-sonnet-5-5", read)).toBeCloseTo(32e-6, 12);
  expect(costAtMost("claude-opus-5-5-20261015", read)).toBeCloseTo(26e-6, 12);
  expect(costAtMost("m", read, table(3, 15, 0))).toBeCloseTo(18e-6, 12);
  expect(costAtMost("m", read)).toBe(undefined);
  expect(costAtMost("claude-sonnet-5-5", { ...read, ...{ speed: "fast" } })).toBe(undefined);
});

test.for([
  { service_tier: "priority" },
  { service_tier: "batch" },
  { service_tier: "flex" },
  { speed: "fast" },
  { inference_geo: "us" },
  { server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } },
  { server_tool_use: { code_execution_requests: 2 } },
  // A compaction that doesn't say what it used.
  { iterations: [{ type: "message" }, { type: "compaction" }] },
  { iterations: [{ type: "fallback_message" }] },
  { iterations: [{ type: "advisor_message" }, { type: "message" }] },
])("doesn't know the cost of what is billed otherwise: %j", (billed) => {
  const usage = { input_tokens: 10, output_tokens: 10 };
  expect(costOf("claude-opus-5-5", { ...usage, ...billed })).toBe(undefined);
});

test.for([
  { service_tier: "standard" },
  { speed: "standard" },
  { inference_geo: "global" },
  { inference_geo: "not_available" },
  { server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 } },
  { server_tool_use: {} },
  { iterations: [] },
  { iterations: [{ type: "message" }, { type: "message" }] },
])("knows the cost of what is billed at the standard price: %j", (billed) => {
  const usage = { input_tokens: 10, output_tokens: 10 };
  expect(costOf("claude-opus-5-5", { ...usage, ...billed })).toBeCloseTo(240e-6, 12);
});

test("adds what a compaction cost, which comes on top of the reply's own counts", () => {
  const compaction = { type: "compaction", input_tokens: 1_000, output_tokens: 100 };
  const usage = { input_tokens: 10, output_tokens: 10 };
  const cost = (rest: object) => costOf("claude-opus-5-5", { ...usage, ...rest });
  expect(cost({ iterations: [compaction, { type: "message", ...usage }] })).toBeCloseTo(6_240e-6);
  expect(cost({ iterations: [compaction, compaction] })).toBeCloseTo(12_240e-6);
  const read = { ...compaction, cache_read_input_tokens: 1_000 };
  expect(cost({ iterations: [read] })).toBeCloseTo(6_440e-6);
  expect(costOf("claude-sonnet-5-5", { ...usage, ...{ iterations: [read] } })).toBe(undefined);
});

test("doesn't know the cost where a reply doesn't say what it used", () => {
  // What a server that isn't Anthropic's may leave out, whatever the types say.
  const partial: { input_tokens: number; output_tokens: number } = JSON.parse('{"input_tokens":5}');
  expect(costOf("claude-opus-5-5", partial)).toBe(undefined);
  for (const count of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY, "5", -5]) {
    const wrong = count as number;
    const usages = [
      { input_tokens: wrong, output_tokens: 1 },
      { input_tokens: 1, output_tokens: wrong },
    ];
    for (const usage of usages) expect(costOf("claude-opus-5-5", usage)).toBe(undefined);
  }
});

test("prices a reply of the SDK as it comes", () => {
  const { model, usage } = message("Hi");
  expect(costOf(model, usage)).toBeCloseTo((12 * 2 + 3 * 10) / MILLION, 12);
});

test("takes the caller's prices instead of the table's", () => {
  const prices = table(1, 1);
  expect(costOf("claude-opus-5-5", NOTHING, prices)).toBe(undefined);
  expect(costOf("m", { input_tokens: MILLION, output_tokens: 0 }, prices)).toBe(1);
  expect(costOf("m", NOTHING, table(0, 0))).toBe(0);
});

test.for([...PRICES])("says where the price of %s is from and when it was read", ([, price]) => {
  expect(price.source).toMatch(/^https:\/\/\S+, \d{4}-\d{2}-\d{2}$/);
  for (const amount of [price.input, price.output]) expect(amount).toBeGreaterThan(0);
  if (price.cacheRead !== undefined) expect(price.cacheRead).toBeLessThan(price.input);
});

test("has the prices of the two default models as they were read", () => {
  expect(priceOf("claude-opus-5-5")).toMatchObject({ input: 4, output: 20, cacheRead: 0.2 });
  expect(priceOf("claude-sonnet-5-5")).toMatchObject({ input: 2, output: 10 });
});

const user = (...content: readonly object[]) => ({ messages: [{ role: "user", content }] });
const image = (type: string) => ({ type: "image", source: { type } });

test.for([
  user({ type: "text", text: 'quoting "source":{"type":"url"}' }),
  user(image("base64")),
  user({ type: "document", source: { type: "text", data: "Hi" } }),
  user({ type: "document", source: { type: "content", content: [image("base64")] } }),
  user({ type: "tool_use", input: { source: { type: "url" } } }),
  { messages: [{ role: "user", content: "Hi" }] },
  { system: "Be brief", tools: [{ name: "look", input_schema: {} }, { type: "memory_20250818" }] },
  { speed: "standard", service_tier: "standard_only", inference_geo: "global" },
  { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
  { context_management: {} },
  { service_tier: "auto", speed: null, container: null, mcp_servers: undefined },
  { thinking: { type: "adaptive" }, output_config: { effort: "low" }, betas: ["some-beta"] },
])("finds nothing that keeps the cost from being bounded in %j", (params) => {
  expect(unboundedPart({ model: "m", max_tokens: 9, ...params })).toBe(undefined);
});

test.for([
  [user(image("url")), "a file or a URL in messages"],
  [user({ type: "document", source: { type: "file" } }), "a file or a URL in messages"],
  [user({ type: "container_upload", file_id: "f" }), "a file or a URL in messages"],
  [user({ type: "tool_result", content: [image("url")] }), "a file or a URL in messages"],
  [
    user({ type: "document", source: { type: "content", content: [image("file")] } }),
    "a file or a URL in messages",
  ],
  [{ system: [image("url")] }, "a file or a URL in system"],
  [
    { tools: [{ type: "custom" }, { type: "web_search_20260318" }] },
    "a tool of the API's own in tools",
  ],
  [{ speed: "fast" }, "a speed other than standard"],
  [{ service_tier: "priority" }, "another service_tier"],
  [{ inference_geo: "us" }, "an inference_geo other than global"],
  [
    { context_management: { edits: [{ type: "clear_x" }, { type: "compact_20260112" }] } },
    "a compaction in context_management",
  ],
  [{ context_management: { edits: [null] } }, "a compaction in context_management"],
  [{ container: "c" }, "the parameter container"],
  [{ mcp_servers: [] }, "the parameter mcp_servers"],
  [{ fallbacks: "default" }, "the parameter fallbacks"],
  [{ something_new: 1 }, "the parameter something_new"],
] as const)("says what keeps the cost of %j from being bounded", ([params, what]) => {
  expect(unboundedPart({ model: "m", max_tokens: 9, ...params })).toBe(what);
});
