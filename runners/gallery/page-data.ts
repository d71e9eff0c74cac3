/**
 * What a page of the gallery is made of: read from the modules, the runners and the recordings, so that
 * nothing on a page is a second copy of anything.
 */
import type { TraceFile } from "../../patterns/trace-file.ts";

/** A page: a pattern, a failure of the lab, or a trace of somebody's own. */
export interface PageData {
  /** `route`: also the file's name, route.html. */
  readonly name: string;
  readonly kind: "workflow" | "agent" | "failure" | "own";
  /** The name that "Building effective agents" has for it, such as `routing`. */
  readonly article: string;
  /** What it does, in a sentence. */
  readonly sentence: string;
  /** In box-drawing characters. */
  readonly drawing: string;
  readonly useWhen: string;
  readonly costs: string;
  /** What runs it: `npm start route`. */
  readonly command: string;
  /** What copies it; absent where the registry has no such item. */
  readonly copying?: Copying;
  /** The files that go with the module. */
  readonly copyAlong: readonly string[];
  /** The module first, then the runner. */
  readonly sources: readonly Source[];
  readonly trace?: TraceFile;
  /** All pages in order, for the navigation. */
  readonly pages: readonly PageLink[];
  /** Whether a server runs patterns for the page. */
  readonly isLive: boolean;
  /** The most that the server spends, in US dollars. */
  readonly capUsd?: number;
}

/** The commands that copy a module: the first builds the registry's items, the second adds one. */
export interface Copying {
  /** Run in a clone of this repository. */
  readonly inClone: string;
  /** Run in the app. */
  readonly inApp: string;
}

/** A file as it is shown. */
export interface Source {
  /** Its path in the repository: `patterns/route.ts`. */
  readonly file: string;
  /** As it is: what the copy button copies. */
  readonly code: string;
  /** Highlighted: one `<span class="line">` a line, with colours for light and dark. */
  readonly html: string;
  /** The lines, from 1, that name a step, by the step's name without index and number. */
  readonly steps: Readonly<Record<string, number>>;
}

/** A page as the navigation shows it. */
export interface PageLink {
  readonly name: string;
  readonly kind: PageData["kind"];
  readonly sentence: string;
}

/** The first page. */
export interface IndexData {
  readonly cards: readonly Card[];
  /** "Which one do I need?", as the README asks it. */
  readonly choices: readonly Choice[];
}

/** A pattern on the first page. */
export interface Card
  extends Pick<
    PageData,
    "name" | "kind" | "article" | "sentence" | "drawing" | "useWhen" | "costs"
  > {
  readonly calls?: number;
  readonly usd?: number;
  readonly estimated?: boolean;
}

/** An answer to "Which one do I need?", and the page that it leads to. */
export interface Choice {
  readonly text: string;
  readonly to?: string;
}
