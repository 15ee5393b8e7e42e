/** Groups that were entered, opened and zoomed to, and the way back. */

import type { Camera } from "../canvas/camera.ts";
import { boxOfContainer } from "../input/walk.ts";
import type { Explorer } from "./explorer.ts";
import { MARGIN } from "./viewpoint.ts";

interface Left {
  scope: number;
  open: ReadonlySet<number>;
  x: number;
  y: number;
  zoom: number;
}

/** The limits of zoom of an entered box: at most this large; and at least this, its beginning then. */
const MOST = 1.25,
  LEAST = 0.6;
const STEPS = 60;

export class Entering {
  readonly #explorer: Explorer;
  readonly #camera: Camera;
  #left: Left[] = [];

  constructor(explorer: Explorer, camera: Camera) {
    this.#explorer = explorer;
    this.#camera = camera;
  }

  /** Opens what has a key (`all`: and all below it) and zooms to it. */
  enter(key: number, all = false): void {
    const { x, y, zoom } = this.#camera,
      { scope, viewpoint } = this.#explorer;
    this.#left = [...this.#left.slice(1 - STEPS), { scope, open: viewpoint.open, x, y, zoom }];
    this.#explorer.setOpen(key, true, all, () => this.#zoomTo(key));
  }

  #zoomTo(key: number): void {
    const { ground } = this.#explorer,
      at = ground ? boxOfContainer(ground, key) : -1,
      camera = this.#camera;
    if (!ground || at < 0) return;
    const { x, y, w, h } = ground.scene,
      rect = { x: x[at]!, y: y[at]!, width: w[at]!, height: h[at]! };
    camera.fit(rect, MARGIN, MOST);
    if (camera.zoom >= LEAST) return;
    camera.zoom = LEAST;
    camera.centerOn(rect.x + rect.width / 2, rect.y);
    camera.y = rect.y - MARGIN / LEAST;
  }

  /** Goes back to where the last group was entered; false where none was, in this scope. */
  back(): boolean {
    const last = this.#left.pop();
    if (!last || last.scope !== this.#explorer.scope) {
      this.#left = [];
      return false;
    }
    const { x, y, zoom } = last;
    this.#explorer.restore(last.open, () => Object.assign(this.#camera, { x, y, zoom }));
    return true;
  }
}
