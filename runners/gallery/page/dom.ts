/**
 * Elements, made in one expression. Text goes in as text nodes and in no other way, and nothing in it
 * turns the direction of what it says.
 */
import { straight } from "./escape.ts";

type Child = Node | string | false | undefined;

/** Attributes; `true` sets one without a value, `false` and `undefined` leave it out. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Makes an HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** Makes an SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled<E extends Element>(
  element: E,
  attributes: Attributes,
  children: readonly Child[],
): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    const text = value === true ? "" : String(value);
    element.setAttribute(name, SAID.has(name) ? straight(text) : text);
  }
  for (const child of children) {
    if (child !== undefined && child !== false)
      element.append(typeof child === "string" ? straight(child) : child);
  }
  return element;
}

/** The attributes that people read or hear. */
const SAID: ReadonlySet<string> = new Set(["title", "aria-label"]);

/** The element with this id, which the page has. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no element "${id}"`);
  return element as E; // the template says which kind has which id
}

/** Sets a text only where it's another one, since each setting costs the browser a layout. */
export function setText(element: Element, text: string): void {
  const shown = straight(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Places an element in time, in milliseconds; where that is, is left to the style sheet. */
export function placed<E extends HTMLElement>(element: E, begin: number, ms = 0): E {
  element.style.setProperty("--begin", String(begin));
  element.style.setProperty("--ms", String(ms));
  return element;
}

/** Makes the arrow keys move the focus among the elements, of which one is in the tab order. */
export function roveFocus(container: HTMLElement, selector: string): void {
  const all = () => [...container.querySelectorAll<HTMLElement>(selector)];
  const settle = (target: HTMLElement | undefined) => {
    for (const element of all()) element.tabIndex = element === target ? 0 : -1;
  };
  settle(all()[0]);
  container.addEventListener("focusin", ({ target }) => {
    if (target instanceof HTMLElement && target.matches(selector)) settle(target);
  });
  container.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const elements = all();
    const at = elements.indexOf(document.activeElement as HTMLElement);
    if (!move || at < 0) return;
    event.preventDefault();
    elements[Math.min(elements.length - 1, Math.max(0, at + move))]?.focus();
  });
}
