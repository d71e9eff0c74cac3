import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { AxeResults, RunOptions } from "axe-core";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FAN_OUT } from "../shared/traces.ts";
import { launch, open } from "./browser.ts";
import { makeSite } from "./site.ts";

let browser: Browser;
let site: string;
const axe = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

beforeAll(async () => {
  [browser, site] = await Promise.all([launch(), makeSite()]);
});

afterAll(async () => {
  await browser.close();
  await rm(site, { recursive: true });
});

/** What axe is to be called with: it's put into the page. */
declare const window: { readonly axe: { run: (options: RunOptions) => Promise<AxeResults> } };

const LOOKS = [
  { theme: "light", width: 1440 },
  { theme: "dark", width: 1440 },
  { theme: "light", width: 360 },
] as const;
const CASES = ["index", "plan", "mixed", "own"].flatMap((name) =>
  LOOKS.map((look) => ({ name, ...look })),
);

test.for(CASES)(
  "$name in $theme at $width px has nothing that axe minds",
  async ({ name, theme, width }) => {
    const { page } = await open(browser, join(site, `${name}.html`), {
      colorScheme: theme,
      viewport: { width, height: 900 },
      // Only for axe, which is a script that the page's policy would refuse.
      bypassCSP: true,
      reducedMotion: "reduce",
    });
    if (name === "plan" || name === "mixed") {
      await page.locator("#time").fill("5000");
      await page.locator(".row").nth(1).click();
    }
    await page.evaluate(await axe);
    const { violations } = await page.evaluate(() =>
      window.axe.run({ resultTypes: ["violations"] }),
    );
    const found = violations.map(({ id, impact, nodes }) => [
      id,
      impact,
      ...nodes.map(({ html }) => html.slice(0, 160)),
    ]);
    expect(found).toEqual([]);
  },
);

test.for([360, 768, 1600])("at %d px no page is wider than its window", async (width) => {
  for (const name of ["index", "plan", "mixed", "slow", "named", "long", "own"]) {
    const { page } = await open(browser, join(site, `${name}.html`), {
      viewport: { width, height: 800 },
    });
    if (name === "plan") await page.locator(".row").nth(1).click();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over, name).toBeLessThanOrEqual(0);
    await page.context().close();
  }
});

/** In the page: what has the focus, and what is wrong with the outline that says so. */
function outlineNow(): readonly [what: string, wrong: string] {
  const { activeElement: element } = document;
  if (!element || element === document.body) return ["", ""];
  const what = element.id || element.className || element.tagName;
  // The button for a file is the label of a field that isn't seen.
  const shown = element.matches("[type=file]") ? element.previousElementSibling : element;
  if (!shown) return [what, "nothing is shown"];
  const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(shown);
  if (outlineStyle !== "solid" || Number.parseFloat(outlineWidth) < 2) return [what, "no outline"];
  const by = Number.parseFloat(outlineWidth) + Number.parseFloat(outlineOffset);
  const box = shown.getBoundingClientRect();
  const isOutside = ({ left, top, right, bottom }: Omit<DOMRect, "toJSON">) =>
    box.left - by < left - 0.5 ||
    box.top - by < top - 0.5 ||
    box.right + by > right + 0.5 ||
    box.bottom + by > bottom + 0.5;
  // Of what is high, such as a file, a part is in the window.
  const isHigh = box.height > innerHeight / 3;
  const seen = new DOMRect(0, isHigh ? -1e6 : 0, innerWidth, isHigh ? 2e6 : innerHeight);
  if (isOutside(seen)) return [what, "cut by the window"];
  for (let around = shown.parentElement; around; around = around.parentElement) {
    const { overflow, contain } = getComputedStyle(around);
    const isClipping = overflow !== "visible" || /paint|content|strict/.test(contain);
    const isWhole = around === document.body || around === document.documentElement;
    if (isClipping && !isWhole && isOutside(around.getBoundingClientRect()))
      return [what, `cut by ${around.className || around.tagName}`];
  }
  return [what, ""];
}

test.for(
  ["index", "plan", "mixed", "own"].flatMap((name) =>
    [1280, 360].map((width) => ({ name, width })),
  ),
)(
  "on $name at $width px the outline of each thing in focus is seen whole",
  async ({ name, width }) => {
    const { page } = await open(browser, join(site, `${name}.html`), {
      viewport: { width, height: 800 },
      reducedMotion: "reduce",
    });
    await page.locator("summary").first().click();
    if (name === "plan" || name === "mixed") {
      const steps = page.locator(".sheet button");
      // One by one, since the arrows move the focus among them.
      for (const step of await steps.all()) {
        await step.focus();
        await page.keyboard.press("ArrowDown");
        expect(await page.evaluate(outlineNow)).toEqual([expect.any(String), ""]);
      }
      await page.locator(".row").nth(1).click();
      for (const fold of await page.locator("#details summary").all()) await fold.click();
    }
    // It begins anew after the last one.
    const stops: (readonly [string, string])[] = [];
    for (let presses = 0; presses < 80; presses += 1) {
      await page.keyboard.press("Tab");
      stops.push(await page.evaluate(outlineNow));
    }
    expect(stops.filter(([, wrong]) => wrong !== "")).toEqual([]);
    expect(stops.map(([what]) => what)).toEqual(expect.arrayContaining(["mark", "theme"]));
  },
);

test("the Tab key goes through a page in the order of reading, and shows where it is", async () => {
  const { page } = await open(browser, join(site, "plan.html"));
  const stops: string[] = [];
  for (let presses = 0; presses < 24; presses += 1) {
    await page.keyboard.press("Tab");
    const [what, outline] = await page.evaluate(() => {
      const { activeElement: element } = document;
      if (!element) return ["", "none"];
      const { outlineStyle } = getComputedStyle(element);
      return [element.id || element.className || element.tagName, outlineStyle];
    });
    if (what === "BODY") break;
    stops.push(what ?? "");
    expect(outline, what).not.toBe("none");
  }
  const order = [
    "mark",
    "theme",
    "sketch",
    "node",
    "back",
    "play",
    "next",
    "speed",
    "time",
    "row",
    "tab-0",
    "copy-source",
  ];
  expect(stops.filter((stop) => order.includes(stop))).toEqual(order);
});

test("what is heard of a page: its drawing's words, its lines without numbers, and the end of a run that plays", async () => {
  const { page } = await open(browser, join(site, "plan.html"));
  await page.getByRole("img", { name: "task, worker, combine, worker", exact: true }).waitFor();
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const heard = nodes.map(({ name }) => name?.value);
  expect(heard).toContain("export async function plan(task: string) {");
  expect(heard).not.toContain("1");
  await page.getByRole("group", { name: "Steps drawn" }).waitFor();
  await page.getByRole("button", { name: "End of the run: completed", exact: true }).waitFor();
  expect(await page.locator(".clock").getAttribute("aria-live")).toBe("off");
});

test("a scripted run's moments are said without times, and a title in lower case begins with a capital", async () => {
  const { page } = await open(browser, join(site, "own.html"));
  const trace = { ...FAN_OUT, origin: "scripted", title: "a run of ours" };
  await page.getByLabel("Open a run of your own").setInputFiles({
    name: "run.json",
    mimeType: "application/json",
    buffer: Buffer.from(JSON.stringify(trace)),
  });
  expect(await page.locator(".run-title").textContent()).toBe("A run of ours");
  await page.keyboard.press("Home");
  await page
    .getByRole("status")
    .getByText(/^At 0 %: /)
    .waitFor();
});
