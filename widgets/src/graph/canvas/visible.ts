/** The draw list: what of a scene has to be drawn for a camera, found by index. Another backend could draw it too. */

import type { Scene } from "../scene.ts";
import type { Camera } from "./camera.ts";
import { SpatialGrid } from "./spatial.ts";

/** How much of each box is drawn. */
export const FAR = 0, MIDDLE = 1, NEAR = 2;
export type Detail = typeof FAR | typeof MIDDLE | typeof NEAR;

const MIDDLE_ZOOM = 0.26, NEAR_ZOOM = 0.56;

export function detailAt(zoom: number): Detail {
  return zoom >= NEAR_ZOOM ? NEAR : zoom >= MIDDLE_ZOOM ? MIDDLE : FAR;
}

export interface DrawList {
  detail: Detail;
  /** Indices into the scene, rising: frames before what they contain. */
  boxes: number[];
  frames: number[];
  segments: number[];
  labels: number[];
  portals: number[];
}

/** Indices of a scene, for drawing and picking. */
export class SceneIndex {
  readonly scene: Scene;
  readonly #boxes: SpatialGrid;
  readonly #segments: SpatialGrid;
  readonly #labels: SpatialGrid;
  readonly #portals: SpatialGrid;
  #byValue: Map<number, number[]> | null = null;

  constructor(scene: Scene) {
    this.scene = scene;
    const { x, y, w, h, segments, labels, portals, width, height } = scene;
    const grid = (count: number, left: (i: number) => number, top: (i: number) => number, right: (i: number) => number, bottom: (i: number) => number) =>
      new SpatialGrid({ count, left, top, right, bottom }, width, height);
    this.#boxes = grid(x.length, (i) => x[i]!, (i) => y[i]!, (i) => x[i]! + w[i]!, (i) => y[i]! + h[i]!);
    this.#segments = grid(
      scene.segmentValue.length, (i) => Math.min(segments[4 * i]!, segments[4 * i + 2]!), (i) => Math.min(segments[4 * i + 1]!, segments[4 * i + 3]!),
      (i) => Math.max(segments[4 * i]!, segments[4 * i + 2]!), (i) => Math.max(segments[4 * i + 1]!, segments[4 * i + 3]!),
    );
    this.#labels = grid(
      labels.length, (i) => labels[i]!.x, (i) => labels[i]!.y - 8, (i) => labels[i]!.x + 160, (i) => labels[i]!.y + 8,
    );
    this.#portals = grid(
      portals.length, (i) => portals[i]!.x - (scene.flow === "right" ? 100 : 8), (i) => portals[i]!.y - 20, (i) => portals[i]!.x + 160,
      (i) => portals[i]!.y + 20,
    );
  }

  /** What a camera sees. */
  visible(camera: Camera): DrawList {
    const { scene } = this;
    const detail = detailAt(camera.zoom);
    const { x, y, width, height } = camera.view;
    const around = (grid: SpatialGrid): number[] => grid.query(x, y, x + width, y + height);
    const boxes: number[] = [], frames: number[] = [];
    for (const i of around(this.#boxes)) (scene.frame[i] ? frames : boxes).push(i);
    return {
      detail, boxes, frames, segments: around(this.#segments),
      labels: detail === NEAR ? around(this.#labels) : [], portals: detail === FAR ? [] : around(this.#portals),
    };
  }

  boxesNear(x: number, y: number, slack = 0): number[] {
    return this.#boxes.query(x - slack, y - slack, x + slack, y + slack);
  }

  boxesIn(left: number, top: number, right: number, bottom: number): number[] {
    return this.#boxes.query(left, top, right, bottom);
  }

  segmentsNear(x: number, y: number, slack: number): number[] {
    return this.#segments.query(x - slack, y - slack, x + slack, y + slack);
  }

  labelsNear(x: number, y: number): number[] {
    return this.#labels.query(x, y, x, y);
  }

  portalsNear(x: number, y: number): number[] {
    return this.#portals.query(x, y, x, y);
  }

  /** Segments of a value's line. */
  segmentsOf(value: number): number[] {
    if (!this.#byValue) {
      this.#byValue = new Map();
      const { segmentValue } = this.scene;
      for (let i = 0; i < segmentValue.length; i++) {
        const list = this.#byValue.get(segmentValue[i]!);
        if (list) list.push(i);
        else this.#byValue.set(segmentValue[i]!, [i]);
      }
    }
    return this.#byValue.get(value) ?? [];
  }
}
