/**
 * What one container shows: its items, the values between them, and the values that cross its border.
 *
 * It is the same whether groups inside are folded or open, so folding computes none of it again.
 */

import { INITIALIZER, type ScopeRecord } from "../protocol.ts";
import type { Store } from "../store.ts";
import type { Hierarchy } from "./hierarchy.ts";
import { GROUP, INPUT, NODE, OUTPUT, OUTSIDE, keyOf } from "./keys.ts";

/** A value as a line: from an item or a port to items and ports, by index. */
export interface Net {
  value: number;
  source: number;
  targets: number[];
}

/** Indices count the items first, then the ports at the top, then those at the bottom. */
export interface Content {
  container: number;
  /** Keys (keys.ts) of the boxes. */
  items: number[];
  /** Values that come in through the top and leave through the bottom. */
  top: number[];
  bottom: number[];
  nets: Net[];
}

/** Collects the content of a container. O(nodes inside and their inputs). */
export function contentOf(store: Store, hierarchy: Hierarchy, container: number): Content {
  return new Collector(store, hierarchy, container).collect();
}

const MAX_ITEMS = 2 ** 22;

class Collector {
  readonly #store: Store;
  readonly #hierarchy: Hierarchy;
  readonly #container: number;
  readonly #scope: ScopeRecord | undefined;
  readonly #content: Content;
  /** Item index of each container inside; of each node directly inside. */
  readonly #containerItem = new Map<number, number>();
  readonly #nodeItem = new Map<number, number>();
  readonly #inputs: Set<number>;
  readonly #outputs: Set<number>;
  readonly #nets = new Map<number, Net>();
  readonly #top = new Map<number, Net>();
  /** Value and target of the lines so far. */
  readonly #pairs = new Set<number>();

  constructor(store: Store, hierarchy: Hierarchy, container: number) {
    this.#store = store;
    this.#hierarchy = hierarchy;
    this.#container = container;
    this.#scope = store.scopes.get(hierarchy.scope);
    this.#content = { container, items: [], top: [], bottom: [], nets: [] };
    this.#inputs = new Set(this.#scope?.inputs);
    this.#outputs = new Set(this.#scope?.outputs);
  }

  collect(): Content {
    if (this.#container === 0) this.#addInputs();
    this.#addItems();
    const nodes = this.#hierarchy.nodesInside(this.#container);
    for (const node of nodes) for (const value of this.#reads(node)) this.#connect(value, this.#itemOf(node)!);
    const content = this.#content;
    content.nets = [...this.#nets.values()];
    if (this.#container === 0) this.#addOutputs();
    else this.#addBottom(nodes);
    // Ports were numbered from -1 downwards while the number of items was not known.
    const items = content.items.length;
    for (const net of content.nets) if (net.source < 0) net.source = items - 1 - net.source;
    content.nets = content.nets.filter((net) => net.targets.length > 0);
    return content;
  }

  /** Values that a node and its subgraphs read, each once. */
  #reads(node: number): Set<number> {
    const values = new Set(this.#store.nodes.get(node)!.inputs);
    for (const value of this.#hierarchy.captures.get(node) ?? []) values.add(value);
    values.delete(0);
    return values;
  }

  #addInputs(): void {
    for (const value of this.#inputs) {
      const flags = this.#store.values.get(value)?.flags ?? 0;
      if (!(flags & INITIALIZER)) this.#terminal(INPUT, value);
    }
  }

  #terminal(kind: typeof INPUT | typeof OUTSIDE, value: number): Net {
    const net = { value, source: this.#content.items.length, targets: [] };
    this.#content.items.push(keyOf(kind, value));
    this.#nets.set(value, net);
    return net;
  }

  /** Groups and nodes directly inside, in file order. */
  #addItems(): void {
    const { containers } = this.#hierarchy;
    const here = containers.get(this.#container)!;
    const members = [
      ...here.groups.map((id) => ({ id, group: true, first: containers.get(id)!.first })),
      ...here.nodes.map((id) => ({ id, group: false, first: this.#hierarchy.placeOf(id) })),
    ].sort((a, b) => a.first - b.first);
    for (const { id, group } of members) {
      const index = this.#content.items.length;
      this.#content.items.push(keyOf(group ? GROUP : NODE, id));
      if (!group) this.#nodeItem.set(id, index);
      else this.#claim(id, index);
    }
  }

  #claim(group: number, index: number): void {
    const stack = [group];
    while (stack.length) {
      const id = stack.pop()!;
      this.#containerItem.set(id, index);
      stack.push(...this.#hierarchy.containers.get(id)!.groups);
    }
  }

  /** The item that holds a node, undefined when the node is elsewhere. */
  #itemOf(node: number): number | undefined {
    const home = this.#hierarchy.containerOf(node);
    if (home === undefined) return undefined;
    return home === this.#container ? this.#nodeItem.get(node) : this.#containerItem.get(home);
  }

  #connect(value: number, target: number): void {
    const net = this.#netOf(value);
    if (!net || net.source === target) return;
    const pair = value * MAX_ITEMS + target;
    if (this.#pairs.has(pair)) return;
    this.#pairs.add(pair);
    net.targets.push(target);
  }

  /** The line of a value in this container; null for initializers and constants drawn inside their consumers. */
  #netOf(value: number): Net | null {
    const known = this.#nets.get(value);
    if (known) return known;
    const producer = this.#store.producer(value);
    if (producer && this.#hierarchy.inlined.has(producer.node)) return null;
    const source = producer ? this.#itemOf(producer.node) : undefined;
    if (source !== undefined) {
      const net = { value, source, targets: [] };
      this.#nets.set(value, net);
      return net;
    }
    const record = this.#store.values.get(value);
    if (!record || record.flags & INITIALIZER) return null;
    return this.#container === 0 ? this.#terminal(OUTSIDE, value) : this.#topPort(value);
  }

  #topPort(value: number): Net {
    const known = this.#top.get(value);
    if (known) return known;
    this.#content.top.push(value);
    const net = { value, source: -this.#content.top.length, targets: [] };
    this.#top.set(value, net);
    this.#nets.set(value, net);
    return net;
  }

  #addOutputs(): void {
    const { items, nets } = this.#content;
    for (const value of this.#outputs) {
      const net = this.#netOf(value);
      const index = items.length;
      items.push(keyOf(OUTPUT, value));
      if (!net) continue;
      net.targets.push(index);
      if (!nets.includes(net)) nets.push(net);
    }
  }

  /** Values made inside that something outside reads, or that the scope gives out. */
  #addBottom(nodes: number[]): void {
    const { bottom, items, top, nets } = this.#content;
    const leaves = (value: number): boolean =>
      this.#outputs.has(value)
      || this.#store.uses(value).some(({ node }) => this.#elsewhere(node))
      || (this.#hierarchy.capturers.get(value) ?? []).some((node) => this.#elsewhere(node));
    for (const node of nodes) {
      for (const value of this.#store.nodes.get(node)!.outputs) {
        if (!value || !leaves(value)) continue;
        let net = this.#nets.get(value);
        if (!net) {
          net = { value, source: this.#itemOf(node)!, targets: [] };
          this.#nets.set(value, net);
          nets.push(net);
        }
        net.targets.push(items.length + top.length + bottom.length);
        bottom.push(value);
      }
    }
  }

  /** In this scope, but not in this container. */
  #elsewhere(node: number): boolean {
    return this.#hierarchy.containerOf(node) !== undefined && this.#itemOf(node) === undefined;
  }
}
