/** Marks on boxes (canvas/painter.ts), from selection, search, diagnostics and runs. Pure. */

import { type Diagnostic, fromWire, type Statistics, type WireNumber } from "../../kernel/protocol.ts";
import { type Heat, quantity } from "../../look/node_heat.ts";
import { count } from "../../model/names.ts";
import type { Store } from "../../model/store.ts";
import type { Given } from "../../view_contract.ts";
import type { Badge, Mark } from "../canvas/painter.ts";
import { GROUP, INPUT, keyOf, NODE, OUTPUT } from "../groups/group_keys.ts";
import { boxOfContainer, boxOfNode, type Ground } from "../input/walk.ts";

/** Errors and warnings on the boxes that show their nodes; those of a value are on the node that makes it. */
export function badgesOf(ground: Ground, diagnostics: readonly Diagnostic[]): Map<number, Badge> {
  const badges = new Map<number, Badge>();
  for (const { severity, node, value } of diagnostics) {
    if (severity === "info") continue;
    const at = node || (ground.store.producer(value) ?? ground.store.uses(value)[0])?.node || 0;
    const box = at ? boxOfNode(ground, at) : -1;
    if (box < 0) continue;
    const badge = badges.get(box);
    if (!badge) badges.set(box, { severity, count: 1 });
    else {
      badge.count++;
      if (severity === "error") badge.severity = "error";
    }
  }
  return badges;
}

/** The number of the nodes that each box is or holds. */
export function countsOf(ground: Ground, nodes: Iterable<number>): Map<number, number> {
  const counts = new Map<number, number>();
  for (const node of nodes) {
    const box = boxOfNode(ground, node);
    if (box >= 0) counts.set(box, (counts.get(box) ?? 0) + 1);
  }
  return counts;
}

/**
 * The boxes of nodes that are drawn faintly, with the inputs that nothing else reads and the outputs that they make;
 * without those that hold `lit` nodes too.
 */
export function faintBoxes(ground: Ground, nodes: readonly number[], lit: readonly number[]): Map<number, number> {
  const boxes = countsOf(ground, nodes);
  if (!nodes.length) return boxes;
  const faint = new Set(nodes),
    { scene, store } = ground;
  scene.boxes.forEach(({ kind, id, parameters }, i) => {
    const values = parameters.length ? parameters : [id];
    const isGone = (value: number): boolean =>
      kind === OUTPUT
        ? faint.has(store.maker(value))
        : store.uses(value).length > 0 && store.uses(value).every(({ node }) => faint.has(node));
    if ((kind === OUTPUT || kind === INPUT) && values.every(isGone)) boxes.set(i, 1);
  });
  for (const box of countsOf(ground, lit).keys()) boxes.delete(box);
  return boxes;
}

/** The nodes that come in each box, in words: the operator, or their number; "changed" where no node comes. */
export function comingOf(ground: Ground, coming: Given["coming"]): Map<number, string> {
  const operators = new Map<number, string[]>();
  for (const [node, names] of coming) {
    const box = boxOfNode(ground, node);
    if (box >= 0) operators.set(box, [...(operators.get(box) ?? []), ...names]);
  }
  return new Map(
    [...operators].map(([box, names]) => {
      if (!names.length) return [box, "changed"];
      const kinds = new Set(names),
        [first] = kinds;
      if (kinds.size > 1 && names.length > 3) return [box, `+ ${count(names.length)} nodes`];
      return [
        box,
        kinds.size === 1 && names.length > 1 ? `+ ${count(names.length)} × ${first}` : `+ ${names.join(", ")}`,
      ];
    }),
  );
}

/**
 * The box that is colored for a node, -1: none. What a repeat hides is not added to its frame: what shows stands for it.
 */
function coloredBox(ground: Ground, node: number): number {
  const box = ground.store.nodes.has(node) ? boxOfNode(ground, node) : -1;
  return box >= 0 && ground.scene.frame[box] ? -1 : box;
}

/** Errors that are drawn as nothing, and as strongly as can be, by their power of ten. */
const FAINT = -7,
  STRONG = -0.5;

function powersOfTen(number: number): number {
  return number > 0 ? Math.min(1, Math.max(0, (Math.log10(number) - FAINT) / (STRONG - FAINT))) : 0;
}

/** The number of each box and how strong it is beside the largest, 0 to 1; a group has the sum of its nodes. */
export function heatOfBoxes(ground: Ground, heat: Heat): Map<number, Mark> {
  if (heat.kinds.length) return kindsOfBoxes(ground, heat);
  const sums = new Map<number, number>();
  for (const [node, number] of heat.numbers) {
    const box = coloredBox(ground, node);
    const before = sums.get(box) ?? 0;
    if (box >= 0) sums.set(box, heat.scale === "log" ? Math.max(before, number) : before + number);
  }
  const most = Math.max(0, ...[...sums.values()].filter(Number.isFinite));
  // Times and sizes differ by orders of magnitude: the root keeps the small ones apart from nothing.
  return new Map(
    [...sums].map(([box, sum]) => [
      box,
      {
        share: !Number.isFinite(sum)
          ? 1
          : heat.scale === "log"
            ? powersOfTen(sum)
            : most > 0
              ? Math.sqrt(Math.max(0, sum) / most)
              : 0,
        text: quantity(sum, heat.unit),
      },
    ]),
  );
}

/** Folded groups and inputs and outputs that hold or are one of some values: where no label says so. */
export function boxesOfValues(ground: Ground, values: Iterable<number>): Set<number> {
  const { store, scene } = ground,
    boxes = new Set<number>();
  for (const value of values) {
    const producer = store.producer(value);
    const inside = producer ? boxOfNode(ground, producer.node) : -1;
    if (inside >= 0 && scene.boxes[inside]!.folds && store.producer(value)!.node !== nodeOf(ground, inside))
      boxes.add(inside);
    for (const kind of [INPUT, OUTPUT] as const) {
      const terminal = scene.indexOf.get(keyOf(kind, value));
      if (terminal !== undefined) boxes.add(terminal);
    }
  }
  return boxes;
}

/** The kind of each box; of a group the one that most of its nodes have, and how many are of others. */
function kindsOfBoxes(ground: Ground, heat: Heat): Map<number, Mark> {
  const counts = new Map<number, number[]>();
  for (const [node, kind] of heat.numbers) {
    const box = coloredBox(ground, node);
    if (box < 0) continue;
    const sizes = counts.get(box) ?? [];
    sizes[kind] = (sizes[kind] ?? 0) + 1;
    counts.set(box, sizes);
  }
  return new Map(
    [...counts].map(([box, sizes]) => {
      const most = Math.max(...Array.from(sizes, (size) => size ?? 0)), // Array.map would leave holes
        kind = sizes.indexOf(most);
      const others = sizes.reduce((sum, size) => sum + (size ?? 0), 0) - most;
      return [box, { share: 1, kind, text: (heat.kinds[kind] ?? "") + (others ? ` +${others}` : "") }];
    }),
  );
}

/** Boxes of some nodes, with the inputs and outputs of the graph that they read and make. */
export function trailBoxes(ground: Ground, nodes: ReadonlySet<number>): Set<number> {
  const { store, scene } = ground,
    boxes = new Set(countsOf(ground, nodes).keys());
  for (let i = 0; i < scene.boxes.length; i++) {
    const { kind, id } = scene.boxes[i]!;
    if (kind === INPUT && store.uses(id).some(({ node }) => nodes.has(node))) boxes.add(i);
    if (kind === OUTPUT && nodes.has(store.producer(id)?.node ?? 0)) boxes.add(i);
  }
  return boxes;
}

/** Values that go in and out of the selected nodes. */
export function valuesAround(store: Store, nodes: Iterable<number>): Set<number> {
  const values = new Set<number>();
  for (const id of nodes) {
    const node = store.nodes.get(id);
    for (const value of [...(node?.inputs ?? []), ...(node?.outputs ?? [])]) if (value) values.add(value);
  }
  return values;
}

/** Values with numbers from a run: their range in words; `bad` where some are NaN or infinite. */
export function ranValues(statistics: readonly Statistics[] | null): Map<number, { bad: boolean; text: string }> {
  return new Map(
    (statistics ?? []).map(({ id, nan, inf, min, max }) => {
      const problems = [nan > 0 && `${count(nan)} NaN`, inf > 0 && `${count(inf)} Inf`].filter(Boolean).join(", ");
      const range = min === null || max === null ? "" : min === max ? short(min) : `${short(min)} … ${short(max)}`;
      return [id, { bad: problems !== "", text: problems || range }];
    }),
  );
}

/** A number with three digits. */
function short(number: WireNumber): string {
  const exact = fromWire(number);
  return (
    Math.abs(exact) >= 1e5 ? exact.toExponential(1).replace("e+", "e") : String(Number(exact.toPrecision(3)))
  ).replace("-", "−");
}

/** Boxes that are selected: those of nodes, or the one of a group. */
export function selectedBoxes(ground: Ground, nodes: Iterable<number>, group: number): Set<number> {
  const boxes = new Set(countsOf(ground, nodes).keys());
  const index = group ? boxOfContainer(ground, keyOf(GROUP, group)) : -1;
  if (index >= 0) boxes.add(index);
  return boxes;
}

/** The model's id of a box when it is a node, else 0. */
export function nodeOf({ scene }: Ground, box: number): number {
  const shown = scene.boxes[box];
  return shown?.kind === NODE ? shown.id : 0;
}
