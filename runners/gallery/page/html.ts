/**
 * The pages as HTML. What stands in them before the script runs is the text, the drawing and the source;
 * the script adds the run.
 */
import { createHash } from "node:crypto";
import { dollars } from "../../shared/words.ts";
import { pack } from "../pack.ts";
import type { Card, IndexData, PageData, PageLink, Source } from "../page-data.ts";
import type { Assets } from "./assets.ts";
import { drawingSvg } from "./drawing.ts";
import { escaped, inScript } from "./escape.ts";

/** What the script gets to know of its page. */
export interface ClientData
  extends Pick<PageData, "name" | "kind" | "trace" | "isLive" | "capUsd"> {
  readonly sources: readonly Omit<Source, "html">[];
}

/** Makes the page of a pattern, of a failure, or of somebody's own run. */
export function renderPage(data: PageData, assets: Assets): string {
  const { name, kind, trace, isLive, capUsd, pages } = data;
  const sources = data.sources.map(({ file, code, steps }) => ({ file, code, steps }));
  const client: ClientData = {
    name,
    kind,
    sources,
    isLive,
    ...(trace && { trace }),
    ...(capUsd !== undefined && { capUsd }),
  };
  const classes = new Map<string, string>();
  const source = data.sources.length > 0 ? sourcePane(data, classes) : "";
  const body = `${header(pages, data)}
<main class="page" data-kind="${kind}">
${intro(data)}
${isLive ? livePanel(data) : ""}
<div class="desk${source ? "" : " alone"}">
<section class="run" id="run" aria-label="The run"></section>
<div class="side" id="side">
<section class="details" id="details" aria-label="Selected step" hidden></section>
${source}
</div>
</div>
</main>`;
  const data_ = `<script type="application/json" id="data">${inScript(pack(client))}</script>`;
  return wholePage(
    { title: `${titleOf(data)} · effective agents`, body: body + data_, classes, isLive },
    assets,
  );
}

/** Makes the first page. */
export function renderIndex({ cards, choices }: IndexData, assets: Assets): string {
  const group = (title: string, note: string, kinds: readonly Card["kind"][]) => {
    const inGroup = cards.filter(({ kind }) => kinds.includes(kind));
    if (inGroup.length === 0) return "";
    return `<section class="group"><h2>${title}</h2><p class="note">${note}</p><ul class="${inGroup.some(({ drawing }) => drawing) ? "cards" : "cards small"}">${inGroup.map(cardHtml).join("")}</ul></section>`;
  };
  const body = `${header([...cards, { name: "own", kind: "own" }], undefined)}
<main class="index">
<section class="hero"><h1>Building effective agents, <br>seen from inside</h1>
<p>Each pattern as a drawing, the source that runs, and a recorded run played on it, call by call. Everything here is read from the modules and the recordings.</p></section>
<section class="choose" aria-labelledby="which"><h2 id="which">Which one do I need?</h2><ol>${choices
    .map(({ text, to }) => {
      const words = prose(text);
      return `<li><span>${to ? words.replace("<strong>", `<a href="${escaped(to)}.html"><strong>`).replace("</strong>", "</strong></a>") : words}</span></li>`;
    })
    .join("")}</ol></section>
${group("Workflows", "The path is written in code.", ["workflow"])}
${group("Agents", "The model chooses the path.", ["agent"])}
${group("How agents fail", "A small run each, with what catches it.", ["failure"])}
<section class="group"><h2>Your own</h2><p class="note">${prose("What `--trace run.json` has written, what an app has with `collectTrace`, or an OpenTelemetry export.")}</p><p class="open-own"><a href="own.html">Open a run of your own</a></p></section>
</main>`;
  return wholePage({ title: "effective agents", body, classes: new Map(), isLive: false }, assets);
}

interface Content {
  readonly title: string;
  readonly body: string;
  /** Styles, by the names of their classes. */
  readonly classes: ReadonlyMap<string, string>;
  /** Whether it may speak to the server that it came from. */
  readonly isLive: boolean;
}

function wholePage({ title, body, classes, isLive }: Content, { script, style }: Assets): string {
  const colours = [...classes].map(([css, name]) => `.${name}{${css}}`).join("");
  const sheet = style + colours;
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(THEME)}' '${hashOf(script)}'`,
    `style-src '${hashOf(sheet)}'`,
    "font-src data:",
    "img-src data:",
    `connect-src ${isLive ? "'self'" : "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>${sheet}</style>
<script>${THEME}</script>
</head>
<body>
${body}
<footer>Set in IBM Plex. ${isLive ? "What you run here goes to the API, through the server on this machine." : "No network, no key: all of it is in this file."}</footer>
<p class="visually-hidden" id="copied" role="status"></p>
<script>${script}</script>
</body>
</html>
`;
}

const MARK =
  '<path d="M2 10h5M7 10c3 0 2-6 5-6h6M7 10c3 0 2 6 5 6h3"/><circle cx="3" cy="10" r="2"/>';

/** The tab's: without one of its own, a page from a server asks for `favicon.ico`, which its policy refuses. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20" fill="none" stroke="#888" stroke-width="2">${MARK}</svg>`;

/** Before anything is drawn, so that no page flashes in the other theme. */
const THEME =
  'try{const t=localStorage.getItem("theme");if(t)document.documentElement.dataset.theme=t}catch{}';

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

const GROUPS: readonly { readonly title: string; readonly kinds: readonly PageLink["kind"][] }[] = [
  { title: "Workflows", kinds: ["workflow"] },
  { title: "Agents", kinds: ["agent"] },
  { title: "How agents fail", kinds: ["failure"] },
  { title: "Your own", kinds: ["own"] },
];

function header(
  pages: readonly Pick<PageLink, "name" | "kind">[],
  here: Pick<PageLink, "name" | "kind"> | undefined,
): string {
  const links = (kinds: readonly PageLink["kind"][]) =>
    pages
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ name }) => {
        const current = name === here?.name ? ' aria-current="page"' : "";
        return `<li><a href="${escaped(name)}.html"${current}>${escaped(name)}</a></li>`;
      })
      .join("");
  const groups = GROUPS.map(({ title, kinds }) => {
    const items = links(kinds);
    return items && `<div class="menu-group"><h2>${title}</h2><ul>${items}</ul></div>`;
  });
  return `<header class="top">
<a class="mark" href="index.html"><svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">${MARK}</svg>effective agents</a>
<details class="menu"><summary>${here ? escaped(titleOf(here)) : "All pages"}</summary><nav aria-label="Pages">${groups.join("")}</nav></details>
<button type="button" class="quiet" id="theme">Theme: auto</button>
</header>`;
}

/** What the two facts of a page are about: of a failure they are its two runs. */
function factNames(kind: PageData["kind"]): readonly [string, string] {
  return kind === "failure" ? ["Without the catch", "With it"] : ["Use when", "Costs"];
}

function intro({
  name,
  kind,
  article,
  sentence,
  useWhen,
  costs,
  drawing,
  command,
  copyCommand,
  copyAlong,
}: PageData): string {
  const [first, second] = factNames(kind);
  const facts = [
    useWhen && `<div><dt>${first}</dt><dd>${prose(useWhen)}</dd></div>`,
    costs && `<div><dt>${second}</dt><dd>${prose(costs)}</dd></div>`,
    (command || copyCommand) &&
      `<div><dt>Take it</dt><dd>${command ? commandHtml(command) : ""}${copyCommand ? commandHtml(copyCommand) : ""}${
        copyAlong.length > 0
          ? `<p class="along">Goes with ${copyAlong.map((file) => `<code>${escaped(file)}</code>`).join(" ")}</p>`
          : ""
      }</dd></div>`,
  ].filter(Boolean);
  return `<section class="intro">
<div class="lead"><h1>${escaped(titleOf({ name, kind }))}</h1>${article ? `<p class="article">${escaped(article)}</p>` : ""}<p class="sentence">${prose(sentence)}</p></div>
${drawing ? `<figure class="sketch" tabindex="0" aria-label="The pattern's drawing">${drawingSvg(drawing)}</figure>` : ""}
${facts.length > 0 ? `<dl class="facts">${facts.join("")}</dl>` : ""}
</section>`;
}

/** A page of somebody's own has no name to speak of. */
function titleOf({ name, kind }: Pick<PageLink, "name" | "kind">): string {
  return kind === "own" ? "Your own run" : name;
}

function commandHtml(command: string): string {
  return `<p class="command"><code>${escaped(command)}</code><button type="button" class="quiet" data-copy="${escaped(command)}" aria-label="Copy ${escaped(command)}">Copy</button></p>`;
}

/** Text with `code`, **strong** and nothing else of Markdown. */
function prose(text: string): string {
  return escaped(text)
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>");
}

function sourcePane({ sources }: PageData, classes: Map<string, string>): string {
  const tabs = sources.map(
    ({ file }, index) =>
      `<button type="button" role="tab" id="tab-${index}" aria-controls="source-${index}" aria-selected="${index === 0}" tabindex="${index === 0 ? 0 : -1}">${escaped(file)}</button>`,
  );
  const panels = sources.map(
    ({ html }, index) =>
      `<div role="tabpanel" class="code" id="source-${index}" aria-labelledby="tab-${index}" tabindex="0"${index === 0 ? "" : " hidden"}><pre><code>${inClasses(linesIn(html), classes)}</code></pre></div>`,
  );
  return `<section class="source" id="source" aria-label="Source"><div class="bar"><div role="tablist" aria-label="Files">${tabs.join("")}</div><button type="button" class="quiet" id="copy-source">Copy file</button></div>${panels.join("")}</section>`;
}

/** What the highlighter has made, without the `<pre>` and `<code>` around it, each line a block. */
function linesIn(html: string): string {
  return html
    .replace(/^\s*<pre[^>]*>\s*<code[^>]*>/, "")
    .replace(/<\/code>\s*<\/pre>\s*$/, "")
    .replaceAll('\n<span class="line"', '<span class="line"');
}

/** Each distinct `style` becomes a class, since the policy allows no styles in attributes. */
function inClasses(html: string, classes: Map<string, string>): string {
  const named = (css: string) => {
    const name = classes.get(css) ?? `c${classes.size}`;
    classes.set(css, name);
    return name;
  };
  return html.replace(
    /<span style="([^"]*)">/g,
    (_, css: string) => `<span class="${named(css)}">`,
  );
}

function livePanel({ name, capUsd = 0 }: PageData): string {
  return `<section class="live" id="live" aria-label="Run it live"><form><label for="input">Your input for ${escaped(name)}</label><textarea id="input" rows="4" required></textarea><div class="live-bar"><button type="submit" class="primary">Run live</button><button type="button" id="stop" disabled>Stop</button><label class="spent">Spent <output id="spent">$0.0000</output> of ${dollars(capUsd)} <meter id="meter" min="0" max="${capUsd}" value="0"></meter></label><p id="live-said" role="status"></p></div></form></section>`;
}

function cardHtml({
  name,
  kind,
  article,
  sentence,
  drawing,
  useWhen,
  costs,
  calls,
  usd,
  estimated,
}: Card): string {
  const [first, second] = factNames(kind);
  const about = estimated ? "~" : "";
  const figures = [
    calls !== undefined && `${calls} ${calls === 1 ? "call" : "calls"}`,
    usd !== undefined && `${about}${dollars(usd)}`,
  ].filter(Boolean);
  const facts = [
    useWhen && `<div><dt>${first}</dt><dd>${prose(useWhen)}</dd></div>`,
    costs && `<div><dt>${second}</dt><dd>${prose(costs)}</dd></div>`,
  ].filter(Boolean);
  return `<li class="card"><div class="card-head"><h3><a href="${escaped(name)}.html">${escaped(name)}</a></h3>${article ? `<p class="article">${escaped(article)}</p>` : ""}</div><p class="sentence">${prose(sentence)}</p>${
    drawing ? `<div class="sketch">${drawingSvg(drawing)}</div>` : ""
  }${facts.length > 0 ? `<dl>${facts.join("")}</dl>` : ""}<p class="figures">${figures.join(" · ")}</p></li>`;
}
