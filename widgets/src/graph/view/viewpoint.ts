/** The look at one scope: its open groups, and rules for the way of the camera. */

import type { Anchor } from "../../view_contract.ts";
import type { Camera } from "../canvas/camera.ts";
import type { SceneIndex } from "../canvas/visible.ts";
import { INPUT } from "../groups/group_keys.ts";
import { fillingBoxes, fitting, READABLE as LEGIBLE } from "../groups/overview.ts";
import type { Flow } from "../scene/flow.ts";
import type { Scene } from "../scene/scene.ts";

/** Zoom below which a first look shows only the beginning of the graph instead of all of it. */
const READABLE = 0.75;
/** Zoom of the same kind for few boxes, whose titles can be read from further away. */
const SMALL = 0.5,
  FEW_BOXES = 60;
/** Zoom that a first look goes to at most: few boxes are shown larger, not lost in an empty canvas. */
const MOST = 2;
/** Zoom of a first look at most where only that fills the canvas. */
const LARGEST = 3;
/** Pixels kept clear around the picture: a notice of 30 has its place at the lower edge. */
export const MARGIN = 32;
/** Pixels kept clear where only with less all of the picture can be read. */
const TIGHT = 12;
/** The same around what is fitted by hand. */
const FITTED_MARGIN = 24;
const MAX_ANCHORS = 40;
/** Milliseconds without a further change of size after which a first look is chosen anew. */
export const RESIZED_MS = 150;

export class Viewpoint {
  open: ReadonlySet<number> = new Set();
  /** The direction where none is wished. */
  flow: Flow = "down";
  /** A group that nearly everything is in has no frame: unless only so all can be read. */
  frameless = true;
  /** Whether the groups of a first look have been opened. */
  looked = false;
  /** Whether a gesture or a command has moved the camera. */
  moved = false;
  #saved: { x: number; y: number; zoom: number } | null = null;
  /** Place of the camera at which all showed last. */
  #fitted = { y: 0, zoom: 0 };

  save({ x, y, zoom }: Camera): void {
    this.#saved = { x, y, zoom };
  }

  /** Forget the place where the scope was left. */
  forget(): void {
    this.#saved = null;
  }

  /** Goes back to where the scope was left; false when it is new. */
  restore(camera: Camera): boolean {
    if (!this.#saved) return false;
    Object.assign(camera, this.#saved);
    this.#saved = null;
    return true;
  }

  /** Shows all that there is. */
  fit(camera: Camera, { width, height }: Scene): void {
    camera.fit({ x: 0, y: 0, width, height }, FITTED_MARGIN);
    this.moved = true;
    this.#fitted = { y: camera.y, zoom: camera.zoom };
  }

  /** Whether the camera is still where `fit` moved it; a view that changes its width keeps its middle. */
  isFitted(camera: Camera, { width }: Scene): boolean {
    const middle = camera.x + camera.width / camera.zoom / 2;
    return camera.zoom === this.#fitted.zoom && camera.y === this.#fitted.y && Math.abs(middle - width / 2) < 1;
  }

  /** Moves the camera so that the first anchor that is still there stays put. */
  keep(camera: Camera, scene: Scene, anchors: Anchor[]): void {
    const anchor = anchors.find(({ key }) => scene.indexOf.has(key));
    if (!anchor) {
      camera.clampTo(scene);
      return;
    }
    const i = scene.indexOf.get(anchor.key)!;
    camera.x = scene.x[i]! + scene.w[i]! / 2 - anchor.x / camera.zoom;
    // A group folded while its title was out of sight comes back into it.
    const folded = scene.boxes[i]!.folds && !scene.frame[i];
    const y = folded ? Math.min(Math.max(anchor.y, MARGIN), camera.height - MARGIN) : anchor.y;
    camera.y = scene.y[i]! - y / camera.zoom;
    camera.clampTo(scene);
  }

  /** Brings a box into view: by the least move, or centered where it was too small to read. */
  bringIntoView(camera: Camera, scene: Scene, box: number, leastZoom: number): void {
    this.moved = true;
    const x = scene.x[box]!,
      y = scene.y[box]!,
      w = scene.w[box]!,
      h = scene.h[box]!;
    const far = isFar(camera, x, y, w, h);
    if (camera.zoom < leastZoom || far) {
      camera.zoom = Math.max(camera.zoom, leastZoom);
      camera.centerOn(
        x + w / 2,
        scene.frame[box] ? y + Math.min(h, camera.height / camera.zoom) / 2 - MARGIN : y + h / 2,
      );
      return;
    }
    const margin = MARGIN / camera.zoom,
      view = camera.view;
    camera.x = clamp(camera.x, x + w + margin - view.width, x - margin);
    camera.y = clamp(camera.y, y + Math.min(h, view.height / 2) + margin - view.height, y - margin);
  }

  /** The box nearest to the middle of the view, frames left out; -1 in an empty scene. */
  middleBox(camera: Camera, scene: Scene): number {
    return nearestBoxes(camera, scene, 1)[0] ?? -1;
  }
}

function clamp(value: number, low: number, high: number): number {
  return low > high ? high : Math.min(Math.max(value, low), high);
}

/** Whether a box is more than one view away. */
function isFar(camera: Camera, x: number, y: number, w: number, h: number): boolean {
  const view = camera.view;
  return (
    x + w < view.x - view.width ||
    x > view.x + 2 * view.width ||
    y + h < view.y - view.height ||
    y > view.y + 2 * view.height
  );
}

/** Whether any of some boxes shows. */
export function isInView(camera: Camera, scene: Scene, boxes: readonly number[]): boolean {
  const { x, y, width, height } = camera.view;
  return boxes.some(
    (i) =>
      scene.x[i]! < x + width &&
      scene.x[i]! + scene.w[i]! > x &&
      scene.y[i]! < y + height &&
      scene.y[i]! + scene.h[i]! > y,
  );
}

/** Height of a frame's title. */
const FRAME_TITLE = 24;

/** Whether there are boxes, or titles of frames, in a rectangle of the screen. */
export function isOccupied(
  camera: Camera,
  index: SceneIndex,
  [left, top, right, bottom]: readonly [number, number, number, number],
): boolean {
  const boxes = index.boxesIn(
    camera.toSceneX(left),
    camera.toSceneY(top),
    camera.toSceneX(right),
    camera.toSceneY(bottom),
  );
  const { frame, y } = index.scene,
    [high, low] = [camera.toSceneY(top), camera.toSceneY(bottom)];
  return boxes.some((i) => !frame[i] || (y[i]! + FRAME_TITLE > high && y[i]! < low));
}

/** The room within the margins; `tight`: where only so all can be read. */
export function roomOf({ width, height }: Camera, tight = false): { width: number; height: number } {
  const margin = tight ? TIGHT : MARGIN;
  return { width: width - 2 * margin, height: height - 2 * margin };
}

/** Whether all of a scene can be read when it fits the view. */
export function isReadable(scene: Scene, camera: Camera): boolean {
  return fitting(scene, roomOf(camera, true)) >= LEGIBLE;
}

/** A first look: all of a small graph, else where its first input begins, large enough to read. */
export function home(camera: Camera, scene: Scene): void {
  const most = Math.min(LARGEST, Math.max(MOST, fillingBoxes(scene, roomOf(camera))));
  const all = { x: 0, y: 0, width: scene.width, height: scene.height };
  camera.fit(all, MARGIN, most);
  if (camera.zoom < LEGIBLE) camera.fit(all, TIGHT, LEGIBLE);
  if (camera.zoom >= (scene.boxes.length > FEW_BOXES ? READABLE : SMALL)) return;
  if (scene.flow === "right") {
    homeAtLeft(camera, scene);
    return;
  }
  const wide = (camera.width - 2 * MARGIN) / Math.max(1, scene.width);
  camera.zoom = Math.min(1, Math.max(READABLE, wide));
  const first = beginning(scene);
  const x = wide >= camera.zoom || first < 0 ? scene.width / 2 : scene.x[first]! + scene.w[first]! / 2;
  camera.centerOn(x, 0);
  const below = first >= 0 && scene.y[first]! + scene.h[first]! > camera.view.height - 2 * MARGIN;
  camera.y = (below ? scene.y[first]! : 0) - MARGIN / camera.zoom;
  // Beside the first of several columns there is nothing to see.
  const margin = MARGIN / camera.zoom,
    { width } = camera.view;
  if (scene.width + 2 * margin > width) camera.x = clamp(camera.x, -margin, scene.width + margin - width);
}

/** Moves the camera to the home of a picture that reads to the right. */
function homeAtLeft(camera: Camera, scene: Scene): void {
  const high = (camera.height - 2 * MARGIN) / Math.max(1, scene.height),
    first = beginning(scene);
  camera.zoom = Math.min(1, Math.max(READABLE, high));
  const y = high >= camera.zoom || first < 0 ? scene.height / 2 : scene.y[first]! + scene.h[first]! / 2;
  camera.centerOn(0, y);
  camera.x =
    (first >= 0 && scene.x[first]! + scene.w[first]! > camera.view.width - 2 * MARGIN ? scene.x[first]! : 0) -
    MARGIN / camera.zoom;
  const margin = MARGIN / camera.zoom,
    { height } = camera.view;
  if (scene.height + 2 * margin > height) camera.y = clamp(camera.y, -margin, scene.height + margin - height);
}

/** The box that reading starts at: the first input of the graph, else the topmost box; -1 in an empty scene. */
function beginning(scene: Scene): number {
  const input = scene.boxes.findIndex((box, i) => scene.depth[i] === 0 && box.kind === INPUT);
  if (input >= 0) return input;
  let top = -1;
  for (let i = 0; i < scene.y.length; i++)
    if (scene.depth[i] === 0 && (top < 0 || scene.y[i]! < scene.y[top]!)) top = i;
  return top;
}

/** Anchors: first the given boxes that are in view, then those around the middle of the view. */
export function anchorsOf(camera: Camera, scene: Scene, first: number[]): Anchor[] {
  const inView = (i: number): boolean => {
    const x = camera.toScreenX(scene.x[i]! + scene.w[i]! / 2),
      y = camera.toScreenY(scene.y[i]!);
    const bottom = camera.toScreenY(scene.y[i]! + scene.h[i]!);
    return x > 0 && x < camera.width && bottom > 0 && y < camera.height;
  };
  const boxes = [...first.filter(inView), ...nearestBoxes(camera, scene, MAX_ANCHORS), ...first];
  return boxes.map((i) => ({
    key: scene.boxes[i]!.key,
    x: camera.toScreenX(scene.x[i]! + scene.w[i]! / 2),
    y: camera.toScreenY(scene.y[i]!),
  }));
}

/** Boxes (not frames) nearest to the middle of the view, nearest first. */
function nearestBoxes(camera: Camera, scene: Scene, count: number): number[] {
  const { x, y, width, height } = camera.view;
  const middleX = x + width / 2,
    middleY = y + height / 2;
  const best: { i: number; far: number }[] = [];
  for (let i = 0; i < scene.x.length; i++) {
    if (scene.frame[i]) continue;
    const far = Math.abs(scene.x[i]! + scene.w[i]! / 2 - middleX) + Math.abs(scene.y[i]! + scene.h[i]! / 2 - middleY);
    if (best.length === count && far >= best[count - 1]!.far) continue;
    let at = best.length;
    while (at > 0 && best[at - 1]!.far > far) at--;
    best.splice(at, 0, { i, far });
    if (best.length > count) best.pop();
  }
  return best.map(({ i }) => i);
}
