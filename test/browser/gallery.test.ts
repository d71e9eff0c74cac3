/**
 * The gallery as it is: each page opened from disk, and a pattern run live from its page.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { FAILURES } from "../../runners/failures.ts";
import { type Gallery, readGallery } from "../../runners/gallery/pages.ts";
import { makeSite, writeSite } from "../../runners/gallery/site.ts";
import { JOBS } from "../../runners/shared/cli.ts";
import { startLive } from "../shared/live.ts";
import { type Answer, hold, reply } from "../shared/server.ts";
import { launch, open } from "./browser.ts";

let browser: Browser;
let folder: string;
let gallery: Gallery;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gallery-"));
  [browser, gallery] = await Promise.all([launch(), readGallery()]);
  await writeSite(await makeSite(gallery, { isLive: false }), folder);
}, 180_000);

afterAll(async () => {
  await browser.close();
  await rm(folder, { recursive: true });
});

test.for([...JOBS.keys(), ...FAILURES.keys()])(
  "the page of %s opens from disk, plays, and shows a call",
  async (name) => {
    const { page, wrong } = await open(browser, join(folder, `${name}.html`));
    const nodes = page.locator(".sheet .node");
    await nodes.first().waitFor();
    const names = await page.locator(".sheet button").allTextContents();
    expect(Math.max(...names.map(({ length }) => length))).toBeLessThan(200);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("End");
    await page.locator(".row .call").first().click();
    await page.locator("#details:not([hidden])").waitFor();
    expect(wrong).toEqual([]);
  },
);

/** Whether a node of the drawing is in the window, whole. */
async function isSeen(page: Page): Promise<boolean> {
  const node = page.locator(".sheet .node").first();
  await node.waitFor();
  return node.evaluate((element) => element.getBoundingClientRect().bottom < innerHeight);
}

test.for([...JOBS.keys()])("the drawing of %s is seen at the first look", async (name) => {
  const viewport = { width: 1280, height: 800 };
  const { page } = await open(browser, join(folder, `${name}.html`), { viewport });
  expect(await isSeen(page)).toBe(true);
});

test("a run of one's own is shown on another pattern's page", async () => {
  const trace = gallery.pages.find(({ name }) => name === "agent")?.trace;
  const file = join(folder, "run.json");
  await writeFile(file, JSON.stringify({ ...trace, title: "a run of my own" }));
  const { page, wrong } = await open(browser, join(folder, "route.html"));
  await page.locator("#file").setInputFiles(file);
  await page.getByText("a run of my own", { exact: false }).first().waitFor();
  expect(wrong).toEqual([]);
});

/** The page of route from a server whose API gives these answers. */
async function livePage(answers: [Answer, ...Answer[]], capUsd = 0.5) {
  const site = await makeSite(gallery, { isLive: true, capUsd });
  const { url, api } = await startLive(site, answers, capUsd);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  onTestFinished(() => page.close());
  const wrong: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(String(error)));
  await page.goto(`${url}route.html`);
  return { page, api, wrong };
}

/** Types an input on it, and has the pattern run. */
async function runLive(page: Page): Promise<void> {
  await page.locator("#input").fill("I was charged twice.");
  await page.getByRole("button", { name: "Run live" }).click();
}

test("a pattern runs live on an input that is typed, and what it gave and spent is shown", async () => {
  const label = reply("<label>billing</label>");
  const { page, api, wrong } = await livePage([label, reply("Dear customer, we will look.")]);
  await runLive(page);
  await page.locator('.sheet [data-path="route/billing"][data-state="ok"]').waitFor();
  await page.locator("#live-said", { hasText: "Dear customer" }).waitFor();
  expect(await isSeen(page)).toBe(true);
  expect(await page.locator("#spent").textContent()).toBe("$0.0001");
  expect(await page.locator("#left").textContent()).toBe("$0.4999 left.");
  expect(JSON.stringify(api.requests[0]?.body)).toContain("I was charged twice.");
  expect(wrong).toEqual([]);
});

test("what is in flight in a live run goes on growing while nothing is heard of it", async () => {
  const { page, api } = await livePage([hold]);
  await runLive(page);
  await api.received(1);
  const row = page.locator('.row[data-path="route/classify"][data-state="flight"]');
  await row.waitFor();
  const clock = () => page.locator(".clock").textContent();
  const before = await clock();
  await expect.poll(clock).not.toBe(before);
  const [bar, plot] = [row.locator(".call"), row.locator(".plot")];
  const right = async (part: typeof bar) => part.evaluate((e) => e.getBoundingClientRect().right);
  expect(Math.abs((await right(bar)) - (await right(plot)))).toBeLessThan(1);
});

test("a live run that goes on disturbs neither the focus, nor what is read, nor a press", async () => {
  const { page, api, wrong } = await livePage([hold]);
  await runLive(page);
  const first = await api.received(1);
  const row = page.locator('.row[data-path="route/classify"]');
  await page.locator('.row[data-path="route/classify"][data-state="flight"]').waitFor();
  await row.click();
  await page.locator('#details [data-state="flight"]').waitFor();
  expect(await page.locator("#details").textContent()).not.toContain("unfinished");
  await row.focus();
  reply("<label>billing</label>")(first);
  await page.locator('#details [data-state="ok"]').waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("data-path"));
  expect(await focused()).toBe("route/classify");

  const second = await api.received(2);
  await page.locator('.row[data-path="route"]').hover();
  await page.mouse.down();
  reply("Dear customer, we will look.")(second);
  await page.locator("#live-said", { hasText: "Dear customer" }).waitFor();
  await page.mouse.up();
  await page.locator("#details h2", { hasText: /^route$/ }).waitFor();
  await page.locator('.sheet [data-path="route/billing"][data-state="ok"]').waitFor();
  expect(wrong).toEqual([]);
});

test("an earlier moment of a live run is held until it's followed again", async () => {
  const { page, api, wrong } = await livePage([hold]);
  await runLive(page);
  const first = await api.received(1);
  const billing = page.locator('.sheet [data-path="route/billing"]');
  await page.locator('.sheet [data-path="route/classify"][data-state="flight"]').waitFor();
  const [slider, clock] = [page.locator("#time"), page.locator(".clock")];
  const sides = async () => ((await clock.textContent()) ?? "").split(" of ");
  await slider.fill("5000");
  const [held] = await sides();
  reply("<label>billing</label>")(first);
  const second = await api.received(2);
  await billing.waitFor();
  expect((await sides())[0]).toBe(held);
  expect(await billing.getAttribute("data-state")).toBe("waiting");
  const [, before] = await sides();
  await expect.poll(async () => (await sides())[1]).not.toBe(before);
  expect((await sides())[0]).toBe(held);

  await page.getByRole("button", { name: "Follow" }).click();
  await page.locator('.sheet [data-path="route/billing"][data-state="flight"]').waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  const [paused] = await sides();
  await expect.poll(async () => (await sides())[1]).not.toBe(paused);
  expect((await sides())[0]).toBe(paused);
  await slider.fill("10000");
  await page.getByRole("button", { name: "Pause" }).waitFor();

  await slider.fill("0");
  reply("Dear customer, we will look.")(second);
  await page.locator("#live-said", { hasText: "Dear customer" }).waitFor();
  await page.getByRole("button", { name: "Play" }).waitFor();
  expect(await billing.getAttribute("data-state")).toBe("waiting");
  await page.keyboard.press("End");
  expect(await billing.getAttribute("data-state")).toBe("ok");
  expect(wrong).toEqual([]);
});

test("Stop cancels the calls of a live run, and the page says so", async () => {
  const { page, api, wrong } = await livePage([hold]);
  await runLive(page);
  const call = await api.received(1);
  await page.locator('.sheet [data-path="route/classify"][data-state="flight"]').waitFor();
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  expect(await focused()).toBe("Stop");
  await page.keyboard.press("Enter");
  await call.gone;
  await page.locator("#live-said", { hasText: "Stopped" }).waitFor();
  await expect.poll(focused).toBe("Run live");
  await page.locator('.sheet [data-path="route/classify"][data-state="cancelled"]').waitFor();
  expect(wrong).toEqual([]);
});

test("the page says what is reserved after a Stop, and runs nothing that what is left can't pay", async () => {
  const { page, api } = await livePage([hold], 0.3);
  await runLive(page);
  const run = page.getByRole("button", { name: "Run live" });
  await api.received(1);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator("#live-said", { hasText: "Stopped" }).waitFor();
  expect(await page.locator("#spent").textContent()).toBe("$0.0000");
  expect(await page.locator("#left").textContent()).toMatch(
    /^\$0\.16\d\d reserved for calls that were cancelled and may be billed\. \$0\.13\d\d left, which pays no more calls: /,
  );
  await page.locator('[type=submit][aria-disabled="true"]').waitFor();
  await run.press("Enter");
  expect(await page.locator("#live-said").textContent()).toBe("Stopped");

  // As a page that is opened later has it, too.
  await page.reload();
  await page.locator('[type=submit][aria-disabled="true"]').waitFor();
  expect(api.requests).toHaveLength(1);
});
