/**
 * Boxes on their way from where they were to where they are: what moves is seen to move. Only the drawing knows of it.
 */

import type { Scene } from "../scene/scene.ts";

const DURATION_MS = 180;
/** Boxes of a scene that moves at most: with more there is no time to draw it ten times. */
const MOST = 4000;
/** Pixels that a box must move for motion to be shown. */
const LEAST = 2;

/** A scene with its boxes under way, and how far they are, 0 to 1. */
export interface Frame {
  scene: Scene;
  share: number;
}

export class Motion {
  #after: Scene | null = null;
  /** Places of the boxes at the start, in coordinates of the scene after. */
  #x = new Float64Array(0);
  #y = new Float64Array(0);
  #w = new Float64Array(0);
  #h = new Float64Array(0);
  #began = 0;
  readonly #calm: () => boolean;

  /** `calm` tells whether the system asks for reduced motion. */
  constructor(calm: () => boolean) {
    this.#calm = calm;
  }

  /** Begins to move from one scene to another; `shift` takes a point of the one to where it showed, in the other. */
  start(before: Scene, after: Scene, shift: { x: number; y: number; scale: number }, now = performance.now()): void {
    this.#after = null;
    if (after.boxes.length > MOST || before.scope !== after.scope || this.#calm()) return;
    this.#x = after.x.slice();
    this.#y = after.y.slice();
    this.#w = after.w.slice();
    this.#h = after.h.slice();
    let moved = false;
    after.boxes.forEach(({ key }, i) => {
      const was = before.indexOf.get(key);
      if (was === undefined) return;
      this.#x[i] = before.x[was]! * shift.scale + shift.x;
      this.#y[i] = before.y[was]! * shift.scale + shift.y;
      this.#w[i] = before.w[was]! * shift.scale;
      this.#h[i] = before.h[was]! * shift.scale;
      moved ||= Math.abs(this.#x[i]! - after.x[i]!) + Math.abs(this.#y[i]! - after.y[i]!) > LEAST;
    });
    if (!moved) return;
    this.#after = after;
    this.#began = now;
  }

  stop(): void {
    this.#after = null;
  }

  /** The scene as it is now on its way; null when it has arrived or is another one. */
  frame(scene: Scene, now = performance.now()): Frame | null {
    if (scene !== this.#after) return null;
    const time = (now - this.#began) / DURATION_MS;
    if (time >= 1) {
      this.#after = null;
      return null;
    }
    const share = 1 - (1 - Math.max(0, time)) ** 3;
    const between = (from: Float64Array, to: Float64Array) => from.map((start, i) => start + (to[i]! - start) * share);
    return {
      share,
      scene: {
        ...scene,
        x: between(this.#x, scene.x),
        y: between(this.#y, scene.y),
        w: between(this.#w, scene.w),
        h: between(this.#h, scene.h),
        titleX: scene.titleX.map((title, i) => title + (this.#x[i]! - scene.x[i]!) * (1 - share)),
      },
    };
  }
}
