/** Paths through the graph along values: ancestors of a node, descendants, and all between two nodes. Pure. */

import type { Store } from "../model/store.ts";

type Way = "ancestors" | "descendants";

/** Ancestors or descendants of some nodes of one scope, those nodes included. O(nodes and wires reached). */
export function cone(store: Store, from: Iterable<number>, way: Way): Set<number> {
  const reached = new Set<number>(from),
    queue = [...reached];
  const scope = store.nodes.get(queue[0] ?? 0)?.scope ?? 0;
  const reads = way === "ancestors" ? captures(store, scope) : new Map<number, number[]>();
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    for (const next of neighbors(store, node, way, scope, reads)) {
      if (reached.has(next)) continue;
      reached.add(next);
      queue.push(next);
    }
  }
  return reached;
}

/**
 * The nodes on all paths from one node to another; on the paths back where there are none; empty where neither exists.
 */
export function between(store: Store, from: number, to: number): Set<number> {
  for (const [first, last] of [
    [from, to],
    [to, from],
  ] as const) {
    const after = cone(store, [first], "descendants");
    if (!after.has(last)) continue;
    const before = cone(store, [last], "ancestors");
    return new Set([...after].filter((node) => before.has(node)));
  }
  return new Set();
}

/** Values that lead from one of some nodes to another of them. */
export function valuesBetween(store: Store, nodes: ReadonlySet<number>): Set<number> {
  const values = new Set<number>();
  const scope = store.nodes.get(nodes.values().next().value ?? 0)?.scope ?? 0;
  for (const node of nodes) {
    for (const value of store.nodes.get(node)?.outputs ?? []) {
      if (value && store.uses(value).some((use) => nodes.has(homeOf(store, use.node, scope)))) values.add(value);
    }
  }
  return values;
}

function neighbors(store: Store, node: number, way: Way, scope: number, reads: Map<number, number[]>): number[] {
  const record = store.nodes.get(node);
  if (!record) return [];
  if (way === "descendants") {
    const uses = record.outputs.flatMap((value) =>
      value ? store.uses(value).map((use) => homeOf(store, use.node, scope)) : [],
    );
    return uses.filter((user) => user > 0);
  }
  const inputs = [...record.inputs, ...(reads.get(node) ?? [])];
  return inputs.flatMap((value) => (value ? (store.producer(value)?.node ?? []) : []));
}

/** The node of a scope that a node is, or whose bodies hold it; 0 for none. */
function homeOf(store: Store, node: number, scope: number): number {
  let at = store.nodes.get(node);
  for (let steps = 0; at && at.scope !== scope && steps < 100; steps++)
    at = store.nodes.get(store.scopes.get(at.scope)?.owner ?? 0);
  return at?.scope === scope ? at.id : 0;
}

/** The outer values that the bodies of the nodes of a scope read. */
function captures(store: Store, scope: number): Map<number, number[]> {
  const captured = new Map<number, number[]>();
  if (store.scopes.size < 2) return captured;
  for (const node of store.nodes.values()) {
    if (node.scope === scope) continue;
    const home = homeOf(store, node.id, scope);
    if (!home) continue;
    const outer = node.inputs.filter((value) => value && store.values.get(value)?.scope !== node.scope);
    if (outer.length) captured.set(home, [...(captured.get(home) ?? []), ...outer]);
  }
  return captured;
}
