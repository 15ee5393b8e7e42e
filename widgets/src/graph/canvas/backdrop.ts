/** Draws what lies under words and marks: frames, lines, and from afar boxes as blocks of color; on any canvas. */

import { isTerminal, NODE } from "../groups/group_keys.ts";
import { ARROW_DOWN, ARROW_NONE } from "../layout/problem.ts";
import type { Box } from "../scene/boxes.ts";
import type { Scene } from "../scene/scene.ts";
import type { Marks } from "./painter.ts";
import type { BoxColors, Palette } from "./theme.ts";
import { type DrawList, FAR } from "./visible.ts";

/** Zoom below which lines are straight, corners square, and what is too small to see is left out. */
const STRAIGHT_ZOOM = 0.12;

/** The marks that change how blocks and lines look. */
export interface Look {
  heat: Marks["heat"];
  /** Opacity of the lines, 0 to 1. */
  strength: number;
}

export function colorsOf(box: Box, palette: Palette): BoxColors {
  if (box.kind === NODE) return palette.category(box.category);
  return isTerminal(box.kind) ? palette.terminal : palette.group;
}

export class Backdrop {
  readonly palette: Palette;

  constructor(palette: Palette) {
    this.palette = palette;
  }

  paint(ctx: CanvasRenderingContext2D, scene: Scene, list: DrawList, zoom: number, look: Look): void {
    this.#frames(ctx, scene, list, zoom);
    this.#edges(ctx, scene, list, zoom, look.strength);
    if (list.detail === FAR) this.#blocks(ctx, scene, list, look.heat);
  }

  frameColor(scene: Scene, i: number): string {
    return this.palette.frames[scene.depth[i]! % 2 ? 1 : 0];
  }

  #frames(ctx: CanvasRenderingContext2D, scene: Scene, list: DrawList, zoom: number): void {
    const palette = this.palette;
    ctx.lineWidth = 1 / Math.min(1, zoom);
    for (const i of list.frames) {
      const box = scene.boxes[i]!;
      ctx.strokeStyle = box.kind === NODE ? palette.category(box.category).border : palette.frameBorder;
      ctx.fillStyle = this.frameColor(scene, i);
      const x = scene.x[i]!,
        y = scene.y[i]!,
        w = scene.w[i]!,
        h = scene.h[i]!;
      if (zoom < STRAIGHT_ZOOM) {
        ctx.fillRect(x, y, w, h);
        ctx.strokeRect(x, y, w, h);
        continue;
      }
      ctx.beginPath();
      ctx.roundRect(x, y, w, h, 10);
      ctx.fill();
      ctx.stroke();
    }
  }

  #edges(ctx: CanvasRenderingContext2D, scene: Scene, list: DrawList, zoom: number, strength: number): void {
    ctx.strokeStyle = this.palette.edge;
    ctx.lineWidth = Math.max(1.15, 0.75 / zoom);
    ctx.globalAlpha = strength * (list.detail === FAR ? 0.7 : 1);
    const { solid, thick, dashed } = traced(scene, list.segments, zoom);
    ctx.stroke(solid);
    if (thick) {
      const thin = ctx.lineWidth;
      ctx.lineWidth = RIBBON * thin;
      ctx.stroke(thick);
      ctx.lineWidth = thin;
    }
    if (dashed) {
      const pixel = 1 / Math.min(1, zoom);
      ctx.setLineDash([5 * pixel, 4 * pixel]);
      ctx.stroke(dashed);
      ctx.setLineDash([]);
    }
    ctx.globalAlpha = strength;
    ctx.fillStyle = this.palette.edge;
    if (list.detail !== FAR) arrows(ctx, scene, list.segments, 1);
    ctx.globalAlpha = 1;
  }

  /** One path per color. */
  #blocks(ctx: CanvasRenderingContext2D, { boxes, x, y, w, h }: Scene, list: DrawList, heat: Marks["heat"]): void {
    const paths = new Map<string, Path2D>();
    for (const i of list.boxes) {
      const color = heat ? heatColor(heat.get(i), this.palette) : colorsOf(boxes[i]!, this.palette).far;
      let path = paths.get(color);
      if (!path) paths.set(color, (path = new Path2D()));
      path.rect(x[i]!, y[i]!, w[i]!, h[i]!);
    }
    for (const [color, path] of paths) {
      ctx.fillStyle = color;
      ctx.fill(path);
    }
  }
}

export function heatColor(mark: { share: number; kind?: number } | undefined, palette: Palette): string {
  if (mark?.kind !== undefined) return palette.kind(mark.kind);
  return palette.heat(mark?.share ?? 0);
}

/** The thickness of a line of several values, in that of one. */
export const RIBBON = 2;

interface Lines {
  solid: Path2D;
  /** Lines of several values. */
  thick: Path2D | null;
  dashed: Path2D | null;
}

/** Segments as paths: curves with ends along the flow, straight where the bend is too small to see. */
export function traced(scene: Scene, segments: Iterable<number>, zoom: number): Lines {
  const points = scene.segments,
    turned = scene.flow === "right",
    straight = zoom < STRAIGHT_ZOOM;
  const solid = new Path2D();
  let thick: Path2D | null = null,
    dashed: Path2D | null = null;
  for (const i of segments) {
    const x1 = points[4 * i]!,
      y1 = points[4 * i + 1]!,
      x2 = points[4 * i + 2]!,
      y2 = points[4 * i + 3]!;
    if (straight && (Math.abs(x2 - x1) + Math.abs(y2 - y1)) * zoom < 0.7) continue;
    const path: Path2D = scene.segmentDashed[i]
      ? (dashed ??= new Path2D())
      : scene.segmentRibbon[i]! < 0
        ? solid
        : (thick ??= new Path2D());
    path.moveTo(x1, y1);
    if (straight || x1 === x2 || y1 === y2) path.lineTo(x2, y2);
    else if (turned) path.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    else path.bezierCurveTo(x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
  }
  return { solid, thick, dashed };
}

/** The heads of lines, in the color that is set. */
export function arrows(ctx: CanvasRenderingContext2D, scene: Scene, segments: readonly number[], size: number): void {
  const points = scene.segments;
  const half = 3.2 * size,
    long = 6 * size,
    turned = scene.flow === "right";
  ctx.beginPath();
  for (const i of segments) {
    const arrow = scene.segmentArrow[i]!;
    if (arrow === ARROW_NONE) continue;
    const down = arrow === ARROW_DOWN;
    const x = points[4 * i + (down ? 2 : 0)]!,
      y = points[4 * i + (down ? 3 : 1)]!;
    const back = down ? -long : long;
    ctx.moveTo(x, y);
    ctx.lineTo(turned ? x + back : x - half, turned ? y - half : y + back);
    ctx.lineTo(turned ? x + back : x + half, turned ? y + half : y + back);
    ctx.closePath();
  }
  ctx.fill();
}
