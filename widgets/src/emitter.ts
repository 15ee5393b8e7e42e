/** Events by name, typed: of the store, the client and the picture. */

export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<(payload: never) => void>>();

  /** Returns the function that stops the listener. */
  on<E extends keyof Events>(event: E, listener: (payload: Events[E]) => void): () => void {
    let listeners = this.#listeners.get(event);
    if (!listeners) this.#listeners.set(event, (listeners = new Set()));
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) (listener as (payload: Events[E]) => void)(payload);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
