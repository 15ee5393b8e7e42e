/**
 * Ribbons: the values between two boxes as one line. A value stays with those that it shares a box at both ends with;
 * lines between two plain nodes stay apart, as these say what each of them reads.
 *
 * What is one line outside of a group is one port in its frame, so that lines go through frames whole.
 */

import { INPUT, type Kind, kindOf, NODE, OUTSIDE } from "../groups/group_keys.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import type { Content, Net } from "./content.ts";

/** A content inside of another one: in what, and as which of its items. */
export interface Around {
  content: Content;
  item: number;
}

/** Bound of the boxes and ports of a content. */
const MOST = 2 ** 22;

/** A content with its lines in ribbons. O(ends of lines). */
export function inRibbons(content: Content, hierarchy: Hierarchy, around: Around | null): Content {
  const { items } = content;
  const top = around ? ports(content.top, around, true, content.like?.top) : apart(content.top),
    bottom = around ? ports(content.bottom, around, false, content.like?.bottom) : apart(content.bottom);
  const first = items.length,
    second = first + content.top.length;
  const placeOf = (at: number): number => {
    if (at < first) return at;
    return at < second ? first + top.at[at - first]! : first + top.carried.length + bottom.at[at - second]!;
  };
  const isNode = items.map((key) => {
    const kind: Kind = kindOf(key);
    return kind === INPUT || kind === OUTSIDE || (kind === NODE && !hierarchy.containers.has(key));
  });
  const nets = content.nets.map((net) => ({
    ...net,
    values: [...net.values],
    source: placeOf(net.source),
    targets: [...new Set(net.targets.map(placeOf))],
  }));
  return {
    ...content,
    top: top.carried.map((values) => values[0]!),
    bottom: bottom.carried.map((values) => values[0]!),
    carried: { top: top.carried, bottom: bottom.carried },
    portOf: { top: byValue(top.carried), bottom: byValue(bottom.carried) },
    nets: joined(nets, (box) => isNode[box] ?? false, first, top.carried.length),
  };
}

function byValue(carried: readonly (readonly number[])[]): Map<number, number> {
  return new Map(carried.flatMap((values, port) => values.map((value) => [value, port] as const)));
}

interface Ports {
  /** Values of each port that is left. */
  carried: number[][];
  /** New port of each old one. */
  at: number[];
}

function apart(values: readonly number[]): Ports {
  return { carried: values.map((value) => [value]), at: values.map((_, i) => i) };
}

/** Joins the ports of values that are one line outside. */
function ports(
  values: readonly number[],
  { content, item }: Around,
  entering: boolean,
  like: ReadonlyMap<number, number> | undefined,
): Ports {
  const lineOf = new Map<number, number>(),
    members = new Set(values);
  content.nets.forEach((net, line) => {
    if (entering ? !net.targets.includes(item) : net.source !== item) return;
    for (const value of net.values) {
      const carried = members.has(value) ? value : like?.get(value);
      if (carried !== undefined && !lineOf.has(carried)) lineOf.set(carried, line);
    }
  });
  const placeOf = new Map<number, number>(),
    result: Ports = { carried: [], at: [] };
  for (const value of values) {
    const line = lineOf.get(value),
      known = line === undefined ? undefined : placeOf.get(line);
    if (known !== undefined) {
      result.carried[known]!.push(value);
      result.at.push(known);
      continue;
    }
    const place = result.carried.push([value]) - 1;
    if (line !== undefined) placeOf.set(line, place);
    result.at.push(place);
  }
  return result;
}

interface Line extends Net {
  values: number[];
}

/** Joins lines that leave one box (or port) and enter one, unless both are plain nodes. */
function joined(nets: Line[], isNode: (box: number) => boolean, firstPort: number, topPorts: number): Net[] {
  const into = new Map<number, Line>(),
    replaced = new Map<Line, Line>();
  const current = (net: Line): Line => {
    let last = net;
    for (let next = replaced.get(last); next; next = replaced.get(last)) last = next;
    return last;
  };
  for (const net of nets) {
    const isPort = net.source >= firstPort && net.source < firstPort + topPorts;
    const kind = Number(net.capture) + 2 * Number(net.control),
      keys = isPort
        ? [(4 * net.source + kind) * MOST]
        : net.targets
            .filter((target) => !isNode(net.source) || !isNode(target))
            .map((target) => (4 * net.source + kind) * MOST + target);
    for (const key of keys) {
      const other = into.get(key),
        [former, latter] = [current(other ?? net), current(net)];
      if (!other) into.set(key, net);
      else if (former !== latter) {
        takeOver(former, latter);
        replaced.set(latter, former);
      }
    }
  }
  return nets.filter((net) => !replaced.has(net));
}

/** Adds the values and targets of a line to another; no value is in two lines from one box. */
function takeOver(line: Line, other: Line): void {
  for (const value of other.values) line.values.push(value);
  for (const target of other.targets) if (!line.targets.includes(target)) line.targets.push(target);
  line.quiet &&= other.quiet;
}
