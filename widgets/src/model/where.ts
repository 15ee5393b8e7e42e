/** The place in the model, from the containers around what the picture shows. Pure. */

import type { Around } from "../graph/view/lookout.ts";
import { groupsAround } from "./names.ts";
import type { Store } from "./store.ts";

/**
 * The groups around what shows, outermost first; `hidden`: the title is out of sight.
 *
 * A repeat is drawn under the name of its first group; inside of another of its groups, that group counts.
 */
export function whereIs(store: Store, path: readonly Around[]): { id: number; hidden: boolean }[] {
  const inner = path.findLast(({ isRepeat }) => !isRepeat) ?? path.at(-1);
  if (!inner) return [];
  const chain = groupsAround(store, inner.group).reverse();
  const drawn = new Map<number, boolean>();
  for (const { group, isRepeat, hidden } of path) {
    const parent = store.groups.get(group)?.parent ?? 0;
    const meant =
      !isRepeat || chain.includes(group) ? group : chain.find((id) => store.groups.get(id)?.parent === parent);
    if (meant) drawn.set(meant, hidden);
  }
  return chain.map((id) => ({ id, hidden: drawn.get(id) ?? false }));
}
