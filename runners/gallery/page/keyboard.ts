/**
 * Keys for the whole page: space plays, the arrows step from event to event, Home and End go to the
 * run's, Escape closes the details.
 */
import type { Player } from "./player.ts";

/** Listens to the keys. Those that a field or a button takes for itself are left to it. */
export function startKeyboard(player: Player, onEscape: () => void): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const { target } = event;
    if (target instanceof Element && isTaken(target, event.key)) return;
    const act = actFor(event.key, player, onEscape);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function isTaken(target: Element, key: string): boolean {
  if (target.matches("textarea, input:not([type=range])")) return key !== "Escape";
  if (key === " ") return target.matches("button, summary, select, a");
  return (
    target.matches("select, [tabindex='0'].code, .details-body, .diagram, .sketch") &&
    key !== "Escape"
  );
}

function actFor(key: string, player: Player, onEscape: () => void): (() => void) | undefined {
  if (key === " ") return player.toggle;
  if (key === "ArrowRight") return () => player.step(1);
  if (key === "ArrowLeft") return () => player.step(-1);
  if (key === "Home") return () => player.seek(0);
  if (key === "End") return () => player.seek(player.run().end);
  return key === "Escape" ? onEscape : undefined;
}
