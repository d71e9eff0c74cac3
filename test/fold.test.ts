/**
 * Which spellings of a short answer are the same, and which are not.
 *
 * From effective-agents 0.1.0: test/fold.test.ts
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { fold } from "../patterns/fold.ts";

test.for([
  ["paris", ["Paris", "paris.", " Paris ", "**Paris**", "PARIS", '"Paris"', "'Paris'", "`Paris`"]],
  ["paris", ["“Paris.”", "‘Paris’.", "«Paris»", '**"Paris."**', "**Paris**.", "Paris!", "Paris?!"]],
  ["paris", ["\tParis\r\n", "\u200bParis\u200b", "Pa\u00adris", "\ufeffParis", "Paris…", "Paris:"]],
  ["new york", ["New York", "new  york", "New\nYork.", "*New\u00a0York*", "New York ."]],
  ["don't", ["Don't", '"don\'t"', "**Don't.**", "`don't`"]],
  ["needs_improvement", ["NEEDS_IMPROVEMENT", "`NEEDS_IMPROVEMENT`.", "Needs_Improvement;"]],
  ["été", ["Été", "ÉTÉ.", "«été»"]],
] as const)("makes one of the same word: %s", ([word, spellings]) => {
  expect(spellings.map(fold)).toEqual(spellings.map(() => word));
});

test.for(["A", "a.", "**A**", "The", "an"])(
  "keeps an article, which may be an answer: %s",
  (text) => {
    expect(fold(text)).toBe(text.toLowerCase().replace(/[*.]/g, ""));
  },
);

test("leaves apart what differs by a sign", () => {
  const answers = [
    "C",
    "C++",
    "C#",
    "F#",
    "3.14",
    "314",
    "-5",
    "5",
    "+5",
    "5!",
    "5%",
    "$5",
    ".NET",
  ];
  const more = ["NET", "x'", "yes/no", "yes", "(yes)", "not yes", "a b", "ab", "1,5", "1.5", "15"];
  const all = [...answers, ...more];
  expect(new Set(all.map(fold)).size).toBe(all.length);
  expect(answers.map((answer) => fold(`**${answer}**.`))).toEqual(answers.map(fold));
});

test.for(["?", "!", "...", "-", "*", "**", '"', "''", "=", "5!", "c++", "[?]"])(
  "leaves an answer of signs as it is: %s",
  (text) => {
    expect(fold(text)).toBe(text);
  },
);

test.for([
  ['"yes" or "no"', '"yes" or "no"'],
  ["**yes** and **no**.", "**yes** and **no**"],
  ["**It** is", "**it** is"],
  ["yes.no.", "yes.no"],
])("takes off only what is around the whole: %s", ([text, folded]) => {
  expect(fold(text ?? "")).toBe(folded);
});

test.for(["__proto__", "constructor", "toString", "$&"])("has no special words: %s", (word) => {
  expect(fold(` ${word}. `)).toBe(word.toLowerCase());
});

test("folds nothing to nothing", () => {
  expect(["", " ", "\u200b\n"].map(fold)).toEqual(["", "", ""]);
});

const answer = fc.string({
  unit: fc.oneof(fc.constantFrom(..." .,!?*\"'`“”c+#5é\u200b\n"), fc.string({ maxLength: 1 })),
  maxLength: 12,
});

test("changes nothing when it folds again", () => {
  const again = fc.property(answer, (text) => {
    expect(fold(fold(text))).toBe(fold(text));
  });
  fc.assert(again, { numRuns: 1000 });
});

test("doesn't care for case and for blanks around the answer", () => {
  const dressed = fc.property(answer, (text) => {
    expect(fold(` \u200b${text}\n`)).toBe(fold(text));
    expect(fold(text.toLowerCase())).toBe(fold(text));
  });
  fc.assert(dressed, { numRuns: 1000 });
});

test("takes time in proportion to the length", () => {
  // With a step for each pair of characters these would take minutes.
  const long = ["*", "'", ".", "!", " ", ".!", "'a", '"'].map((unit) => unit.repeat(50_000));
  for (const text of long) {
    fold(text);
    fold(`a${text}a`);
    fold(`"${text}x`);
  }
});

test("takes a long row of signs and blanks away at once", () => {
  expect(fold(`a${" .".repeat(100_000)}`)).toBe("a");
});
