/** The first node of a run that made NaN or infinity, and the input that it read. Pure. */

import { fromWire, type Statistics } from "../kernel/protocol.ts";
import type { Store } from "../model/store.ts";

export interface FirstBad {
  node: number;
  value: number;
  /** "NaN" or "infinity". */
  what: string;
  /** Number of such elements of the value, and of all. */
  count: number;
  of: number;
  /** The input from which the value was computed, 0: none is known, with its least and largest element. */
  input: number;
  low: number;
  high: number;
}

/** The first bad node in the order of the file, NaN before infinity; null where all values are finite. */
export function firstBad(store: Store, ran: ReadonlyMap<number, Statistics>): FirstBad | null {
  return find(store, ran, "NaN", ({ nan }) => nan) ?? find(store, ran, "infinity", ({ inf }) => inf);
}

function find(
  store: Store,
  ran: ReadonlyMap<number, Statistics>,
  problem: string,
  countOf: (statistics: Statistics) => number,
): FirstBad | null {
  for (const { id: node, inputs, outputs } of store.nodes.values()) {
    for (const value of outputs) {
      const statistics = ran.get(value);
      if (!statistics || countOf(statistics) === 0) continue;
      const input = inputs.find((id) => ran.has(id)) ?? 0,
        inputStatistics = ran.get(input);
      const end = (number: Statistics["min"] | undefined) =>
        number === null || number === undefined ? NaN : fromWire(number);
      const ends = { low: end(inputStatistics?.min), high: end(inputStatistics?.max) };
      return { node, value, what: problem, count: countOf(statistics), of: statistics.count, input, ...ends };
    }
  }
  return null;
}
