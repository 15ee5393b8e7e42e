/** Watches of the model: what shall hold of its values, checked after every run and edit. */

import type { App } from "../app.ts";
import type { Diagnostic, WatchInfo, WatchList } from "../kernel/protocol.ts";
import { asRequestError } from "../kernel/request_error.ts";
import { Cell } from "../state.ts";

const NOTHING: WatchList = { watches: [], refused: [], measures: [] };

export class Watches {
  readonly list = new Cell<WatchList>(NOTHING);
  readonly #app: App;
  #offs: (() => void)[];

  constructor(app: App) {
    this.#app = app;
    this.#offs = [
      app.store.on("reset", () => void this.refresh()),
      app.store.on("commit", () => void this.#again()),
      app.runs.results.on(() => void this.#again()),
    ];
  }

  dispose(): void {
    for (const off of this.#offs) off();
    this.#offs = [];
  }

  get failing(): WatchInfo[] {
    return this.list.value.watches.filter(({ state }) => state === "fails");
  }

  /** The watches of a value, with their places in the list. */
  of(value: number): { watch: WatchInfo; place: number }[] {
    return this.list.value.watches
      .map((watch, place) => ({ watch, place }))
      .filter(({ watch }) => watch.values.includes(value) && watch.name !== "*");
  }

  /** Asks what holds now; a page without a kernel has none. */
  async refresh(): Promise<void> {
    if (this.#app.client.can.run === false) return;
    await this.#app.client.request("watches", {}).then(
      (list) => this.#take(list),
      () => undefined, // the channel is closed, which the banner says
    );
  }

  /** Asks what holds after a run or an edit; without watches nothing is asked. */
  async #again(): Promise<void> {
    if (this.list.value.watches.length) await this.refresh();
  }

  /** Watches a value, 0: every value. Rejects where the expression cannot be read. */
  async add(value: number, text: string): Promise<void> {
    this.#take(await this.#app.client.request("watch", { value: value || null, text }));
  }

  async remove(place: number): Promise<void> {
    try {
      this.#take(await this.#app.client.request("unwatch", { place }));
    } catch (error) {
      this.#app.notices.fail(asRequestError(error));
    }
  }

  #take(list: WatchList): void {
    this.list.value = list;
    this.mark();
  }

  /** Watches that fail are marked at the node that makes the value. */
  mark(): void {
    this.#app.picture?.mark({ diagnostics: [...this.#app.store.diagnostics, ...this.failing.flatMap(failure)] });
  }
}

/** A watch that fails as the marks at nodes have it. */
function failure({ name, text, why, values }: WatchInfo): Diagnostic[] {
  return values
    .slice(0, 1)
    .map((value) => ({
      severity: "warning",
      code: "watch",
      message: `${name}: ${text} (${why})`,
      node: 0,
      value,
      expected: text,
      found: why,
      hint: "",
    }));
}
