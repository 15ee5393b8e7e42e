/** The look of a model, for a picture beside it to show the same: open groups, zoom, and places of boxes. */

import type { Look } from "../../view_contract.ts";
import type { Renderer } from "../canvas/renderer.ts";
import type { Explorer } from "./explorer.ts";

/** Pixels kept clear around a picture that shows whole. */
const MARGIN = 24;

export class LinkedLook {
  readonly #explorer: () => Explorer | undefined;
  readonly #renderer: () => Renderer;
  readonly #tell: () => void;
  /** The room that was last laid out for another picture's look. */
  #room = "";
  #last: { scope: number; open: ReadonlySet<number>; x: number; y: number; zoom: number; width: number } | null = null;

  constructor(explorer: () => Explorer | undefined, renderer: () => Renderer, tell: () => void) {
    this.#explorer = explorer;
    this.#renderer = renderer;
    this.#tell = tell;
  }

  /** Tells the other picture of a new look; to be called after each frame. */
  follow(): void {
    const explorer = this.#explorer();
    if (!explorer?.index) return;
    const { x, y, zoom, width } = this.#renderer().camera,
      { scope } = explorer,
      { open } = explorer.viewpoint,
      last = this.#last;
    if (last?.x === x && last.y === y && last.zoom === zoom && last.width === width) {
      if (last.scope === scope && last.open === open) return;
    }
    this.#last = { scope, open, x, y, zoom, width };
    this.#tell();
  }

  /** The look of this picture; null before there is a scene. */
  get look(): Look | null {
    const explorer = this.#explorer();
    if (!explorer?.index) return null;
    const { zoom, view } = this.#renderer().camera,
      { scope } = explorer,
      { open, flow, frameless } = explorer.viewpoint,
      { width, height } = explorer.index.scene;
    const whole = view.x <= 0 && view.y <= 0 && view.x + view.width >= width && view.y + view.height >= height;
    return { scope, open, flow, frameless, zoom, whole, anchors: explorer.anchors() };
  }

  /** Shows what another picture shows; boxes that are not there are left out. */
  show({ scope, open, flow, frameless, zoom, whole, anchors }: Look): void {
    const explorer = this.#explorer();
    if (!explorer?.index) return;
    const place = (): void => {
      const { index, viewpoint } = explorer;
      if (!index) return;
      const { camera } = this.#renderer();
      const { width, height } = index.scene;
      if (whole) camera.fit({ x: 0, y: 0, width, height }, MARGIN, zoom);
      else {
        camera.zoom = zoom;
        viewpoint.keep(camera, index.scene, [...anchors]);
      }
      viewpoint.moved = true;
      this.#renderer().invalidate();
    };
    explorer.openScope(scope);
    const { viewpoint } = explorer,
      { camera } = this.#renderer(),
      room = [camera.width, camera.height, flow, frameless].join(),
      anew = room !== this.#room,
      known = open.size === viewpoint.open.size && [...open].every((key) => viewpoint.open.has(key));
    this.#room = room;
    if (anew) explorer.layOutAs(flow, frameless);
    if (known && !anew && explorer.index.scene.scope === scope) place();
    else explorer.restore(open, place);
  }
}
