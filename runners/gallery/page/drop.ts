/**
 * A trace file of one's own: dropped anywhere on the page, or chosen. Of several traces in it, the first
 * is shown, and the others can be chosen.
 */
import type { TraceFile } from "../../../patterns/trace-file.ts";
import { readTraces } from "../read-trace.ts";
import { h, setText } from "./dom.ts";

/** More than a page can show in time, in bytes. */
const MOST = 200_000_000;

/** Shows the traces that are dropped or chosen; says what is wrong with a file that is none. */
export function startDrop(place: HTMLElement, onTrace: (trace: TraceFile) => void): void {
  const input = h("input", { type: "file", id: "file", accept: ".json,.jsonl,application/json" });
  const said = h("p", { class: "drop-said", role: "alert" });
  const label = h("label", { for: "file" }, "Open a run of your own");
  const hint = h(
    "span",
    { class: "note" },
    "or drop a trace file anywhere on this page; nothing leaves it",
  );
  const which = h("select", { "aria-label": "Trace", hidden: true });
  place.append(h("div", { class: "drop" }, label, input, hint, which, said));
  let traces: readonly TraceFile[] = [];
  const show = (index: number) => {
    const trace = traces[index];
    if (trace) onTrace(trace);
  };
  which.addEventListener("change", () => show(which.selectedIndex));
  const read = async (file: File | undefined) => {
    if (!file) return;
    setText(said, "");
    try {
      if (file.size > MOST) throw new Error("The file is larger than 200 MB.");
      traces = readTraces(await file.text());
      const names = traces.map(({ title, name }) => title ?? name);
      which.replaceChildren(
        ...names.map((name, at) => h("option", {}, `${at + 1} of ${names.length}: ${name}`)),
      );
      which.hidden = traces.length === 1;
      show(0);
    } catch (error) {
      setText(said, `${file.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  input.addEventListener("change", () => {
    void read(input.files?.[0]);
    // So that the same file can be chosen again.
    input.value = "";
  });
  const { body } = document;
  let depth = 0;
  const hover = (by: number) => {
    depth = Math.max(0, depth + by);
    body.toggleAttribute("data-dragging", depth > 0);
  };
  const hasFile = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
  document.addEventListener("dragenter", (event) => hasFile(event) && hover(1));
  document.addEventListener("dragleave", (event) => hasFile(event) && hover(-1));
  document.addEventListener("dragover", (event) => hasFile(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    depth = 0;
    hover(0);
    void read(event.dataTransfer?.files[0]);
  });
}
