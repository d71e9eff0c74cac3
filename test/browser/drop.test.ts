import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FAN_OUT } from "../shared/traces.ts";
import { launch, open } from "./browser.ts";
import { hostileTrace, MIXED, makeSite } from "./site.ts";

let browser: Browser;
let site: string;

beforeAll(async () => {
  [browser, site] = await Promise.all([launch(), makeSite()]);
});

afterAll(async () => {
  await browser.close();
  await rm(site, { recursive: true });
});

/** Drops a file with this text on the page, as a person does. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const transfer = await page.evaluateHandle(
    ([name, text]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([text], name));
      return transfer;
    },
    [name, text] as const,
  );
  await page.dispatchEvent("body", "dragenter", { dataTransfer: transfer });
  await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
}

test.for(["own", "plan"])(
  "a trace dropped on %s is shown in the place of what was there",
  async (name) => {
    const { page, wrong } = await open(browser, join(site, `${name}.html`));
    await drop(page, "run.json", JSON.stringify({ ...MIXED, title: "My run" }));
    await page.getByRole("heading", { name: "My run" }).waitFor();
    expect(await page.locator(".row").count()).toBe(MIXED.steps.length);
    expect(await page.locator("body").getAttribute("data-dragging")).toBe(null);
    expect(wrong).toEqual([]);
  },
);

test("of several traces in a file the first is shown, and another can be chosen", async () => {
  const { page, wrong } = await open(browser, join(site, "own.html"));
  const which = page.getByLabel("Trace", { exact: true });
  expect(await which.isVisible()).toBe(false);
  const traces = [
    { ...MIXED, title: "First" },
    { ...FAN_OUT, title: "Second" },
  ];
  await drop(page, "runs.json", JSON.stringify(traces));
  await page.getByRole("heading", { name: "First" }).waitFor();
  await which.selectOption("2 of 2: Second");
  await page.getByRole("heading", { name: "Second" }).waitFor();
  expect(await page.locator(".row").count()).toBe(FAN_OUT.steps.length);
  await drop(page, "run.json", JSON.stringify(MIXED));
  await which.waitFor({ state: "hidden" });
  expect(wrong).toEqual([]);
});

test("a short run dropped on a long one, far down its list, is seen from its first step on", async () => {
  const { page } = await open(browser, join(site, "long.html"));
  await page.locator(".rows").evaluate((list) => list.scrollTo(0, 20_000));
  await page.locator('.row[data-path="run/ticket[840]"]').waitFor();
  await drop(page, "run.json", JSON.stringify({ ...MIXED, title: "Short" }));
  await page.getByRole("heading", { name: "Short" }).waitFor();
  expect(await page.locator(".row").count()).toBe(MIXED.steps.length);
});

test("a trace can be chosen with the keyboard, and the same one again", async () => {
  const { page } = await open(browser, join(site, "own.html"));
  const file = join(site, "run.json");
  for (const title of ["First", "Second"]) {
    await writeFile(file, JSON.stringify({ ...FAN_OUT, title }));
    await page.getByLabel("Open a run of your own").setInputFiles(file);
    await page.getByRole("heading", { name: title }).waitFor();
  }
});

test.for([
  ["empty.json", "", /empty/],
  ["broken.json", '{"format": "effective-agents/trace", "vers', /JSON/],
  ["other.json", '{"hello": 1}', /trace/],
  ["newer.json", JSON.stringify({ ...FAN_OUT, version: 9 }), /version 9/],
] as const)(
  "%s gets a message that says what it is, and the run that was there stays",
  async ([name, text, said]) => {
    const { page, wrong } = await open(browser, join(site, "plan.html"));
    await drop(page, name, text);
    const alert = page.getByRole("alert");
    await expect.poll(() => alert.textContent()).toMatch(said);
    expect(await alert.textContent()).toContain(`${name}: `);
    expect(await page.locator(".row").count()).toBe(FAN_OUT.steps.length);
    expect(wrong).toEqual([]);
  },
);

test("a hostile trace is shown as text, and nothing of it runs", async () => {
  const { page, wrong } = await open(browser, join(site, "own.html"));
  await drop(page, "evil.json", JSON.stringify(hostileTrace()));
  await page.locator(".row").first().click();
  for (const fold of await page.locator("#details summary").all()) await fold.click();
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(await page.locator(".run-title").textContent()).toContain("<img src=x");
  expect(wrong).toEqual([]);
});
