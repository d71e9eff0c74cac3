/**
 * Keeps credentials off the tape.
 *
 *     request ─┬─ its key ───────────────────► struck out of the whole line
 *              └─ other headers, the URL ────► struck out of errors, and of what is no success
 *
 * No header but `anthropic-beta` gets on a tape with the request; but a server or a proxy may quote in
 * an error whatever it was sent. There anything counts as a credential that isn't known to be none. A
 * reply that succeeded, and the request, lose the key alone: a header may hold an ordinary word, and a
 * prompt with that word struck out would never be found again.
 *
 * From effective-agents 0.1.0: patterns/recording/secrets.ts
 */
import { type ApiRequest, identifies } from "./request.ts";
import { succeeded, type TapeLine } from "./tape.ts";

const HARMLESS_HEADERS =
  /^(accept(-.*)?|anthropic-(beta|version|dangerous-direct-browser-access)|connection|content-(length|type)|host|user-agent|x-stainless-.*)$/;

/** A shorter key is a placeholder for a local server, or a plain word. */
const KEY_LENGTH = 12;

/** Anything shorter is struck out nowhere: "none", "true", a version. */
const SECRET_LENGTH = 8;

const MARK = "[struck out]";

/** The line without the credentials of its request. */
export function withoutSecrets(line: TapeLine, { url, headers }: ApiRequest): TapeLine {
  const key = headers.get("authorization")?.replace(/^Bearer /, "");
  const keys = [key ?? "", headers.get("x-api-key") ?? ""];
  const clean = struck(line, keys, KEY_LENGTH);
  if (succeeded(line)) return clean;

  const secrets = [...keys, ...inUrl(new URL(url))];
  for (const [name, value] of headers) {
    if (!HARMLESS_HEADERS.test(name)) secrets.push(value, ...value.split(/[\s,;=]+/));
  }
  const strike = <T>(value: T): T => struck(value, secrets, SECRET_LENGTH);
  const { reply, error } = clean;
  return {
    ...clean,
    ...(reply && { reply: { ...reply, body: strike(reply.body) } }),
    ...(error && { error: strike({ ...error, message: withoutUrlSecrets(error.message) }) }),
  };
}

/** A text without what its URLs hold before the host and after the path. */
function withoutUrlSecrets(text: string): string {
  return text.replace(/(?<=:\/\/)[^\s/?#]*@|(?<=:\/\/[^\s?]*)\?[^\s"']*/g, "");
}

function inUrl({ username, password, searchParams }: URL): readonly string[] {
  const query = [...searchParams].filter(([name]) => !identifies(name));
  const values = [username, password, ...query.map(([, value]) => value)];
  return values.flatMap((value) => [value, encodeURIComponent(value), decoded(value)]);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The value without the secrets of at least this length, in texts and in bytes. */
function struck<T>(value: T, secrets: readonly string[], length: number): T {
  const long = secrets.filter((secret) => secret.length >= length);
  if (long.length === 0) return value;
  // A secret may be a part of another one.
  long.sort((a, b) => b.length - a.length);
  const text = JSON.stringify(value, (name, inner: unknown) => {
    if (name !== "base64" || typeof inner !== "string") return inner;
    const bytes = Buffer.from(inner, "base64").toString("latin1");
    return Buffer.from(without(bytes, long), "latin1").toString("base64");
  });
  return JSON.parse(without(text, long.map(escaped)));
}

function without(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, MARK), text);
}

/** As it stands inside a JSON string. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
