/**
 * What a model is told of a call that didn't run, or failed after it was approved: what became of it, and
 * what to do next.
 *
 * From effective-agents 0.1.0: patterns/approve/refusals.ts
 */
import type { ApprovalRequest } from "../approve.ts";
import { inWords } from "../errors.ts";
import { ToolError } from "../tool.ts";

/** It was refused, or nobody answered. */
export function declined({ call }: ApprovalRequest, objection: string): ToolError {
  return new ToolError(
    `Declined: ${call} was not run, since ${objection}. Don't call it again unless you are told to: go on without it, and say in your answer that it was not done, and why.`,
  );
}

/** Its effect is no longer the one that was approved. */
export function outdated({ call, effect }: ApprovalRequest, now: string): ToolError {
  return new ToolError(
    `${call} was approved but not run, since meanwhile its effect is another. It was: ${effect} It is now: ${now} Call it again if it is still right, and it will be asked for anew.`,
  );
}

/** It has come twice. */
export function decidedAlready(callId: string): ToolError {
  return new ToolError(
    `The call ${callId} is decided already, and is decided once: see its other result. For something else, make a call of its own.`,
  );
}

/** It was approved, and its effect couldn't be looked at once more. */
export function notRun({ call }: ApprovalRequest, cause: unknown): ToolError {
  return new ToolError(
    `${call} was approved but not run, since its effect could not be looked at again: ${messageOf(cause)}. Don't call it again unless you are told to: go on without it, and say in your answer that it was not done, and why.`,
    { cause },
  );
}

/** It was approved, and has failed. */
export function failed({ call }: ApprovalRequest, cause: unknown): ToolError {
  return new ToolError(
    `${call} was approved and then failed: ${messageOf(cause)}. Whether it took effect isn't known. Don't call it again, with whatever input: go on without it, and say in your answer that a person must look whether it was done.`,
    { cause },
  );
}

/** What an error says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : inWords(error);
}
