/** Draws boxes at three levels of detail: blocks of color, titles, all their words. */

import { isTerminal, NODE, OUTSIDE, REPEAT } from "../groups/group_keys.ts";
import { type Box, MARGIN, PADDING, TEXT_LINE, TITLE_LINE } from "../scene/boxes.ts";
import { SIGN } from "../scene/pick.ts";
import type { Scene } from "../scene/scene.ts";
import { colorsOf, heatColor } from "./backdrop.ts";
import type { Camera } from "./camera.ts";
import type { Marks, Texts } from "./painter.ts";
import type { TextFitter } from "./text.ts";
import type { BoxColors, Palette } from "./theme.ts";
import { type DrawList, FAR, NEAR } from "./visible.ts";

/** Radius of the corners of boxes. */
export const RADIUS = 6;
/** Width of the strip of color at a box's left. */
const STRIPE = 4;
/**
 * Zoom below which corners are drawn square: nothing is lost to the eye, and hundreds of round ones take longer than a
 * frame.
 */
const ROUND_ZOOM = 0.4;

export class BoxPainter {
  readonly #ctx: CanvasRenderingContext2D;
  readonly #text: TextFitter;
  readonly #palette: Palette;
  readonly #texts: Texts;

  constructor(ctx: CanvasRenderingContext2D, text: TextFitter, palette: Palette, texts: Texts) {
    this.#ctx = ctx;
    this.#text = text;
    this.#palette = palette;
    this.#texts = texts;
  }

  paint(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    if (list.detail === FAR) this.#farMatches(scene, list, marks, camera);
    else for (const i of list.boxes) this.#box(scene, i, list.detail === NEAR, camera, marks);
  }

  /** Boxes from afar are in the backdrop: only what was searched for is made large enough to see. */
  #farMatches({ x, y, w, h }: Scene, list: DrawList, marks: Marks, camera: Camera): void {
    const ctx = this.#ctx;
    if (!marks.matches.size) return;
    const least = 5 / camera.zoom;
    ctx.fillStyle = this.#palette.match;
    for (const i of list.boxes) {
      if (!marks.matches.has(i)) continue;
      const width = Math.max(w[i]!, least),
        height = Math.max(h[i]!, least);
      ctx.fillRect(x[i]! + (w[i]! - width) / 2, y[i]! + (h[i]! - height) / 2, width, height);
    }
  }

  #box(scene: Scene, i: number, near: boolean, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      palette = this.#palette;
    const box = scene.boxes[i]!,
      colors = colorsOf(box, palette);
    const x = scene.x[i]!,
      y = scene.y[i]!,
      w = scene.w[i]!,
      h = scene.h[i]!;
    const terminal = isTerminal(box.kind);
    const radius = terminal ? h / 2 : RADIUS;
    if (box.kind === REPEAT) this.#stack(x + 4, y + 4, w - 8, h, colors);
    if (box.folds) this.#stack(x, y, w, h, colors);
    if (marks.matches.has(i)) this.#halo(x, y, w, h, radius, palette.matchSoft, 5);
    const fill = marks.heat ? heatColor(marks.heat.get(i), palette) : colors.fill;
    ctx.strokeStyle = marks.hover === i ? colors.strong : colors.border;
    ctx.lineWidth = 1;
    if (box.kind === OUTSIDE) ctx.setLineDash([4, 3]);
    if (camera.zoom < ROUND_ZOOM && !terminal) this.#square(x, y, w, h, fill);
    else this.#round(x, y, w, h, radius, fill);
    ctx.setLineDash([]);
    if (box.kind === NODE) {
      ctx.fillStyle = colors.strong;
      if (camera.zoom < ROUND_ZOOM) ctx.fillRect(x, y, STRIPE, h);
      else {
        ctx.beginPath();
        ctx.roundRect(x, y, STRIPE, h, [RADIUS, 0, 0, RADIUS]);
        ctx.fill();
      }
    }
    const ink = marks.heat ? this.#heatInk(colors) : colors;
    if (near) this.#words(box, ink, marks.heat ? palette.text : palette.dim, x, y, w, h);
    else this.#title(box, ink, x, y, w, h, camera.zoom);
  }

  /** On the ground of a number the colors of operators would be hard to read. */
  #heatInk(colors: BoxColors): BoxColors {
    return { ...colors, strong: this.#palette.text };
  }

  #square(x: number, y: number, w: number, h: number, fill: string): void {
    const ctx = this.#ctx;
    for (const color of [this.#palette.box, fill]) {
      ctx.fillStyle = color;
      ctx.fillRect(x, y, w, h);
    }
    ctx.strokeRect(x, y, w, h);
  }

  #round(x: number, y: number, w: number, h: number, radius: number, fill: string): void {
    const ctx = this.#ctx;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
    for (const color of [this.#palette.box, fill]) {
      ctx.fillStyle = color;
      ctx.fill();
    }
    ctx.stroke();
  }

  /** A second edge below a folded group: there is more inside. */
  #stack(x: number, y: number, w: number, h: number, colors: BoxColors): void {
    const ctx = this.#ctx;
    ctx.fillStyle = this.#palette.box;
    ctx.strokeStyle = colors.border;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.roundRect(x + 4, y + 4, w - 8, h, RADIUS);
    ctx.fill();
    ctx.stroke();
  }

  #words(box: Box, colors: BoxColors, dim: string, x: number, y: number, w: number, h: number): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette;
    const terminal = isTerminal(box.kind);
    const left = x + PADDING + (box.kind === NODE ? 2 : 0),
      room = w - (left - x) - PADDING + 4;
    const facts = box.hasFacts ? this.#fitFacts(this.#texts.facts(box), terminal ? w - 22 : room) : "";
    ctx.textBaseline = "middle";
    if (terminal) {
      ctx.textAlign = "center";
      ctx.font = text.css("text");
      ctx.fillStyle = palette.text;
      const middle = facts ? y + h / 2 - 6 : y + h / 2;
      ctx.fillText(text.fit(box.title, "text", w - 22), x + w / 2, middle);
      if (facts) {
        ctx.font = text.css("small");
        ctx.fillStyle = dim;
        ctx.fillText(facts, x + w / 2, y + h / 2 + 7);
      }
      return;
    }
    ctx.textAlign = "left";
    ctx.font = text.css("title");
    ctx.fillStyle = colors.strong;
    const sign = box.folds || box.scope ? SIGN - 6 : 0;
    let line = y + MARGIN + TITLE_LINE / 2;
    ctx.fillText(text.fit(box.title, "title", room - sign), left, line);
    line += TITLE_LINE / 2 + TEXT_LINE / 2;
    if (box.subtitle) {
      ctx.font = text.css("text");
      ctx.fillStyle = dim;
      const times = this.#texts.times(box);
      const subtitle = text.fit(box.subtitle, "text", room - text.measure(times, "text"));
      ctx.fillText(subtitle, left, line);
      ctx.fillStyle = palette.accent;
      if (times) ctx.fillText(times, left + text.measure(subtitle, "text") + 3, line);
      line += TEXT_LINE;
    }
    if (facts) {
      ctx.font = text.css("small");
      ctx.fillStyle = dim;
      ctx.fillText(facts, left, line);
    }
    if (box.share > 0) this.#share(box.share, colors, x, y + h, w);
    if (box.folds) this.foldSign(x + w - SIGN / 2 - 3, y + MARGIN + TITLE_LINE / 2, false);
    if (box.scope) this.#enterSign(x + w - SIGN / 2 - 2, y + MARGIN + TITLE_LINE / 2, colors);
  }

  /** A bar along the lower edge: the share of the model's parameters. */
  #share(share: number, colors: BoxColors, x: number, bottom: number, w: number): void {
    const ctx = this.#ctx,
      room = w - 2 * PADDING;
    ctx.fillStyle = colors.border;
    ctx.fillRect(x + PADDING, bottom - 7, room, 2);
    ctx.fillStyle = colors.strong;
    ctx.fillRect(x + PADDING, bottom - 7, Math.max(1, room * share), 2);
  }

  /** The facts for which there is room, and the number of those left out. */
  #fitFacts(parts: string[], room: number): string {
    const text = this.#text;
    for (let shown = parts.length; shown > 1; shown--) {
      const line = parts.slice(0, shown).join(" · ") + (shown < parts.length ? ` +${parts.length - shown}` : "");
      if (text.measure(line, "small") <= room) return line;
    }
    const more = parts.length > 1 ? ` +${parts.length - 1}` : "";
    return parts.length ? text.fit(parts[0]!, "small", room - text.measure(more, "small"), false) + more : "";
  }

  /** A small frame within a frame: this node calls a function. */
  #enterSign(x: number, y: number, colors: BoxColors): void {
    const ctx = this.#ctx;
    ctx.strokeStyle = colors.strong;
    ctx.fillStyle = colors.strong;
    ctx.lineWidth = 1.2;
    ctx.beginPath();
    ctx.roundRect(x - 6, y - 5, 12, 10, 2.5);
    ctx.stroke();
    ctx.fillRect(x - 3, y - 2, 6, 4);
  }

  /** Draws the title alone, as large as the box and the zoom ask for. */
  #title(box: Box, colors: BoxColors, x: number, y: number, w: number, h: number, zoom: number): void {
    const ctx = this.#ctx,
      text = this.#text;
    const grow = Math.min(10 / (12.5 * zoom), (h - 6) / 15);
    if (12.5 * grow * zoom < 6.5) return;
    const title = text.fit(box.title, "title", (w - 12) / grow, false);
    if (!title) return;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    ctx.font = text.css("title", grow);
    ctx.fillStyle = colors.strong;
    ctx.fillText(title, x + w / 2 + (box.kind === NODE ? 2 : 0), y + h / 2 + 0.5);
  }

  /** A minus (open) or plus (folded) in a small rounded square. */
  foldSign(x: number, y: number, open: boolean): void {
    const ctx = this.#ctx;
    ctx.fillStyle = this.#palette.box;
    ctx.strokeStyle = this.#palette.dim;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.roundRect(x - 6, y - 6, 12, 12, 3);
    ctx.fill();
    ctx.globalAlpha = 0.6;
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.lineWidth = 1.3;
    ctx.beginPath();
    ctx.moveTo(x - 3, y);
    ctx.lineTo(x + 3, y);
    if (!open) {
      ctx.moveTo(x, y - 3);
      ctx.lineTo(x, y + 3);
    }
    ctx.stroke();
  }

  #halo(x: number, y: number, w: number, h: number, radius: number, color: string, width: number): void {
    const ctx = this.#ctx;
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.roundRect(x - width, y - width, w + 2 * width, h + 2 * width, radius + width);
    ctx.fill();
  }
}
