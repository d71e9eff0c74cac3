/**
 * Tagged text: `<label>billing</label>`, in the replies that a pattern reads and the prompts it sends.
 * Tags and not JSON, nor the API's structured output: a model may think aloud before them, code and quotes
 * inside need no escaping, and any server's model can be asked for them.
 *
 *     reply ─► pair our tags ─► escape the rest ─► parse ─► text
 *     text ──► escape our tags ─► <input>text</input> ─► prompt
 *
 * A reply is not XML: it holds `a < b`, `Array<number>`, `<!DOCTYPE html>`, quotes of the very tag
 * asked for, and an XML parser fed with it loses text without a word. So only the tags asked for are
 * markup, in any case and with attributes. All else is escaped before fast-xml-parser sees it, and
 * comes back character for character. The five XML entities (`&lt; &gt; &amp; &quot; &apos;`) are
 * decoded once; any other `&` is just that.
 *
 * An opener without a closer is prose where a complete element follows, and else a reply cut off: an
 * error. So is a closer without an opener, since it leaves open where a text ends. Inside a complete
 * element all is text. What can't be told apart is an answer that quotes only its own opener:
 * `<a>x <a> y</a>` reads as ` y`. The time taken is linear in the length of the reply.
 *
 * From effective-agents 0.1.0: patterns/xml.ts
 */
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { isBlank, LlmOutputError, shown } from "./errors.ts";

/** One complete element. */
export interface Tagged<T extends string = string> {
  /** The tag as it was asked for, however the reply spells it. */
  readonly tag: T;
  /** What stands between the tags, untrimmed, further tags included. `""` for `<tag/>`. */
  readonly text: string;
  /** The same as it stands in the reply, entities and all. */
  readonly raw: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/**
 * All complete outermost elements with one of `tags`, in order; `[]` if there are none.
 *
 * Elements inside another are part of its text. Don't parse that text again, since its entities are
 * decoded already: ask for the inner tags alone.
 *
 * @throws {LlmOutputError} An element is cut off, a closer has no opener, or attributes are malformed.
 * @throws {TypeError} A tag isn't a plain ASCII name, two differ in case at most, or there is none.
 *
 * @example
 * parseTags('1. <task id="a">Sort an Array<number></task>', ["task"]);
 * // [{ tag: "task", text: "Sort an Array<number>", raw: …, attributes: Map { "id" => "a" } }]
 */
export function parseTags<const T extends string>(reply: string, tags: readonly T[]): Tagged<T>[] {
  checkReply(reply);
  checkTags(tags);
  const elements = findElements(reply, tags);
  if (!elements.some(isCoded)) {
    return elements.map(({ tag, inner }) => {
      return { tag, text: inner, raw: inner, attributes: NO_ATTRIBUTES };
    });
  }
  for (const { tag, attributes, start } of elements) {
    const valid = XMLValidator.validate(`<${tag}${attributes}/>`);
    if (valid !== true) throw unusable(`<${tag}> is malformed (${valid.err.msg})`, reply, start);
  }
  // Each element is called <e> here, since the parser refuses names such as `constructor`. A text without
  // any "&" isn't shown to it: it would take longer over that than over all the rest.
  const document = elements
    .map(({ attributes, inner }) => {
      return `<e${escapeRest(attributes)}>${hasAmpersand(inner) ? escapeRest(inner) : ""}</e>`;
    })
    .join("");
  const fitting = document.includes("&#13;") ? crParser : parser;
  const decoded: Parsed[] = fitting.parse(`<all>${document}</all>`).all.e;
  return elements.map(({ tag, inner }, index) => {
    const { text = "", attributes = {} } = decoded[index] ?? {};
    const named = Object.entries(attributes).map(([key, value]) => [key.slice(1), value] as const);
    return {
      tag,
      text: hasAmpersand(inner) ? text : inner,
      raw: inner,
      attributes: new Map(named),
    };
  });
}

/**
 * The text of the last `<tag>` that isn't blank, untrimmed; never `""`.
 *
 * The last, because a model that thinks aloud names the tag before it answers.
 *
 * @param options.decode Whether entities are decoded, as `tagged` needs it. Default true; false for a
 *   text that may be HTML or XML itself, where `&lt;` is meant as it stands.
 * @throws {LlmOutputError} There is none, each is blank, or `parseTags` can't read the reply.
 * @throws {TypeError} The tag isn't a plain ASCII name.
 *
 * @example
 * readTag("I'll put it into <label></label>.\n<Label>refund</Label>", "label"); // "refund"
 */
export function readTag(
  reply: string,
  tag: string,
  { decode = true }: { readonly decode?: boolean | undefined } = {},
): string {
  const found = parseTags(reply, [tag]);
  const last = found.findLast(isFilled);
  if (!last) throw unusable(`no ${found.length > 0 ? "filled " : ""}<${tag}> in the reply`, reply);
  return decode ? last.text : last.raw;
}

/**
 * Several tags read together, so that one quoted inside another doesn't count. For each the text of
 * the last one that isn't blank or, where all are, of the last.
 *
 * @throws {LlmOutputError} One of them is missing, or `parseTags` can't read the reply.
 * @throws {TypeError} As `parseTags`.
 *
 * @example
 * readTags("<score>7</score><feedback/>", ["score", "feedback"]); // { score: "7", feedback: "" }
 */
export function readTags<const T extends string>(
  reply: string,
  tags: readonly T[],
): Record<T, string> {
  const found = parseTags(reply, tags);
  const texts = tags.map((tag) => {
    const own = found.filter((element) => element.tag === tag);
    const last = own.findLast(isFilled) ?? own.at(-1);
    if (!last) throw unusable(`no <${tag}> in the reply`, reply);
    return [tag, last.text];
  });
  // The compiler can't tell that there is an entry for each tag.
  return Object.fromEntries(texts) as Record<T, string>;
}

/**
 * Puts text from outside between tags, so that it can neither close nor open them, and `readTag`
 * gives back the same text.
 *
 * Escaped are the `<` of our tags in any case and spacing (`</input>`, `< / INPUT >`, `<input x=1>`)
 * and an `&` that would be decoded. The rest stays as it is, for the model to read.
 *
 * @param options.attributes The tag's attributes, by default none.
 * @param options.raw For a text whose answer is free, or read with `decode: false`: entities such as
 *   `&lt;` reach the model as they stand. Default false: they are escaped once more, since `readTag`
 *   decodes once.
 * @param options.also Other tags that the text must not hold, by default none: those that the same
 *   prompt uses, or the reply to it.
 * @throws {TypeError} A tag's or an attribute's name isn't a plain ASCII name.
 *
 * @example
 * tagged("input", "a < b </input> R&D"); // "<input>a < b &lt;/input> R&D</input>"
 */
export function tagged(
  tag: string,
  text: string,
  options: {
    readonly attributes?: Readonly<Record<string, string>> | undefined;
    readonly also?: readonly string[] | undefined;
    readonly raw?: boolean | undefined;
  } = {},
): string {
  const names = [tag, ...(options.also ?? [])];
  for (const name of names) checkName(name);
  const coded = options.raw ? text : text.replace(/&(?=(?:lt|gt|amp|quot|apos);)/g, "&amp;");
  // Most texts have nothing to escape.
  const safe = text.includes("<") ? withoutTags(coded, names) : coded;

  const attributes = Object.entries(options.attributes ?? {}).map(([name, value]) => {
    checkName(name);
    const escaped = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return ` ${name}="${escaped.replaceAll('"', "&quot;")}"`;
  });
  return `<${tag}${attributes.join("")}>${safe}</${tag}>`;
}

/** The text with the `<` of these tags escaped. */
function withoutTags(text: string, names: readonly string[]): string {
  const ours = new Set(names.map((name) => name.toLowerCase()));
  return text.replace(ANY_TAG, (whole, rest: string, name: string) =>
    ours.has(name.toLowerCase()) ? `&lt;${rest}` : whole,
  );
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();

/** A piece of the reply, from `start` to `end`. */
interface Piece<T> {
  readonly tag: T;
  readonly start: number;
  readonly end: number;
  /** As written. */
  readonly attributes: string;
}

/** An opener or a closer, with its slash and its `>`, both `""` if absent. */
interface Mark<T> extends Piece<T> {
  readonly slash: string;
  readonly bracket: string;
}

interface Element<T> extends Piece<T> {
  readonly inner: string;
}

/** The outermost complete elements. A closer belongs to the nearest free opener before it. */
function findElements<T extends string>(reply: string, tags: readonly T[]): Element<T>[] {
  const elements: Element<T>[] = [];
  const strays: Mark<T>[] = [];
  const openers = new Map(tags.map((tag): [T, Mark<T>[]] => [tag, []]));
  const stacks = [elements, strays, ...openers.values()];

  for (const mark of findMarks(reply, tags)) {
    const { tag, start, end, attributes, slash, bracket } = mark;
    const opener = slash && bracket ? openers.get(tag)?.pop() : undefined;
    if (opener) {
      // Whatever began inside this element is its text.
      for (const marks of stacks) {
        while ((marks.at(-1)?.start ?? -1) > opener.start) marks.pop();
      }
      const inner = reply.slice(opener.end, start);
      elements.push({ tag, start: opener.start, end, attributes: opener.attributes, inner });
    } else if (slash) {
      strays.push(mark);
    } else if (bracket && attributes.endsWith("/")) {
      elements.push({ tag, start, end, attributes: attributes.slice(0, -1), inner: "" });
    } else if (bracket || end === reply.length) {
      openers.get(tag)?.push(mark);
    }
  }

  const last = elements.at(-1)?.end ?? 0;
  const cut = [...openers.values()].flat().find(({ start }) => start >= last);
  if (cut) throw unusable(`<${cut.tag}> was cut off`, reply, cut.start);
  const [stray] = strays;
  if (!stray) return elements;
  const what = `</${stray.tag}> has no opener left, so it is ambiguous where the text ends`;
  throw unusable(what, reply, stray.start);
}

/** Every opener and closer of one of `tags`. */
function findMarks<T extends string>(reply: string, tags: readonly T[]): Mark<T>[] {
  const marks: Mark<T>[] = [];
  const known = new Map(tags.map((tag) => [tag.toLowerCase(), tag]));
  for (let from = 0; ; ) {
    TAG_START.lastIndex = from;
    const match = TAG_START.exec(reply);
    if (!match) return marks;
    const [begun, slash = "", name = ""] = match;
    from = match.index + begun.length;
    const tag = known.get(name.toLowerCase());
    if (!tag) continue;
    // What belongs to this tag is read once, and no tag is looked for in it: so it's linear.
    const attributes = reply[from] === ">" ? "" : readAttributes(reply, from);
    const bracket = reply[from + attributes.length] === ">" ? ">" : "";
    from += attributes.length + bracket.length;
    marks.push({ tag, start: match.index, end: from, attributes, slash, bracket });
  }
}

/** `<input`, `</input`, `< / INPUT` and the like. */
const ANY_TAG = /<(\s*(?:\/\s*)?([A-Za-z][A-Za-z0-9_-]*))(?![\w.:-])/g;
/** `<` or `</` and a whole ASCII name, which is compared in lower case. */
const TAG_START = /<(\/?)([A-Za-z][A-Za-z0-9_-]*)(?=[\s/>]|$)/g;
/** A part of what stands after a tag's name: anything but a bracket, a quoted value whole. */
const TAG_PART = /[^<>=]+|=\s*(?:"[^"]*"?|'[^']*'?)?/y;

/** In a loop, since one pattern for all parts overflows its stack on some millions of them. */
function readAttributes(reply: string, from: number): string {
  TAG_PART.lastIndex = from;
  let end = from;
  while (TAG_PART.test(reply)) end = TAG_PART.lastIndex;
  return reply.slice(from, end);
}

/** Escapes all but the entities to be decoded; a CR too, as the parser would make it an LF. An `&` that
 * can't be an entity stays: the parser leaves it, and takes a hundred times as long over `&amp;`. */
function escapeRest(text: string): string {
  return text
    .replace(/&(?!(?:lt|gt|amp|quot|apos);)(?=#|\w+;)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll("\r", "&#13;");
}

const OPTIONS = {
  alwaysCreateTextNode: true,
  attributeNamePrefix: "@",
  attributesGroupName: "attributes",
  ignoreAttributes: false,
  isArray: (name: string) => name === "e",
  parseTagValue: false,
  textNodeName: "text",
  trimValues: false,
};
const parser = new XMLParser(OPTIONS);
/** Knows the &#13; above. Ten times as slow, for the hundreds of other names that it knows and that
 * don't get here. */
const crParser = new XMLParser({ ...OPTIONS, htmlEntities: true });

/** Whether there is something to decode; else the text stands in the reply as it is. */
function isCoded({ attributes, inner }: Element<string>): boolean {
  return attributes.trim() !== "" || hasAmpersand(inner);
}

function hasAmpersand(text: string): boolean {
  return text.includes("&");
}

/** What the parser makes of an <e>. */
interface Parsed {
  readonly text?: string;
  /** By name, with an "@" before it: a bare `constructor` would be refused here too. */
  readonly attributes?: Readonly<Record<string, string>>;
}

const isFilled = ({ text }: Tagged) => !isBlank(text);

/** What an `llm` of one's own gives may be anything. */
function checkReply(reply: string): void {
  if (typeof reply === "string") return;
  throw new TypeError(`The model's reply must be a text, got ${shown(reply)}`);
}

function checkTags(tags: readonly string[]): void {
  for (const tag of tags) checkName(tag);
  const different = new Set(tags.map((tag) => tag.toLowerCase()));
  if (tags.length > 0 && different.size === tags.length) return;
  throw new TypeError(`Tags must be one or more, each different, got ${JSON.stringify(tags)}`);
}

function checkName(name: string): void {
  if (typeof name === "string" && PLAIN_NAME.test(name)) return;
  const rule = `A tag or attribute must have a plain name such as "label"`;
  throw new TypeError(`${rule}, got ${shown(name)}`);
}

const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_-]*$/;

/** The error for `reply`, with an excerpt of it from `start` on. */
function unusable(what: string, reply: string, start = 0): LlmOutputError {
  const excerpt = reply.slice(start, start + 80) + (reply.length > start + 80 ? "…" : "");
  return new LlmOutputError(`${what}: ${JSON.stringify(excerpt)}`, { text: reply });
}
