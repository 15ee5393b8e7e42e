/** The list that a click on a ribbon opens: the values that go from box to box as one line. */

/** The words of the list for a value. */
export interface RibbonWords {
  name(value: number): string;
  label(value: number): string;
}

/** Values listed at most; of the others the number is told. */
const LISTED = 200;

export class RibbonList {
  readonly #host: HTMLElement;
  readonly #words: RibbonWords;
  readonly #done: (value: number) => void;
  #element: HTMLElement | null = null;

  /** `done`: the list was left with a value that was chosen, or 0. */
  constructor(host: HTMLElement, words: RibbonWords, done: (value: number) => void) {
    this.#host = host;
    this.#words = words;
    this.#done = done;
  }

  /** Opens it at a point of the view. */
  open(values: readonly number[], x: number, y: number): void {
    this.close();
    const document = this.#host.ownerDocument,
      list = document.createElement("div");
    list.className = "ol-popup ol-menu ol-ribbon";
    list.dataset.testid = "ribbon";
    list.setAttribute("role", "menu");
    list.setAttribute("aria-label", `${values.length} values on this line`);
    list.append(...values.slice(0, LISTED).map((value) => this.#item(value)));
    if (values.length > LISTED) {
      const rest = document.createElement("p");
      rest.className = "ol-dim";
      rest.textContent = `and ${values.length - LISTED} more`;
      list.append(rest);
    }
    this.#element = list;
    this.#host.append(list);
    const { clientWidth, clientHeight } = this.#host;
    list.style.left = `${Math.max(4, Math.min(x + 8, clientWidth - list.offsetWidth - 4))}px`;
    list.style.top = `${Math.max(4, Math.min(y + 8, clientHeight - list.offsetHeight - 4))}px`;
    list.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("focusout", ({ relatedTarget }) => {
      if (!(relatedTarget instanceof Node && list.contains(relatedTarget))) this.close();
    });
    for (const type of ["pointerdown", "wheel", "dblclick"])
      list.addEventListener(type, (event) => event.stopPropagation());
    (list.firstElementChild as HTMLElement | null)?.focus({ preventScroll: true });
  }

  close(): void {
    const element = this.#element;
    this.#element = null;
    element?.remove();
  }

  #item(value: number): HTMLElement {
    const document = this.#host.ownerDocument,
      item = document.createElement("button"),
      name = document.createElement("span"),
      label = document.createElement("span");
    item.type = "button";
    item.className = "ol-menu-item";
    item.setAttribute("role", "menuitem");
    name.textContent = this.#words.name(value);
    label.textContent = this.#words.label(value);
    label.className = "ol-dim";
    item.append(name, label);
    item.addEventListener("click", () => {
      this.close();
      this.#done(value);
    });
    return item;
  }

  #key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      this.close();
      this.#done(0);
    } else if (step && this.#element) {
      event.preventDefault();
      const items = [...this.#element.querySelectorAll<HTMLElement>("button")],
        at = items.findIndex((item) => item.matches(":focus"));
      items[(at + step + items.length) % items.length]?.focus({ preventScroll: true });
    }
  }
}
