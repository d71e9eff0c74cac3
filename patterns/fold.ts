/**
 * Normalizes a short answer, so that the same word is the same string however a model dressed it up.
 *
 *     Paris   paris.   " Paris "   **Paris**   "paris"   ─►   paris
 *     C   C++   C#   3.14   -5                           ─►   each stays itself
 *
 * Away go case, blanks around it (also those without width), runs of blanks, a pair of quotes or
 * stars around the whole, and the punctuation that ends a sentence. All else stays: stripping every
 * sign would make C++ and C# the same, and stripping articles would delete the answer A.
 *
 * From effective-agents 0.1.0: patterns/fold.ts
 */

/** The folded form, for comparing: `fold("**Paris.**")` is `"paris"`. */
export function fold(answer: string): string {
  // Most answers are a plain word, and a quarter of the work is enough for it.
  if (/^\w+$/.test(answer)) return answer.toLowerCase();
  const plain = answer.normalize("NFC").replace(WIDTHLESS, "").replace(/\s+/g, " ");
  let text = plain.trim().toLowerCase();
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replace(DRESSED, "$1").replace(SENTENCE_END, "").trim();
  }
  return text;
}

/** Characters without width. `trim` takes only the last. */
const WIDTHLESS = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
/** Quotes or stars at both ends, and none inside but an apostrophe. */
const DRESSED = /^["'`*“”„‘’‚«»]+((?:[^"'`*“”„‘’‚«»]|(?<=\p{L})['’](?=\p{L}))+)["'`*“”„‘’‚«»]+$/u;
/** After a number "!" is no sentence's end: 5! is not 5. A sign on its own is an answer. */
const SENTENCE_END = /(?<=[^.,;:…。\s])[.,;:…。\s]+$|(?<=\p{L})[!?！？]+$/u;
