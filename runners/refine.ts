/**
 * A poem is translated, judged, and translated again.
 *
 *   npm start refine                     replays the recording
 *   npm run live refine "<poem>"         calls the API
 *
 * Verse is where a first draft falls short: rhyme, metre and meaning pull three ways. Code counts the
 * lines before a judge is paid.
 *
 * From effective-agents 0.1.0: runners/refine.ts
 */
import { refine } from "../patterns/refine.ts";
import { defineJob } from "./shared/job.ts";

/** Gustavo Adolfo Bécquer, Rimas, LIII (1871): two stanzas. */
const POEM = `Volverán las oscuras golondrinas
en tu balcón sus nidos a colgar,
y otra vez con el ala a sus cristales
jugando llamarán.

Pero aquellas que el vuelo refrenaban
tu hermosura y mi dicha a contemplar,
aquellas que aprendieron nuestros nombres...
¡esas... no volverán!`;

const lines = (text: string) => text.split("\n").filter((line) => line.trim() !== "").length;

export const job = defineJob({
  title: "a translation in verse, judged, sent back, and judged again",
  input: POEM,
  run: (poem, { llm, signal }) =>
    refine(`Translate this poem into English verse:\n\n${poem}`, {
      llm,
      signal,
      criteria: `1. Every image of the original is there, and none that it doesn't have.
2. In each stanza the second and the fourth line rhyme, or nearly, without a word that only the rhyme called for.
3. The first three lines of a stanza have the same metre, the fourth is audibly shorter: read it aloud.
4. The order of words is that of living English: no "doth", no verb at the end for the rhyme's sake.
5. The last line turns the first line of the poem against the reader, as the original does.`,
      check: (draft) =>
        lines(draft) === lines(poem) ||
        `it has ${lines(draft)} lines, and the poem has ${lines(poem)}`,
      maxRounds: 3,
    }),
  tell: ({ status, draft, grade, attempts }) => {
    const rounds = attempts.map(({ grade, rejected }, index) => {
      const said = rejected ?? `${grade?.evaluation ?? "not graded"} ${grade?.score ?? ""}`;
      return `- round ${index}: ${said}`;
    });
    const score = grade ? ` with ${grade.score} of 10` : "";
    return `${draft}\n\n${rounds.join("\n")}\n\n${status}${score}`;
  },
});
