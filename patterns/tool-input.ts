/**
 * Holds what a model calls a tool with to the tool's schema.
 *
 *     input_schema ─► compiled, once ─► input ─┬─ fits
 *                                              └─ what is wrong, and which fields there are
 *
 * The API checks no input, unless the tool is `strict`: a model leaves a field out, makes one up, or writes
 * a number as a word. What is wrong is said to the model, so that its next call fits.
 *
 * Copy along: tool.ts
 * From effective-agents 0.1.0: patterns/tool-input.ts
 */
import type { ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { InputSchema, Tool } from "./tool.ts";

const VALIDATION = {
  // A tool's schema is the developer's own: what a strict reading of the standard finds is a bug.
  strict: true,
  allowUnionTypes: true,
  allErrors: true,
  ownProperties: true,
  // By the standard a format, such as "date-time", is a note and no rule.
  validateFormats: false,
};

/** By the JSON of their schemas. To compile takes 20 ms and more, for which each run would wait. */
const validators = new Map<string, ValidateFunction>();
/** How many are kept: an app may make schemas up as it goes. */
const MAX_VALIDATORS = 1000;

/** Says what is wrong with a tool's input, for the model, or nothing if it fits. */
export type InputCheck = (input: unknown) => string | undefined;

/**
 * Makes the checks of tools.
 *
 * @throws {TypeError} From what it returns: a tool's schema isn't a valid JSON Schema of an object.
 *
 * @example
 * const checkOf = inputChecks();
 * checkOf(add)({ a: 1 });
 * // "The input of 'add' doesn't fit: the input must have required property 'b'. Its fields are: a, b."
 */
export function inputChecks(): (tool: Tool) => InputCheck {
  // One for all, since its first schema takes the longest.
  const ajv = new Ajv2020(VALIDATION);
  return (tool) => {
    const validate = validatorOf(tool, ajv);
    return (input) => (validate(input) ? undefined : faultOf(tool, validate));
  };
}

function validatorOf({ name, input_schema }: Tool, ajv: Ajv2020): ValidateFunction {
  try {
    const key = JSON.stringify(input_schema);
    const validate = validators.get(key) ?? compile(input_schema, ajv);
    if (validators.size >= MAX_VALIDATORS) validators.clear();
    validators.set(key, validate);
    return validate;
  } catch (error) {
    throw new TypeError(`The input_schema of tool "${name}" is no valid JSON Schema`, {
      cause: error,
    });
  }
}

function compile(schema: InputSchema, ajv: Ajv2020): ValidateFunction {
  try {
    const validate = ajv.compile(schema);
    if (schema.type !== "object") {
      throw new Error(`Its type must be "object", got ${JSON.stringify(schema.type)}`);
    }
    // Its answer would be a promise, which passes for a yes.
    if ("$async" in validate) throw new Error("It must not be $async");
    return validate;
  } finally {
    // Another tool's may have the same $id.
    ajv.removeSchema(schema);
  }
}

function faultOf({ name, input_schema }: Tool, { errors }: ValidateFunction): string {
  const faults = (errors ?? []).map(({ instancePath, message, params }) => {
    const { additionalProperty: extra, allowedValues, allowedValue } = params;
    const allowed = allowedValues ?? (allowedValue === undefined ? undefined : [allowedValue]);
    const more = extra ? ` '${extra}'` : allowed ? `: ${JSON.stringify(allowed).slice(1, -1)}` : "";
    return `${instancePath.slice(1).replaceAll("/", ".") || "the input"} ${message}${more}`;
  });
  const fields = Object.keys(input_schema.properties ?? {}).join(", ");
  return `The input of '${name}' doesn't fit: ${faults.join("; ")}. Its fields are: ${fields}.`;
}
