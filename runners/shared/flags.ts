/**
 * Reads a command's flags; what's wrong with them is told in one line.
 */
import { resolve } from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { type Budget, createBudget } from "../../patterns/layers/budget.ts";
import { UsageError } from "./explain.ts";

type Options = NonNullable<ParseArgsConfig["options"]>;

/**
 * npm keeps flags for itself that stand before `--`, and hands them over as settings of its own.
 *
 * @param command The command that was meant, without flags.
 * @throws {UsageError} It has kept one of these.
 */
export function checkKept(options: Options, env: NodeJS.ProcessEnv, command: string): void {
  const kept = Object.keys(options).find((flag) => {
    return flag !== "help" && env[`npm_config_${flag.replaceAll("-", "_")}`];
  });
  if (kept === undefined) return;
  const right = `${command} -- --${kept}`;
  throw new UsageError(`npm kept --${kept} for itself: write -- before flags, as in ${right}`);
}

/**
 * Reads flags and positionals as `util.parseArgs` does.
 *
 * @param help The command that shows the help.
 * @throws {UsageError} A flag is unknown, or has no value.
 */
export function readFlags<const O extends Options>(
  args: readonly string[],
  options: O,
  help: string,
): ReturnType<typeof parseArgs<{ options: O; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${message.split(/[.\n]/)[0]}; see ${help}`);
  }
}

/**
 * Reads a flag's number.
 *
 * @param least The smallest that it may be; `Number.MIN_VALUE` for any above 0.
 * @throws {UsageError} It's no number, or smaller.
 */
export function readNumber(
  name: string,
  text: string | undefined,
  least: number,
): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value) && value >= least) return value;
  const rule = least === Number.MIN_VALUE ? "above 0" : `of at least ${least}`;
  throw new UsageError(`--${name} must be a number ${rule}, got ${JSON.stringify(text)}`);
}

/** Reads a flag's count, 1 or more. Throws a `UsageError` for anything else. */
export function readCount(name: string, text: string | undefined): number | undefined {
  const value = readNumber(name, text, 1);
  if (value === undefined || Number.isSafeInteger(value)) return value;
  throw new UsageError(`--${name} must be a whole number, got ${JSON.stringify(text)}`);
}

/** Reads `--budget`: what there is to spend, or `undefined` for no limit. */
export function readBudget(text: string | undefined): Budget | undefined {
  const usd = readNumber("budget", text, Number.MIN_VALUE);
  return usd === undefined ? undefined : createBudget({ usd });
}

/** The model that is asked for by `--model`, else by the environment. Throws a `UsageError` for none. */
export function readModel(flag: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  if (flag?.trim() === "") throw new UsageError("--model is empty: give the id of a model");
  const { ANTHROPIC_MODEL } = env;
  return flag ?? (ANTHROPIC_MODEL || undefined);
}

/** A path on the command line, from where the command was given: npm itself goes to the project's folder. */
export function readPath(path: string, env: NodeJS.ProcessEnv): string {
  const { INIT_CWD = "." } = env;
  return resolve(INIT_CWD, path);
}
