/** The number, the bytes and the element types of the parameters that a model stores. Pure. */

import { INITIALIZER } from "../kernel/protocol.ts";
import type { Store } from "./store.ts";
import { bytes, elements } from "./tables.ts";

export interface ParameterTotals {
  elements: number;
  bytes: number;
  /** Element types, those of the most elements first. */
  types: [dtype: string, elements: number][];
}

/** Sums over all initializers, those of bodies and functions included, by their declared shapes. */
export function parameterTotals(store: Store): ParameterTotals {
  const ofType = new Map<string, number>();
  const totals: ParameterTotals = { elements: 0, bytes: 0, types: [] };
  for (const value of store.values.values()) {
    if (!(value.flags & INITIALIZER)) continue;
    const size = elements(value.label) || 0;
    totals.elements += size;
    totals.bytes += bytes(value) || 0;
    if (size && value.dtype) ofType.set(value.dtype, (ofType.get(value.dtype) ?? 0) + size);
  }
  totals.types = [...ofType].sort(([, a], [, b]) => b - a);
  return totals;
}

const LISTED = 3;

/** "float32" where there is nothing else, "int8 52 %, float32 48 %" else; types of less than one in a hundred are left out. */
export function typeWords({ elements: all, types }: ParameterTotals): string {
  const shares = types.map(([dtype, size]): [string, number] => [dtype, Math.round((100 * size) / all)]);
  const large = shares.filter(([, share]) => share >= 1).slice(0, LISTED);
  if (large.length === 1 && large[0]![1] >= 99) return large[0]![0];
  return large.map(([dtype, share]) => `${dtype} ${share} %`).join(", ");
}
