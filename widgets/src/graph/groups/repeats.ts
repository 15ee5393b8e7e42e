/**
 * Repeats: groups side by side that look alike and follow one another, such as the twelve layers of a transformer.
 *
 * Two groups look alike when their nodes, in file order, have the same operators and are wired alike; attributes are
 * the kernel's to compare (blocks.ts). A repeat is convex: no way leads out of it and back into it, so that it can be one
 * box.
 */

import type { Store } from "../../model/store.ts";
import { isWeight } from "../../model/weights.ts";
import { keyOf, NODE } from "./group_keys.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";

export interface FoundRepeat {
  /** Keys of the groups, each reading from the one before. */
  groups: number[];
  /** The number of kinds of groups that alternate: one, or for example those with and without shifted windows. */
  period: number;
  name: string;
}

/** Least number of groups in a repeat: fewer are drawn one by one. */
const LEAST = 3;
/** Kinds of groups that may alternate. */
const MOST_KINDS = 6;

/** The repeats among the groups directly inside a container. O(nodes inside and their inputs). */
export function findRepeats(store: Store, hierarchy: Hierarchy, { key, groups, nodes }: Container): FoundRepeat[] {
  const classes = alikeGroups(store, hierarchy, groups);
  if (!classes.length) return [];
  const quotient = new Quotient(store, hierarchy, key, [...groups, ...nodes.map((node) => keyOf(NODE, node))]);
  const repeats = classes
    .flatMap((alike) => chains(quotient, new Set(alike)))
    .map((repeat) => ({ groups: repeat, period: 1 }));
  const label = new Map(classes.flatMap((alike, i) => alike.map((group) => [group, i] as const)));
  for (const { groups: repeated } of repeats) for (const group of repeated) label.delete(group);
  repeats.push(...chains(quotient, new Set(label.keys())).flatMap((chain) => alternating(chain, label)));
  return repeats.map((repeat) => ({
    ...repeat,
    name: nameOf(repeat.groups.map((group) => hierarchy.containers.get(group)!.name)),
  }));
}

/** Classes of at least LEAST groups that look alike. */
function alikeGroups(store: Store, hierarchy: Hierarchy, groups: readonly number[]): number[][] {
  const bySize = gathered(
    groups.filter((group) => {
      const { kind } = hierarchy.containers.get(group)!;
      return kind !== "repeat" && kind !== "body";
    }),
    (group) => hierarchy.containers.get(group)!.size,
  );
  const classes: Members[][] = [];
  for (const same of bySize) {
    const members = same.map((group) => ({ group, nodes: hierarchy.membersOf(group) }));
    for (const likely of gathered(members, ({ nodes }) => operatorsOf(store, nodes)))
      classes.push(...classesOf(store, likely));
  }
  return classes.filter((equal) => equal.length >= LEAST).map((equal) => equal.map(({ group }) => group));
}

interface Members {
  group: number;
  nodes: readonly number[];
}

/** The groups of at least LEAST items that have the same key. */
function gathered<T>(items: readonly T[], keyOf: (item: T) => number): T[][] {
  const byKey = new Map<number, T[]>();
  for (const item of items) {
    const key = keyOf(item),
      same = byKey.get(key);
    if (same) same.push(item);
    else byKey.set(key, [item]);
  }
  return [...byKey.values()].filter((same) => same.length >= LEAST);
}

/** Hash of the operators of a list of nodes, in order. */
function operatorsOf(store: Store, nodes: readonly number[]): number {
  let hash = 0;
  for (const id of nodes) {
    const { op, inputs } = store.nodes.get(id)!;
    hash =
      (Math.imul(hash, 31) +
        op.length +
        64 * inputs.length +
        512 * op.charCodeAt(0) +
        (op.charCodeAt(op.length - 1) << 17)) |
      0;
  }
  return hash;
}

function classesOf(store: Store, likely: readonly Members[]): Members[][] {
  const classes: Members[][] = [];
  for (const candidate of likely) {
    const known = classes.find(([first]) => alike(store, first!.nodes, candidate.nodes));
    if (known) known.push(candidate);
    else classes.push([candidate]);
  }
  return classes;
}

/** Whether two lists of nodes have the same operators, wired alike, and initializers of the same shapes. */
export function alike(store: Store, left: readonly number[], right: readonly number[]): boolean {
  if (left.length !== right.length) return false;
  const pairs = new Map<number, number>(),
    produced = new Set<number>();
  const looksLike = (a: number, b: number): boolean => {
    if (!a || !b) return a === b;
    const known = pairs.get(a);
    if (known !== undefined) return known === b;
    if (produced.has(b)) return false;
    pairs.set(a, b);
    const value = store.values.get(a),
      other = store.values.get(b);
    const stored = isWeight(store, a);
    return stored === isWeight(store, b) && (!stored || value?.label === other?.label);
  };
  return left.every((id, i) => {
    const a = store.nodes.get(id)!,
      b = store.nodes.get(right[i]!)!;
    if (a.op !== b.op || a.inputs.length !== b.inputs.length || a.outputs.length !== b.outputs.length) return false;
    if (!a.inputs.every((value, slot) => looksLike(value, b.inputs[slot]!))) return false;
    a.outputs.forEach((value, slot) => {
      pairs.set(value, b.outputs[slot]!);
      produced.add(b.outputs[slot]!);
    });
    return true;
  });
}

/** The items directly inside a container, by key, and those that each of them reads from. */
class Quotient {
  readonly reads = new Map<number, Set<number>>();
  readonly #itemOf = new Map<number, number>();

  constructor(store: Store, hierarchy: Hierarchy, container: number, items: readonly number[]) {
    for (const item of items) {
      this.reads.set(item, new Set());
      for (const inner of hierarchy.below(item)) this.#itemOf.set(inner, item);
    }
    const itemOf = (node: number): number | undefined => {
      const home = hierarchy.containerOf(node);
      return home === container ? keyOf(NODE, node) : this.#itemOf.get(home ?? -1);
    };
    for (const node of hierarchy.nodesInside(container)) {
      const to = itemOf(node),
        home = hierarchy.containerOf(node);
      if (to === undefined) continue;
      for (const value of store.nodes.get(node)!.inputs) {
        const maker = store.maker(value);
        if (!maker || (home !== container && hierarchy.containerOf(maker) === home)) continue;
        const from = itemOf(maker);
        if (from !== undefined && from !== to) this.reads.get(to)!.add(from);
      }
    }
  }

  /** The items in topological order; those on a cycle are left out. */
  *inOrder(): Iterable<number> {
    const waits = new Map<number, number>(),
      readers = new Map<number, number[]>();
    for (const [item, sources] of this.reads) {
      waits.set(item, sources.size);
      for (const source of sources) {
        const list = readers.get(source);
        if (list) list.push(item);
        else readers.set(source, [item]);
      }
    }
    const ready = [...waits.keys()].filter((item) => !waits.get(item));
    for (const item of ready) {
      yield item;
      for (const reader of readers.get(item) ?? []) {
        const left = waits.get(reader)! - 1;
        waits.set(reader, left);
        if (!left) ready.push(reader);
      }
    }
  }
}

/**
 * The repeats among groups that look alike: each reads from the one before, and nothing else leads from one to another.
 */
function chains(quotient: Quotient, alike: ReadonlySet<number>): number[][] {
  const repeats: number[][] = [];
  let repeat: number[] = [],
    downstream = new Set<number>();
  for (const item of quotient.inOrder()) {
    const sources = [...quotient.reads.get(item)!],
      behind = sources.some((source) => downstream.has(source));
    if (!alike.has(item)) {
      if (behind || sources.some((source) => repeat.includes(source))) downstream.add(item);
    } else if (!behind && sources.includes(repeat.at(-1) ?? -1)) repeat.push(item);
    else {
      repeats.push(repeat);
      repeat = [item];
      downstream = new Set();
    }
  }
  return [...repeats, repeat].filter((groups) => groups.length >= LEAST);
}

/** Parts of a chain in which a few kinds of groups take turns. */
function alternating(
  chain: readonly number[],
  kind: ReadonlyMap<number, number>,
): { groups: number[]; period: number }[] {
  const alternations: { groups: number[]; period: number }[] = [];
  for (let start = 0; start < chain.length; ) {
    let best = { count: 1, period: 0 };
    for (let period = 1; period <= MOST_KINDS; period++) {
      let end = start + period;
      while (end < chain.length && kind.get(chain[end]!) === kind.get(chain[end - period]!)) end++;
      const times = Math.floor((end - start) / period);
      if (times >= LEAST && times * period > best.count) best = { count: times * period, period };
    }
    if (best.period) alternations.push({ groups: chain.slice(start, start + best.count), period: best.period });
    start += best.count;
  }
  return alternations;
}

/** "layer.0…11" of "layer.0" to "layer.11". */
function nameOf(names: readonly string[]): string {
  const [first = "", last = ""] = [names[0], names.at(-1)];
  if (first === last) return first;
  let common = 0;
  while (common < Math.min(first.length, last.length) && first[common] === last[common]) common++;
  while (common > 0 && /\d/.test(first[common - 1]!)) common--;
  return /^\d+$/.test(first.slice(common)) ? `${first}…${last.slice(common)}` : `${first} … ${last}`;
}
