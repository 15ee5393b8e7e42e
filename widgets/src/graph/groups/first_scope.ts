/** The scope that a model opens on: the main graph, or the function that the main graph does nothing but call. */

import { calledFunction, mainScope } from "../../model/names.ts";
import type { Store } from "../../model/store.ts";
import { Hierarchy } from "./hierarchy.ts";

/** Functions within functions that are entered. */
const DEEPEST = 16;

/** One card of the whole model says nothing: what stands in it is shown, the outermost that is more than a call. */
export function firstScope(store: Store): number {
  let scope = mainScope(store);
  for (let depth = 0; depth < DEEPEST; depth++) {
    const called = onlyCall(store, scope);
    if (!called) break;
    scope = called;
  }
  return scope;
}

/** The function that a scope calls in its only box; 0 where it has other boxes. */
function onlyCall(store: Store, scope: number): number {
  const calls: number[] = [];
  for (const { id, category, scope: home } of store.nodes.values()) {
    if (home === scope && category === "function") calls.push(id);
    if (calls.length > 1) return 0;
  }
  const [call] = calls;
  if (call === undefined) return 0;
  const { nodes } = new Hierarchy(store, scope);
  return nodes.length === 1 && nodes[0] === call ? calledFunction(store, call) : 0;
}
