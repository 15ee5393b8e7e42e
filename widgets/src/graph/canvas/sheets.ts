/**
 * Bitmaps of the backdrop, for scenes that take longer to draw than a frame lasts.
 *
 * While the camera moves, bitmaps are moved and scaled; once its zoom rests, a sharp one is made for where it is, a few
 * bands in each frame. Marks and words are never in them.
 */

import type { Look } from "./backdrop.ts";
import type { Camera, Rect } from "./camera.ts";
import type { DrawList, SceneIndex } from "./visible.ts";

/** Boxes and lines that are drawn in one frame; a view of fewer needs no bitmap. */
export const FRAME_LOAD = 6000;
/** Height of a band in device pixels. */
const BAND = 48;
/** The part of the view by which a sharp bitmap reaches beyond it at each side, so that panning stays within. */
const BEYOND = 0.25;
/** A bitmap is shown scaled at most so much, down and up; beyond, the one of the whole scene serves as well. */
const LEAST = 0.4,
  MOST = 2.5;
/** Margin around the scene, in scene units, that lines and shadows may reach into. */
const RIM = 20;

export type DrawPart = (context: CanvasRenderingContext2D, list: DrawList, zoom: number) => void;

/** The subject of bitmaps; new ones are made when any of it changes. */
export interface Subject extends Look {
  index: SceneIndex;
  pixelRatio: number;
}

class Sheet {
  readonly rect: Rect;
  readonly zoom: number;
  readonly #scale: number;
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  /** Rows of device pixels that are drawn. */
  #drawn = 0;

  constructor(document: Document, rect: Rect, zoom: number, pixelRatio: number) {
    this.rect = rect;
    this.zoom = zoom;
    this.#scale = zoom * pixelRatio;
    this.#canvas = document.createElement("canvas");
    this.#canvas.width = Math.max(1, Math.ceil(rect.width * this.#scale));
    this.#canvas.height = Math.max(1, Math.ceil(rect.height * this.#scale));
    this.#context = this.#canvas.getContext("2d", { alpha: false })!;
  }

  get done(): boolean {
    return this.#drawn >= this.#canvas.height;
  }

  /** Draws bands until so many boxes and lines are drawn, one band at least. */
  advance(index: SceneIndex, load: number, draw: DrawPart): void {
    const context = this.#context,
      { rect } = this,
      scale = this.#scale,
      { width, height } = this.#canvas;
    for (let left = load; left > 0 && !this.done; ) {
      const rows = Math.min(BAND, height - this.#drawn);
      const list = index.visible(
        { x: rect.x, y: rect.y + (this.#drawn - 2) / scale, width: rect.width, height: (rows + 4) / scale },
        this.zoom,
      );
      context.save();
      context.beginPath();
      context.rect(0, this.#drawn, width, rows);
      context.clip();
      context.setTransform(scale, 0, 0, scale, -rect.x * scale, -rect.y * scale);
      draw(context, list, this.zoom);
      context.restore();
      this.#drawn += rows;
      left -= Math.max(1, list.boxes.length + list.segments.length);
    }
  }

  /** Lays the bitmap where the camera sees it: on whole pixels if it need not be scaled. */
  show(context: CanvasRenderingContext2D, camera: Camera, pixelRatio: number): void {
    const scale = camera.zoom * pixelRatio,
      grow = scale / this.#scale;
    const x = (this.rect.x - camera.x) * scale,
      y = (this.rect.y - camera.y) * scale;
    if (grow === 1) context.drawImage(this.#canvas, Math.round(x), Math.round(y));
    else context.drawImage(this.#canvas, x, y, this.#canvas.width * grow, this.#canvas.height * grow);
  }

  sharpFor(zoom: number, seen: Rect): boolean {
    return this.done && this.zoom === zoom && holds(this.rect, seen);
  }
}

export class Sheets {
  readonly #draw: (subject: Subject) => DrawPart;
  #subject: Subject | null = null;
  #whole: Sheet | null = null;
  #sharp: Sheet | null = null;
  #next: Sheet | null = null;
  #zoom = 0;

  constructor(draw: (subject: Subject) => DrawPart) {
    this.#draw = draw;
  }

  /** Whether a view takes so long to draw that a bitmap pays off. */
  static suits(index: SceneIndex, camera: Camera): boolean {
    return index.load(camera.view) > FRAME_LOAD;
  }

  /** Draws the backdrop over a ground that is there; false while a sharper one is on its way. */
  paint(context: CanvasRenderingContext2D, subject: Subject, camera: Camera): boolean {
    if (!this.#subject || !same(this.#subject, subject)) this.#clear(subject);
    const document = context.canvas.ownerDocument,
      bounds = around(subject.index);
    this.#whole ??= this.#made(document, bounds, wholeZoom(bounds, camera));
    const seen = meet(camera.view, bounds);
    const resting = this.#zoom === camera.zoom;
    this.#zoom = camera.zoom;
    if (resting && !this.#exact(camera, seen)) this.#refine(document, camera, bounds);
    const exact = this.#exact(camera, seen);
    context.setTransform(1, 0, 0, 1, 0, 0);
    const near = this.#sharp && camera.zoom / this.#sharp.zoom;
    for (const sheet of exact ? [exact] : [this.#whole, near && near > LEAST && near < MOST ? this.#sharp : null]) {
      sheet?.show(context, camera, subject.pixelRatio);
    }
    return exact !== undefined;
  }

  #clear(subject: Subject): void {
    this.#subject = subject;
    this.#whole = this.#sharp = this.#next = null;
  }

  #exact(camera: Camera, seen: Rect): Sheet | undefined {
    return [this.#sharp, this.#whole].find((sheet) => sheet?.sharpFor(camera.zoom, seen)) ?? undefined;
  }

  #made(document: Document, rect: Rect, zoom: number): Sheet {
    const sheet = new Sheet(document, rect, zoom, this.#subject!.pixelRatio);
    this.#advance(sheet, Infinity);
    return sheet;
  }

  #advance(sheet: Sheet, load: number): void {
    sheet.advance(this.#subject!.index, load, this.#draw(this.#subject!));
  }

  /** Draws the next bands of the bitmap for where the camera is. */
  #refine(document: Document, camera: Camera, bounds: Rect): void {
    const { view } = camera;
    if (this.#next?.zoom !== camera.zoom || !meets(this.#next.rect, view)) {
      const across = BEYOND * view.width,
        along = BEYOND * view.height;
      const grown = {
        x: view.x - across,
        y: view.y - along,
        width: view.width + 2 * across,
        height: view.height + 2 * along,
      };
      this.#next = new Sheet(document, meet(grown, bounds), camera.zoom, this.#subject!.pixelRatio);
    }
    this.#advance(this.#next, FRAME_LOAD);
    if (!this.#next.done) return;
    this.#sharp = this.#next;
    this.#next = null;
  }
}

/** The zoom of the view if all is in it, or else one at which all would be. */
function wholeZoom(bounds: Rect, camera: Camera): number {
  const fits = Math.min(camera.width / bounds.width, camera.height / bounds.height);
  return camera.zoom <= fits && camera.zoom > fits / 2 ? camera.zoom : fits;
}

function around({ scene }: SceneIndex): Rect {
  return { x: -RIM, y: -RIM, width: scene.width + 2 * RIM, height: scene.height + 2 * RIM };
}

function meet(a: Rect, b: Rect): Rect {
  const x = Math.max(a.x, b.x),
    y = Math.max(a.y, b.y);
  return {
    x,
    y,
    width: Math.max(0, Math.min(a.x + a.width, b.x + b.width) - x),
    height: Math.max(0, Math.min(a.y + a.height, b.y + b.height) - y),
  };
}

function meets(a: Rect, b: Rect): boolean {
  const { width, height } = meet(a, b);
  return width > b.width / 2 && height > b.height / 2;
}

function holds(outer: Rect, inner: Rect): boolean {
  const slack = 1e-6 * (outer.width + outer.height);
  return (
    inner.x >= outer.x - slack &&
    inner.y >= outer.y - slack &&
    inner.x + inner.width <= outer.x + outer.width + slack &&
    inner.y + inner.height <= outer.y + outer.height + slack
  );
}

function same(a: Subject, b: Subject): boolean {
  return a.index === b.index && a.pixelRatio === b.pixelRatio && a.strength === b.strength && a.heat === b.heat;
}
