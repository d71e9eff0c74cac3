/**
 * Tells runs of one name apart, one after the other: `agent`, and then `agent#2`.
 *
 * Within a run no two steps have the same path. Two runs do, and in one file they would be one.
 *
 * From effective-agents 0.1.0: patterns/trace-file/names.ts
 */
import type { EndEvent, StartEvent } from "../step.ts";

/**
 * Makes a function that gives the path of each event in the file.
 *
 * @param noted The paths in the file so far.
 */
export function createNames(
  noted: ReadonlyMap<string, unknown>,
): (event: StartEvent | EndEvent) => string {
  const renamed = new Map<string, string>();
  const named = (path: string) => {
    for (const [run, name] of renamed) {
      if (path === run || path.startsWith(`${run}/`)) return name + path.slice(run.length);
    }
    return path;
  };
  return ({ type, kind, path }) => {
    // Inside one step no path is used twice, so that this is a run.
    if (type === "start" && kind === "step" && noted.has(named(path))) {
      let count = 2;
      while (noted.has(`${path}#${count}`)) count += 1;
      renamed.set(path, `${path}#${count}`);
    }
    return named(path);
  };
}
