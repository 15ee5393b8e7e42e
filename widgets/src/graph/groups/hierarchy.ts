/**
 * The tree of what is inside what in one scope: groups, repeats of equal groups, nodes with subgraphs, and those
 * subgraphs, without the groups that would frame a single thing; and which nodes only make parameters and are drawn
 * inside what reads them.
 */

import type { GroupRecord, NodeRecord, ScopeRecord, Store } from "../../model/store.ts";
import { isWeight } from "../../model/weights.ts";
import { relativeName } from "../scene/short_names.ts";
import { type Bundle, bundlesOf } from "./bundles.ts";
import { BODY, GROUP, idOf, keyOf, NODE, REPEAT } from "./group_keys.ts";
import { findRepeats } from "./repeats.ts";

/** A box that can be open: one with boxes inside; or (key 0) the scope itself. */
export interface Container {
  /** Key of its box or frame (group_keys.ts). */
  key: number;
  /** Key of the container around this one; -1 for the scope. */
  parent: number;
  /** Name relative to the parent's. */
  name: string;
  /** The kind of a group, from the kernel; "node", "body" or "repeat" of the others. */
  kind: string;
  /** The scope of what is directly inside; of a node its own. */
  scope: number;
  /** Keys of what is directly inside and no node: groups, repeats, of a node its bodies. */
  groups: number[];
  nodes: number[];
  /** Number of kinds of groups that alternate in a repeat. */
  period: number;
  /** Keys of those nodes that are containers too. */
  hosts: number[];
  /** Nodes inside, at any depth; those that are drawn inside others count. */
  size: number;
  /** Place in file order of its first node. */
  first: number;
}

const NOWHERE = -1;

/** Share of the nodes from which a group is nearly all of the graph. */
const NEARLY_ALL = 0.85;

export class Hierarchy {
  readonly scope: number;
  /** Ids of the nodes with boxes, in file order, scope by scope. */
  readonly nodes: number[] = [];
  /** Nodes that only make parameters and have no box of their own, and the first node with one that reads each. */
  readonly inlined = new Map<number, number>();
  readonly containers = new Map<number, Container>();
  /** Inputs and outputs of the scope that are drawn as one, by value. */
  readonly inputBundles: ReadonlyMap<number, Bundle>;
  readonly outputBundles: ReadonlyMap<number, Bundle>;
  /** Whether subgraphs are part of it. */
  readonly nested: boolean;
  readonly #store: Store;
  /** Key of the container that a scope is shown in. */
  readonly #homes: ReadonlyMap<number, number>;
  /** Containers by node id, NOWHERE for others: arrays, since they are asked for every wire of a model. */
  readonly #containerOf: Float64Array;
  readonly #place: Int32Array;
  /** Nodes with subgraphs. */
  readonly #hosts: ReadonlySet<number>;

  /**
   * `constants`: nodes that only make parameters have boxes too. `frameless`: a group that nearly everything is in has
   * no frame.
   */
  constructor(store: Store, scope: number, constants = false, frameless = false) {
    this.scope = scope;
    this.#store = store;
    const { inputs = [], outputs = [] } = store.scopes.get(scope) ?? {};
    const graphInputs = inputs.filter((value) => !isWeight(store, value));
    this.inputBundles = bundlesOf(store, graphInputs);
    this.outputBundles = bundlesOf(store, outputs);
    this.#homes = homesOf(store, scope);
    this.nested = this.#homes.size > 1;
    this.#hosts = new Set([...store.scopes.values()].map(({ owner }) => owner));
    const records: NodeRecord[] = [];
    const captured = this.#captured();
    let largest = 0;
    for (const id of store.nodes.keys()) if (id > largest) largest = id;
    this.#containerOf = new Float64Array(largest + 1).fill(NOWHERE);
    this.#place = new Int32Array(largest + 1).fill(NOWHERE);
    for (const node of store.nodes.values()) {
      if (!this.#homes.has(node.scope)) continue;
      records.push(node);
      const reader = !constants && this.#isParameter(node) ? this.#reader(node, captured) : 0;
      if (reader) this.inlined.set(node.id, reader);
      else {
        this.#place[node.id] = this.nodes.length;
        this.nodes.push(node.id);
      }
    }
    for (const id of [...this.inlined.keys()].reverse()) this.inlined.set(id, this.#drawn(id));
    this.#buildTree(records);
    for (const container of this.containers.values())
      for (const node of container.nodes) this.#containerOf[node] = container.key;
    for (const key of bottomUp(this.containers)) this.#fold(key);
    if (frameless) this.#dissolveMost(this.containers.get(0)!);
  }

  /** The container that holds a node directly. Undefined for nodes of other scopes. */
  containerOf(node: number): number | undefined {
    const key = this.#containerOf[node];
    return key === NOWHERE ? undefined : key;
  }

  /** The container that shows a scope; undefined for scopes that are elsewhere. */
  homeOf(scope: number): number | undefined {
    return this.#homes.get(scope);
  }

  /** A node's place in file order. */
  placeOf(node: number): number {
    return this.#place[node] ?? NOWHERE;
  }

  /** Keys of the containers around a node or container, innermost first, the scope (0) last. */
  around(container: number): number[] {
    const path: number[] = [];
    for (let key: number = container; key >= 0; key = this.containers.get(key)?.parent ?? -1) path.push(key);
    return path;
  }

  /** Keys of a container and of all containers inside it, outer ones first. */
  below(container: number): number[] {
    const keys = [container];
    for (const key of keys) {
      const inner = this.containers.get(key);
      if (inner) keys.push(...inner.groups, ...inner.hosts);
    }
    return keys;
  }

  /** Every node inside a container, at any depth; a node with subgraphs is not inside itself. */
  nodesInside(container: number): number[] {
    const nodes: number[] = [];
    for (const key of this.below(container)) for (const node of this.containers.get(key)?.nodes ?? []) nodes.push(node);
    return nodes;
  }

  /** Every node inside a container, at any depth, in file order. */
  membersOf(container: number): number[] {
    const nodes = this.nodesInside(container),
      places = nodes.map((node) => this.placeOf(node));
    const sorted = places.every((place, i) => i === 0 || places[i - 1]! < place);
    return sorted ? nodes : nodes.sort((a, b) => this.placeOf(a) - this.placeOf(b));
  }

  /** Place in file order of the last node inside a container. */
  lastOf(container: number): number {
    return this.placeOf(this.membersOf(container).at(-1) ?? 0);
  }

  /** Values that subgraphs read from outside of themselves. */
  #captured(): Set<number> {
    const captured = new Set<number>(),
      store = this.#store;
    if (!this.nested) return captured;
    for (const node of store.nodes.values()) {
      if (!this.#homes.has(node.scope)) continue;
      for (const value of node.inputs) if (value && store.values.get(value)?.scope !== node.scope) captured.add(value);
    }
    return captured;
  }

  /** Whether a node reads nothing but weights, or what was made of them: what makes those comes before it. */
  #isParameter({ id, op, inputs }: NodeRecord): boolean {
    if (op !== "Constant" && (!inputs.some((value) => value > 0) || this.#hosts.has(id))) return false;
    return inputs.every(
      (value) => !value || isWeight(this.#store, value) || this.inlined.has(this.#store.maker(value)),
    );
  }

  /** The node whose box shows a node. */
  #drawn(node: number): number {
    let shown = node;
    for (let steps = 0; steps <= this.inlined.size && this.inlined.has(shown); steps++)
      shown = this.inlined.get(shown)!;
    return shown;
  }

  /** The node inside of which a node can be drawn; 0 when anything but nodes of its scope reads it. */
  #reader({ scope, outputs }: NodeRecord, captured: ReadonlySet<number>): number {
    const store = this.#store,
      scopeOutputs = store.scopes.get(scope)?.outputs,
      produced = outputs.filter((value) => value > 0);
    if (produced.some((value) => captured.has(value) || scopeOutputs?.includes(value))) return 0;
    for (const value of produced) {
      const reader = store.uses(value).find(({ node }) => store.nodes.get(node)?.scope === scope);
      if (reader) return reader.node;
    }
    return 0;
  }

  #add(key: number, parent: number, scope: number, first: number, name = "", kind = ""): Container {
    const container = { key, parent, name, kind, scope, groups: [], nodes: [], period: 1, hosts: [], size: 0, first };
    this.containers.set(key, container);
    return container;
  }

  #buildTree(records: NodeRecord[]): void {
    const store = this.#store;
    this.#add(0, -1, this.scope, 0);
    const keyOfGroup = (group: GroupRecord | undefined, scope: number): number =>
      group && group.scope === scope ? keyOf(GROUP, group.id) : this.#homes.get(scope)!;
    const ensure = (group: GroupRecord, first: number): void => {
      for (let inner = group, steps = 0; steps < 1000 && !this.containers.has(keyOf(GROUP, inner.id)); steps++) {
        const parent = store.groups.get(inner.parent);
        const name = relativeName(inner.name, parent?.name ?? "");
        this.#add(keyOf(GROUP, inner.id), keyOfGroup(parent, inner.scope), inner.scope, first, name, inner.kind);
        if (!parent || parent.scope !== inner.scope) return;
        inner = parent;
      }
    };
    const bodies = this.#bodies();
    for (const scopes of bodies.values())
      for (const { id, attribute, name } of scopes) this.#add(keyOf(BODY, id), -1, id, 0, attribute || name, "body");
    records.forEach((node, first) => {
      const group = store.groups.get(node.group),
        home = keyOfGroup(group, node.scope);
      if (home !== this.#homes.get(node.scope)) ensure(group!, first);
      const container = this.containers.get(home)!;
      if (this.inlined.has(node.id)) container.size++;
      else container.nodes.push(node.id);
      const inside = bodies.get(node.id);
      if (inside) this.#host(node, inside, container, first);
    });
    for (const container of this.containers.values()) {
      if (container.key && container.kind !== "node" && container.kind !== "body")
        this.containers.get(container.parent)?.groups.push(container.key);
    }
  }

  /** Makes a container of a node with subgraphs. */
  #host(node: NodeRecord, bodies: readonly ScopeRecord[], around: Container, first: number): void {
    const host = this.#add(keyOf(NODE, node.id), around.key, node.scope, first, node.name, "node");
    around.hosts.push(host.key);
    for (const { id } of bodies) {
      const body = this.containers.get(keyOf(BODY, id))!;
      body.parent = host.key;
      host.groups.push(body.key);
    }
  }

  /** Subgraphs by the node that they belong to, `then_branch` before `else_branch`. */
  #bodies(): Map<number, ScopeRecord[]> {
    const bodies = new Map<number, ScopeRecord[]>();
    if (!this.nested) return bodies;
    for (const scope of this.#store.scopes.values()) {
      if (scope.id === this.scope || !this.#homes.has(scope.id)) continue;
      const same = bodies.get(scope.owner);
      if (same) same.push(scope);
      else bodies.set(scope.owner, [scope]);
    }
    for (const scopes of bodies.values()) scopes.sort((a, b) => b.attribute.localeCompare(a.attribute));
    return bodies;
  }

  /** Finds repeats among the groups of a container, sums it up, and dissolves it if it is a group of a single thing. */
  #fold(key: number): void {
    const container = this.containers.get(key)!;
    this.#findRepeats(container);
    container.size += container.nodes.length;
    for (const inner of [...container.groups, ...container.hosts]) container.size += this.containers.get(inner)!.size;
    const dissolves = container.kind !== "" && container.kind !== "node" && container.kind !== "body";
    if (dissolves && container.nodes.length + container.groups.length === 1) this.#dissolve(container);
  }

  /** Takes the frame away from a scope that nearly all of a graph is in: it tells nothing apart. */
  #dissolveMost(top: Container): void {
    const most = top.groups
      .map((key) => this.containers.get(key)!)
      .find(({ kind, size }) => kind === "scope" && size >= NEARLY_ALL * top.size);
    if (most && most.groups.length > 1) this.#dissolve(most, false);
  }

  #dissolve(container: Container, named = true): void {
    const parent = this.containers.get(container.parent)!;
    // what was counted without a box is the parent's to count now
    parent.size += container.size - container.nodes.length;
    for (const only of [...container.groups, ...container.hosts]) parent.size -= this.containers.get(only)!.size;
    parent.groups.splice(parent.groups.indexOf(container.key), 1, ...container.groups);
    parent.nodes.push(...container.nodes);
    parent.hosts.push(...container.hosts);
    for (const node of container.nodes) this.#containerOf[node] = parent.key;
    for (const only of [...container.groups, ...container.hosts]) {
      const child = this.containers.get(only)!;
      child.parent = parent.key;
      // what a stage is made of is a repeat of blocks: the stage's name says more than theirs
      if (container.kind === "stage") child.name = container.name;
      else if (child.kind !== "node" && named) child.name = `${container.name}/${child.name}`;
    }
    this.containers.delete(container.key);
  }

  #findRepeats(container: Container): void {
    for (const { groups, period, name } of findRepeats(this.#store, this, container)) {
      const [first = 0] = groups,
        members = groups.map((group) => this.containers.get(group)!);
      const repeat = this.#add(
        keyOf(REPEAT, idOf(first)),
        container.key,
        container.scope,
        members[0]!.first,
        name,
        "repeat",
      );
      Object.assign(repeat, { groups, period });
      for (const member of members) {
        member.parent = repeat.key;
        repeat.size += member.size;
      }
      container.groups.splice(container.groups.indexOf(first), 1, repeat.key);
      container.groups = container.groups.filter((group) => !groups.includes(group));
    }
  }
}

/** The scope itself and the subgraphs inside it at any depth, with the key of the container of each. */
function homesOf(store: Store, scope: number): Map<number, number> {
  const homes = new Map([[scope, 0]]);
  const inside = (id: number, steps: number): boolean => {
    const owner = steps < 100 ? store.nodes.get(store.scopes.get(id)?.owner ?? 0) : undefined;
    return owner !== undefined && (homes.has(owner.scope) || inside(owner.scope, steps + 1));
  };
  for (const { id, kind } of store.scopes.values())
    if (kind === "subgraph" && id !== scope && inside(id, 0)) homes.set(id, keyOf(BODY, id));
  return homes;
}

/** Children before parents. */
function bottomUp(containers: Map<number, Container>): number[] {
  const order = [0];
  for (const key of order) {
    const { groups, hosts } = containers.get(key)!;
    order.push(...groups, ...hosts);
  }
  return order.reverse();
}
