/** What the gallery's pages are made of, and how they are written to a folder. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { FAILURES } from "../runners/failures.ts";
import { main } from "../runners/gallery/cli.ts";
import { readModuleDoc } from "../runners/gallery/module-doc.ts";
import { pack, unpack } from "../runners/gallery/pack.ts";
import { type Gallery, ownPage, readGallery } from "../runners/gallery/pages.ts";
import { makeSite, type Site, writeSite } from "../runners/gallery/site.ts";
import { stepLines } from "../runners/gallery/source.ts";
import { JOBS } from "../runners/shared/cli.ts";
import { UsageError } from "../runners/shared/explain.ts";
import { folder } from "./shared/folder.ts";
import { Kept } from "./shared/kept.ts";
import { ROOT } from "./shared/runner.ts";

let gallery: Gallery;
let site: Site;

beforeAll(async () => {
  gallery = await readGallery();
  site = await makeSite(gallery, { isLive: false });
}, 120_000);

function page(name: string) {
  const found = gallery.pages.find((one) => one.name === name);
  if (!found) throw new Error(`There is no page ${name}`);
  return found;
}

const FONT = "node_modules/@fontsource/ibm-plex-mono/files/ibm-plex-mono-latin-400-normal.woff2";

/** Runs the command line. */
async function command(...argv: string[]) {
  const [stdout, stderr] = [new Kept(), new Kept()];
  const code = await main(argv, {}, { stdout, stderr });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

// What a page shows

test("has a page of each job and each failure, in their order", () => {
  const names = gallery.pages.map(({ name }) => name);
  expect(names).toEqual([...JOBS.keys(), ...FAILURES.keys()]);
  expect(gallery.index.cards.map(({ name }) => name)).toEqual(names);
});

test("tells a pattern in its module's own words", () => {
  expect(page("route")).toMatchObject({
    kind: "workflow",
    article: "routing",
    sentence: "Shows a classifier the routes, and hands the input to the one it names.",
    useWhen: expect.stringMatching(
      /^inputs fall into kinds that are better handled apart, .*route\.$/,
    ),
    costs: "one call, two when the first label is unknown, and what the chosen route does.",
    drawing: expect.stringMatching(/^input ─► classify /),
    command: "npm start route",
    copying: {
      inClone: "npx shadcn@latest build --output ../items",
      inApp: "npx shadcn@latest add ../items/route.json",
    },
    copyAlong: expect.arrayContaining(["errors.ts", "xml.ts", "door/"]),
  });
  expect(page("agent")).toMatchObject({ kind: "agent", article: "agents" });
  const [patterns, drawn] = [JOBS.keys(), gallery.index.cards.filter(({ drawing }) => drawing)];
  expect(drawn.map(({ name }) => name)).toEqual([...patterns]);
  expect(page("refund").copying?.inApp).toMatch(/\/approval\.json$/);
  for (const { name, command, copying } of gallery.pages)
    expect(`${command} ${JSON.stringify(copying)}`, name).not.toMatch(/[<>]/);
  expect(
    page("refund")
      .sources.map(({ file }) => file)
      .slice(0, 2),
  ).toEqual(["patterns/approve.ts", "runners/refund.ts"]);
});

test("shows files as they are", async () => {
  for (const { sources } of gallery.pages) {
    for (const { file, code, html } of sources) {
      expect(code).toBe(await readFile(join(ROOT, file), "utf8"));
      expect(html.match(/<span class="line">/g)).toHaveLength(code.trimEnd().split("\n").length);
    }
  }
});

test("finds the line that names each step", () => {
  for (const { name, kind, sources, trace } of gallery.pages) {
    if (kind !== "workflow" || !trace) continue;
    const named = new Set(sources.flatMap(({ steps }) => Object.keys(steps)));
    for (const { path } of trace.steps) {
      const step = path
        .split("/")
        .at(-1)
        ?.replace(/(\[\d+\])?(#\d+)?$/, "");
      expect([...named], `${name}: ${path}`).toContain(step);
    }
  }
  const lineOf = (file: string, step: string) => {
    const source = page("subagent").sources.find((one) => one.file === file);
    return source?.code.split("\n")[(source.steps[step] ?? 0) - 1];
  };
  expect(lineOf("patterns/agent.ts", "turn")).toMatch(/step\(`turn\[/);
  expect(lineOf("patterns/tool-calls.ts", "tool")).toMatch(/step\(`tool\[/);
  expect(lineOf("runners/subagent.ts", "combine")).toContain('name: "combine"');
});

test("plays the recorded run, with its calls and cost on the card", () => {
  const { trace } = page("vote");
  expect(trace).toMatchObject({ name: "vote", origin: "transcribed" });
  const card = gallery.index.cards.find(({ name }) => name === "vote");
  expect(card).toMatchObject({ calls: 4, estimated: true });
  expect(card?.usd?.toFixed(4)).toBe("0.0117");
});

test("shows a failure with what came of it without its catch, in estimated times", () => {
  const { kind, useWhen, costs, trace, sources } = page("endless-loop");
  expect([kind, trace?.origin]).toEqual(["failure", "scripted"]);
  expect(useWhen).toMatch(/^max_turns after 50 turns/);
  expect(costs).toMatch(/^repeating after 3 turns/);
  expect(sources.map(({ file }) => file)).toContain("patterns/agent.ts");
  const turns = trace?.steps.filter(({ path }) => /^agent\/turn\[\d\]$/.test(path)) ?? [];
  expect(turns).toHaveLength(3);
  for (const [index, { begin, ms, calls }] of turns.entries()) {
    expect(ms).toBeGreaterThan(500);
    expect(calls[0]).toMatchObject({ estimated: true });
    const before = turns[index - 1];
    if (before) expect(begin).toBe(before.begin + before.ms);
  }
  const card = gallery.index.cards.find(({ name }) => name === "endless-loop");
  expect(card).not.toHaveProperty("usd");
});

test("reads which pattern is needed from the README, one choice an arrow", () => {
  const { choices } = gallery.index;
  expect(choices[0]).toEqual({
    text: expect.stringMatching(/^Try one call first: .*Most tasks end here\.$/),
  });
  expect(choices.slice(1).map(({ to }) => to)).toEqual([
    "chain",
    "route",
    "section",
    "vote",
    "orchestrate",
    "refine",
    "agent",
    "subagent",
    "refund",
  ]);
});

test("shows a trace of one's own beside the module of its pattern", () => {
  const { trace } = page("route");
  if (!trace) throw new Error("There is no run of route");
  const own = ownPage({ ...trace, title: "mine" }, "own", gallery.pages);
  expect(own).toMatchObject({
    name: "own",
    kind: "own",
    sentence: "mine",
    trace: { title: "mine" },
  });
  expect(own.sources.map(({ file }) => file)).toEqual(["patterns/route.ts"]);
  const other = ownPage({ ...trace, name: "elsewhere" }, "own", gallery.pages);
  expect(other.sources).toEqual([]);
});

test("tells nothing of where it was made", () => {
  const text = JSON.stringify(gallery.pages.map(({ trace }) => trace));
  expect(text).not.toContain(ROOT.slice(0, -1));
});

// Doc comments and steps

test("takes a doc comment apart", () => {
  const doc = `/**
 * Does a thing. Then another.
 *
 *     a ─► b
 *          │
 *
 * Use \`it\` when you must:
 * seldom.
 *
 * Costs: nothing. It's free.
 *
 * In Anthropic's "Some article": a name, or two.
 * Copy along: a.ts,
 * b/
 */
export {};`;
  expect(readModuleDoc(doc)).toEqual({
    sentence: "Does a thing.",
    drawing: "a ─► b\n     │",
    useWhen: "you must: seldom.",
    costs: "nothing. It's free.",
    article: "a name, or two",
    copyAlong: ["a.ts", "b/"],
  });
  const empty = { sentence: "", drawing: "", useWhen: "", costs: "", article: "", copyAlong: [] };
  expect(readModuleDoc("export {};")).toEqual(empty);
});

test("takes the line that makes a step before one that mentions its name", () => {
  const pattern = `// step("a")\nconst b = "a";\nstep("a", fn);\nstep(\`c[\${i}]\`, fn);`;
  const runner = '{ name: "d" },\n  e: (x) => x,\n"a"';
  expect(stepLines([pattern, runner], new Set(["a", "c", "d", "e", "f"]))).toEqual([
    { a: 3, c: 4 },
    { d: 1, e: 2 },
  ]);
});

// Packing

test("writes a long text once, and reads back the same", () => {
  const long = "a line of text\n".repeat(100);
  const value = { a: long, b: [long, "short", "short", "\u00000"], c: null };
  const text = pack(value);
  expect(text.split("a line of text").length - 1).toBe(100);
  expect(unpack(text)).toEqual(value);
  const texts = fc.oneof(fc.string(), fc.constantFrom(long, "\0", "\u00001", "\u0000x"));
  const any = fc.letrec((tie) => ({
    value: fc.oneof(texts, fc.integer(), fc.constant(null), tie("list"), tie("object")),
    list: fc.array(tie("value"), { maxLength: 4 }),
    object: fc.dictionary(texts, tie("value"), { maxKeys: 4 }),
  })).value;
  fc.assert(
    fc.property(any, (value) => {
      expect(unpack(pack(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

// The site

test("makes each page one file of less than 400 kB compressed", () => {
  expect([...site.keys()]).toEqual([
    "index.html",
    ...gallery.pages.map(({ name }) => `${name}.html`),
    "own.html",
  ]);
  for (const [name, html] of site) {
    expect(gzipSync(html).length, name).toBeLessThan(400_000);
    // Nothing is loaded from elsewhere, and nothing runs but what the page names by its hash.
    expect(html, name).toMatch(/content="default-src 'none'; script-src 'sha256-/);
    expect(html, name).not.toMatch(
      /<(script|img|iframe)[^>]* src=|<link(?! rel="icon" href="data:)/,
    );
  }
});

test("hands the page its run, whatever stands in it", () => {
  const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(
    site.get("route.html") ?? "",
  );
  expect(unpack(data?.[1] ?? "")).toMatchObject({
    name: "route",
    isLive: false,
    trace: JSON.parse(JSON.stringify(page("route").trace)),
  });
});

test("writes into a folder of its own, anew each time, and into no other", async () => {
  const out = join(await folder(), "site");
  await writeSite(
    new Map([
      ["index.html", "1"],
      ["old.html", "1"],
    ]),
    out,
  );
  await writeFile(join(out, "mine.txt"), "mine");
  await writeSite(new Map([["index.html", "2"]]), out);
  expect((await readdir(out)).sort()).toEqual(["gallery.json", "index.html", "mine.txt"]);
  expect(await readFile(join(out, "index.html"), "utf8")).toBe("2");

  const other = await folder();
  await writeFile(join(other, "mine.txt"), "mine");
  await expect(writeSite(new Map([["index.html", "1"]]), other)).rejects.toThrow(UsageError);
  expect(await readdir(other)).toEqual(["mine.txt"]);
});

test("removes nothing that a marker from elsewhere names", async () => {
  const out = await folder();
  const files = ["../outside.html"];
  const marker = JSON.stringify({ format: "effective-agents/gallery", files });
  await writeFile(join(out, "gallery.json"), marker);
  await expect(writeSite(new Map(), out)).rejects.toThrow("isn't a gallery");
});

// The command line

test.for<[readonly string[], string]>([
  [["nowhere.json"], "nowhere.json can't be read: there is no such file"],
  [["test"], "test can't be read: it's a folder"],
  [[FONT], `${FONT}: The file is no text in UTF-8`],
  [["package.json"], "package.json: The file holds JSON, but neither a trace nor an OTLP export. "],
  [
    ["runners/recordings/route.jsonl"],
    "runners/recordings/route.jsonl: This is a recording: npm start ",
  ],
  [["--out", "runners"], "--out: "],
  [["--out", "package.json"], "--out: "],
  [["--port", "1"], "--port goes with npm run gallery:live"],
  [["--live", "--out", "site"], "--out goes with npm run gallery: a live page needs its server"],
  [["--live", "--port", "70000"], "--port must be a port, got 70000"],
  [["--live", "--budget", "0"], '--budget must be a number above 0, got "0"'],
  [
    ["--live", "--model", "qwen3"],
    "The price of qwen3 isn't known, so no cap on spending could be kept",
  ],
  [["--colour"], "Unknown option '--colour'; see npm run gallery -- --help"],
])("refuses %j in a line, with exit code 2", async ([argv, says]) => {
  const { code, stdout, stderr } = await command(...argv);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.startsWith(says), stderr).toBe(true);
  expect(stderr).toMatch(/^.+\n$/);
});

test("says what to do where there is no key", async () => {
  const { code, stderr } = await command("--live");
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^No API key: set ANTHROPIC_API_KEY .*\n$/),
  ]);
});

test("writes a page of one's own run, and says where", { timeout: 120_000 }, async () => {
  const out = join(await folder(), "site");
  const run = join(await folder(), "run.json");
  const { trace } = page("route");
  const traces = ["my own ticket", "the next"].map((title) => ({ ...trace, title }));
  await writeFile(run, JSON.stringify(traces));
  const { code, stdout, stderr } = await command(run, "--out", out);
  const said = `Open ${join(out, "own.html")} (beside it: own-2.html)\n`;
  expect([code, stdout, stderr]).toEqual([0, said, ""]);
  expect(await readFile(join(out, "own.html"), "utf8")).toContain("my own ticket");
  expect(await readFile(join(out, "own-2.html"), "utf8")).toContain("the next");
});

test("makes no thousand pages of a file with a thousand traces", async () => {
  const run = join(await folder(), "run.json");
  await writeFile(run, JSON.stringify(Array(1_000).fill(page("route").trace)));
  const { code, stderr } = await command(run);
  expect([code, stderr]).toEqual([
    2,
    "There are 1000 traces, and 50 are the most that get a page: drop the file on any page to choose one of them\n",
  ]);
});
