/** The draw list: what of a scene has to be drawn for a camera, found by index. Another backend could draw it too. */

import type { Scene } from "../scene/scene.ts";
import type { Rect } from "./camera.ts";
import { SpatialGrid } from "./spatial.ts";

/** The levels of detail of boxes. */
export const FAR = 0,
  MIDDLE = 1,
  NEAR = 2;
export type Detail = typeof FAR | typeof MIDDLE | typeof NEAR;

const MIDDLE_ZOOM = 0.26,
  NEAR_ZOOM = 0.56;

export function detailAt(zoom: number): Detail {
  return zoom >= NEAR_ZOOM ? NEAR : zoom >= MIDDLE_ZOOM ? MIDDLE : FAR;
}

/**
 * Indices into the scene of what a rectangle of it shows, rising: frames before what they contain. Each list is made
 * when it is asked for.
 */
export class DrawList {
  readonly detail: Detail;
  readonly #find: (grid: keyof Grids) => number[];
  readonly #isFrame: Uint8Array;
  #split: { boxes: number[]; frames: number[] } | null = null;
  #segments: number[] | null = null;

  constructor(detail: Detail, isFrame: Uint8Array, find: (grid: keyof Grids) => number[]) {
    this.detail = detail;
    this.#isFrame = isFrame;
    this.#find = find;
  }

  get boxes(): number[] {
    return this.#both.boxes;
  }

  get frames(): number[] {
    return this.#both.frames;
  }

  get segments(): number[] {
    return (this.#segments ??= this.#find("segments"));
  }

  get labels(): number[] {
    return this.detail === NEAR ? this.#find("labels") : [];
  }

  get portals(): number[] {
    return this.detail === FAR ? [] : this.#find("portals");
  }

  get #both(): { boxes: number[]; frames: number[] } {
    if (this.#split) return this.#split;
    const boxes: number[] = [],
      frames: number[] = [];
    for (const i of this.#find("boxes")) (this.#isFrame[i] ? frames : boxes).push(i);
    return (this.#split = { boxes, frames });
  }
}

interface Grids {
  boxes: SpatialGrid;
  segments: SpatialGrid;
  labels: SpatialGrid;
  portals: SpatialGrid;
}

/** Indices of a scene, for drawing and picking. */
export class SceneIndex {
  readonly scene: Scene;
  readonly #grids: Grids;
  #byValue: Map<number, number[]> | null = null;

  constructor(scene: Scene) {
    this.scene = scene;
    const { x, y, w, h, segments, labels, portals, width, height } = scene;
    const grid = (
      count: number,
      left: (i: number) => number,
      top: (i: number) => number,
      right: (i: number) => number,
      bottom: (i: number) => number,
    ) => new SpatialGrid({ count, left, top, right, bottom }, width, height);
    this.#grids = {
      boxes: grid(
        x.length,
        (i) => x[i]!,
        (i) => y[i]!,
        (i) => x[i]! + w[i]!,
        (i) => y[i]! + h[i]!,
      ),
      segments: grid(
        segments.length / 4,
        (i) => Math.min(segments[4 * i]!, segments[4 * i + 2]!),
        (i) => Math.min(segments[4 * i + 1]!, segments[4 * i + 3]!),
        (i) => Math.max(segments[4 * i]!, segments[4 * i + 2]!),
        (i) => Math.max(segments[4 * i + 1]!, segments[4 * i + 3]!),
      ),
      labels: grid(
        labels.length,
        (i) => labels[i]!.x,
        (i) => labels[i]!.y - 8,
        (i) => labels[i]!.x + 160,
        (i) => labels[i]!.y + 8,
      ),
      portals: grid(
        portals.length,
        (i) => portals[i]!.x - (scene.flow === "right" ? 100 : 8),
        (i) => portals[i]!.y - 20,
        (i) => portals[i]!.x + 160,
        (i) => portals[i]!.y + 20,
      ),
    };
  }

  /** The part of a rectangle of the scene that shows at a zoom. */
  visible({ x, y, width, height }: Rect, zoom: number): DrawList {
    return new DrawList(detailAt(zoom), this.scene.frame, (grid) =>
      this.#grids[grid].query(x, y, x + width, y + height),
    );
  }

  /** About how many boxes and lines a rectangle shows, at once. */
  load({ x, y, width, height }: Rect): number {
    const { boxes, segments } = this.#grids;
    return boxes.atMost(x, y, x + width, y + height) + segments.atMost(x, y, x + width, y + height);
  }

  boxesNear(x: number, y: number, slack = 0): number[] {
    return this.#grids.boxes.query(x - slack, y - slack, x + slack, y + slack);
  }

  boxesIn(left: number, top: number, right: number, bottom: number): number[] {
    return this.#grids.boxes.query(left, top, right, bottom);
  }

  segmentsNear(x: number, y: number, slack: number): number[] {
    return this.#grids.segments.query(x - slack, y - slack, x + slack, y + slack);
  }

  labelsNear(x: number, y: number): number[] {
    return this.#grids.labels.query(x, y, x, y);
  }

  portalsNear(x: number, y: number): number[] {
    return this.#grids.portals.query(x, y, x, y);
  }

  /** Segments of a value's line. */
  segmentsOf(value: number): number[] {
    if (!this.#byValue) {
      this.#byValue = new Map();
      const { segmentValue, segmentRibbon, ribbons } = this.scene;
      const add = (value: number, segment: number): void => {
        const list = this.#byValue!.get(value);
        if (list) list.push(segment);
        else this.#byValue!.set(value, [segment]);
      };
      for (let i = 0; i < segmentValue.length; i++) {
        if (segmentRibbon[i]! < 0) add(segmentValue[i]!, i);
        else for (const value of ribbons[segmentRibbon[i]!]!) add(value, i);
      }
    }
    return this.#byValue.get(value) ?? [];
  }
}
