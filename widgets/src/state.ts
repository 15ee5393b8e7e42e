/** A value that components can watch: the whole of the panels' state management. */

import { useEffect, useReducer } from "preact/hooks";

export class Cell<T> {
  #value: T;
  #listeners = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Setting the same value (by ===) notifies no listener. */
  set value(value: T) {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener(value);
  }

  on(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The cell's value; the component renders again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, render] = useReducer((n: number, _: void) => n + 1, 0);
  const shown = cell.value;
  useEffect(() => {
    const off = cell.on(() => render());
    if (cell.value !== shown) render(); // the cell changed after it was rendered and before anything listened
    return off;
  }, [cell]);
  return shown;
}

/** An object with `on(event, listener) -> off`, such as the store and the client. */
interface Emitter<E extends string> {
  on(event: E, listener: () => void): () => void;
}

/** Renders the component again on each of these events. */
export function useEvents<E extends string>(emitter: Emitter<E>, ...events: E[]): void {
  const [, render] = useReducer((n: number, _: void) => n + 1, 0);
  useEffect(() => {
    const offs = events.map((event) => emitter.on(event, () => render()));
    return () => offs.forEach((off) => off());
  }, [emitter, events.join(" ")]);
}
