/**
 * Which words are paths, as far as their text and the folder tell.
 *
 *     src/a.ts  a.ts  Makefile  .gitignore  ./run  ~/x  /etc/x      for sure, be there such a file or not
 *     src/run  src/a.odd                                            for sure if there is a folder src
 *     Total  process.env  Node.js  n/a  client/server  example.com  only if there is such a file
 *     12  3:1  127.0.0.1  localhost                                 never
 *
 * From effective-agents 0.1.0: patterns/citations/names.ts
 */

/** What there is at a path, if anything. Asked where a text alone can't tell. */
export type KindOf = (path: string) => "file" | "folder" | "link" | undefined;

/** Of code, of documents and of data. None that members of objects are often called by (`env`, `log`,
 * `map`, `max`, `lock`, `key`, `text`, `properties`, `cmd`). Those of one letter are in small letters. */
const EXTENSIONS = new Set(
  `ts tsx mts cts js jsx mjs cjs vue svelte astro coffee py pyi pyx ipynb rb erb rake gemspec go rs java kt
  kts scala sbt groovy gradle clj cljs cljc edn ex exs eex heex erl hrl hs lhs ml mli fs fsx fsi cs csx
  csproj fsproj vcxproj sln vb cshtml razor c h cc cpp cxx hh hpp hxx inl ino cu cuh mm swift dart lua php
  phtml pl r jl nim zig sv vhd vhdl pas f90 f95 asm sol wat sh bash zsh fish ps1 psm1 bat awk sql psql
  prisma proto thrift graphql graphqls gql tf tfvars hcl nix bzl bazel cmake mk rego cue jsonnet lisp scm
  rkt tcl vim html htm xhtml css scss sass less styl hbs ejs pug twig jinja j2 liquid haml tmpl tpl json
  json5 jsonc jsonl ndjson yaml yml toml ini cfg conf xml xsd xsl xslt plist csv tsv svg snap po pot md
  mdx markdown rst adoc asciidoc txt tex bib diff patch`.split(/\s+/),
);

/** Files that repos have, without one of these. */
const USUAL =
  /^(?:(?:Docker|Container|Make|Gem|Rake|Proc|Vagrant|Jenkins|Pod|Brew|Pip)file(?:\.[\w-]+)?|[mj]akefile|[Jj]ustfile|LICEN[CS]E|COPYING|NOTICE|README|CHANGELOG|CONTRIBUTING|AUTHORS|CODEOWNERS|go\.(?:mod|sum|work)|(?:yarn|Cargo|poetry|composer|uv|bun|flake|mix)\.lock|\.env(?:\.[\w-]+)*|\.git(?:attributes|modules|keep)|\.[a-z]{3,}(?:rc|ignore|config)|\.(?:htaccess|mailmap|profile|tool-versions|[a-z]+-version))$/;

/** Libraries and the like, which are called as a file would be. */
const LIBRARY =
  /^(?:(?:alpine|angular|backbone|chart|d3|day|discord|ember|express|ext|gatsby|koa|moment|nest|next|node|nuxt|p5|plotly|react|remix|require|socket|solid|svelte|three|video|vue|web3)\.js(?:\/|$))+$/i;

/** Nothing but a path begins like this: ./ ../ ~/ C:\ .github/, and the folders of a whole machine. */
const ROOTED =
  /^(?:(?:\.\.?|~|[A-Za-z]:)[\\/]|\.[\w-]+[\\/][^.]|\/(?:etc|usr|var|home|root|tmp|opt|srv|mnt|proc|sys|dev|private|Users)\/)/;

/** Whether it's no time, ratio or address. */
export const mayBePath = (path: string): boolean => /\p{L}/u.test(path) && path !== "localhost";

/** Whether it's a path, be there such a file or not. */
export function isSurely(path: string, kindOf: KindOf): boolean {
  const [, folder, name = ""] = /^(?:([^\\/]*)[\\/][\s\S]*?)?([^\\/]*)$/.exec(path) ?? [];
  const extension = /[^.]\.([A-Za-z][A-Za-z0-9]*)$/.exec(name)?.[1] ?? "";
  const isKnown = EXTENSIONS.has(extension.length > 1 ? extension.toLowerCase() : extension);
  if (isKnown && !LIBRARY.test(path)) return true;
  if (USUAL.test(name) || ROOTED.test(path)) return true;
  return !!folder && ["folder", "link"].includes(kindOf(folder) ?? "");
}

/** Whether there is such a file. What a link leads to is found out when it's read. */
export function isFile(path: string, kindOf: KindOf): boolean {
  const kind = kindOf(path);
  return kind === "file" || kind === "link";
}

/** Whether it stands for several files. */
export const isGlob = (path: string): boolean => /\*|\{[^{}]*,/.test(path);
