/**
 * The gallery's server before an API that gives prepared answers. Both end with the test.
 *
 *     const { url, api } = await startLive(pages, [reply("<label>billing</label>"), hold]);
 */
import { onTestFinished } from "vitest";
import { createBudget } from "../../patterns/layers/budget.ts";
import { createLlm } from "../../patterns/llm-call.ts";
import { type LiveServer, startLiveServer } from "../../runners/gallery/live-server.ts";
import type { Site } from "../../runners/gallery/site.ts";
import { JOBS } from "../../runners/shared/cli.ts";
import { type Answer, startServer, type TestServer } from "./server.ts";

export interface Live extends LiveServer {
  readonly port: number;
  readonly api: TestServer;
  /** Ends the server. */
  readonly end: (reason: Error) => void;
}

/** Starts both. Of the patterns, route and vote may be run. */
export async function startLive(
  site: Site,
  answers: [Answer, ...Answer[]],
  capUsd = 0.5,
): Promise<Live> {
  const api = await startServer(...answers);
  const budget = createBudget({ usd: capUsd });
  const client = api.client();
  const door = createLlm({ client, layers: [budget.layer] });
  const source = {
    door,
    client,
    header: undefined,
    isScripted: false,
    model: undefined,
    recorded: <T>(tools: T) => tools,
    unused: () => [],
    keep: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const jobs = new Map([...JOBS].filter(([name]) => name === "route" || name === "vote"));
  const end = new AbortController();
  const { signal } = end;
  const server = await startLiveServer({ site, jobs, source, budget, capUsd, port: 0, signal });
  onTestFinished(async () => {
    end.abort();
    await server.closed;
  });
  const port = Number(new URL(server.url).port);
  return { ...server, port, api, end: (reason) => end.abort(reason) };
}
