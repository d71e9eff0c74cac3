/**
 * What the gallery's page takes, in the browser: frames while a run of 2,000 calls is scrubbed, the time
 * until a page from disk is drawn, and how much a page is to send.
 *
 *     npm run bench:gallery               prints each figure with its quartiles and its goal
 *     npm run bench:gallery -- --check    exits with 1 if a goal is missed
 *
 * A frame's CPU time is that of the page's main thread: script, style, layout and paint, of the 16.7 ms
 * that 60 frames a second leave. The times between frames and until a page is drawn are by the clock,
 * and so of a machine that does nothing else.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { launch, open } from "../browser/browser.ts";
import { makeSite } from "../browser/site.ts";
import { type Spread, spread } from "./measure.ts";

const FRAMES = 120;
const ROUNDS = 5;
const LOADS = 7;

let missed = 0;
const [browser, site] = await Promise.all([launch(), makeSite()]);
try {
  const { cpu, pace } = await scrub(browser);
  report("CPU ms a frame, scrubbing 2,000 calls", spread(cpu), 16.7);
  report("ms between frames, scrubbing 2,000 calls", spread(pace), 17);
  report("ms until a page from disk is drawn", spread(await loads(browser, "plan")), 1000);
  report("ms until one of 2,000 calls is", spread(await loads(browser, "long")), 1000);
  report("ms until one of 3,000 names is", spread(await loads(browser, "varied")), 1500);
  for (const [name, size] of await sizes())
    report(`kB of ${name}, compressed`, spread([size]), 400);
} finally {
  await browser.close();
  await rm(site, { recursive: true });
}
print(missed === 0 ? "All goals are met." : `${missed} missed.`);
if (missed > 0 && process.argv.includes("--check")) process.exitCode = 1;

/** Drags the slider to and fro, a step a frame, in several rounds. */
async function scrub(browser: Browser): Promise<{ cpu: number[]; pace: number[] }> {
  const { page } = await open(browser, join(site, "long.html"));
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpuSoFar = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN);
  };
  const [cpu, pace]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await cpuSoFar();
    pace.push(...(await page.evaluate(drag, FRAMES)));
    cpu.push(((await cpuSoFar()) - before) / FRAMES);
  }
  return { cpu, pace };
}

/** In the page: gives the times between the frames. */
async function drag(frames: number): Promise<number[]> {
  const slider = document.querySelector<HTMLInputElement>("#time");
  if (!slider) throw new Error("The page has no slider");
  const pace: number[] = [];
  let last = await new Promise<number>(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame += 1) {
    slider.value = String(5000 + 4999 * Math.sin(frame / 20));
    slider.dispatchEvent(new Event("input"));
    const now = await new Promise<number>(requestAnimationFrame);
    pace.push(now - last);
    last = now;
  }
  return pace;
}

async function loads(browser: Browser, name: string): Promise<number[]> {
  const all: number[] = [];
  for (let load = 0; load < LOADS; load += 1) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.addInitScript(noteDrawn);
    await page.goto(pathToFileURL(join(site, `${name}.html`)).href);
    all.push(await page.evaluate(() => window.drawn));
    await page.close();
  }
  return all;
}

declare const window: Window & { drawn: Promise<number> };

/** In the page, before all else: when the first frame with the run in it is drawn. */
function noteDrawn(): void {
  window.drawn = new Promise((resolve) => {
    // The first frame begins before it's drawn, and the second one after that.
    document.addEventListener("DOMContentLoaded", () =>
      requestAnimationFrame(() => requestAnimationFrame(resolve)),
    );
  });
}

/** In kB, as a host sends it. */
async function sizes(): Promise<readonly (readonly [name: string, size: number])[]> {
  const names = (await readdir(site)).filter((name) => name.endsWith(".html")).sort();
  return Promise.all(
    names.map(
      async (name) => [name, gzipSync(await readFile(join(site, name))).length / 1000] as const,
    ),
  );
}

function report(what: string, { median, low, high }: Spread, goal: number): void {
  const isMissed = median > goal;
  if (isMissed) missed += 1;
  const quartiles = low === high ? "" : `(${low.toFixed(1)} to ${high.toFixed(1)})`;
  const verdict = `goal ${String(goal).padEnd(5)} ${isMissed ? "MISSED" : "met"}`;
  print(`${what.padEnd(44)} ${median.toFixed(1).padStart(7)}  ${quartiles.padEnd(18)}  ${verdict}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
