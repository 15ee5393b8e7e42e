/** The search of one view: what was typed, what was found, and which hit shows. */

import type { App } from "../app.ts";
import { Cell } from "../state.ts";
import { Attributes } from "./attribute_search.ts";
import { type Hits, SearchIndex } from "./search.ts";

export interface SearchState extends Hits {
  query: string;
  /** Index of the hit shown in the picture, -1: none yet. */
  current: number;
}

const NO_SEARCH: SearchState = { query: "", hits: [], total: 0, current: -1 };

export class Finder {
  readonly index: SearchIndex;
  readonly attributes: Attributes;
  readonly search = new Cell<SearchState>(NO_SEARCH);
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
    this.attributes = new Attributes(app.client);
    this.attributes.onArrival = () => this.searchAgain();
    this.index = new SearchIndex(app.store, this.attributes);
  }

  /** Builds the index of the search; best called before the first letter is typed. */
  prepare(): void {
    this.index.prepare();
    this.attributes.prepare();
  }

  setQuery(query: string): void {
    if (query) this.attributes.prepare();
    const hits = this.index.search(query);
    this.search.value = { ...hits, query, current: -1 };
    this.#app.picture?.mark({ highlights: this.#hitNodes(hits) });
  }

  /** Drops the index: nodes or attributes changed. */
  invalidate(): void {
    this.index.invalidate();
    this.attributes.invalidate();
  }

  /** Every node that the search finds, those beyond the list too. */
  foundNodes(): number[] {
    const { hits } = this.index.search(this.search.value.query, Infinity);
    return hits.filter(({ kind }) => kind === "node").map(({ id }) => id);
  }

  /** Selects every node that the search finds. */
  selectFound(): void {
    const nodes = this.foundNodes();
    if (nodes.length) this.#app.picked.show(nodes);
  }

  /** Repeats the search in the model as it is now. */
  searchAgain(): void {
    const { query } = this.search.value;
    if (query) this.setQuery(query);
  }

  #hitNodes({ hits }: Hits): number[] {
    return hits.flatMap((hit) => {
      if (hit.kind === "node") return [hit.id];
      const end = this.#app.store.producer(hit.id) ?? this.#app.store.uses(hit.id)[0];
      return end ? [end.node] : [];
    });
  }

  /** Shows the hit at an index (modulo their number) in picture and inspector. */
  showHit(index: number): void {
    const { hits } = this.search.value;
    if (hits.length === 0) return;
    const current = ((index % hits.length) + hits.length) % hits.length;
    this.search.value = { ...this.search.value, current };
    const hit = hits[current]!;
    if (hit.kind === "node") this.#app.picked.reveal(hit.id);
    else this.#app.picked.revealValue(hit.id);
  }
}
