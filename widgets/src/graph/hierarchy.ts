/**
 * The tree of groups of one scope, without the groups that would frame a single thing; what subgraphs capture; and which
 * Constant nodes are drawn inside the nodes that read them.
 */

import type { GroupRecord, NodeRecord, Store } from "../store.ts";
import { relativeName } from "./names.ts";

/** A group, or (id 0) the scope itself, with what is directly inside. */
export interface Container {
  id: number;
  /** Container that this one is in; -1 for the scope. */
  parent: number;
  /** Relative to the parent's name. */
  name: string;
  kind: string;
  groups: number[];
  nodes: number[];
  /** Nodes inside, at any depth; those that are drawn inside others count. */
  size: number;
  /** Place in file order of its first node. */
  first: number;
}

export class Hierarchy {
  readonly scope: number;
  /** Ids of the nodes with boxes, in file order. */
  readonly nodes: number[] = [];
  /** Constant nodes without a box of their own, and the first node that reads each. */
  readonly inlined = new Map<number, number>();
  readonly containers = new Map<number, Container>();
  /** Outer values that a node's subgraphs read, per node of this scope. */
  readonly captures = new Map<number, number[]>();
  /** The same by value. */
  readonly capturers = new Map<number, number[]>();
  readonly #containerOf = new Map<number, number>();
  readonly #place = new Map<number, number>();

  constructor(store: Store, scope: number) {
    this.scope = scope;
    this.#findCaptures(store);
    const records: NodeRecord[] = [];
    const outputs = new Set(store.scopes.get(scope)?.outputs);
    for (const node of store.nodes.values()) {
      if (node.scope !== scope) continue;
      records.push(node);
      const reader = node.op === "Constant" ? this.#reader(store, node, outputs) : 0;
      if (reader) this.inlined.set(node.id, reader);
      else {
        this.#place.set(node.id, this.nodes.length);
        this.nodes.push(node.id);
      }
    }
    this.#buildTree(store, records);
  }

  /** The container that holds a node directly. Undefined for nodes of other scopes. */
  containerOf(node: number): number | undefined {
    return this.#containerOf.get(node);
  }

  /** A node's place in file order. */
  placeOf(node: number): number {
    return this.#place.get(node) ?? -1;
  }

  /** Ids of the containers around a node or container, innermost first, the scope (0) last. */
  around(container: number): number[] {
    const path: number[] = [];
    for (let id: number = container; id >= 0; id = this.containers.get(id)?.parent ?? -1) path.push(id);
    return path;
  }

  /** Every node inside a container, at any depth. */
  nodesInside(container: number): number[] {
    const nodes: number[] = [];
    const stack = [container];
    while (stack.length) {
      const each = this.containers.get(stack.pop()!);
      if (!each) continue;
      for (const node of each.nodes) nodes.push(node);
      stack.push(...each.groups);
    }
    return nodes;
  }

  /** The node that a Constant can be drawn inside of; 0 when something else than nodes of this scope reads it. */
  #reader(store: Store, { outputs: [value = 0] }: NodeRecord, outputs: ReadonlySet<number>): number {
    if (!value || outputs.has(value) || this.capturers.has(value)) return 0;
    return store.uses(value).find(({ node }) => store.nodes.get(node)?.scope === this.scope)?.node ?? 0;
  }

  #findCaptures(store: Store): void {
    const note = (scope: number, value: number): void => {
      const owner = this.#capturer(store, scope, value);
      if (!owner) return;
      push(this.captures, owner, value);
      push(this.capturers, value, owner);
    };
    if (store.scopes.size < 2) return;
    for (const node of store.nodes.values()) {
      if (node.scope === this.scope) continue;
      for (const value of node.inputs) if (value && store.values.get(value)?.scope !== node.scope) note(node.scope, value);
    }
    for (const scope of store.scopes.values()) {
      if (scope.kind !== "subgraph") continue;
      for (const value of scope.outputs) if (store.values.get(value)?.scope !== scope.id) note(scope.id, value);
    }
  }

  /** The node of this scope whose subgraphs (at any depth) hold `scope`, if `value` comes from outside of it. */
  #capturer(store: Store, scope: number, value: number): number {
    const home = store.values.get(value)?.scope;
    for (let inner = scope, steps = 0; steps < 100; steps++) {
      if (inner === home) return 0;
      const owner = store.nodes.get(store.scopes.get(inner)?.owner ?? 0);
      if (!owner) return 0;
      if (owner.scope === this.scope) return owner.id;
      inner = owner.scope;
    }
    return 0;
  }

  #buildTree(store: Store, records: NodeRecord[]): void {
    const containers = this.containers;
    containers.set(0, { id: 0, parent: -1, name: "", kind: "", groups: [], nodes: [], size: 0, first: 0 });
    const parentOf = (group: GroupRecord): number => {
      const parent = store.groups.get(group.parent);
      return parent && parent.scope === this.scope ? parent.id : 0;
    };
    const ensure = (id: number, first: number): void => {
      for (let inner = id, steps = 0; steps < 1000 && !containers.has(inner); steps++) {
        const group = store.groups.get(inner)!;
        const parent = parentOf(group);
        const name = relativeName(group.name, store.groups.get(parent)?.name ?? "");
        containers.set(inner, { id: inner, parent, name, kind: group.kind, groups: [], nodes: [], size: 0, first });
        inner = parent;
      }
    };
    records.forEach((node, first) => {
      const group = store.groups.get(node.group);
      const home = group && group.scope === this.scope ? group.id : 0;
      ensure(home, first);
      const container = containers.get(home)!;
      if (this.inlined.has(node.id)) container.size++;
      else container.nodes.push(node.id);
    });
    for (const each of containers.values()) if (each.id) containers.get(each.parent)?.groups.push(each.id);
    for (const id of bottomUp(containers)) this.#simplify(id);
    for (const each of containers.values()) for (const node of each.nodes) this.#containerOf.set(node, each.id);
  }

  /** Sums up a container whose children are done, and dissolves it if it holds a single thing. */
  #simplify(id: number): void {
    const container = this.containers.get(id)!;
    container.size += container.nodes.length;
    for (const group of container.groups) container.size += this.containers.get(group)!.size;
    if (!id || container.nodes.length + container.groups.length > 1) return;
    const parent = this.containers.get(container.parent)!;
    parent.size += container.size - container.groups.reduce((sum, only) => sum + this.containers.get(only)!.size, 0) - container.nodes.length;
    parent.groups.splice(parent.groups.indexOf(id), 1, ...container.groups);
    parent.nodes.push(...container.nodes);
    for (const only of container.groups) {
      const child = this.containers.get(only)!;
      child.parent = parent.id;
      child.name = `${container.name}/${child.name}`;
    }
    this.containers.delete(id);
  }
}

/** Children before parents. */
function bottomUp(containers: Map<number, Container>): number[] {
  const order = [0];
  for (const id of order) for (const group of containers.get(id)!.groups) order.push(group);
  return order.reverse();
}

function push(map: Map<number, number[]>, key: number, value: number): void {
  const list = map.get(key);
  if (!list) map.set(key, [value]);
  else if (!list.includes(value)) list.push(value);
}
