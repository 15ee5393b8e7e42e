/** Attributes as the search sees them: names of all, and for each that is asked about, its text at every node. */

import type { Client } from "../kernel/client.ts";

/** The texts of one attribute by node. */
export type Column = ReadonlyMap<number, string>;

/** The attributes that a query may ask for. */
export interface AttributeSource {
  /** Attributes with the number of their nodes; null until the kernel has answered. */
  names: ReadonlyMap<string, number> | null;
  /** The texts of an attribute; null until they have arrived: the first call asks for them. */
  column(name: string): Column | null;
}

export const NO_ATTRIBUTES: AttributeSource = { names: new Map(), column: () => null };

export class Attributes implements AttributeSource {
  names: ReadonlyMap<string, number> | null = null;
  /** Called when names or texts that were asked for have arrived. */
  onArrival: () => void = () => undefined;
  readonly #client: Client;
  readonly #columns = new Map<string, Column | null>();
  #generation = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Drops what is known; to be called when nodes or their attributes changed. */
  invalidate(): void {
    this.#generation++;
    this.names = null;
    this.#columns.clear();
  }

  /** Asks for the names; best called before the first letter is typed. */
  prepare(): void {
    if (this.names) return;
    const generation = this.#generation;
    this.#client.request("attribute_names", {}).then(
      ({ names, counts }) => {
        if (generation !== this.#generation) return;
        this.names = new Map(names.map((name, i) => [name, counts[i] ?? 0]));
        this.onArrival();
      },
      () => {
        if (generation === this.#generation) this.names = new Map(); // unknown: no attribute is known
      },
    );
  }

  column(name: string): Column | null {
    const column = this.#columns.get(name);
    if (column !== undefined) return column;
    const generation = this.#generation;
    this.#columns.set(name, null);
    this.#client.request("attribute_column", { name }).then(
      ({ texts, nodes, places }) => {
        if (generation !== this.#generation) return;
        this.#columns.set(name, new Map(nodes.map((node, i) => [node, texts[places[i]!] ?? ""])));
        this.onArrival();
      },
      () => {
        if (generation !== this.#generation) return;
        this.#columns.set(name, new Map());
        this.onArrival();
      },
    );
    return null;
  }
}

/** A pattern as attributes are written: "3x3", "[3, 3]" and "3×3" are "3,3". */
export function attributePattern(text: string): string {
  const inner = text.replace(/^[[(]|[\])]$/g, "");
  return /^[\d*.-]+([x×,][\d*.-]+)+$/.test(inner) ? inner.replace(/[x×]/g, ",") : inner;
}
