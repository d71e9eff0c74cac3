/**
 * The tool by which a subagent ends: findings with their evidence and source, and what is left open.
 *
 *     deliver ─► fits the schema? ─► says something? ─► short enough? ─► accepted
 *                   │ no                │ no               │ no, the first time
 *                   └───────────────────┴──────────────────┴─► is_error, what to mend
 *
 * Whoever asked reads nothing of the run but this. So a claim without evidence or source doesn't pass,
 * and what could not be verified has a place of its own: a model without one puts it among the findings.
 *
 * Copy along: errors.ts, step.ts, tool.ts
 * From effective-agents 0.1.0: patterns/deliver.ts
 */
import { isBlank } from "./errors.ts";
import { defineTool, type Tool, ToolError } from "./tool.ts";

/** Something that was found out. None of the three is blank. */
export interface Finding {
  readonly claim: string;
  /** What bears the claim out, as it was seen. */
  readonly evidence: string;
  /** Where it is to be seen, such as `src/http.ts:42`. Nobody has checked it yet. */
  readonly source: string;
}

/** What a subagent hands over: at least one finding or one gap. */
export interface Delivery {
  readonly findings: readonly Finding[];
  /** What was looked for and not found, or could not be verified. */
  readonly gaps: readonly string[];
}

/** A `deliver` for one run. */
export interface Deliver {
  readonly tool: Tool;
  /** Whether a delivery was accepted; the first one counts. */
  readonly isAccepted: () => boolean;
  /** What was delivered: also one that was sent back as too long, while there is none shorter. */
  readonly delivery: () => Delivery | undefined;
}

/** What of a delivery goes through at once: twice what is asked for, at four characters a token. */
const MAX_CHARS = 16_000;

/** Makes the tool. */
export function createDeliver(): Deliver {
  let delivery: Delivery | undefined;
  let isAccepted = false;
  const tool = defineTool<Delivery>({
    name: "deliver",
    description: DESCRIPTION,
    strict: true,
    input_schema: {
      type: "object",
      properties: {
        findings: {
          type: "array",
          description: "What you found out, what matters most first. Empty if there is nothing.",
          items: {
            type: "object",
            properties: {
              claim: { type: "string", description: "What is so, in a sentence or two." },
              evidence: {
                type: "string",
                description:
                  "What you saw that bears it out: a short quote, a number, a result. No more of it than the claim needs.",
              },
              source: {
                type: "string",
                description:
                  "Where to see it, exact enough for somebody else to look it up: path:line or path:first-last of a file, an address, a page.",
              },
            },
            required: ["claim", "evidence", "source"],
            additionalProperties: false,
          },
        },
        gaps: {
          type: "array",
          description:
            "What you looked for and didn't find, could not verify, or only infer, each in a sentence with where you looked. Empty if there is nothing.",
          items: { type: "string" },
        },
      },
      required: ["findings", "gaps"],
      additionalProperties: false,
    },
    run: (given) => {
      if (isAccepted) throw new ToolError("You have delivered already: the first delivery counts.");
      checkDelivery(given);
      const { length } = JSON.stringify(given);
      const wasSentBack = delivery !== undefined;
      delivery = given;
      if (length > MAX_CHARS && !wasSentBack) throw new ToolError(tooLong(length));
      isAccepted = true;
      return "Delivered.";
    },
  });
  return { tool, isAccepted: () => isAccepted, delivery: () => delivery };
}

const DESCRIPTION = `Hand over your result, which ends your work. It is all that whoever gave you the task will ever see of it, so call it when you are done or can get no further, alone and once. All findings and gaps together take 1,000 to 2,000 tokens. If something is wrong with it you are told what, and call it again; else nothing comes back.`;

/** What the schema can't say. */
function checkDelivery({ findings, gaps }: Delivery): void {
  if (findings.length + gaps.length === 0) {
    throw new ToolError(
      "There is nothing in it. If you found nothing out, say in gaps what you looked for and where.",
    );
  }
  const blank = [
    ...findings.flatMap((finding, index) =>
      Object.entries(finding).map(
        ([field, text]) => [`findings[${index}].${field}`, text] as const,
      ),
    ),
    ...gaps.map((text, index) => [`gaps[${index}]`, text] as const),
  ].find(([, text]) => isBlank(text));
  if (!blank) return;
  throw new ToolError(
    `${blank[0]} is empty. A finding needs its claim, its evidence and its source; what lacks one of them is a gap.`,
  );
}

function tooLong(length: number): string {
  const tokens = (Math.round(length / 400) * 100).toLocaleString("en");
  return `That is about ${tokens} tokens, far more than the 1,000 to 2,000 that are wanted. Deliver again: keep the findings that the objective needs most, cut each evidence to what its claim rests on, and leave the rest out.`;
}
