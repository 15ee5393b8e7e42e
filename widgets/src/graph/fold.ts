/** Which groups are open. Pure: a set of container ids per scope, and the choice that a first look starts with. */

import type { Store } from "../store.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";

/** Boxes that a first look shows at most, where the groups allow it: enough to see the structure, few enough to read it. */
export const FIRST_LOOK = 100;

/**
 * Opens groups from the top down while no more than `limit` boxes show. Groups that look alike (of one parent or of alike
 * parents, with the same operators) open together or not at all, small ones first.
 */
export function firstLook(store: Store, hierarchy: Hierarchy, limit = FIRST_LOOK): Set<number> {
  const open = new Set<number>();
  const top = hierarchy.containers.get(0)!;
  let shown = top.nodes.length + top.groups.length;
  let level = new Map([["", [top]]]);
  while (level.size) {
    const next = new Map<string, Container[]>();
    for (const { looks, groups, added } of alike(store, hierarchy, level)) {
      if (shown + added > limit) continue;
      shown += added;
      for (const group of groups) open.add(group.id);
      next.set(looks, groups);
    }
    level = next;
  }
  return open;
}

interface Class {
  looks: string;
  groups: Container[];
  /** Boxes that opening the whole class adds. */
  added: number;
}

/** Classes of groups inside the classes of a level. */
function alike(store: Store, hierarchy: Hierarchy, level: Map<string, Container[]>): Class[] {
  const classes = new Map<string, Class>();
  for (const [around, containers] of level) {
    for (const container of containers) {
      for (const id of container.groups) {
        const group = hierarchy.containers.get(id)!;
        const ops = group.nodes.map((node) => store.nodes.get(node)!.op).sort().join(" ");
        // the parts that a model without names was cut into are one list: all open or all folded
        const looks = group.kind === "cut" ? `${around}/cut` : `${around}/${group.size} ${group.groups.length} ${ops}`;
        let same = classes.get(looks);
        if (!same) classes.set(looks, (same = { looks, groups: [], added: 0 }));
        same.groups.push(group);
        same.added += group.nodes.length + group.groups.length - 1;
      }
    }
  }
  return [...classes.values()].sort((a, b) => a.added - b.added);
}

/** A group and all groups inside it. */
export function below(hierarchy: Hierarchy, group: number): number[] {
  const found = [group];
  for (let i = 0; i < found.length; i++) found.push(...(hierarchy.containers.get(found[i]!)?.groups ?? []));
  return found;
}

/** The outermost folded group around a node, 0 when the node's own box shows. */
export function hiddenIn(hierarchy: Hierarchy, open: ReadonlySet<number>, node: number): number {
  const home = hierarchy.containerOf(node);
  if (home === undefined) return 0;
  let hidden = 0;
  for (const id of hierarchy.around(home)) if (id && !open.has(id)) hidden = id;
  return hidden;
}
