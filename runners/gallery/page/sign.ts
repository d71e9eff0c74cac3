/**
 * The sign of a state, which has its word for those who hear the page.
 */
import { h, setText } from "./dom.ts";
import type { State } from "./moment.ts";
import { SIGNS, STATES } from "./words.ts";

export interface Sign {
  readonly element: HTMLElement;
  readonly show: (state: State | "refused") => void;
}

/** Makes a sign that shows nothing yet. */
export function createSign(): Sign {
  const element = h("span", { class: "sign", role: "img", "aria-label": STATES.waiting });
  return {
    element,
    show: (state) => {
      setText(element, SIGNS[state]);
      element.setAttribute("aria-label", STATES[state]);
    },
  };
}
