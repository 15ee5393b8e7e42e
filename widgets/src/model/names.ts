/** Names of things of the model on screen. Pure functions of the store. */

import type { Store } from "./store.ts";

/** The operator without its domain: "Conv" of "com.microsoft::Conv". */
export function shortOp(op: string): string {
  const at = op.lastIndexOf("::");
  return at < 0 ? op : op.slice(at + 2);
}

/** The node's name; a nameless one is called after its first output. */
export function nodeLabel(store: Store, id: number): string {
  const node = store.nodes.get(id);
  if (!node) return `node ${id}`;
  if (node.name) return node.name;
  const output = node.outputs.map((value) => store.values.get(value)?.name).find(Boolean);
  return output ? `${shortOp(node.op)} → ${output}` : shortOp(node.op);
}

/** The node's name where the operator stands beside it: a nameless node is "→ output". */
export function nodeName(store: Store, id: number): string {
  const label = nodeLabel(store, id);
  const node = store.nodes.get(id);
  return node && !node.name ? label.slice(shortOp(node.op).length).trim() || "no name" : label;
}

export function valueLabel(store: Store, id: number): string {
  return store.values.get(id)?.name || `value ${id}`;
}

/** The scopes from the main graph down to `scope`, outermost first. */
export function scopePath(store: Store, scope: number): number[] {
  const path: number[] = [];
  for (let id = scope; id && path.length < 64; ) {
    path.unshift(id);
    const record = store.scopes.get(id);
    id = record?.owner ? (store.nodes.get(record.owner)?.scope ?? 0) : 0;
  }
  const main = mainScope(store);
  if (main && path[0] !== main) path.unshift(main);
  return path;
}

export function mainScope(store: Store): number {
  for (const scope of store.scopes.values()) if (scope.kind === "graph") return scope.id;
  return 0;
}

/** The name of a scope in the breadcrumb: the model, "if_3 · then_branch", or a function's name. */
export function scopeLabel(store: Store, id: number, title = ""): string {
  const scope = store.scopes.get(id);
  if (!scope) return `scope ${id}`;
  if (scope.kind === "graph") return title || store.title || scope.name || "main graph";
  if (scope.owner) return `${nodeLabel(store, scope.owner)} · ${scope.attribute || scope.name}`;
  return scope.name || `function ${id}`;
}

/** The scope of the function that a node calls, 0 where it calls none of the model's. */
export function calledFunction(store: Store, id: number): number {
  const node = store.nodes.get(id);
  if (node?.category !== "function") return 0;
  const name = shortOp(node.op);
  for (const scope of store.scopes.values()) if (scope.kind === "function" && scope.name === name) return scope.id;
  return 0;
}

/** Nodes that make what `nodes` take, or that take what they make; without `nodes` themselves. */
export function neighbors(store: Store, nodes: Iterable<number>, direction: "producers" | "consumers"): number[] {
  const from = new Set(nodes);
  const adjacent = new Set<number>();
  for (const id of from) {
    const node = store.nodes.get(id);
    if (!node) continue;
    if (direction === "producers") {
      for (const value of node.inputs) {
        const producer = store.producer(value);
        if (producer) adjacent.add(producer.node);
      }
    } else {
      for (const value of node.outputs) for (const use of store.uses(value)) adjacent.add(use.node);
    }
  }
  return [...adjacent].filter((id) => !from.has(id));
}

/** A group and the groups around it, innermost first. */
export function groupsAround(store: Store, group: number): number[] {
  const path: number[] = [];
  for (let id = group; id && path.length < 100; id = store.groups.get(id)?.parent ?? 0) path.push(id);
  return path;
}

/** The names of a group and of the groups around it. */
export function groupWords(store: Store, group: number): string[] {
  return groupsAround(store, group).map((id) => store.groups.get(id)?.name ?? "");
}

/** A number with thin spaces between thousands: 1 234 567. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

export function plural(number: number, singular: string, many = `${singular}s`): string {
  return `${count(number)} ${number === 1 ? singular : many}`;
}

/** Type and dims of a label such as "float32[n, 3]". */
export function splitLabel(label: string): { dtype: string; dims: string } {
  const [, dtype = "", dims = ""] = /^([\w.]+)(?:\[(.*)\])?$/.exec(label.trim()) ?? [];
  return {
    dtype,
    dims: dims
      .split(",")
      .map((dim) => dim.trim())
      .join(", "),
  };
}
