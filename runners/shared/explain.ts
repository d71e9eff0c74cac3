/**
 * What to do about an error, in one line.
 *
 * From effective-agents 0.1.0: runners/shared/explain.ts
 */
import { APIConnectionError, APIError, AuthenticationError } from "@anthropic-ai/sdk";
import { PRICES } from "../../patterns/cost.ts";
import { inWords } from "../../patterns/errors.ts";

/** A command that can't be carried out; the message says in one line what to do instead. */
export class UsageError extends Error {}

/** Says what went wrong and, where we know it, what to do; `replay` is the command that needs no API. */
export function explain(error: unknown, replay?: string): string {
  if (!(error instanceof Error)) return `Failed: ${inWords(error)}`;
  if (error instanceof UsageError) return error.message;
  const watch = replay ? `, or watch the recording: ${replay}` : "";
  if (/authentication method/i.test(error.message)) {
    return `No API key: set ANTHROPIC_API_KEY (any value will do for a server of your own at ANTHROPIC_BASE_URL)${watch}`;
  }
  if (error instanceof AuthenticationError) {
    return `The API refused the key (${error.status}): check ANTHROPIC_API_KEY${watch}`;
  }
  if (error instanceof APIConnectionError) {
    const cause = error.cause instanceof Error ? ` (${told(deepest(error.cause))})` : "";
    return `No connection to the API${cause}: check the network and ANTHROPIC_BASE_URL${watch}`;
  }
  // Its message holds the key.
  if (error instanceof TypeError && /^Headers\./.test(error.message)) {
    return "ANTHROPIC_API_KEY holds what no header may hold, such as the end of a line: set it anew";
  }
  if (error instanceof TypeError && error.message === "Invalid URL") {
    return "ANTHROPIC_BASE_URL is no URL: it must be like http://localhost:11434";
  }
  if (error instanceof RangeError && /needs the price/.test(error.message)) {
    const known = [...PRICES.keys()].join(" and ");
    return `--budget needs a model whose price is known (${known}): leave it out, or change --model`;
  }
  return error instanceof APIError ? reason(error) : `${error.name}: ${error.message}`;
}

/** Why a file that was named can't be read. */
export function whyUnread(error: NodeJS.ErrnoException): string {
  const known = {
    ENOENT: "there is no such file",
    EISDIR: "it's a folder",
    EACCES: "it's forbidden",
  };
  return new Map(Object.entries(known)).get(error.code ?? "") ?? error.message;
}

/** What an error says. The SDK puts the whole body of an API's error into its message. */
export function reason(error: unknown): string {
  if (!(error instanceof APIError) || !error.apiMessage) {
    return error instanceof Error ? error.message : inWords(error);
  }
  return `The API answered ${error.status}: ${error.apiMessage}`;
}

/** Where a name has several addresses and none answers, Node's error has a code and no message. */
function told(error: Error): string {
  return error.message || ("code" in error ? String(error.code) : error.name);
}

function deepest(error: Error): Error {
  return error.cause instanceof Error ? deepest(error.cause) : error;
}
