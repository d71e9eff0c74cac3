/**
 * The failure lab: the eight ways in which agents fail, each made to happen, and caught.
 *
 *   npm start failures                  runs all eight: no key, no network, no recording
 *   npm start failures endless-loop     runs one
 *
 * Each is a small run of an agent against a model that is a function. What you'd see without the catch
 * comes of the same run with the catch taken out, and the line that catches is found in the source.
 */
import { failure as contextRot } from "./failures/context-rot.ts";
import { failure as driedUpCalls } from "./failures/dried-up-calls.ts";
import { failure as endlessLoop } from "./failures/endless-loop.ts";
import type { Failure } from "./failures/failure.ts";
import { failure as ignoredCalls } from "./failures/ignored-calls.ts";
import { failure as inventedArguments } from "./failures/invented-arguments.ts";
import { failure as runawayCost } from "./failures/runaway-cost.ts";
import { failure as silentErrors } from "./failures/silent-errors.ts";
import { failure as tooMuch } from "./failures/too-much.ts";

/** By name. */
export const FAILURES: ReadonlyMap<string, Failure> = new Map(
  [
    endlessLoop,
    inventedArguments,
    contextRot,
    runawayCost,
    tooMuch,
    silentErrors,
    driedUpCalls,
    ignoredCalls,
  ].map((failure) => [failure.name, failure]),
);
