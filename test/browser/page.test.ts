import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, open } from "./browser.ts";
import { CODE, makeSite } from "./site.ts";

let browser: Browser;
let site: string;

beforeAll(async () => {
  [browser, site] = await Promise.all([launch(), makeSite()]);
});

afterAll(async () => {
  await browser.close();
  await rm(site, { recursive: true });
});

const show = (name: string, options = {}) => open(browser, join(site, `${name}.html`), options);

/** The state that the drawing and the list show of a step. */
async function stateOf(page: Page, path: string): Promise<readonly (string | null)[]> {
  const node = page.locator(`.sheet [data-path="${path}"]`);
  const bar = page.locator(`.row[data-path="${path}"] .call`);
  return [await node.getAttribute("data-state"), await bar.getAttribute("data-state")];
}

const clockOf = (page: Page) => page.locator(".clock").textContent();

// Opening

test.for(["index", "plan", "mixed", "long", "own"])(
  "%s opens from disk without an error, and asks for nothing",
  async (name) => {
    const { page, wrong } = await show(name);
    await page.locator("h1").first().waitFor();
    expect(wrong).toEqual([]);
  },
);

test("the index leads to the page of a pattern, and back", async () => {
  const { page } = await show("index");
  await page.getByRole("link", { name: "plan" }).last().click();
  await page.locator(".sheet .node").first().waitFor();
  await page.getByRole("link", { name: "effective agents" }).click();
  expect(await page.title()).toBe("effective agents");
});

test("a page stands at its run's end, and says what the whole has cost", async () => {
  const { page } = await show("plan");
  expect(await clockOf(page)).toBe("1.0 s of 1.0 s");
  expect(await page.locator('[data-sum="calls"] dd').textContent()).toBe("3 + 1 cancelled");
  expect(await page.locator('[data-sum="cost"] dd').textContent()).toBe("$0.0012");
  expect(await page.locator(".saved").textContent()).toContain("400 ms");
});

test("each state is shown by a sign and a word, and not by its colour alone", async () => {
  const { page } = await show("mixed");
  const told = async (path: string) => {
    const node = page.locator(`.sheet [data-path="${path}"]`);
    const sign = node.locator(".sign");
    return [await sign.textContent(), await sign.getAttribute("aria-label")];
  };
  expect(await told("run/fail[0]")).toEqual(["✕", "failed"]);
  expect(await told("run/fail[1]")).toEqual(["⊘", "cancelled"]);
  expect(await told("run/wait")).toEqual(["…", "unfinished"]);
});

// Playing

test("play goes through the run from its start to its end", async () => {
  const { page } = await show("plan");
  // The browser's time goes on only when it's told to.
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(60_000);
  await page.locator("#speed").selectOption({ label: "1× recorded" });
  await page.getByRole("button", { name: "Play" }).click();
  await page.clock.runFor(300);
  const together = page.locator('.sheet .node[data-state="flight"]');
  expect(await together.count()).toBe(3);
  await page.clock.runFor(200);
  expect(await stateOf(page, "plan/worker[0]")).toEqual(["ok", "ok"]);
  expect(await stateOf(page, "plan/combine")).toEqual(["waiting", "waiting"]);
  await page.clock.runFor(1000);
  expect(await clockOf(page)).toBe("1.0 s of 1.0 s");
  const status = page.locator(".run [role=status]");
  expect(await status.textContent()).toBe("The run has ended: completed. 3 calls");
});

test("the slider goes to any time while it plays too, and both views show the states of it", async () => {
  const { page } = await show("plan");
  await page.getByRole("button", { name: "Play" }).click();
  await page.locator("#time").fill("5000");
  expect(await clockOf(page)).toBe("500 ms of 1.0 s");
  expect(await stateOf(page, "plan/worker[0]")).toEqual(["ok", "ok"]);
  expect(await stateOf(page, "plan/worker[1]")).toEqual(["flight", "flight"]);
  expect(await stateOf(page, "plan/combine")).toEqual(["waiting", "waiting"]);
  await page.locator("#time").fill("6000");
  expect(await stateOf(page, "plan/worker[2]")).toEqual(["cancelled", "cancelled"]);
});

test("the keys step from event to event, play, and go to the ends", async () => {
  const { page } = await show("plan");
  await page.keyboard.press("Home");
  expect(await clockOf(page)).toBe("0 ms of 1.0 s");
  await page.keyboard.press("ArrowRight");
  expect(await clockOf(page)).toBe("400 ms of 1.0 s");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  expect(await clockOf(page)).toBe("400 ms of 1.0 s");
  await page.keyboard.press("End");
  expect(await clockOf(page)).toBe("1.0 s of 1.0 s");
  await page.keyboard.press("Home");
  await page.keyboard.press(" ");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.keyboard.press(" ");
  await page.getByRole("button", { name: "Play" }).waitFor();
});

test("nothing on the page moves while it plays", async () => {
  const { page } = await show("mixed");
  const boxes = () =>
    page.evaluate(() =>
      [
        ...document.querySelectorAll(
          ".run, .diagram, .transport, .waterfall, .sums div, .clock, .side",
        ),
      ].map((element) => JSON.stringify(element.getBoundingClientRect())),
    );
  const atEnd = await boxes();
  for (const time of ["0", "2000", "4400", "9000"]) {
    await page.locator("#time").fill(time);
    await page.evaluate(() => scrollTo(0, 0));
    expect(await boxes()).toEqual(atEnd);
  }
});

test.for([360, 1440])("at %d px no time of a step is wider than its place", async (width) => {
  const viewport = { width, height: 900 };
  const { page } = await show("slow", { viewport });
  const over = await page
    .locator(".row .took")
    .evaluateAll((all) => all.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
  expect(Math.max(...over)).toBe(0);
});

test.for([360, 1440])("at %d px no name runs out of what it stands in", async (width) => {
  const { page } = await show("named", { viewport: { width, height: 900 } });
  const texts = page.locator(".sheet button .name, .sheet button .sign");
  const over = await texts.evaluateAll((all) =>
    all.map((text) => {
      const around = text.closest("button")?.getBoundingClientRect().right ?? Number.NaN;
      return text.getBoundingClientRect().right - around;
    }),
  );
  expect(over.length).toBeGreaterThan(6);
  expect(Math.max(...over)).toBeLessThanOrEqual(0);
  const tool = page.locator(".hung");
  expect(await tool.getAttribute("title")).toContain("a-name-without-an-end-".repeat(8));
});

test("a drawing that is wider than the window is scrolled by the arrow keys", async () => {
  const { page } = await show("named", { viewport: { width: 360, height: 800 } });
  const sketch = page.getByLabel("The pattern's drawing");
  const clock = await clockOf(page);
  await sketch.focus();
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => sketch.evaluate((element) => element.scrollLeft)).toBeGreaterThan(0);
  expect(await clockOf(page)).toBe(clock);
});

// Selecting

test("a step selected in the drawing is selected in the list, and the other way round", async () => {
  const { page } = await show("plan");
  await page.locator('.sheet [data-path="plan/worker[1]"]').click();
  const row = (path: string) => page.locator(`.row[data-path="${path}"]`);
  expect(await row("plan/worker[1]").getAttribute("aria-pressed")).toBe("true");
  await row("plan/combine").click();
  const node = page.locator('.sheet [data-path="plan/combine"]');
  expect(await node.getAttribute("aria-pressed")).toBe("true");
  expect(await row("plan/worker[1]").getAttribute("aria-pressed")).toBe("false");
});

test("a selected call shows its prompt, reply, stop reason, usage, cost and the step's value", async () => {
  const { page } = await show("plan");
  await page.locator('.sheet [data-path="plan/worker[1]"]').click();
  const text = await page.locator("#details").textContent();
  for (const part of [
    "plan/worker[1]",
    "two",
    "Is it?",
    "It is.",
    "end_turn",
    "100",
    "20",
    "$0.0004",
  ]) {
    expect(text).toContain(part);
  }
});

test("a step's details tell no more than is known at the moment, and lead to how it ended", async () => {
  const { page } = await show("plan");
  await page.locator('.sheet [data-path="plan/worker[1]"]').click();
  const [details, slider] = [page.locator("#details"), page.locator("#time")];
  const state = () => details.locator('[data-fact="state"] dd').textContent();
  await slider.fill("5000");
  expect(await state()).toBe("in flight");
  const text = await details.textContent();
  expect(text).toContain("Is it?");
  for (const later of ["two", "It is.", "end_turn", "$0.0004", "done", "600 ms"]) {
    expect(text).not.toContain(later);
  }
  await page.getByRole("button", { name: "See how it ended" }).click();
  expect([await state(), await clockOf(page)]).toEqual(["done", "600 ms of 1.0 s"]);
  expect(await details.textContent()).toContain("It is.");
  const here = () => page.evaluate(() => document.activeElement?.textContent);
  expect(await here()).toBe("plan/worker[1]");

  await page.locator('.row[data-path="plan/combine"]').click();
  await slider.fill("0");
  expect(await state()).toBe("not started");
  expect(await details.textContent()).not.toContain("Is it?");
});

test("the line that names the selected step is marked in its file, and seen", async () => {
  const { page } = await show("plan");
  await page.locator('.sheet [data-path="plan/combine"]').click();
  const marked = page.locator(".line.marked");
  expect(await marked.textContent()).toContain('step("combine"');
  expect(await marked.isVisible()).toBe(true);
  await page.locator('.row[data-path="plan"]').click();
  expect(await marked.textContent()).toContain("run: () => plan('x')");
});

test.for([".sheet", ".rows"])(
  "Enter on a step in %s leads to its details, and Escape back",
  async (view) => {
    const { page } = await show("plan");
    const step = page.locator(`${view} [data-path="plan/worker[0]"]`);
    await step.focus();
    await page.keyboard.press("Enter");
    const here = () => page.evaluate(() => document.activeElement?.textContent);
    expect(await here()).toBe("plan/worker[0]");
    await page.keyboard.press("Escape");
    expect(await page.locator("#details").isVisible()).toBe(false);
    expect(await step.evaluate((element) => element === document.activeElement)).toBe(true);
  },
);

test("Escape closes the details and gives the focus back", async () => {
  const { page } = await show("plan");
  const node = page.locator('.sheet [data-path="plan/worker[0]"]');
  await node.focus();
  await page.keyboard.press("Enter");
  await page.locator("#details .details-body").focus();
  await page.keyboard.press("Escape");
  expect(await page.locator("#details").isVisible()).toBe(false);
  expect(await node.evaluate((element) => element === document.activeElement)).toBe(true);
});

test("the arrows go up and down in the drawing and in the list, which are one stop each", async () => {
  const { page } = await show("long");
  await page.locator(".row").first().focus();
  for (let presses = 0; presses < 40; presses += 1) await page.keyboard.press("ArrowDown");
  const path = await page.evaluate(() => document.activeElement?.getAttribute("data-path"));
  expect(path).toBe("run/ticket[39]");
  expect(await page.locator('.row[tabindex="0"]').count()).toBe(1);
  expect(await page.locator(".row").count()).toBeLessThan(80);
});

test("of thousands of steps of as many names the first and last are drawn, and all can be looked at", async () => {
  const { page, wrong } = await show("varied");
  const drawn = await page.locator(".sheet .node .name").allTextContents();
  expect([drawn.length, drawn[0], drawn.at(-1)]).toEqual([32, "topic-0", "topic-2999"]);
  await page.locator(".crowd", { hasText: "2,968 more steps" }).locator("canvas").click();
  await page.locator("#details h2", { hasText: /^run\/topic-\d+$/ }).waitFor();
  await page.locator(".rows").evaluate((list) => list.scrollTo(0, list.scrollHeight));
  await page.locator('.row[data-path="run/topic-2999"]').waitFor();
  expect(wrong).toEqual([]);
});

test("a slider that goes far makes no row but those that are seen, and scrolling makes more", async () => {
  const { page } = await show("long");
  const seen = await page
    .locator(".rows")
    .evaluate((list) => Math.ceil(list.clientHeight / 24) + 1);
  const rows = page.locator(".row");
  await page.locator("#time").fill("2000");
  expect(await rows.count()).toBeLessThanOrEqual(seen);
  await page.locator(".rows").evaluate((list) => list.scrollBy(0, 48));
  await expect.poll(() => rows.count()).toBeGreaterThan(seen);
});

// The source

test("the file is copied as it is, and the command too", async () => {
  const { page } = await show("plan", { permissions: ["clipboard-read", "clipboard-write"] });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await page.getByRole("button", { name: "Copy file" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await copied()).toBe(CODE);
  await page.getByRole("button", { name: "Copy npm start plan" }).click();
  await expect.poll(copied).toBe("npm start plan");
});

test("that a command is copied is said aloud too, and two presses leave the button its name", async () => {
  const { page } = await show("plan", { permissions: ["clipboard-read", "clipboard-write"] });
  const button = page.getByRole("button", { name: "Copy npm start plan" });
  await button.click();
  await page.getByRole("status").getByText("Copied", { exact: true }).waitFor();
  await button.click();
  await expect.poll(() => button.textContent()).toBe("Copied");
  await expect.poll(() => button.textContent(), { timeout: 10_000 }).toBe("Copy");
});

test("without a clipboard the command is copied all the same, and neither focus nor page moves", async () => {
  const { page } = await show("plan", {
    permissions: ["clipboard-read", "clipboard-write"],
    viewport: { width: 1440, height: 400 },
  });
  await page.evaluate(() => {
    navigator.clipboard.writeText = () => Promise.reject(new Error("refused"));
  });
  const button = page.getByRole("button", { name: "Copy npm start plan" });
  await button.focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => button.textContent()).toBe("Copied");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("npm start plan");
  expect(await button.evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await page.evaluate(() => scrollY)).toBe(0);
});

test("the source's tabs are changed by the arrow keys", async () => {
  const { page } = await show("plan");
  await page.getByRole("tab", { name: "patterns/plan.ts" }).focus();
  await page.keyboard.press("ArrowRight");
  expect(
    await page.getByRole("tab", { name: "runners/plan.ts" }).getAttribute("aria-selected"),
  ).toBe("true");
  expect(await page.locator("#source-1").isVisible()).toBe(true);
});

// The theme

test("the chosen theme is kept, and the next page has it before it's drawn", async () => {
  const { page } = await show("plan", { colorScheme: "light" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Theme: auto" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  const dark = await paper();
  expect(dark).not.toBe(light);
  await page.getByRole("link", { name: "effective agents" }).click();
  expect(await paper()).toBe(dark);
});

test("with reduced motion nothing is animated", async () => {
  const { page } = await show("plan", { reducedMotion: "reduce" });
  await page.locator("#time").fill("3000");
  const running = await page.evaluate(() => document.getAnimations().length);
  expect(running).toBe(0);
});

// The policy

test("a page allows no script but its own two, and no markup made of text", async () => {
  const { page } = await show("plan");
  const policy = (await readFile(join(site, "plan.html"), "utf8")).match(
    /content="(default-src[^"]*)"/,
  )?.[1];
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe/);
  // Browsers ask for an icon on their own, unless the page has one.
  expect(policy).toContain("img-src data:");
  expect(await page.locator("link[rel=icon]").getAttribute("href")).toMatch(/^data:/);
  const refused = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<b>x</b>";
      return false;
    } catch {
      return true;
    }
  });
  expect(refused).toBe(true);
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "window.ran = true";
      document.body.append(script);
    } catch {}
    return "ran" in window;
  });
  expect(ran).toBe(false);
});

test("markup in prompts, replies, names and errors is shown as text and never runs", async () => {
  const { page, wrong } = await show("hostile");
  await page.locator(".row").first().click();
  for (const fold of await page.locator("#details summary").all()) await fold.click();
  expect(await page.locator("#details").textContent()).toContain('<script>alert("x")</script>');
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(wrong).toEqual([]);
});

test("what turns the direction of a text is shown by its code, in all that is read or heard", async () => {
  const { page } = await show("hostile");
  await page.locator(".row").first().click();
  for (const fold of await page.locator("#details summary").all()) await fold.click();
  for (const place of [".lead .sentence", ".run-title", ".sheet", ".row", "#details h2"]) {
    expect(await page.locator(place).first().textContent(), place).toContain("<U+202E>");
  }
  const said = await page.evaluate(() => {
    const labels = [...document.querySelectorAll("[title], [aria-label]")].map(
      (element) => `${element.getAttribute("title")} ${element.ariaLabel}`,
    );
    return [document.title, document.querySelector("main")?.textContent, ...labels].join("\n");
  });
  expect(said).not.toMatch(/\p{Bidi_Control}/u);
});
