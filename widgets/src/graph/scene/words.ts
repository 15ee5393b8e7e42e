/** The texts of boxes and lines: as the model is now, without the scene changing. */

import { shortDims } from "../../model/short_dims.ts";
import type { Store } from "../../model/store.ts";
import type { Texts } from "../canvas/painter.ts";
import { GROUP, REPEAT } from "../groups/group_keys.ts";
import { type Repeat, times, turns } from "../groups/repeat_words.ts";
import { type Box, facts } from "./boxes.ts";
import { opTitle } from "./short_names.ts";

/** Names of values that are longer give way to what makes them. */
const LONG_NAME = 16;

export class Words implements Texts {
  /** The groups that each group is equal to, itself among them. */
  equal: ReadonlyMap<number, readonly number[]> = new Map();
  readonly #store: Store;
  readonly #repeatOf: (group: number) => Repeat | null;

  constructor(store: Store, repeatOf: (group: number) => Repeat | null) {
    this.#store = store;
    this.#repeatOf = repeatOf;
  }

  facts(box: Box): string[] {
    return facts(this.#store, box);
  }

  name(value: number): string {
    return this.#store.values.get(value)?.name ?? "";
  }

  label(value: number): string {
    return shortDims(this.#store).shortened(this.#store.values.get(value)?.label ?? "");
  }

  times(box: Box): string {
    return times(box, box.kind === REPEAT ? this.#repeatOf(box.id) : null, this.equal, this.#units(box));
  }

  #units(box: Box): number {
    return box.kind === GROUP ? (this.#store.groups.get(box.id)?.units ?? 0) : 0;
  }

  turns(box: Box): string {
    return box.kind === REPEAT ? turns(this.#repeatOf(box.id)) : "";
  }

  /** The label of a cut line at its targets: the name of the value, or of its maker where that is shorter. */
  origin(value: number): string {
    const name = this.name(value);
    const producer = this.#store.nodes.get(this.#store.producer(value)?.node ?? 0);
    return producer && name.length > LONG_NAME ? opTitle(producer.op) : name;
  }

  /** The words of a box without its title, to be read aloud. */
  spoken(box: Box): string {
    return [...this.facts(box), this.times(box).replace("·", "").trim()].filter(Boolean).join(", ");
  }
}
