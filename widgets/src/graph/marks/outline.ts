/**
 * The picture as a tree for screen readers, and the element that has the keyboard's focus.
 *
 * The tree lies invisibly over the canvas and holds only the items around the current one: a window that moves along.
 */

import { BODY, GROUP, INPUT, type Kind, OUTPUT, REPEAT } from "../groups/group_keys.ts";
import type { Scene } from "../scene/scene.ts";

const WINDOW = 20;

const HIDDEN = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap";

/** Words for a box that the picture has no text for. */
export interface Spoken {
  facts(index: number): string;
  /** "2 errors", "" for none. */
  problems(index: number): string;
  /** The effect of a rewrite that is looked at, "" for nothing. */
  rewrites(index: number): string;
}

/** The kind of a box, where its words leave it out. */
const KINDS: Partial<Record<Kind, string>> = {
  [GROUP]: "group",
  [INPUT]: "input",
  [OUTPUT]: "output",
  [BODY]: "subgraph",
  [REPEAT]: "repeat of equal groups",
};

let outlines = 0;

export class Outline {
  readonly element: HTMLElement;
  readonly #list: HTMLElement;
  readonly #prefix = `ol-outline-${++outlines}`;

  constructor(host: HTMLElement) {
    const document = host.ownerDocument;
    this.element = document.createElement("div");
    this.element.className = "ol-outline";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "tree");
    this.element.setAttribute("aria-label", "Graph");
    this.element.setAttribute("aria-multiselectable", "true");
    this.element.dataset.testid = "outline";
    Object.assign(this.element.style, { position: "absolute", inset: "0" });
    this.#list = document.createElement("div");
    this.#list.setAttribute("role", "presentation");
    this.#list.style.cssText = HIDDEN;
    this.element.append(this.#list);
    host.append(this.element);
  }

  /** Shows the items around `current` (index of a box, -1: the first ones). */
  update(scene: Scene, current: number, selected: ReadonlySet<number>, spoken: Spoken): void {
    const from = Math.max(0, current - WINDOW),
      to = Math.min(scene.boxes.length, Math.max(0, current) + WINDOW + 1);
    const items: HTMLElement[] = [];
    for (let i = from; i < to; i++) items.push(this.#item(scene, i, selected.has(i), spoken));
    this.#list.replaceChildren(...items);
    if (current >= 0 && current < scene.boxes.length) {
      this.element.setAttribute("aria-activedescendant", `${this.#prefix}-${scene.boxes[current]!.key}`);
    } else this.element.removeAttribute("aria-activedescendant");
  }

  destroy(): void {
    this.element.remove();
  }

  #item(scene: Scene, i: number, selected: boolean, spoken: Spoken): HTMLElement {
    const box = scene.boxes[i]!;
    const item = this.element.ownerDocument.createElement("div");
    item.id = `${this.#prefix}-${box.key}`;
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-level", String(scene.depth[i]! + 1));
    item.setAttribute("aria-selected", String(selected));
    if (box.folds) item.setAttribute("aria-expanded", String(scene.frame[i] === 1));
    const words = [
      KINDS[box.kind] ?? "",
      box.title,
      box.subtitle,
      spoken.facts(i),
      spoken.problems(i),
      spoken.rewrites(i),
    ];
    item.textContent = words.filter(Boolean).join(", ");
    return item;
  }
}
