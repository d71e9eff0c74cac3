/**
 * A commit log becomes the "What's new" of an app store, and then its Spanish.
 *
 *   npm start chain                      replays the recording
 *   npm run live chain "<commit log>"    calls the API
 *
 * The store takes 500 characters. No prompt says so: the gate counts, and what it finds goes back.
 *
 * From effective-agents 0.1.0: runners/chain.ts
 */
import { chain, type Verdict } from "../patterns/chain.ts";
import { tagged } from "../patterns/xml.ts";
import { defineJob } from "./shared/job.ts";

const LOG = `a41f9c2 feat(sync): resume interrupted uploads from the last acknowledged chunk
77b0e15 fix(editor): cursor jumps to end of line when an emoji is inserted
0c2d4ab chore: bump gradle to 9.2
e9911f0 feat(search): find text inside attached PDFs and photos (on-device OCR)
5d3b7a8 fix(sync): notes edited offline on two devices were silently overwritten; keep both as versions
c0ffee1 refactor(db): move migrations to worker thread
8812aa4 feat(share): links can expire after 1, 7 or 30 days
3fe0b9d fix(widget): list widget stays empty after reboot on Android 16
b7e5c11 perf(list): render 10k notes without dropping frames
f00dbab feat(editor): tables can be sorted by tapping the column header
2a6c9e3 fix(a11y): announce checklist state in screen readers
d1e2f3a BREAKING: drop support for iOS 16
4e5f6a7 fix(export): PDF export cut off wide tables`;

function fitsTheStore(text: string): Verdict {
  if (text.length > 500) return `it has ${text.length} characters, and the store takes 500`;
  if (/\b[0-9a-f]{7}\b/.test(text)) return "it names a commit, and readers don't know commits";
  return true;
}

export const job = defineJob({
  title: "commit log → release notes (a gate counts characters) → Spanish",
  input: LOG,
  run: (log, { llm, signal }) =>
    chain(log, {
      llm,
      signal,
      steps: [
        {
          name: "notes",
          run: (log, { llm, rejected }) =>
            llm(`You write the "What's new" text that an app store shows for a new version of a notes app. Its readers use the app and don't build software.

${tagged("commits", log)}

Tell them what they will notice: what is new, what works again, and what they must know before they update. Leave out what they can't notice. Plain sentences or short bullet points, no headings, no emoji, no marketing.${again(rejected)}

Answer with the text alone.`),
          gate: fitsTheStore,
          retries: 2,
        },
        {
          name: "spanish",
          run: (notes, { llm, rejected }) =>
            llm(`Translate this "What's new" text of an app store into the Spanish of Spain, for the users of a notes app. Address the reader as "tú". Keep its form: a bullet point stays a bullet point.

${tagged("text", notes)}${again(rejected)}

Answer with the translation alone.`),
          gate: fitsTheStore,
          retries: 2,
        },
      ],
    }),
  tell: (result) => {
    if (result.status === "completed") {
      const { notes, spanish } = result.outputs;
      return `${notes}\n\n${spanish}\n\ncompleted`;
    }
    const reason = result.status === "stopped" ? result.rejected.reason : result.error.message;
    return `${result.outputs.notes ?? ""}\n\n${result.status} at ${result.step}: ${reason}`;
  },
});

function again(rejected: { readonly output: string; readonly reason: string } | undefined): string {
  if (!rejected) return "";
  return `\n\nYour last text was refused: ${rejected.reason}. Write it again so that this is fixed. Your last text:\n\n${tagged("refused", rejected.output)}`;
}
