/** The part of the scene that shows, and how large: screen = (scene - origin) × zoom, in CSS pixels. */

export const MIN_ZOOM = 0.004,
  MAX_ZOOM = 3;

/** Share of a side of the view that all of a scene takes at least. */
const FARTHEST = 0.5;

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export class Camera {
  /** Scene coordinates of the left top corner of the view. */
  x = 0;
  y = 0;
  zoom = 1;
  /** Zoom below which nothing more comes into view. */
  least = MIN_ZOOM;
  /** Size of the view in CSS pixels. */
  width = 1;
  height = 1;

  toScreenX(x: number): number {
    return (x - this.x) * this.zoom;
  }

  toScreenY(y: number): number {
    return (y - this.y) * this.zoom;
  }

  toSceneX(x: number): number {
    return this.x + x / this.zoom;
  }

  toSceneY(y: number): number {
    return this.y + y / this.zoom;
  }

  /** The visible part of the scene. */
  get view(): Rect {
    return { x: this.x, y: this.y, width: this.width / this.zoom, height: this.height / this.zoom };
  }

  pan(dx: number, dy: number): void {
    this.x -= dx / this.zoom;
    this.y -= dy / this.zoom;
  }

  /** Zooms by a factor while the scene point under a screen point stays there. */
  zoomAt(factor: number, screenX: number, screenY: number): void {
    const x = this.toSceneX(screenX),
      y = this.toSceneY(screenY);
    const least = Math.min(this.zoom, Math.max(MIN_ZOOM, this.least));
    this.zoom = Math.min(MAX_ZOOM, Math.max(least, this.zoom * factor));
    this.x = x - screenX / this.zoom;
    this.y = y - screenY / this.zoom;
  }

  /** Shows all of a rectangle in the middle, at most at `most` times its size. */
  fit(rect: Rect, margin: number, most = 1.25): void {
    const across = (this.width - 2 * margin) / Math.max(1, rect.width);
    const down = (this.height - 2 * margin) / Math.max(1, rect.height);
    this.zoom = Math.min(most, Math.max(MIN_ZOOM, Math.min(across, down)));
    this.centerOn(rect.x + rect.width / 2, rect.y + rect.height / 2);
  }

  centerOn(x: number, y: number): void {
    this.x = x - this.width / this.zoom / 2;
    this.y = y - this.height / this.zoom / 2;
  }

  /** Keeps some of the scene in view however far it is panned. */
  clampTo(scene: { width: number; height: number }): void {
    this.least = Math.min(1, FARTHEST * Math.min(this.width / scene.width, this.height / scene.height));
    const keep = 80 / this.zoom;
    const view = this.view;
    this.x = Math.min(Math.max(this.x, keep - view.width), scene.width - keep);
    this.y = Math.min(Math.max(this.y, keep - view.height), scene.height - keep);
  }

  equals(other: { x: number; y: number; zoom: number }): boolean {
    return this.x === other.x && this.y === other.y && this.zoom === other.zoom;
  }
}
