/** The object at a point of the scene. Pure: from a scene's index, no canvas needed. */

import type { SceneIndex } from "../canvas/visible.ts";
import { REPEAT } from "../groups/group_keys.ts";
import { SIGN_RADIUS } from "../layout/columns.ts";
import { FRAME_HEADER, type Scene } from "./scene.ts";

export type Pick =
  | { what: "box"; index: number; fold: boolean; enter: boolean }
  /** Title bar of what is open; `all`: on the words that let a repeat show all its groups, or one for all. */
  | { what: "frame"; index: number; fold: boolean; all: boolean }
  /** A line, or an end of one that is cut; `ribbon`: an index into the scene's, -1: it is one value. */
  | { what: "value"; value: number; portal: number; ribbon: number }
  /** Nothing; `frame` is the innermost open group around the point, -1 for none. */
  | { what: "ground"; frame: number };

/** Width of the words in a repeat's title bar that let it show all its groups, or one for all. */
export const ALL_WORDS = 62;
/** Width of the fold sign at the right of a group's title, and of the sign of a node that can be entered. */
export const SIGN = 22;

/** The topmost thing at (x, y); lines count within `slack` scene units. */
export function pickAt(index: SceneIndex, x: number, y: number, slack: number): Pick {
  const { scene } = index;
  let frame = -1;
  for (const i of index.boxesNear(x, y).toReversed()) {
    if (scene.frame[i]) {
      if (frame < 0) frame = i;
      continue;
    }
    const right = scene.x[i]! + scene.w[i]!,
      inSign = x > right - SIGN && y < scene.y[i]! + SIGN + 4;
    const box = scene.boxes[i]!;
    return { what: "box", index: i, fold: box.folds && inSign, enter: box.scope > 0 && inSign };
  }
  const portal = portalAt(index, x, y);
  if (portal >= 0) return { what: "value", value: scene.portals[portal]!.value, portal, ribbon: -1 };
  if (frame >= 0 && y < scene.y[frame]! + FRAME_HEADER) {
    const sign = scene.x[frame]! + scene.w[frame]! - SIGN - 4;
    return {
      what: "frame",
      index: frame,
      fold: x > sign,
      all: x <= sign && x > sign - ALL_WORDS && scene.boxes[frame]!.kind === REPEAT,
    };
  }
  for (const i of index.labelsNear(x, y)) {
    const label = scene.labels[i]!;
    if (x < label.x + Math.min(label.room, 80) && Math.abs(y - label.y) < 7)
      return { what: "value", value: label.value, portal: -1, ribbon: label.ribbon };
  }
  let nearest = -1,
    distance = slack;
  for (const i of index.segmentsNear(x, y, slack)) {
    const d = segmentDistance(scene, i, x, y);
    if (d > distance) continue;
    distance = d;
    nearest = i;
  }
  if (nearest < 0) return { what: "ground", frame };
  return { what: "value", value: scene.segmentValue[nearest]!, portal: -1, ribbon: scene.segmentRibbon[nearest]! };
}

function portalAt(index: SceneIndex, x: number, y: number): number {
  for (const i of index.portalsNear(x, y)) {
    const { x: stem, y: end, room, atSource, number } = index.scene.portals[i]!;
    if (number) {
      if (Math.hypot(x - stem, y - end) <= SIGN_RADIUS + 2) return i;
      continue;
    }
    if (index.scene.flow === "right") {
      if (
        Math.abs(y - end) < 8 &&
        (atSource ? x > stem && x < stem + 17 : x < stem && x > stem - 17 - Math.min(room, 90))
      )
        return i;
      continue;
    }
    const near = x > stem - 7 && x < stem + Math.max(8, Math.min(room, 90));
    if (near && (atSource ? y > end && y < end + 17 : y < end && y > end - 17)) return i;
  }
  return -1;
}

/** Steps in which a curve is measured. */
const STEPS = 12;

/** Distance of a point from a segment: a straight line, or the curve that the painter draws. */
export function segmentDistance({ segments, flow }: Scene, i: number, x: number, y: number): number {
  const x1 = segments[4 * i]!,
    y1 = segments[4 * i + 1]!,
    x2 = segments[4 * i + 2]!,
    y2 = segments[4 * i + 3]!;
  if (x1 === x2 || y1 === y2) return lineDistance(x, y, x1, y1, x2, y2);
  return flow === "right" ? curveDistance(y, x, y1, x1, y2, x2) : curveDistance(x, y, x1, y1, x2, y2);
}

/** Distance of a point from a curve that begins and ends in the direction of y. */
function curveDistance(x: number, y: number, x1: number, y1: number, x2: number, y2: number): number {
  const middle = (y1 + y2) / 2;
  let best = Infinity,
    px = x1,
    py = y1;
  for (let s = 1; s <= STEPS; s++) {
    const t = s / STEPS,
      u = 1 - t;
    const bx = (u * u * u + 3 * u * u * t) * x1 + (3 * u * t * t + t * t * t) * x2;
    const by = u * u * u * y1 + (3 * u * u * t + 3 * u * t * t) * middle + t * t * t * y2;
    best = Math.min(best, lineDistance(x, y, px, py, bx, by));
    px = bx;
    py = by;
  }
  return best;
}

function lineDistance(x: number, y: number, x1: number, y1: number, x2: number, y2: number): number {
  const dx = x2 - x1,
    dy = y2 - y1;
  const length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((x - x1) * dx + (y - y1) * dy) / length)) : 0;
  return Math.hypot(x - x1 - t * dx, y - y1 - t * dy);
}
