/** Which groups are open. Pure: a set of container ids per scope, and the choice that a first look starts with. */

import type { Container, Hierarchy } from "./hierarchy.ts";

/** Boxes that a first look shows at most, where the groups allow it. */
export const FIRST_LOOK = 300;

/**
 * Opens groups from the top down while no more than `limit` boxes show. Groups that look alike (siblings whose names
 * differ only in digits, of one size) open together or not at all, small ones first.
 */
export function firstLook(hierarchy: Hierarchy, limit = FIRST_LOOK): Set<number> {
  const open = new Set<number>();
  const top = hierarchy.containers.get(0)!;
  let shown = top.nodes.length + top.groups.length;
  let level = [top];
  while (level.length) {
    const next: Container[] = [];
    for (const { groups, added } of alike(hierarchy, level)) {
      if (shown + added > limit) continue;
      shown += added;
      for (const group of groups) {
        open.add(group.id);
        next.push(group);
      }
    }
    level = next;
  }
  return open;
}

/** Classes of groups inside the containers of a level, by how many boxes opening the whole class adds. */
function alike(hierarchy: Hierarchy, level: Container[]): { groups: Container[]; added: number }[] {
  const classes = new Map<string, { groups: Container[]; added: number }>();
  for (const container of level) {
    for (const id of container.groups) {
      const group = hierarchy.containers.get(id)!;
      const items = group.nodes.length + group.groups.length;
      const looks = `${container.name.replace(/\d+/g, "#")}/${group.name.replace(/\d+/g, "#")} ${items}`;
      const same = classes.get(looks) ?? { groups: [], added: 0 };
      same.groups.push(group);
      same.added += items - 1;
      classes.set(looks, same);
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
