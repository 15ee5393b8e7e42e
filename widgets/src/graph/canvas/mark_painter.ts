/** Draws what marks boxes: matches, selection, focus, badges, and the rectangle being drawn to select. */

import { isTerminal } from "../groups/group_keys.ts";
import type { Scene } from "../scene/scene.ts";
import { RADIUS } from "./box_painter.ts";
import type { Camera, Rect } from "./camera.ts";
import type { Marks } from "./painter.ts";
import type { TextFitter } from "./text.ts";
import type { Palette } from "./theme.ts";
import { type DrawList, FAR, NEAR } from "./visible.ts";

/** The distance by which the number of a box stands out at the right. */
const NUMBER_OUT = 12;

export class MarkPainter {
  readonly #ctx: CanvasRenderingContext2D;
  readonly #text: TextFitter;
  readonly #palette: Palette;

  constructor(ctx: CanvasRenderingContext2D, text: TextFitter, palette: Palette) {
    this.#ctx = ctx;
    this.#text = text;
    this.#palette = palette;
  }

  paint(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    this.#dim(scene, list, marks);
    if (marks.going.size || marks.coming.size) this.#rewrites(scene, list, camera, marks);
    this.#outlines(scene, list, camera, marks);
    if (marks.going.size || marks.coming.size) this.#amounts(scene, list, marks);
    if (list.detail === NEAR) this.#numbers(scene, list, marks);
    this.#badges(scene, list, camera, marks);
    if (marks.bookmarks.size) this.#ribbons(scene, list, camera, marks);
    if (marks.lasso) this.#lasso(marks.lasso, camera);
    for (const port of marks.ports) this.#port(port, camera);
    if (marks.wire) this.#wire(marks.wire, camera);
  }

  #port({ x, y }: { readonly x: number; readonly y: number }, camera: Camera): void {
    const ctx = this.#ctx;
    ctx.beginPath();
    ctx.arc(x, y, 5 / camera.zoom, 0, 2 * Math.PI);
    ctx.fillStyle = this.#palette.ground;
    ctx.fill();
    ctx.lineWidth = 2 / camera.zoom;
    ctx.strokeStyle = this.#palette.accent;
    ctx.stroke();
  }

  /** A veil of the ground's color over what cannot be chosen now. */
  #dim(scene: Scene, list: DrawList, marks: Marks): void {
    if (!marks.dimmed.size && !marks.trail) return;
    const { trail } = marks;
    const ctx = this.#ctx;
    ctx.fillStyle = this.#palette.ground;
    ctx.globalAlpha = 0.68;
    for (const i of list.boxes) {
      if (marks.dimmed.has(i) || (trail && !trail.has(i)))
        ctx.fillRect(scene.x[i]! - 1, scene.y[i]! - 1, scene.w[i]! + 2, scene.h[i]! + 2);
    }
    ctx.globalAlpha = 1;
  }

  /** Draw nodes that would go in red, and nodes that would come in green. */
  #rewrites(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      { error, coming } = this.#palette,
      width = Math.max(2.2, 2 / camera.zoom);
    for (const i of [...list.frames, ...list.boxes]) {
      const gone = marks.going.get(i),
        words = marks.coming.get(i);
      if (!gone && words === undefined) continue;
      const [x, y, w, h] = [scene.x[i]!, scene.y[i]!, scene.w[i]!, scene.h[i]!];
      const isFrame = scene.frame[i]!;
      ctx.beginPath();
      ctx.roundRect(x, y, w, h, this.#radiusOf(scene, i));
      ctx.fillStyle = ctx.strokeStyle = gone ? error : coming;
      ctx.globalAlpha = list.detail === FAR ? 0.7 : 0.13;
      if (!isFrame) ctx.fill();
      ctx.globalAlpha = 1;
      ctx.lineWidth = width;
      ctx.stroke();
    }
  }

  /** Draw the numbers of nodes of a group that would go and come. */
  #amounts(scene: Scene, list: DrawList, marks: Marks): void {
    if (list.detail === FAR) return;
    const { error, coming, onBadge } = this.#palette;
    for (const i of [...list.frames, ...list.boxes]) {
      const gone = marks.going.get(i),
        words = marks.coming.get(i),
        bottom = scene.y[i]! + scene.h[i]!;
      if (gone && scene.boxes[i]!.folds) {
        const amount = `− ${gone}`;
        this.#pill(scene.x[i]! + this.#pillWidth(amount) - 14, bottom, amount, error, onBadge);
      }
      if (words !== undefined) this.#pill(scene.x[i]! + scene.w[i]!, bottom, words, coming, onBadge);
    }
  }

  #pillWidth(words: string): number {
    return Math.max(16, this.#text.measure(words, "small") + 10);
  }

  #wire({ fromX, fromY, x, y }: NonNullable<Marks["wire"]>, camera: Camera): void {
    const ctx = this.#ctx,
      middle = (fromY + y) / 2;
    ctx.strokeStyle = ctx.fillStyle = this.#palette.accent;
    ctx.lineWidth = Math.max(2, 2 / camera.zoom);
    ctx.setLineDash([6 / camera.zoom, 4 / camera.zoom]);
    ctx.beginPath();
    ctx.moveTo(fromX, fromY);
    ctx.bezierCurveTo(fromX, middle, x, middle, x, y);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.arc(x, y, 4 / camera.zoom, 0, 2 * Math.PI);
    ctx.fill();
  }

  #radiusOf(scene: Scene, i: number): number {
    const { kind } = scene.boxes[i]!;
    if (scene.frame[i]) return 10;
    return isTerminal(kind) ? scene.h[i]! / 2 : RADIUS;
  }

  #outlines(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      palette = this.#palette;
    const pixel = 1 / camera.zoom;
    const outline = (i: number, color: string, width: number, away: number): void => {
      ctx.strokeStyle = color;
      ctx.lineWidth = width;
      ctx.beginPath();
      const r = this.#radiusOf(scene, i) + away;
      ctx.roundRect(scene.x[i]! - away, scene.y[i]! - away, scene.w[i]! + 2 * away, scene.h[i]! + 2 * away, r);
      ctx.stroke();
    };
    const shown = (i: number): void => {
      if (marks.matches.has(i)) outline(i, palette.match, Math.max(1.6, 1.5 * pixel), 0);
      if (marks.flash > 0 && marks.changedBoxes.has(i)) {
        ctx.globalAlpha = marks.flash;
        outline(i, palette.changed, Math.max(3, 3 * pixel), Math.max(2.5, 2.5 * pixel));
        ctx.globalAlpha = 1;
      }
      if (marks.badBoxes.has(i)) outline(i, palette.error, Math.max(1.6, 1.5 * pixel), Math.max(1, pixel));
      if (marks.refusing === i) outline(i, palette.error, Math.max(2.2, 2 * pixel), Math.max(2, 2 * pixel));
      if (marks.selected.has(i)) {
        // narrow enough for the words at its lines
        outline(i, palette.accentSoft, Math.max(3, 3 * pixel), Math.max(1.5, 1.5 * pixel));
        outline(i, palette.accent, Math.max(2, 1.8 * pixel), 0);
      }
      if (marks.focus === i && !(marks.selected.size === 1 && marks.selected.has(i))) {
        ctx.setLineDash([4 * pixel, 3 * pixel]);
        outline(i, palette.text, Math.max(1.2, 1.2 * pixel), Math.max(5, 4 * pixel));
        ctx.setLineDash([]);
      }
    };
    const some = marks.matches.size || marks.selected.size || marks.focus >= 0 || marks.refusing >= 0;
    if (!some && !marks.badBoxes.size && !(marks.flash > 0 && marks.changedBoxes.size)) return;
    list.frames.forEach(shown);
    list.boxes.forEach(shown);
    if (list.detail === FAR) return;
    for (const i of [...list.frames, ...list.boxes]) {
      const count = marks.matches.get(i);
      if (!count || !scene.boxes[i]!.folds) continue;
      const heat = list.detail === NEAR ? marks.heat?.get(i) : undefined,
        beside = heat ? this.#numberWidth(heat.text) : 0;
      this.#pill(scene.x[i]! + scene.w[i]! - beside, scene.y[i]!, String(count), palette.match, "#1b1200");
    }
  }

  #numbers(scene: Scene, list: DrawList, { heat }: Marks): void {
    if (!heat) return;
    for (const i of list.boxes) {
      const mark = heat.get(i);
      if (mark) this.#number(mark.text, scene.x[i]! + scene.w[i]!, scene.y[i]!);
    }
  }

  #numberWidth(words: string): number {
    return this.#text.measure(words, "small") + 10;
  }

  /** The number of a box, on its upper edge at the right: above its words, where no line comes in. */
  #number(words: string, right: number, top: number): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette;
    const width = this.#numberWidth(words);
    ctx.fillStyle = palette.text;
    ctx.beginPath();
    ctx.roundRect(right - width + NUMBER_OUT, top - 9, width, 15, 7);
    ctx.fill();
    ctx.fillStyle = palette.ground;
    ctx.font = text.css("small");
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(words, right - width / 2 + NUMBER_OUT, top - 1);
  }

  #pill(right: number, y: number, words: string, fill: string, ink: string): void {
    const ctx = this.#ctx,
      text = this.#text;
    const width = this.#pillWidth(words);
    ctx.fillStyle = fill;
    ctx.beginPath();
    ctx.roundRect(right - width + 7, y - 8, width, 16, 8);
    ctx.fill();
    ctx.fillStyle = ink;
    ctx.font = text.css("small");
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(words, right - width / 2 + 7, y + 0.5);
  }

  #badges(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    if (!marks.badges.size) return;
    const ctx = this.#ctx,
      palette = this.#palette;
    for (const i of [...list.frames, ...list.boxes]) {
      const badge = marks.badges.get(i);
      if (!badge) continue;
      const color = badge.severity === "error" ? palette.error : palette.warning;
      const left = scene.x[i]!,
        y = scene.y[i]!;
      if (list.detail !== NEAR) {
        ctx.fillStyle = color;
        ctx.beginPath();
        ctx.arc(left, y, Math.max(7, 4.5 / camera.zoom), 0, 2 * Math.PI);
        ctx.fill();
        continue;
      }
      ctx.strokeStyle = palette.ground;
      ctx.lineWidth = 3;
      ctx.beginPath();
      ctx.roundRect(left - 8, y - 8, 16, 16, 8);
      ctx.stroke();
      this.#pill(left + 1, y, badge.count > 1 ? String(badge.count) : "!", color, palette.onBadge);
    }
  }

  /** A bookmark's ribbon on the right of a box. */
  #ribbons(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      size = Math.max(1, 0.7 / camera.zoom);
    ctx.fillStyle = this.#palette.accent;
    for (const i of [...list.frames, ...list.boxes]) {
      if (!marks.bookmarks.has(i)) continue;
      const right = scene.x[i]! + scene.w[i]! - 24 * Math.min(1, size),
        top = scene.y[i]! - 3;
      ctx.beginPath();
      ctx.moveTo(right, top);
      ctx.lineTo(right - 9 * size, top);
      ctx.lineTo(right - 9 * size, top + 14 * size);
      ctx.lineTo(right - 4.5 * size, top + 10 * size);
      ctx.lineTo(right, top + 14 * size);
      ctx.fill();
    }
  }

  #lasso(rect: Rect, camera: Camera): void {
    const ctx = this.#ctx,
      palette = this.#palette;
    ctx.fillStyle = palette.accentSoft;
    ctx.strokeStyle = palette.accent;
    ctx.lineWidth = 1 / camera.zoom;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(rect.x, rect.y, rect.width, rect.height);
    ctx.globalAlpha = 1;
    ctx.strokeRect(rect.x, rect.y, rect.width, rect.height);
  }
}
