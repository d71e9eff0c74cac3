/**
 * The files beside the run: tabs, the line that names the selected step, and copying.
 */
import { byId } from "./dom.ts";
import type { ClientData } from "./html.ts";
import { baseOf } from "./run.ts";

export interface SourcePane {
  /** Marks the line that names the step at this path. */
  readonly mark: (path: string | undefined) => void;
}

/** Brings the source to life, where the page has one. */
export function startSource({ sources }: Pick<ClientData, "sources">): SourcePane | undefined {
  if (sources.length === 0) return undefined;
  const tabs = sources.map((_, index) => byId<HTMLButtonElement>(`tab-${index}`));
  const panels = sources.map((_, index) => byId(`source-${index}`));
  let open = 0;
  const show = (index: number) => {
    open = index;
    for (const [at, tab] of tabs.entries()) {
      tab.setAttribute("aria-selected", String(at === index));
      tab.tabIndex = at === index ? 0 : -1;
    }
    for (const [at, panel] of panels.entries()) panel.hidden = at !== index;
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => show(index));
    tab.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      show((index + move + tabs.length) % tabs.length);
      tabs[open]?.focus();
    });
  }
  byId("copy-source").addEventListener("click", ({ currentTarget }) =>
    copy(sources[open]?.code ?? "", currentTarget as HTMLElement),
  );
  return {
    mark: (path) => {
      for (const line of document.querySelectorAll(".line.marked")) line.classList.remove("marked");
      const found = path === undefined ? undefined : findLine(sources, path);
      if (!found) return;
      show(found.source);
      const panel = panels[found.source];
      const line = panel?.querySelectorAll<HTMLElement>(".line")[found.line - 1];
      if (!panel || !line) return;
      line.classList.add("marked");
      // The pane scrolls, never the page.
      panel.scrollTop = line.offsetTop - 3 * line.clientHeight;
    },
  };
}

/** The line that names the step, or the step around it, in the first file that names one. */
export function findLine(
  sources: ClientData["sources"],
  path: string,
): { readonly source: number; readonly line: number } | undefined {
  for (const name of path.split("/").toReversed().map(baseOf)) {
    for (const [source, { steps }] of sources.entries()) {
      const line = Object.hasOwn(steps, name) ? steps[name] : undefined;
      if (line !== undefined) return { source, line };
    }
  }
  return undefined;
}

/** Makes the buttons that copy a command do so. */
export function startCopying(): void {
  for (const button of document.querySelectorAll<HTMLElement>("[data-copy]")) {
    button.addEventListener("click", () => copy(button.dataset.copy ?? "", button));
  }
}

/** Copies a text, and says so on the button for a moment, and to whoever doesn't see it. */
async function copy(text: string, button: HTMLElement): Promise<void> {
  // A second press finds the word of the first one there.
  button.dataset.label ??= button.textContent ?? "";
  const { label } = button.dataset;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    // Without the permission there is the old way, which asks for none.
    say(copyBySelection(text) ? "Copied" : "Not allowed");
    // What was selected has taken the focus.
    button.focus({ preventScroll: true });
  }
  setTimeout(() => {
    button.textContent = label;
    byId("copied").textContent = "";
  }, 1500);
  function say(word: string) {
    button.textContent = word;
    byId("copied").textContent = word;
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.focus({ preventScroll: true });
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}
