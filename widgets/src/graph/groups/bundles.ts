/** Inputs and outputs whose names differ only in numbers, as one: "past.0…47.key ×48". */

import type { Store } from "../../model/store.ts";

export interface Bundle {
  /** The first of its values, which stands for all. */
  first: number;
  name: string;
  values: number[];
}

/** Fewer are as well drawn one by one. */
const LEAST = 5;
const NUMBER = /\d+/g;

/** By value: the bundle that it is in. */
export function bundlesOf(store: Store, values: readonly number[]): Map<number, Bundle> {
  const alike = new Map<string, number[]>();
  for (const value of new Set(values)) {
    const name = store.values.get(value)?.name ?? "",
      pattern = name.replace(NUMBER, "#");
    if (pattern === name) continue;
    const same = alike.get(pattern);
    if (same) same.push(value);
    else alike.set(pattern, [value]);
  }
  const found = new Map<number, Bundle>();
  for (const same of alike.values()) {
    if (same.length < LEAST) continue;
    const bundle = { first: same[0]!, name: nameOf(same.map((value) => store.values.get(value)!.name)), values: same };
    for (const value of same) found.set(value, bundle);
  }
  return found;
}

/** Each number that differs as the least and the largest: "past.0…11.key". */
function nameOf(names: readonly string[]): string {
  const numbers = names.map((name) => (name.match(NUMBER) ?? []).map(Number));
  let place = 0;
  return names[0]!.replace(NUMBER, (number) => {
    const each = numbers.map((list) => list[place]!);
    place++;
    const low = each.reduce((a, b) => Math.min(a, b)),
      high = each.reduce((a, b) => Math.max(a, b));
    return low === high ? number : `${low}…${high}`;
  });
}
