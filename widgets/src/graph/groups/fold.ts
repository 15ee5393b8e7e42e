/**
 * Open containers: a set of their keys per scope. Pure functions of such sets, and the choice that a first look
 * starts with.
 *
 * An open repeat shows one of its groups for all, without a frame around it (or one of each kind, where several
 * alternate): the first, or that with keyOf(SHOWN) in the set; with keyOf(ALL) in the set it shows all of them.
 */

import type { Store } from "../../model/store.ts";
import { ALL, BODY, GROUP, idOf, keyOf, kindOf, REPEAT, SHOWN } from "./group_keys.ts";
import type { Container, Hierarchy } from "./hierarchy.ts";
import type { Repeat } from "./repeat_words.ts";

/**
 * Boxes that a first look shows at most, where the groups allow it: enough to see the structure, few enough to read
 * it.
 */
export const FIRST_LOOK = 100;
/** And times as many where a small model without names was cut into parts: folded, those say nothing. */
const NAMELESS = 2;

/**
 * Opens groups from the top down while no more than `limit` boxes show. Groups that look alike (of one parent or of
 * alike parents, with the same operators) open together or not at all, small ones first; subgraphs with their node.
 */
export function firstLook(store: Store, hierarchy: Hierarchy, limit = FIRST_LOOK): Set<number> {
  const open = new Set<number>();
  const top = hierarchy.containers.get(0)!;
  let shown = top.nodes.length + top.groups.length;
  let level = new Map([["", [top]]]);
  while (level.size) {
    const next = new Map<string, Container[]>();
    for (const { looks, containers, added } of classesInside(store, hierarchy, level)) {
      const [{ kind, parent }] = containers as [Container];
      if (shown + added > limit * (kind === "cut" && parent === 0 ? NAMELESS : 1)) continue;
      shown += added;
      next.set(looks, openInto(hierarchy, open, containers));
    }
    level = next;
  }
  return open;
}

/** The open containers when some more are opened, and what shows of them. */
export function opened(
  hierarchy: Hierarchy,
  before: ReadonlySet<number>,
  containers: readonly Container[],
): { open: Set<number>; inside: Container[] } {
  const open = new Set(before);
  return { open, inside: openInto(hierarchy, open, containers) };
}

function openInto(hierarchy: Hierarchy, open: Set<number>, containers: readonly Container[]): Container[] {
  for (const { key } of containers) open.add(key);
  const inside = containers.flatMap((container) => partsOf(hierarchy, container));
  for (const { key, kind } of inside) if (kind === "body") open.add(key);
  return inside;
}

/** The parts of an opened container: itself, of a node its bodies, of a repeat its first group or groups. */
function partsOf(hierarchy: Hierarchy, container: Container): Container[] {
  const get = (key: number): Container => hierarchy.containers.get(key)!;
  if (container.kind === "node") return container.groups.map(get);
  if (container.kind !== "repeat") return [container];
  const shown = container.groups.slice(0, container.period);
  return shown.length === 1 ? shown.map(get) : [{ ...container, groups: shown }];
}

export interface Class {
  looks: string;
  containers: Container[];
  /** Boxes that opening the whole class adds. */
  added: number;
}

/** Classes of containers inside the classes of a level, those that add least first. */
export function classesInside(store: Store, hierarchy: Hierarchy, level: Map<string, Container[]>): Class[] {
  const classes = new Map<string, Class>();
  for (const [around, containers] of level) {
    for (const container of containers) {
      for (const key of [...container.groups, ...container.hosts]) {
        const inner = hierarchy.containers.get(key)!,
          parts = partsOf(hierarchy, inner);
        const ops = parts
          .flatMap(({ nodes }) => nodes)
          .map((node) => store.nodes.get(node)!.op)
          .sort()
          .join(" ");
        // the parts that a model without names was cut into are one list: all open or all folded
        const looks =
          inner.kind === "cut" || inner.kind === "stage"
            ? `${around}/${inner.kind}`
            : `${around}/${inner.size} ${inner.groups.length} ${ops}`;
        let same = classes.get(looks);
        if (!same) classes.set(looks, (same = { looks, containers: [], added: 0 }));
        same.containers.push(inner);
        for (const part of parts) same.added += part.nodes.length + part.groups.length + terminalsOf(store, part);
        same.added--;
      }
    }
  }
  return [...classes.values()].sort((a, b) => a.added - b.added);
}

function terminalsOf(store: Store, { kind, scope }: Container): number {
  const body = kind === "body" ? store.scopes.get(scope) : undefined;
  return body ? body.inputs.length + body.outputs.length : 0;
}

/** The repeat around a group, and whether it shows all its groups; null for other groups. */
export function repeatAround(hierarchy: Hierarchy, open: ReadonlySet<number>, group: number): Repeat | null {
  const key = hierarchy.containers.get(keyOf(GROUP, group))?.parent ?? 0;
  if (kindOf(key) !== REPEAT) return null;
  const { groups, period } = hierarchy.containers.get(key)!;
  return { key, groups, period, all: open.has(key) && !shownOf(hierarchy, open, key).length };
}

/** The groups that an open repeat shows for all: one, or one of each kind that alternate; none: it shows all of them. */
export function shownOf(hierarchy: Hierarchy, open: ReadonlySet<number>, repeat: number): readonly number[] {
  const container = hierarchy.containers.get(repeat);
  if (!container || open.has(keyOf(ALL, idOf(repeat)))) return [];
  const { groups, period } = container,
    at = groups.findIndex((group) => open.has(keyOf(SHOWN, idOf(group))));
  const first = Math.max(0, at - (at % period));
  return groups.slice(first, first + period);
}

/** Lets a repeat show the groups around one of them for all, as far open as those that showed before. */
function choose(hierarchy: Hierarchy, now: Set<number>, repeat: number, group: number): void {
  const { groups, period } = hierarchy.containers.get(repeat)!,
    at = groups.indexOf(group),
    first = at - (at % period);
  shownOf(hierarchy, now, repeat).forEach((before, i) => {
    const from = hierarchy.below(before),
      to = hierarchy.below(groups[first + i]!);
    if (from.length === to.length) from.forEach((key, k) => now.has(key) && now.add(to[k]!));
  });
  for (const member of groups) now.delete(keyOf(SHOWN, idOf(member)));
  now.add(keyOf(SHOWN, idOf(groups[first]!)));
}

/** Opens what is around a container. A group of a repeat becomes one of those that show for all. */
export function withAround(hierarchy: Hierarchy, open: ReadonlySet<number>, key: number): Set<number> {
  const now = new Set(open),
    path = hierarchy.around(key);
  path.forEach((ancestor, i) => {
    if (i > 0 && ancestor > 0) now.add(ancestor);
    if (i > 0 && kindOf(ancestor) === REPEAT) choose(hierarchy, now, ancestor, path[i - 1]!);
  });
  return now;
}

/** Opens a container (`all`: and all inside it) and what is around it. */
export function withOpen(hierarchy: Hierarchy, open: ReadonlySet<number>, key: number, all = false): Set<number> {
  const now = withAround(hierarchy, open, key);
  const bodies = (hierarchy.containers.get(key)?.groups ?? []).filter((inner) => kindOf(inner) === BODY);
  for (const inner of all ? hierarchy.below(key) : [key, ...bodies]) {
    now.add(inner);
    if (all && kindOf(inner) === REPEAT) now.add(keyOf(ALL, idOf(inner)));
  }
  return now;
}

/** Folds a container (`all`: and all inside it); the group that a repeat shows for all with its repeat. */
export function withFolded(hierarchy: Hierarchy, open: ReadonlySet<number>, key: number, all = false): Set<number> {
  const now = new Set(open);
  const parent = hierarchy.containers.get(key)?.parent ?? 0;
  for (const inner of all ? hierarchy.below(key) : [key]) now.delete(inner);
  if (isFrameless(hierarchy, open, parent, key)) now.delete(parent);
  return now;
}

/** Lets an open repeat show all its groups, or one for all: that which shows, or the first that is open. */
export function withAll(hierarchy: Hierarchy, open: ReadonlySet<number>, repeat: number, all: boolean): Set<number> {
  const now = new Set(open).add(repeat),
    sign = keyOf(ALL, idOf(repeat)),
    { groups, period } = hierarchy.containers.get(repeat)!;
  if (all) {
    const [shown] = shownOf(hierarchy, open, repeat);
    if (shown && period === 1) now.add(shown);
    return now.add(sign);
  }
  now.delete(sign);
  const chosen = groups.some((group) => open.has(keyOf(SHOWN, idOf(group))));
  const first = groups.find((group) => open.has(group));
  if (!chosen && first) choose(hierarchy, now, repeat, first);
  return now;
}

/** Whether a group is the one that a repeat shows for all: it has no frame but the repeat's. */
function isFrameless(hierarchy: Hierarchy, open: ReadonlySet<number>, repeat: number, group: number): boolean {
  return (
    kindOf(repeat) === REPEAT &&
    hierarchy.containers.get(repeat)!.period === 1 &&
    shownOf(hierarchy, open, repeat)[0] === group
  );
}

/** Key of the outermost container in whose place a node shows, 0 when its own box does. */
export function hiddenIn(hierarchy: Hierarchy, open: ReadonlySet<number>, node: number): number {
  const home = hierarchy.containerOf(node);
  return home === undefined ? 0 : hiding(hierarchy, open, hierarchy.around(home));
}

/** Key of the box or frame that shows a container. */
export function frameOf(hierarchy: Hierarchy, open: ReadonlySet<number>, container: number): number {
  return hiding(hierarchy, open, hierarchy.around(container).slice(1)) || container;
}

/** `path`: containers from the innermost outwards. What a repeat shows for all its groups has no frame but the repeat's. */
function hiding(hierarchy: Hierarchy, open: ReadonlySet<number>, path: readonly number[]): number {
  for (let i = path.length - 1; i >= 0; i--) {
    const key = path[i]!;
    if (key <= 0) continue;
    if (!open.has(key)) return key;
    const shown = kindOf(key) === REPEAT ? shownOf(hierarchy, open, key) : [],
      inner = path[i - 1] ?? 0;
    if (!shown.length) continue;
    if (!shown.includes(inner)) return key;
    if (isFrameless(hierarchy, open, key, inner)) i--;
  }
  return 0;
}
