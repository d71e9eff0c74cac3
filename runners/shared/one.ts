/**
 * Runs one runner by itself, for those that were copied into an app without the others.
 *
 *     npx tsx runners/shared/one.ts route               replays its recording: no key, no network
 *     npx tsx runners/shared/one.ts route "my ticket"   calls the API
 *
 * From effective-agents 0.1.0: runners/shared/one.ts
 */
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { perform } from "./perform.ts";

/** From wherever it was given: an app may have it in `src`. */
const COMMAND = `npx tsx ${relative("", fileURLToPath(import.meta.url))}`;

const [, , name, input] = process.argv;
const { ANTHROPIC_MODEL } = process.env;
if (name === undefined) {
  console.error(`Which runner? ${COMMAND} <name> ["your input"]`);
  process.exitCode = 2;
} else {
  const settings = {
    mode: input === undefined ? "replay" : "live",
    input,
    json: false,
    pace: 0,
    budget: undefined,
    model: ANTHROPIC_MODEL || undefined,
    recording: undefined,
    origin: "api",
    replayCommand: COMMAND,
  } as const;
  // Which runners there are, only the app knows.
  const load = () => import(`../${name}.ts`);
  // Not awaited here: a project without "type": "module" couldn't load it.
  perform([[name, load]], settings, { output: process, env: process.env }).then((code) => {
    process.exitCode = code;
  });
}
