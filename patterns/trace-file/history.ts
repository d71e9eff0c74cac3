/**
 * Finds what a call's messages have in common with an earlier call's.
 *
 *     turn[0]   ask
 *     turn[1]   ask, use, result                    the first 1 are those of turn[0]
 *     turn[2]   ask, use, result, use, result       the first 3 are those of turn[1]
 *
 * Written whole, an agent's run of n turns would hold its first message n times.
 *
 * From effective-agents 0.1.0: patterns/trace-file/history.ts
 */
import { plain } from "./plain.ts";

/** A request as the file has it: so many of its messages are left out, and are those of the call at `path`. */
export interface Cut {
  readonly request?: unknown;
  readonly messagesFrom?: { readonly path: string; readonly count: number };
}

/** A message after the ones before it, and the first call that sent it there. */
interface Place {
  readonly path: string;
  readonly next: Map<string, Place>;
}

/** Makes a function that cuts requests, which are given to it in the order in which they go out. */
export function createHistory(): (path: string, request: unknown) => Cut {
  const start: Place = { path: "", next: new Map() };
  return (path, request) => {
    const { messages, ...params } = Object(request);
    if (!Array.isArray(messages)) return { request };
    let place = start;
    let messagesFrom = { path, count: 0 };
    for (const message of messages) {
      const key = JSON.stringify(plain(message));
      const known = place.next.get(key);
      if (known) messagesFrom = { path: known.path, count: messagesFrom.count + 1 };
      const next = known ?? { path, next: new Map() };
      place.next.set(key, next);
      place = next;
    }
    // One message alone is a prompt, which is read where it was sent. Copied, for the list may grow.
    if (messagesFrom.count < 2) return { request: { ...params, messages: [...messages] } };
    return { request: { ...params, messages: messages.slice(messagesFrom.count) }, messagesFrom };
  };
}
