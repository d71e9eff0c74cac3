/**
 * What a module's doc comment says, taken apart: its form is checked in test/patterns.test.ts.
 */

/** A module in its own words. */
export interface ModuleDoc {
  /** The first sentence. */
  readonly sentence: string;
  readonly drawing: string;
  readonly useWhen: string;
  readonly costs: string;
  /** The name in the article, such as `routing`. */
  readonly article: string;
  readonly copyAlong: readonly string[];
}

/** Reads the doc comment that a module begins with; what it doesn't say is empty. */
export function readModuleDoc(source: string): ModuleDoc {
  const [, comment = ""] = /^\/\*\*\n([\s\S]*?)\n? \*\//.exec(source) ?? [];
  const lines = comment.split("\n").map((line) => line.replace(/^ \* ?/, ""));
  const isDrawn = (line: string) => line.startsWith("    ");
  const paragraphs = lines
    .map((line) => (isDrawn(line) ? "" : line))
    .join("\n")
    .split(/\n{2,}/)
    .map((paragraph) => paragraph.replace(/\s+/g, " ").trim());
  /** What follows such a beginning, up to the end of its paragraph or to what ends it. */
  const after = (beginning: RegExp, end = /$/) => {
    const found = paragraphs.find((paragraph) => beginning.test(paragraph)) ?? "";
    return found.replace(beginning, "").split(end)[0]?.trim() ?? "";
  };
  const along = after(/^.*?Copy along: /, / From \S+ \d/);
  return {
    sentence: paragraphs[0]?.split(/(?<=[.!?]) (?=[A-Z`])/)[0] ?? "",
    drawing: lines
      .filter(isDrawn)
      .map((line) => line.slice(4))
      .join("\n"),
    useWhen: after(/^Use (`\w+` )?when /),
    costs: after(/^Costs:? /),
    article: after(/^In Anthropic's "[^"]+": /, /\. Copy along: /).replace(/\.$/, ""),
    copyAlong: along === "" ? [] : along.split(/,\s*/),
  };
}
