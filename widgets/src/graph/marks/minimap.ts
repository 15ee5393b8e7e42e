/**
 * All of the scene in a corner, with a frame around the part in view: press or drag in it to go there.
 *
 * It lies where there is nothing: when a scope is first shown, when the view has another size, and when the camera has
 * come to rest over boxes. While there are boxes in both corners it is small.
 */

import type { Camera } from "../canvas/camera.ts";
import type { Palette } from "../canvas/theme.ts";
import { isTerminal, NODE } from "../groups/group_keys.ts";
import type { Scene } from "../scene/scene.ts";

const WIDEST = 140,
  TALLEST = 210,
  LEAST = 34,
  INSET = 4;
/** Distance of the map from the edges of the view, as in the style sheet, and the margin around it. */
const CORNER = 10,
  AROUND = 6;
/** Milliseconds without a move after which the camera is at rest. */
const REST_MS = 350;
/** Boxes drawn at most: of more, every second one, every third one … */
const DRAWN = 12_000;

export interface MinimapOptions {
  /** The camera was moved. */
  moved(): void;
  /** The colors of the picture. */
  palette(): Palette;
  /** Whether there are boxes in a rectangle of the screen. */
  covers(left: number, top: number, right: number, bottom: number): boolean;
}

/**
 * The place of the scene in the map: both axes have a scale of their own, as flat graphs are hundreds of times taller than
 * wide.
 */
export function placing(
  scene: { width: number; height: number },
  room: { width: number; height: number },
): { width: number; height: number; sx: number; sy: number } {
  const most = { width: Math.min(WIDEST, room.width / 4), height: Math.min(TALLEST, room.height * 0.6) };
  const scale = Math.min(most.width / Math.max(1, scene.width), most.height / Math.max(1, scene.height));
  const width = Math.max(LEAST, Math.min(most.width, scene.width * scale)),
    height = Math.max(LEAST, Math.min(most.height, scene.height * scale));
  return { width, height, sx: width / Math.max(1, scene.width), sy: height / Math.max(1, scene.height) };
}

export class Minimap {
  readonly element: HTMLElement;
  readonly #canvas: HTMLCanvasElement;
  readonly #frame: HTMLElement;
  readonly #camera: Camera;
  readonly #options: MinimapOptions;
  #scene: Scene | null = null;
  #place = { width: 0, height: 0, sx: 1, sy: 1 };
  /** Size of the view that it was drawn for. */
  #room = { width: 0, height: 0 };
  #marks: readonly number[] = [];
  #wanted = true;
  #resting: ReturnType<typeof setTimeout> | undefined;

  constructor(host: HTMLElement, camera: Camera, options: MinimapOptions) {
    const document = host.ownerDocument;
    this.#camera = camera;
    this.#options = options;
    this.element = document.createElement("div");
    this.element.className = "ol-minimap";
    this.element.dataset.testid = "minimap";
    this.element.setAttribute("aria-hidden", "true"); // the outline tells all of this
    this.element.hidden = true;
    this.#canvas = document.createElement("canvas");
    this.#frame = document.createElement("div");
    this.#frame.className = "ol-minimap-view";
    this.element.append(this.#canvas, this.#frame);
    this.#listen();
    host.append(this.element);
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  set wanted(visible: boolean) {
    this.#wanted = visible;
    this.follow();
  }

  themeChanged(): void {
    this.#draw();
  }

  /** Another scene, or other boxes to mark in it. */
  show(scene: Scene, marks: readonly number[]): void {
    if (scene === this.#scene && same(marks, this.#marks)) return;
    const elsewhere = scene.scope !== this.#scene?.scope;
    this.#scene = scene;
    this.#marks = marks;
    this.#draw();
    if (elsewhere) this.#settle();
    this.follow();
  }

  /** Takes the right corner, or the left one where only there is nothing below it. */
  #settle(): void {
    this.element.classList.toggle("ol-minimap-left", this.#covers(false) && !this.#covers(true));
  }

  /** Moves the frame to where the camera is; all in view needs no map. */
  follow(): void {
    const scene = this.#scene,
      { view } = this.#camera;
    const all = !scene || (view.width >= scene.width * 0.98 && view.height >= scene.height * 0.98);
    this.element.hidden = all || !this.#wanted;
    if (!scene || this.element.hidden) return;
    if (this.#camera.width !== this.#room.width || this.#camera.height !== this.#room.height) {
      this.#draw();
      this.#settle();
    }
    const { width, height, sx, sy } = this.#place;
    const left = Math.max(0, view.x * sx),
      top = Math.max(0, view.y * sy);
    const right = Math.min(width, (view.x + view.width) * sx),
      bottom = Math.min(height, (view.y + view.height) * sy);
    this.#frame.style.transform = `translate(${left + INSET}px, ${top + INSET}px)`;
    this.#frame.style.width = `${Math.max(5, right - left)}px`;
    this.#frame.style.height = `${Math.max(5, bottom - top)}px`;
    clearTimeout(this.#resting);
    if (this.#mark()) this.#resting = setTimeout(() => this.#move(), REST_MS);
  }

  /** Makes the map small where it hides boxes; tells whether it does. */
  #mark(): boolean {
    const hides = this.#covers(this.element.classList.contains("ol-minimap-left"));
    this.element.classList.toggle("ol-minimap-over", hides);
    return hides;
  }

  /** Leaves a corner with boxes, unless the map is in use. */
  #move(): void {
    if (this.element.hidden || this.element.matches(":hover, :active")) return;
    this.#settle();
    this.#mark();
  }

  /** Whether it hides boxes in the left or the right corner. */
  #covers(isLeft: boolean): boolean {
    const { width, height } = this.#camera,
      wide = this.#place.width + 2 * INSET + 2 * AROUND,
      high = this.#place.height + 2 * INSET + 2 * AROUND;
    const left = isLeft ? CORNER - AROUND : width - CORNER + AROUND - wide,
      bottom = height - CORNER + AROUND;
    return this.#options.covers(left, bottom - high, left + wide, bottom);
  }

  destroy(): void {
    clearTimeout(this.#resting);
    this.element.remove();
  }

  #draw(): void {
    const scene = this.#scene;
    if (!scene) return;
    const place = (this.#place = placing(
      scene,
      (this.#room = { width: this.#camera.width, height: this.#camera.height }),
    ));
    const ratio = this.element.ownerDocument.defaultView?.devicePixelRatio || 1;
    this.#canvas.width = Math.round(place.width * ratio);
    this.#canvas.height = Math.round(place.height * ratio);
    Object.assign(this.#canvas.style, { width: `${place.width}px`, height: `${place.height}px` });
    const context = this.#canvas.getContext("2d");
    if (!context) return;
    const palette = this.#options.palette();
    context.scale(ratio, ratio);
    this.#boxes(context, scene, palette);
    context.fillStyle = palette.accent;
    for (const i of this.#marks) context.fillRect(scene.x[i]! * place.sx - 1, scene.y[i]! * place.sy - 1, 4, 4);
  }

  #boxes(context: CanvasRenderingContext2D, scene: Scene, palette: Palette): void {
    const { sx, sy } = this.#place;
    const step = Math.ceil(scene.boxes.length / DRAWN);
    const least = 1;
    for (let i = 0; i < scene.boxes.length; i += step) {
      const box = scene.boxes[i]!;
      const w = Math.max(least, scene.w[i]! * sx),
        h = Math.max(least, scene.h[i]! * sy);
      const colors =
        box.kind === NODE ? palette.category(box.category) : isTerminal(box.kind) ? palette.terminal : palette.group;
      context.fillStyle = scene.frame[i] ? palette.frames[scene.depth[i]! % 2 ? 1 : 0] : colors.far;
      context.fillRect(scene.x[i]! * sx, scene.y[i]! * sy, w, h);
    }
  }

  #listen(): void {
    const go = (event: PointerEvent) => {
      const place = this.#canvas.getBoundingClientRect();
      this.#camera.centerOn(
        (event.clientX - place.left) / this.#place.sx,
        (event.clientY - place.top) / this.#place.sy,
      );
      this.#options.moved();
    };
    this.element.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      event.stopPropagation();
      try {
        this.element.setPointerCapture(event.pointerId);
      } catch {
        // A pointer that is gone already cannot be captured; the press itself still counts.
      }
      go(event);
    });
    this.element.addEventListener("pointermove", (event) => {
      event.stopPropagation();
      if (event.buttons & 1) go(event);
    });
    for (const type of ["pointerup", "wheel", "contextmenu", "click"])
      this.element.addEventListener(type, (event) => event.stopPropagation());
  }
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
