/**
 * What runs in the page.
 */
import type { TraceFile } from "../../../patterns/trace-file.ts";
import { unpack } from "../pack.ts";
import { byId } from "./dom.ts";
import { startDrop } from "./drop.ts";
import type { ClientData } from "./html.ts";
import { startKeyboard } from "./keyboard.ts";
import { startLive } from "./live.ts";
import { startCopying, startSource } from "./source.ts";
import { startTheme } from "./theme.ts";
import { startViewer, type Viewer } from "./viewer.ts";

startTheme();
startCopying();
const data = document.getElementById("data");
if (data) start(unpack(data.textContent ?? "") as ClientData); // html.ts has written it

function start(page: ClientData): void {
  const source = startSource(page);
  let viewer: Viewer | undefined;
  const shown = (trace: TraceFile): Viewer => {
    if (viewer) return viewer;
    const made = startViewer(trace, source);
    startKeyboard(made.player, () => made.select(undefined));
    viewer = made;
    return made;
  };
  if (page.trace) shown(page.trace);
  startDrop(byId("run").parentElement ?? document.body, (trace) => shown(trace).open(trace));
  if (page.isLive) {
    startLive(page.name, {
      follow: (trace, isOver) => shown(trace).follow(trace, isOver),
      grow: (now) => viewer?.grow(now),
    });
  }
}
