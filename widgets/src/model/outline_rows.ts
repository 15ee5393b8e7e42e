/** The groups of a scope as rows of a tree, with the nodes of those that are open. Pure. */

import { nodeSubtitle } from "../graph/scene/short_names.ts";
import type { NodeRecord } from "../kernel/protocol.ts";
import { nodeName, shortOp } from "./names.ts";
import type { Store } from "./store.ts";
import { elements } from "./tables.ts";
import { isWeight } from "./weights.ts";

export interface OutlineRow {
  key: string;
  kind: "group" | "node";
  id: number;
  depth: number;
  name: string;
  detail: string;
  /** The whole name. */
  title: string;
  /** Whether it can be opened. */
  more: boolean;
  open: boolean;
  /** The share by the measure, 0 to 1 of the largest beside all. */
  share: number;
  problem: boolean;
}

/** The known facts of all groups of a model. */
export interface OutlineData {
  /** Groups and nodes in file order by parent group; 0 is the top. */
  children: Map<number, { kind: "group" | "node"; id: number }[]>;
  /** Nodes that only make parameters, which the picture draws in what reads them: listed where a filter asks. */
  makers: Set<number>;
  /** Sums by group, and numbers by node. */
  ofGroup: Map<number, number>;
  ofNode: Map<number, number>;
  total: number;
}

/** Sums numbers of nodes (null: elements of their parameters) up to their groups. */
export function outlineData(store: Store, scope: number, numbers: ReadonlyMap<number, number> | null): OutlineData {
  const makers = makersOf(store, scope);
  const data: OutlineData = { children: new Map(), makers, ofGroup: new Map(), ofNode: new Map(), total: 0 };
  const seen = new Set<number>();
  const put = (parent: number, child: { kind: "group" | "node"; id: number }) => {
    const list = data.children.get(parent);
    if (list) list.push(child);
    else data.children.set(parent, [child]);
  };
  const place = (group: number): void => {
    if (!group || seen.has(group)) return;
    seen.add(group);
    const parent = store.groups.get(group)?.parent ?? 0;
    place(parent);
    put(parent, { kind: "group", id: group });
  };
  // What makes weights often stands at the head of a file: a group takes its place by the nodes that the picture draws.
  const nodes = [...store.nodes.values()].filter((node) => node.scope === scope);
  for (const node of [...nodes.filter(({ id }) => !makers.has(id)), ...nodes.filter(({ id }) => makers.has(id))]) {
    place(node.group);
    put(node.group, { kind: "node", id: node.id });
    const number = numbers ? (numbers.get(node.id) ?? 0) : parameters(store, node, makers);
    data.ofNode.set(node.id, number);
    data.total += number;
    for (let group = node.group, turn = 0; group && turn < 100; group = store.groups.get(group)?.parent ?? 0, turn++)
      data.ofGroup.set(group, (data.ofGroup.get(group) ?? 0) + number);
  }
  return data;
}

/** Nodes that read nothing but weights, or what was made of them. */
function makersOf(store: Store, scope: number): Set<number> {
  const makers = new Set<number>(),
    outputs = new Set(store.scopes.get(scope)?.outputs);
  const isStored = (value: number): boolean => isWeight(store, value) || makers.has(store.maker(value));
  for (const node of store.nodes.values()) {
    if (node.scope !== scope || node.outputs.some((value) => outputs.has(value))) continue;
    const inputs = node.inputs.filter((value) => value > 0);
    if (!node.outputs.some((value) => value > 0 && store.uses(value).length > 0)) continue;
    if ((inputs.length > 0 || node.op === "Constant") && inputs.every(isStored)) makers.add(node.id);
  }
  return makers;
}

/** Elements of the weights that a node reads, as stored or as made; those of a node that makes some count where it is read. */
function parameters(store: Store, { id, inputs }: NodeRecord, makers: ReadonlySet<number>): number {
  let sum = 0;
  if (makers.has(id)) return 0;
  for (const input of inputs) {
    const value = input ? store.values.get(input) : undefined;
    if (value && (makers.has(store.maker(input)) || isWeight(store, input))) sum += elements(value.label) || 0;
  }
  return sum;
}

/** The name that the picture writes below the operator: "bn" of "/stem/bn/BatchNormalization" in "stem". */
function nameInGroup(store: Store, id: number): string {
  const { name, op, group } = store.nodes.get(id)!;
  return name ? nodeSubtitle(name, op, store.groups.get(group)?.name) : nodeName(store, id);
}

/** Rows of what is open; with a filter: what fits it, and the groups around. */
export function outlineRows(store: Store, data: OutlineData, open: ReadonlySet<number>, filter: string): OutlineRow[] {
  const wrong = new Set<number>(),
    words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { node } of store.diagnostics)
    for (let group = store.nodes.get(node)?.group ?? 0, turn = 0; node && turn < 100; turn++) {
      if (turn === 0) wrong.add(-node);
      if (!group) break;
      wrong.add(group);
      group = store.groups.get(group)?.parent ?? 0;
    }
  const rows: OutlineRow[] = [];
  const fits = (name: string, detail: string) =>
    words.every((word) => name.toLowerCase().includes(word) || detail.toLowerCase().includes(word));
  const visit = (parent: number, depth: number): boolean => {
    let any = false;
    for (const { kind, id } of data.children.get(parent) ?? []) {
      if (kind === "node") {
        if (!words.length && data.makers.has(id)) continue;
        const detail = shortOp(store.nodes.get(id)?.op ?? ""),
          full = nodeName(store, id);
        if (words.length && !fits(full, detail)) continue;
        const name = words.length ? full : nameInGroup(store, id);
        any = true;
        const share = data.total ? (data.ofNode.get(id) ?? 0) / data.total : 0;
        rows.push({
          key: `n${id}`,
          kind,
          id,
          depth,
          name,
          detail,
          title: full,
          more: false,
          open: false,
          share,
          problem: wrong.has(-id),
        });
        continue;
      }
      const group = store.groups.get(id)!,
        at = rows.length,
        share = data.total ? (data.ofGroup.get(id) ?? 0) / data.total : 0;
      const isOpen = words.length > 0 || open.has(id);
      rows.push({
        key: `g${id}`,
        kind,
        id,
        depth,
        name: group.name,
        detail: group.about ?? "",
        title: group.name,
        more: true,
        open: isOpen,
        share,
        problem: wrong.has(id),
      });
      const inside = isOpen && depth < 100 && visit(id, depth + 1);
      if (words.length && !inside && !fits(group.name, group.about ?? "")) rows.length = at;
      else any = true;
    }
    return any;
  };
  visit(0, 0);
  return rows;
}
