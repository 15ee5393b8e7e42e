/**
 * Runs: groups side by side that look alike and follow one another, such as the twelve layers of a transformer.
 *
 * Two groups look alike when their nodes, in file order, have the same operators and are wired alike; attributes are the
 * kernel's to compare (blocks.ts). A run is convex: no way leads out of it and back into it, so that it can be one box.
 */

import { INITIALIZER } from "../protocol.ts";
import type { Store } from "../store.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";
import { NODE, keyOf } from "./keys.ts";

export interface FoundRun {
  /** Keys of the groups, each reading from the one before. */
  groups: number[];
  name: string;
}

/** Fewer are as well seen one by one. */
const LEAST = 3;

/** The runs among the groups directly inside a container. O(nodes inside and their inputs). */
export function findRuns(store: Store, hierarchy: Hierarchy, { key, groups, nodes }: Container): FoundRun[] {
  const classes = alikeGroups(store, hierarchy, groups);
  if (!classes.length) return [];
  const quotient = new Quotient(store, hierarchy, key, [...groups, ...nodes.map((node) => keyOf(NODE, node))]);
  return classes.flatMap((alike) => chains(quotient, new Set(alike))).map((run) => ({
    groups: run, name: nameOf(run.map((group) => hierarchy.containers.get(group)!.name)),
  }));
}

/** Classes of at least LEAST groups that look alike. */
function alikeGroups(store: Store, hierarchy: Hierarchy, groups: readonly number[]): number[][] {
  const bySize = new Map<number, number[]>();
  for (const group of groups) {
    const { kind, size } = hierarchy.containers.get(group)!;
    if (kind === "run" || kind === "body") continue;
    const same = bySize.get(size);
    if (same) same.push(group);
    else bySize.set(size, [group]);
  }
  const found: { members: number[]; groups: number[] }[] = [];
  for (const same of bySize.values()) {
    if (same.length < LEAST) continue;
    const classes: typeof found = [];
    for (const group of same) {
      const members = hierarchy.membersOf(group);
      const known = classes.find((each) => alike(store, each.members, members));
      if (known) known.groups.push(group);
      else classes.push({ members, groups: [group] });
    }
    found.push(...classes);
  }
  return found.filter((each) => each.groups.length >= LEAST).map((each) => each.groups);
}

/** Whether two lists of nodes have the same operators, wired alike, and initializers of the same shapes. */
export function alike(store: Store, left: readonly number[], right: readonly number[]): boolean {
  if (left.length !== right.length) return false;
  if (left.some((id, i) => store.nodes.get(id)!.op !== store.nodes.get(right[i]!)!.op)) return false; // cheap, and often enough
  const pairs = new Map<number, number>(), made = new Set<number>();
  const looksLike = (a: number, b: number): boolean => {
    if (!a || !b) return a === b;
    const known = pairs.get(a);
    if (known !== undefined) return known === b;
    if (made.has(b)) return false;
    pairs.set(a, b);
    const one = store.values.get(a), other = store.values.get(b);
    const stored = ((one?.flags ?? 0) & INITIALIZER) > 0;
    return stored === ((other?.flags ?? 0) & INITIALIZER) > 0 && (!stored || one?.label === other?.label);
  };
  return left.every((id, i) => {
    const a = store.nodes.get(id)!, b = store.nodes.get(right[i]!)!;
    if (a.inputs.length !== b.inputs.length || a.outputs.length !== b.outputs.length) return false;
    if (!a.inputs.every((value, slot) => looksLike(value, b.inputs[slot]!))) return false;
    a.outputs.forEach((value, slot) => {
      pairs.set(value, b.outputs[slot]!);
      made.add(b.outputs[slot]!);
    });
    return true;
  });
}

/** What is directly inside a container, by key, and what each of it reads from. */
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
      const to = itemOf(node);
      if (to === undefined) continue;
      for (const value of store.nodes.get(node)!.inputs) {
        const maker = store.maker(value), from = maker ? itemOf(maker) : undefined;
        if (from !== undefined && from !== to) this.reads.get(to)!.add(from);
      }
    }
  }

  /** Each after what it reads from; what lies on a circle is left out. */
  *inOrder(): Iterable<number> {
    const waits = new Map<number, number>(), readers = new Map<number, number[]>();
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

/** The runs among groups that look alike: each reads from the one before, and nothing else leads from one to another. */
function chains(quotient: Quotient, alike: ReadonlySet<number>): number[][] {
  const found: number[][] = [];
  let run: number[] = [], downstream = new Set<number>();
  for (const item of quotient.inOrder()) {
    const sources = [...quotient.reads.get(item)!], behind = sources.some((source) => downstream.has(source));
    if (!alike.has(item)) {
      if (behind || sources.some((source) => run.includes(source))) downstream.add(item);
    } else if (!behind && sources.includes(run.at(-1) ?? -1)) run.push(item);
    else {
      found.push(run);
      run = [item];
      downstream = new Set();
    }
  }
  return [...found, run].filter((each) => each.length >= LEAST);
}

/** "layer.0…11" of "layer.0" to "layer.11". */
function nameOf(names: readonly string[]): string {
  const [first = "", last = ""] = [names[0], names.at(-1)];
  let common = 0;
  while (common < Math.min(first.length, last.length) && first[common] === last[common]) common++;
  while (common > 0 && /\d/.test(first[common - 1]!)) common--;
  return /^\d+$/.test(first.slice(common)) ? `${first}…${last.slice(common)}` : `${first} … ${last}`;
}
