/** The values that are weights: stored with the model, or handed to a function as weights by every call. */

import { INITIALIZER, type NodeRecord } from "../kernel/protocol.ts";
import { calledFunction } from "./names.ts";
import type { Store } from "./store.ts";

const NONE: ReadonlySet<number> = new Set();
/** Nodes between a weight and what is stored: transposed, cast, copied. */
const DEEPEST = 32;

const known = new WeakMap<Store, { nodes: object; version: number; handed: ReadonlySet<number> }>();

/** Whether a value is stored, or an input of a function that every call fills with what is made of stored values. */
export function isWeight(store: Store, value: number): boolean {
  return ((store.values.get(value)?.flags ?? 0) & INITIALIZER) > 0 || handed(store).has(value);
}

function handed(store: Store): ReadonlySet<number> {
  let entry = known.get(store);
  if (!entry || entry.version !== store.version || entry.nodes !== store.nodes) {
    entry = { nodes: store.nodes, version: store.version, handed: find(store) };
    known.set(store, entry);
  }
  return entry.handed;
}

function find(store: Store): ReadonlySet<number> {
  const functions = [...store.scopes.values()].filter(({ kind }) => kind === "function");
  if (!functions.length) return NONE;
  const calls = new Map<number, NodeRecord[]>();
  for (const node of store.nodes.values()) {
    const called = node.category === "function" ? calledFunction(store, node.id) : 0;
    if (called) calls.set(called, [...(calls.get(called) ?? []), node]);
  }
  const weights = new Set<number>();
  const isMade = (value: number, depth: number): boolean => {
    if (((store.values.get(value)?.flags ?? 0) & INITIALIZER) > 0 || weights.has(value)) return true;
    const maker = store.nodes.get(store.maker(value)),
      inputs = maker?.inputs.filter((input) => input > 0) ?? [];
    return depth < DEEPEST && inputs.length > 0 && inputs.every((input) => isMade(input, depth + 1));
  };
  // what the main graph hands on is known first, then what the functions that it calls hand on, and so on
  for (let before = -1; before < weights.size; ) {
    before = weights.size;
    for (const { id, inputs } of functions)
      inputs.forEach((formal, slot) => {
        const callers = calls.get(id) ?? [];
        const all = callers.length > 0 && callers.every((call) => isMade(call.inputs[slot] ?? 0, 0));
        if (formal && all) weights.add(formal);
      });
  }
  return weights;
}
