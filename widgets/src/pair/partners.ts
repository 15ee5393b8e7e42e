/** The pairs of two models: nodes, values and scopes as the kernel paired them, groups by their nodes. */

import { BODY, INPUT, idOf, keyOf, kindOf, NODE, OUTPUT, OUTSIDE } from "../graph/groups/group_keys.ts";
import type { PairedColumns, PairInfo } from "../kernel/protocol.ts";
import type { Store } from "../model/store.ts";

type Ids = ReadonlyMap<number, number>;
/** Pairs from the first model to the second, and back. */
type Both = readonly [Ids, Ids];

const NONE: Both = [new Map(), new Map()];

export class Partners {
  readonly #nodes: Both;
  readonly #values: Both;
  readonly #scopes: Both;
  readonly #groups: Both;
  readonly #fused: readonly [ReadonlyMap<number, number[]>, ReadonlyMap<number, number[]>] = [new Map(), new Map()];

  constructor(info: PairInfo | null = null, a: Store | null = null, b: Store | null = null) {
    this.#nodes = info ? both(info.nodes) : NONE;
    this.#values = info ? both(info.values) : NONE;
    this.#scopes = info ? both(info.scopes) : NONE;
    this.#groups = info && a && b ? groupsOf(info.nodes, a, b) : NONE;
    if (!info) return;
    const [fromA, fromB] = [new Map<number, number[]>(), new Map<number, number[]>()];
    for (const { a_nodes, b_nodes } of info.regions) {
      for (const node of a_nodes) fromA.set(node, b_nodes);
      for (const node of b_nodes) fromB.set(node, a_nodes);
    }
    this.#fused = [fromA, fromB];
  }

  /** Nodes of the other side that stand for nodes of this one, in fused regions too. */
  nodes(side: 0 | 1, nodes: readonly number[]): number[] {
    const partners = nodes.flatMap((node) => this.#nodes[side].get(node) ?? this.#fused[side].get(node) ?? []);
    return [...new Set(partners)];
  }

  /** The partner of a value, 0: none. */
  value(side: 0 | 1, value: number): number {
    return this.#values[side].get(value) ?? 0;
  }

  /** The partner of a scope, 0: none. */
  scope(side: 0 | 1, scope: number): number {
    return this.#scopes[side].get(scope) ?? 0;
  }

  /** The key of the box that stands for another, 0: none. */
  key(side: 0 | 1, key: number): number {
    const kind = kindOf(key),
      id = idOf(key);
    const ids =
      kind === NODE
        ? this.#nodes
        : kind === INPUT || kind === OUTPUT || kind === OUTSIDE
          ? this.#values
          : kind === BODY
            ? this.#scopes
            : this.#groups;
    const partner = ids[side].get(id) ?? (kind === NODE ? this.#fused[side].get(id)?.[0] : undefined);
    return partner ? keyOf(kind, partner) : 0;
  }
}

function both({ a, b }: PairedColumns): Both {
  return [new Map(a.map((id, i) => [id, b[i]!])), new Map(b.map((id, i) => [id, a[i]!]))];
}

/** Groups that share most of their nodes, each with the one that it is most like. */
function groupsOf(nodes: PairedColumns, a: Store, b: Store): Both {
  const shared = new Map<number, Map<number, number>>();
  nodes.a.forEach((node, i) => {
    const around = groupsAround(b, nodes.b[i]!);
    for (const group of groupsAround(a, node)) {
      const row = shared.get(group) ?? new Map<number, number>();
      for (const other of around) row.set(other, (row.get(other) ?? 0) + 1);
      shared.set(group, row);
    }
  });
  const sizes = [sizesOf(a), sizesOf(b)] as const;
  const best = [new Map<number, [number, number]>(), new Map<number, [number, number]>()] as const;
  for (const [group, row] of shared)
    for (const [other, count] of row) {
      const like = count / (sizes[0].get(group)! + sizes[1].get(other)! - count);
      if (like > (best[0].get(group)?.[1] ?? 0)) best[0].set(group, [other, like]);
      if (like > (best[1].get(other)?.[1] ?? 0)) best[1].set(other, [group, like]);
    }
  const plain = (pairs: ReadonlyMap<number, [number, number]>) =>
    new Map([...pairs].map(([id, [other]]) => [id, other]));
  return [plain(best[0]), plain(best[1])];
}

/** The groups around a node, innermost first. */
export function groupsAround(store: Store, node: number): number[] {
  const groups: number[] = [];
  for (let id = store.nodes.get(node)?.group ?? 0; id && groups.length < 64; id = store.groups.get(id)?.parent ?? 0)
    groups.push(id);
  return groups;
}

function sizesOf(store: Store): Map<number, number> {
  const sizes = new Map<number, number>();
  for (const node of store.nodes.keys())
    for (const group of groupsAround(store, node)) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return sizes;
}
