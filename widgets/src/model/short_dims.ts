/** Short names for the long ones among the dims of a model: "A" for "past_length + sequence_length". Pure. */

import { dimsOf, namesIn } from "./dims.ts";
import type { Store } from "./store.ts";

/** Characters from which an expression, and a name, gets a short name. */
const LONG = 12,
  LONG_NAME = 17;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const plainDim = /^[\w.?-]*$/;

function isLong(dim: string): boolean {
  return dim.length >= (plainDim.test(dim) ? LONG_NAME : LONG);
}

export interface ShortDim {
  short: string;
  expression: string;
  /** Values whose shape has it. */
  values: number[];
}

export class ShortDims {
  readonly #store: Store;
  /** Short names by expression; a name stays with its expression over edits. */
  readonly #names = new Map<string, string>();
  #rows: ShortDim[] = [];
  #version = -1;
  #labels = new Map<string, string>();
  /** Names that the model's dims have already. */
  #symbols = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The expressions that have short names now, those of most values first. */
  get rows(): readonly ShortDim[] {
    if (this.#version !== this.#store.version) this.#count();
    return this.#rows;
  }

  /** A label with short names in the place of long expressions; cheap for labels that were seen before. */
  shortened(label: string): string {
    if (this.#version < 0) this.#count();
    let short = this.#labels.get(label);
    if (short === undefined) {
      const dims = dimsOf(label);
      const changed = dims.some(isLong);
      short = changed ? dims.map((dim) => (isLong(dim) ? this.#nameOf(dim) : dim)).join("×") : label;
      this.#labels.set(label, short);
    }
    return short;
  }

  /** Ranks the expressions of all values: those of most values get the first letters. */
  #count(): void {
    const store = this.#store;
    this.#version = store.version;
    this.#labels = new Map();
    const byLabel = new Map<string, number[]>();
    for (const { id, label } of store.values.values()) {
      const values = byLabel.get(label);
      if (values) values.push(id);
      else byLabel.set(label, [id]);
    }
    const byExpression = new Map<string, number[]>();
    this.#symbols = new Set();
    for (const [label, values] of byLabel) {
      const dims = dimsOf(label);
      for (const name of dims.flatMap(namesIn)) this.#symbols.add(name);
      for (const dim of new Set(dims.filter(isLong))) {
        const others = byExpression.get(dim);
        if (others) others.push(...values);
        else byExpression.set(dim, [...values]);
      }
    }
    const ranked = [...byExpression].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
    this.#rows = ranked.map(([expression, values]) => ({ short: this.#nameOf(expression), expression, values }));
  }

  #nameOf(expression: string): string {
    const before = this.#names.get(expression);
    if (before && !this.#symbols.has(before)) return before;
    const used = new Set([...this.#symbols, ...this.#names.values()]);
    for (let turn = 0; ; turn++)
      for (const letter of LETTERS) {
        const name = turn ? `${letter}${turn}` : letter;
        if (used.has(name)) continue;
        this.#names.set(expression, name);
        return name;
      }
  }
}

const known = new WeakMap<Store, ShortDims>();

/** The short names of a model, the same for picture and panels. */
export function shortDims(store: Store): ShortDims {
  let names = known.get(store);
  if (!names) known.set(store, (names = new ShortDims(store)));
  return names;
}
