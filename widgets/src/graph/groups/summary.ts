/** The outputs and the content of a folded group, for its card: computed once for each hierarchy. */

import { GRAPH_OUTPUT } from "../../kernel/protocol.ts";
import type { Store } from "../../model/store.ts";
import { isWeight } from "../../model/weights.ts";
import type { Hierarchy } from "./hierarchy.ts";

export interface Summary {
  /** The value that leaves the group last, 0: none. */
  output: number;
  /** Elements of the parameters inside. */
  elements: number;
}

/** Nodes of the largest group that is summed up: counting more would take longer than a frame. */
const LARGEST = 20_000;
const NOTHING: Summary = { output: 0, elements: 0 };
const known = new WeakMap<Hierarchy, Map<number, Summary>>();

export function summaryOf(store: Store, hierarchy: Hierarchy, key: number): Summary {
  let summaries = known.get(hierarchy);
  if (!summaries) known.set(hierarchy, (summaries = new Map()));
  let summary = summaries.get(key);
  if (!summary) summaries.set(key, (summary = sumUp(store, hierarchy, key)));
  return summary;
}

function sumUp(store: Store, hierarchy: Hierarchy, key: number): Summary {
  if ((hierarchy.containers.get(key)?.size ?? 0) > LARGEST) return NOTHING;
  const members = hierarchy.membersOf(key),
    inside = new Set(members),
    counted = new Set<number>();
  let elements = 0;
  for (const node of members) {
    for (const value of store.nodes.get(node)!.inputs) {
      const maker = store.maker(value);
      if (maker && !hierarchy.inlined.has(maker)) continue; // most values: told without a look at their records
      const record = store.values.get(value);
      if (!record || !(maker || isWeight(store, value)) || counted.has(value)) continue;
      counted.add(value);
      elements += elementsOf(record.label);
    }
  }
  return { output: lastMade(store, members, inside), elements };
}

function lastMade(store: Store, members: readonly number[], inside: ReadonlySet<number>): number {
  for (let i = members.length - 1; i >= 0; i--) {
    for (const value of store.nodes.get(members[i]!)!.outputs) {
      const leaves = (): boolean => store.uses(value).some(({ node }) => !inside.has(node));
      if (value && ((store.values.get(value)?.flags ?? 0) & GRAPH_OUTPUT || leaves())) return value;
    }
  }
  return 0;
}

/** "64×3×7×7" has 9,408 elements; 0 where a dim is no number. */
export function elementsOf(label: string): number {
  let product = label ? 1 : 0;
  for (const dim of label.split("×")) product *= /^\d+$/.test(dim) ? Number(dim) : dim === "scalar" ? 1 : 0;
  return product;
}

const UNITS = ["", " k", " M", " G", " T"];

/** 1,234,567 as "1.23 M". */
export function inShort(count: number): string {
  let step = 0,
    rest = count;
  for (; rest >= 999.5 && step < UNITS.length - 1; step++) rest /= 1000;
  return `${step ? rest.toPrecision(3) : rest}${UNITS[step]}`;
}
