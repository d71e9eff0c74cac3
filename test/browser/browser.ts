/**
 * A browser for the tests: pages opened from disk, with everything that goes wrong in them noted.
 */
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Where Debian, Ubuntu and Fedora have it; another one is named by `CHROMIUM`. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export async function launch(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? PLACES.find(existsSync);
  if (!executablePath) throw new Error("No Chromium: install it, or name it with CHROMIUM=<path>");
  // Containers often allow no sandbox, and the pages are our own.
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

export interface Opened {
  readonly page: Page;
  /** Errors, blocked scripts and requests that left the disk, in words. */
  readonly wrong: string[];
}

/** Opens a file in a fresh profile, at 1440 × 900 unless asked otherwise, and waits until it's drawn. */
export async function open(
  browser: Browser,
  file: string,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(message.text());
  });
  // A loop of resizing is reported to the page alone.
  await page.addInitScript(() =>
    addEventListener("error", ({ message }) => console.error(message)),
  );
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const { protocol } = new URL(request.url());
    if (!["file:", "data:"].includes(protocol)) wrong.push(`request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(pathToFileURL(file).href);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  return { page, wrong };
}
