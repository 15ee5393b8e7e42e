/** The number, the bytes and the element types of stored parameters: of a model, or of some nodes. Pure. */

import { INITIALIZER, type ValueRecord } from "../kernel/protocol.ts";
import type { Store } from "./store.ts";
import { bytes, elements } from "./tables.ts";

export interface ParameterTotals {
  elements: number;
  bytes: number;
  /** Element types, those of the most elements first. */
  types: [dtype: string, elements: number][];
}

const NONE: ReadonlySet<number> = new Set();

/** The values that Constant nodes hold. */
export function constantsOf(store: Store): Set<number> {
  const ids = new Set<number>();
  for (const { op, outputs } of store.nodes.values()) if (op === "Constant") for (const id of outputs) ids.add(id);
  return ids;
}

/** Sums over the initializers and `constants` among values, by their shapes. */
export function parameterTotals(values: Iterable<ValueRecord>, constants = NONE): ParameterTotals {
  const ofType = new Map<string, number>();
  const totals: ParameterTotals = { elements: 0, bytes: 0, types: [] };
  for (const value of values) {
    if (!(value.flags & INITIALIZER) && !constants.has(value.id)) continue;
    const size = elements(value.label) || 0;
    totals.elements += size;
    totals.bytes += bytes(value) || 0;
    if (size && value.dtype) ofType.set(value.dtype, (ofType.get(value.dtype) ?? 0) + size);
  }
  totals.types = [...ofType].sort(([, a], [, b]) => b - a);
  return totals;
}

/** The values that nodes read, each once. */
export function readBy(store: Store, nodes: readonly number[]): ValueRecord[] {
  const ids = new Set(nodes.flatMap((node) => store.nodes.get(node)?.inputs ?? []));
  return [...ids].map((id) => store.values.get(id)).filter((value) => value !== undefined);
}

const LISTED = 3;

/** "float32" where there is nothing else, "int8 52 %, float32 48 %" else; types of less than one in a hundred are left out. */
export function typeWords({ elements: all, types }: ParameterTotals): string {
  const shares = types.map(([dtype, size]): [string, number] => [dtype, Math.round((100 * size) / all)]);
  const large = shares.filter(([, share]) => share >= 1).slice(0, LISTED);
  if (large.length === 1 && large[0]![1] >= 99) return large[0]![0];
  return large.map(([dtype, share]) => `${dtype} ${share} %`).join(", ");
}
