/**
 * The page's script and style sheet, each as one text: they stand in the page itself, so that a page is
 * one file, and its content security policy names them by their hashes.
 */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export interface Assets {
  readonly script: string;
  readonly style: string;
}

/** IBM Plex (SIL Open Font License 1.1), for the letters of Latin 1. */
const FONTS = [
  {
    family: "Plex Sans",
    weight: "100 700",
    file: "@fontsource-variable/ibm-plex-sans/files/ibm-plex-sans-latin-wght-normal.woff2",
  },
  {
    family: "Plex Mono",
    weight: "400",
    file: "@fontsource/ibm-plex-mono/files/ibm-plex-mono-latin-400-normal.woff2",
  },
  {
    family: "Plex Mono",
    weight: "600",
    file: "@fontsource/ibm-plex-mono/files/ibm-plex-mono-latin-600-normal.woff2",
  },
] as const;

/** Bundles the script and puts the fonts into the style sheet. */
export async function buildAssets(): Promise<Assets> {
  const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [here("client.ts"), here("page.css")],
    outdir: "out",
    write: false,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2023",
  });
  const text = (end: string) => outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  const fonts = await Promise.all(FONTS.map(fontFace));
  // A script must not end the element that it stands in.
  return {
    script: text(".js").replaceAll("</script", "<\\/script"),
    style: fonts.join("") + text(".css"),
  };
}

const { resolve } = createRequire(import.meta.url);

async function fontFace({ family, weight, file }: (typeof FONTS)[number]): Promise<string> {
  const data = (await readFile(resolve(file))).toString("base64");
  return `@font-face{font-family:"${family}";font-weight:${weight};font-display:block;src:url(data:font/woff2;base64,${data}) format("woff2")}`;
}
