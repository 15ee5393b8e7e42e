/** Short names of dims: "A" for "past_length + sequence_length", "?" for a dim of an input that has no name. Pure. */

import { dimsOf, namesIn } from "./dims.ts";
import { mainScope } from "./names.ts";
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
  /** The dim in words. */
  meaning: string;
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
  /** The places of dims of inputs without a name, by what inference calls them: "X.0". */
  #unnamed = new Map<string, string>();

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
      const changed = dims.some((dim) => this.#isShortened(dim));
      short = changed ? dims.map((dim) => (this.#isShortened(dim) ? this.#nameOf(dim) : dim)).join("×") : label;
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
    this.#unnamed = unnamedDims(store);
    const byExpression = new Map<string, number[]>();
    this.#symbols = new Set();
    for (const [label, values] of byLabel) {
      const dims = dimsOf(label);
      for (const name of dims.flatMap(namesIn)) this.#symbols.add(name);
      for (const dim of new Set(dims.filter((dim) => this.#isShortened(dim)))) {
        const others = byExpression.get(dim);
        if (others) others.push(...values);
        else byExpression.set(dim, [...values]);
      }
    }
    const ranked = [...byExpression].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
    this.#rows = ranked.map(([expression, values]) => ({
      short: this.#nameOf(expression),
      expression,
      meaning: this.#unnamed.get(expression) ?? expression,
      values,
    }));
  }

  #isShortened(dim: string): boolean {
    return isLong(dim) || this.#unnamed.has(dim);
  }

  #nameOf(expression: string): string {
    const before = this.#names.get(expression);
    if (before && !this.#symbols.has(before)) return before;
    const used = new Set([...this.#symbols, ...this.#names.values()]);
    const letters = this.#unnamed.has(expression) ? "?" : LETTERS;
    for (let turn = 0; ; turn++)
      for (const letter of letters) {
        const name = turn ? `${letter}${turn}` : letter;
        if (used.has(name)) continue;
        this.#names.set(expression, name);
        return name;
      }
  }
}

/** The dims of the model's inputs that have no name: what inference calls them, and where they are in words. */
function unnamedDims(store: Store): Map<string, string> {
  const places = new Map<string, string>();
  for (const id of store.scopes.get(mainScope(store))?.inputs ?? []) {
    const { name = "", label = "" } = store.values.get(id) ?? {};
    const last = name.replace(/\/+$/, "").split("/").pop();
    dimsOf(label).forEach((dim, axis) => {
      if (dim === `${last}.${axis}`) places.set(dim, `axis ${axis} of ${name}`);
    });
  }
  return places;
}

const known = new WeakMap<Store, ShortDims>();

/** The short names of a model, the same for picture and panels. */
export function shortDims(store: Store): ShortDims {
  let names = known.get(store);
  if (!names) known.set(store, (names = new ShortDims(store)));
  return names;
}
