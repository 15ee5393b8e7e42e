/** Steps from box to box, along values and along rows: what the arrow keys do. Pure. */

import type { Store } from "../../model/store.ts";
import { frameOf, hiddenIn } from "../groups/fold.ts";
import { INPUT, idOf, keyOf, kindOf, NODE, OUTPUT, OUTSIDE } from "../groups/group_keys.ts";
import type { Hierarchy } from "../groups/hierarchy.ts";
import { boundInputs, boundOutputs } from "../scene/bodies.ts";
import type { Scene } from "../scene/scene.ts";

export type Direction = "up" | "down" | "left" | "right";

/** The directions of a picture that reads to the right, in one that reads down. */
const TURNED: Record<Direction, Direction> = { left: "up", right: "down", up: "left", down: "right" };

/** A scene whose rows run across, whichever way it reads. */
function turned(scene: Scene): Scene {
  return scene.flow === "right" ? { ...scene, x: scene.y, y: scene.x, w: scene.h, h: scene.w } : scene;
}

/** Everything that a walk needs to know. */
export interface Ground {
  store: Store;
  hierarchy: Hierarchy;
  open: ReadonlySet<number>;
  scene: Scene;
}

/** Index of the box that a key press leads to from a box, or -1. */
export function step(ground: Ground, from: number, direction: Direction): number {
  const way = ground.scene.flow === "right" ? TURNED[direction] : direction;
  if (way === "left" || way === "right") return alongRow(turned(ground.scene), from, way);
  const next = linked(ground, from, way === "up");
  return nearest(ground.scene, from, next);
}

/** The box that shows a node: its own, its reader's, or the folded group around that; -1 in another scope. */
export function boxOfNode({ hierarchy, open, scene }: Omit<Ground, "store">, node: number): number {
  const shown = hierarchy.inlined.get(node) ?? node;
  const hidden = hiddenIn(hierarchy, open, shown);
  return scene.indexOf.get(hidden || keyOf(NODE, shown)) ?? -1;
}

/** The box or frame that shows a group, a repeat, a subgraph; -1 in another scope. */
export function boxOfContainer({ hierarchy, open, scene }: Omit<Ground, "store">, container: number): number {
  return scene.indexOf.get(frameOf(hierarchy, open, container)) ?? -1;
}

/** Boxes that the values of a box lead to (or, upwards, come from). */
function linked(ground: Ground, from: number, upwards: boolean): number[] {
  const { store, hierarchy, scene } = ground;
  const key = scene.boxes[from]!.key,
    kind = kindOf(key),
    id = idOf(key);
  const boxes = new Set<number>();
  const add = (box: number): void => {
    if (box >= 0 && box !== from) boxes.add(box);
  };
  const producers = (value: number): void => {
    const producer = store.producer(value);
    if (producer) ends(ground, producer.node, value, OUTPUT).forEach(add);
    else add(scene.indexOf.get(keyOf(INPUT, value)) ?? scene.indexOf.get(keyOf(OUTSIDE, value)) ?? -1);
  };
  const consumers = (value: number): void => {
    for (const use of store.uses(value)) ends(ground, use.node, value, INPUT).forEach(add);
    add(scene.indexOf.get(keyOf(OUTPUT, value)) ?? -1);
  };
  const inside = scene.boxes[from]!.folds ? hierarchy.nodesInside(key) : [];
  for (const node of kind === NODE ? [id, ...inside] : inside) {
    const record = store.nodes.get(node);
    (upwards ? record?.inputs : record?.outputs)?.forEach(
      (value) => value && (upwards ? producers(value) : consumers(value)),
    );
  }
  if (kind === OUTPUT) (upwards ? [id] : outerValues(ground, id, OUTPUT)).forEach(upwards ? producers : consumers);
  if (kind === INPUT || kind === OUTSIDE)
    (upwards ? outerValues(ground, id, INPUT) : [id]).forEach(upwards ? producers : consumers);
  return [...boxes];
}

/** The boxes where a value enters or leaves a node: of one that is open the inputs or outputs of its subgraphs. */
function ends(ground: Ground, node: number, value: number, kind: typeof INPUT | typeof OUTPUT): number[] {
  const { store, hierarchy, scene } = ground,
    box = boxOfNode(ground, node),
    record = store.nodes.get(node)!;
  const host = box >= 0 && scene.frame[box] ? hierarchy.containers.get(keyOf(NODE, node)) : undefined;
  const inside = (host?.groups ?? []).flatMap((key) => {
    const body = store.scopes.get(idOf(key))!;
    const bound = kind === INPUT ? boundInputs(record, body) : boundOutputs(record, body);
    return bound
      .filter(({ outer }) => outer === value)
      .flatMap(({ inner }) => scene.indexOf.get(keyOf(kind, inner)) ?? []);
  });
  return inside.length ? inside : [box];
}

/** The outer values of an input or output of a subgraph. */
function outerValues({ store, hierarchy }: Ground, value: number, kind: typeof INPUT | typeof OUTPUT): number[] {
  const body = store.scopes.get(store.values.get(value)?.scope ?? 0),
    node = store.nodes.get(body?.owner ?? 0);
  if (!body || !node || !hierarchy.homeOf(body.id)) return [];
  const bound = kind === INPUT ? boundInputs(node, body) : boundOutputs(node, body);
  return bound.filter(({ inner }) => inner === value).map(({ outer }) => outer);
}

function nearest(scene: Scene, from: number, boxes: number[]): number {
  const x = scene.x[from]! + scene.w[from]! / 2,
    y = scene.y[from]! + scene.h[from]! / 2;
  let best = -1,
    least = Infinity;
  for (const i of boxes) {
    const far = Math.abs(scene.x[i]! + scene.w[i]! / 2 - x) + 0.5 * Math.abs(scene.y[i]! + scene.h[i]! / 2 - y);
    if (far < least) [best, least] = [i, far];
  }
  return best;
}

/** The next box to a side whose height range overlaps, frames left out. */
function alongRow(scene: Scene, from: number, direction: "left" | "right"): number {
  const top = scene.y[from]!,
    bottom = top + scene.h[from]!,
    x = scene.x[from]! + scene.w[from]! / 2;
  let best = -1,
    least = Infinity;
  for (let i = 0; i < scene.boxes.length; i++) {
    if (i === from || scene.frame[i] || scene.y[i]! > bottom || scene.y[i]! + scene.h[i]! < top) continue;
    const far = (scene.x[i]! + scene.w[i]! / 2 - x) * (direction === "left" ? -1 : 1);
    if (far > 0 && far < least) [best, least] = [i, far];
  }
  return best;
}
