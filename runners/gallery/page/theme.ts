/**
 * The theme: as the system has it, or light, or dark. What is chosen is kept, where the browser keeps
 * anything for the page.
 */
import { byId } from "./dom.ts";

const THEMES = ["auto", "light", "dark"] as const;

/** Makes the button go through the themes. */
export function startTheme(): void {
  const button = byId("theme");
  const root = document.documentElement;
  const current = () => THEMES.find((theme) => theme === root.dataset.theme) ?? "auto";
  const show = () => {
    button.textContent = `Theme: ${current()}`;
  };
  show();
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length] ?? "auto";
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    show();
    document.dispatchEvent(new Event("theme"));
    try {
      if (next === "auto") localStorage.removeItem("theme");
      else localStorage.setItem("theme", next);
    } catch {
      // A browser may keep nothing for a page from disk; the choice then lasts as long as the page.
    }
  });
}
