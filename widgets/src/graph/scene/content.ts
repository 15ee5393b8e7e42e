/**
 * The content of one container: its items, the values between them, and the values that cross its border.
 *
 * It is the same whether groups inside are folded or open, so folding computes none of it again. A value that a
 * subgraph reads from outside of itself is a capture: a line of its own, from what makes it through the frames to what
 * reads it.
 */

import { CONTROL } from "../../kernel/protocol.ts";
import type { Store } from "../../model/store.ts";
import { isWeight } from "../../model/weights.ts";
import { BODY, INPUT, idOf, keyOf, keyOfPassed, NODE, OUTPUT, OUTSIDE } from "../groups/group_keys.ts";
import type { Container, Hierarchy } from "../groups/hierarchy.ts";
import { type Binding, boundInputs, boundOutputs } from "./bodies.ts";

/** A value as a line: from an item or a port to items and ports, by index. */
export interface Net {
  value: number;
  /** All values of the line, its own first: several in a ribbon. */
  values: readonly number[];
  source: number;
  targets: number[];
  /** Whether the targets are or hold subgraphs that read it from outside of themselves. */
  capture: boolean;
  /** Whether nothing flows: a control edge of a GE dump. */
  control: boolean;
  /** Whether another line of the value has its shape as a label. */
  quiet: boolean;
}

/** Indices count the items first, then the ports at the top, then those at the bottom. */
export interface Content {
  container: number;
  /** Keys (keys.ts) of the boxes. */
  items: number[];
  /** Values that come in through the top and leave through the bottom: of several at one port the first. */
  top: number[];
  bottom: number[];
  /** All values of each port; the port of each value. */
  carried: { top: readonly (readonly number[])[]; bottom: readonly (readonly number[])[] };
  portOf: { top: ReadonlyMap<number, number>; bottom: ReadonlyMap<number, number> };
  nets: Net[];
  /** Values that come or go where another one does that is drawn: those of the groups of a repeat that do not show. */
  like: { top: ReadonlyMap<number, number>; bottom: ReadonlyMap<number, number> } | null;
}

/** Collects the content of a container. O(nodes inside and their inputs). */
export function contentOf(store: Store, hierarchy: Hierarchy, container: number): Content {
  return new Collector(store, hierarchy, hierarchy.containers.get(container)!).collect();
}

/** The content of a repeat that shows some of its groups for all: what comes and goes of the others does so there. */
export function contentOfSome(store: Store, hierarchy: Hierarchy, repeat: number, shown: readonly number[]): Content {
  const top = new Map<number, number>(),
    bottom = new Map<number, number>();
  const around = hierarchy.containers.get(repeat)!,
    ours = shown.map((group) => hierarchy.membersOf(group));
  around.groups.forEach((group, k) => {
    if (shown.includes(group)) return;
    hierarchy.membersOf(group).forEach((id, i) => {
      const theirs = store.nodes.get(id)!,
        ourNode = store.nodes.get(ours[k % shown.length]![i]!)!;
      theirs.inputs.forEach((value, slot) => top.set(value, ourNode.inputs[slot]!));
      theirs.outputs.forEach((value, slot) => bottom.set(value, ourNode.outputs[slot]!));
    });
  });
  const inner = shown.length === 1 ? hierarchy.containers.get(shown[0]!)! : { ...around, groups: [...shown] };
  return { ...new Collector(store, hierarchy, inner).collect(), container: repeat, like: { top, bottom } };
}

/** The fields of a content that are empty before its lines are put into ribbons. */
const NOTHING = {
  carried: { top: [], bottom: [] },
  portOf: { top: new Map<number, number>(), bottom: new Map<number, number>() },
  like: null,
};
const MAX_ITEMS = 2 ** 22;

class Collector {
  readonly #store: Store;
  readonly #hierarchy: Hierarchy;
  readonly #here: Container;
  readonly #content: Content;
  /** Item index of each container inside; of each node directly inside. */
  readonly #containerItem = new Map<number, number>();
  readonly #nodeItem = new Map<number, number>();
  readonly #outputs: Set<number>;
  /** Bodies here and inside. */
  readonly #bodies: number[];
  /** Values that a subgraph elsewhere gives out without reading them in a node. */
  readonly #passed = new Set<number>();
  readonly #nets: Net[] = [];
  /** Lines by value: to its direct readers, and to captures. */
  readonly #plain = new Map<number, Net | null>();
  readonly #captures = new Map<number, Net | null>();
  /** Ports at the top by value. */
  readonly #top = new Map<number, number>();
  /** Value and target of the lines so far. */
  readonly #pairs = new Set<number>();

  constructor(store: Store, hierarchy: Hierarchy, container: Container) {
    this.#store = store;
    this.#hierarchy = hierarchy;
    this.#here = container;
    this.#content = { ...NOTHING, container: container.key, items: [], top: [], bottom: [], nets: [] };
    this.#outputs = new Set(store.scopes.get(this.#here.scope)?.outputs);
    this.#bodies = hierarchy.nested
      ? [container.key, ...this.#below()].filter((key) => hierarchy.containers.get(key)?.kind === "body")
      : [];
    if (hierarchy.nested) this.#findPassed(new Set(this.#bodies));
  }

  /** Keys of the containers inside. */
  #below(): number[] {
    return [...this.#here.groups, ...this.#here.hosts].flatMap((key) => this.#hierarchy.below(key));
  }

  #findPassed(inside: ReadonlySet<number>): void {
    for (const { id, kind, outputs } of this.#store.scopes.values()) {
      if (kind !== "subgraph" || inside.has(keyOf(BODY, id))) continue;
      for (const value of outputs) if (this.#store.values.get(value)?.scope !== id) this.#passed.add(value);
    }
  }

  collect(): Content {
    const { key, kind } = this.#here,
      content = this.#content;
    const scope = key === 0 || kind === "body" ? this.#store.scopes.get(this.#here.scope) : undefined;
    for (const value of scope?.inputs ?? []) {
      if (!isWeight(this.#store, value)) this.#input(value);
    }
    this.#addItems();
    const nodes = [
      this.#here.nodes,
      ...this.#below().map((inner) => this.#hierarchy.containers.get(inner)!.nodes),
    ].flat();
    for (const node of nodes) this.#addReads(node);
    for (const body of this.#bodies) this.#addFormals(body);
    const outputs = scope ? this.#addOutputs(new Set(scope.outputs)) : new Map<number, number>();
    content.nets = this.#nets;
    if (kind === "body") this.#addGiven(outputs);
    else if (kind === "node") this.#addResults();
    else if (key) this.#addBottom(nodes);
    // Ports were numbered from -1 downwards while the number of items was not known.
    const items = content.items.length;
    for (const net of content.nets) if (net.source < 0) net.source = items - 1 - net.source;
    content.nets = content.nets.filter((net) => net.targets.length > 0);
    for (const [value, net] of this.#captures) if (net) net.quiet = (this.#plain.get(value)?.targets.length ?? 0) > 0;
    return content;
  }

  // ------------------------------------------------------------------------------------------------------------- items

  /** An input of the scope: by itself, or with those that differ from it only in numbers. */
  #input(value: number): void {
    const first = this.#here.key === 0 ? this.#hierarchy.inputBundles.get(value)?.first : undefined;
    if (first === undefined || first === value) this.#terminal(INPUT, value);
    else this.#plain.set(value, this.#net(value, this.#content.items.indexOf(keyOf(INPUT, first)), false));
  }

  #terminal(kind: typeof INPUT | typeof OUTSIDE, value: number): Net {
    const net = this.#net(value, this.#content.items.length, false);
    this.#content.items.push(keyOf(kind, value));
    this.#plain.set(value, net);
    return net;
  }

  /** Add the items directly inside, in file order. */
  #addItems(): void {
    const { containers } = this.#hierarchy;
    const members = [
      ...this.#here.groups.map((key) => ({ key, first: containers.get(key)!.first })),
      ...this.#here.nodes.map((id) => ({ key: keyOf(NODE, id), first: this.#hierarchy.placeOf(id) })),
    ].sort((a, b) => a.first - b.first);
    for (const { key } of members) this.#nodeItem.set(key, this.#content.items.push(key) - 1);
    for (const key of [...this.#here.groups, ...this.#here.hosts]) {
      for (const inner of this.#hierarchy.below(key)) this.#containerItem.set(inner, this.#nodeItem.get(key)!);
    }
  }

  /** The item that holds a node, undefined when the node is elsewhere. */
  #itemOf(node: number): number | undefined {
    const home = this.#hierarchy.containerOf(node);
    if (home === undefined) return undefined;
    return home === this.#here.key ? this.#nodeItem.get(keyOf(NODE, node)) : this.#containerItem.get(home);
  }

  /** Whether a node is in this picture, but not in this container. */
  #elsewhere(node: number): boolean {
    return this.#hierarchy.containerOf(node) !== undefined && this.#itemOf(node) === undefined;
  }

  // ------------------------------------------------------------------------------------------------------------- lines

  #net(value: number, source: number, capture: boolean): Net {
    const control = ((this.#store.values.get(value)?.flags ?? 0) & CONTROL) !== 0;
    const net = { value, values: [value], source, targets: [], capture, control, quiet: false };
    this.#nets.push(net);
    return net;
  }

  #addReads(node: number): void {
    const { inputs, scope } = this.#store.nodes.get(node)!,
      target = this.#itemOf(node)!;
    const home = this.#hierarchy.containerOf(node);
    for (const value of inputs) {
      if (!value) continue;
      // most lines of a folded group end where they begin
      const maker = this.#store.maker(value);
      if (maker && home !== this.#here.key && this.#hierarchy.containerOf(maker) === home) continue;
      this.#connect(value, target, this.#hierarchy.nested && this.#store.values.get(value)?.scope !== scope);
    }
  }

  #connect(value: number, target: number, capture: boolean): void {
    const net = this.#netOf(value, capture);
    if (!net || net.source === target) return;
    const pair = (2 * value + Number(capture)) * MAX_ITEMS + target;
    if (this.#pairs.has(pair)) return;
    this.#pairs.add(pair);
    net.targets.push(target);
  }

  /**
   * The line of a value in this container; null for initializers, constants drawn inside their consumers, and what is
   * deeper inside.
   */
  #netOf(value: number, capture: boolean): Net | null {
    const known = capture ? this.#captures : this.#plain;
    let net = known.get(value);
    if (net === undefined) {
      const source = this.#sourceOf(value);
      net = source === null ? null : (known.get(value) ?? this.#net(value, source, capture));
      known.set(value, net);
    }
    return net;
  }

  /** Item or port that a value comes from: see #netOf. */
  #sourceOf(value: number): number | null {
    const drawn = this.#plain.get(value) ?? this.#captures.get(value);
    if (drawn) return drawn.source;
    const maker = this.#store.maker(value);
    if (maker && this.#hierarchy.inlined.has(maker)) return null;
    const source = maker ? this.#itemOf(maker) : undefined;
    if (source !== undefined) return source;
    const record = this.#store.values.get(value);
    if (!record || isWeight(this.#store, value)) return null;
    if (!maker && this.#containerItem.has(keyOf(BODY, record.scope))) return null;
    return this.#here.key === 0 ? this.#terminal(OUTSIDE, value).source : this.#topPort(value);
  }

  #topPort(value: number): number {
    let port = this.#top.get(value);
    if (port === undefined) this.#top.set(value, (port = -this.#content.top.push(value)));
    return port;
  }

  #bottomPort(value: number): number {
    const { items, top, bottom } = this.#content;
    return items.length + top.length + bottom.push(value) - 1;
  }

  // ------------------------------------------------------------------------------------------------- scopes and bodies

  /** Add the values that a body inside is handed by its node, and those that it returns out of its captures. */
  #addFormals(key: number): void {
    const body = this.#store.scopes.get(idOf(key))!,
      node = this.#store.nodes.get(body.owner)!;
    const isFrame = key === this.#here.key,
      target = isFrame ? -1 : this.#containerItem.get(key)!;
    if (!isFrame) {
      for (const value of body.outputs)
        if (value && this.#store.values.get(value)?.scope !== body.id) this.#connect(value, target, true);
    }
    if (!isFrame && this.#here.key !== keyOf(NODE, node.id)) return;
    for (const { outer, inner } of boundInputs(node, body)) {
      const item = isFrame ? this.#content.items.indexOf(keyOf(INPUT, inner)) : target;
      if (item >= 0) this.#connect(outer, item, false);
    }
  }

  /** Boxes for what the scope gives; the item of each value. */
  #addOutputs(outputs: Iterable<number>): Map<number, number> {
    const { items } = this.#content,
      at = new Map<number, number>();
    const ports: number[] = [];
    for (const value of outputs) {
      const capture = this.#here.kind === "body" && this.#store.values.get(value)?.scope !== this.#here.scope;
      const net = this.#netOf(value, capture),
        first = this.#here.key === 0 ? this.#hierarchy.outputBundles.get(value)?.first : undefined;
      const bundled = first === undefined || first === value ? -1 : items.indexOf(keyOf(OUTPUT, first));
      if (bundled >= 0) {
        if (net && !net.targets.includes(bundled)) net.targets.push(bundled);
        continue;
      }
      ports.push(items.push(capture ? keyOfPassed(value, this.#here.scope) : keyOf(OUTPUT, value)) - 1);
      at.set(value, ports.at(-1)!);
      if (net) net.targets.push(ports.at(-1)!);
    }
    return at;
  }

  /** Adds lines from the outputs of this body to what they are outside. */
  #addGiven(outputs: ReadonlyMap<number, number>): void {
    for (const { outer, inner } of this.#results(this.#here.key)) {
      const source = outputs.get(inner);
      if (source !== undefined) this.#net(outer, source, false).targets.push(this.#bottomPort(outer));
    }
  }

  /** Adds lines from the bodies of this node to their results. */
  #addResults(): void {
    const ports = new Map<number, number>();
    for (const body of this.#here.groups) {
      for (const { outer } of this.#results(body)) {
        let port = ports.get(outer);
        if (port === undefined) ports.set(outer, (port = this.#bottomPort(outer)));
        const source = this.#containerItem.get(body)!;
        this.#net(outer, source, false).targets.push(port);
      }
    }
  }

  /** The values that a body returns, as far as they are read outside, each once. */
  #results(key: number): Binding[] {
    const body = this.#store.scopes.get(idOf(key))!,
      node = this.#store.nodes.get(body.owner)!;
    const scopeOutputs = this.#store.scopes.get(node.scope)?.outputs ?? [];
    const bound = new Map(boundOutputs(node, body).map((binding) => [binding.outer, binding]));
    return [...bound.values()].filter(
      ({ outer }) => this.#store.uses(outer).length > 0 || scopeOutputs.includes(outer),
    );
  }

  /** Values made inside that something outside reads, or that the scope gives out. */
  #addBottom(nodes: number[]): void {
    const leaves = (value: number): boolean =>
      this.#outputs.has(value) ||
      this.#passed.has(value) ||
      this.#store.uses(value).some(({ node }) => this.#elsewhere(node));
    for (const node of nodes) {
      const { scope, outputs } = this.#store.nodes.get(node)!;
      if (scope !== this.#here.scope) continue;
      for (const value of outputs) {
        if (!value || !leaves(value)) continue;
        let net = this.#plain.get(value);
        if (!net) this.#plain.set(value, (net = this.#net(value, this.#itemOf(node)!, false)));
        net.targets.push(this.#bottomPort(value));
      }
    }
  }
}
