/** Draws a draw list on a Canvas 2D. Stateless: what is selected, lit and marked comes in with each frame. */

import { MARGIN, PADDING, TEXT_LINE, TITLE_LINE, type Box } from "../boxes.ts";
import { GROUP, NODE, OUTSIDE } from "../keys.ts";
import { ARROW_DOWN, ARROW_NONE } from "../layout/problem.ts";
import { SIGN } from "../pick.ts";
import { FRAME_HEADER, type Scene } from "../scene.ts";
import type { Camera, Rect } from "./camera.ts";
import type { TextFitter } from "./text.ts";
import type { BoxColors, Palette } from "./theme.ts";
import { FAR, NEAR, type DrawList, type SceneIndex } from "./visible.ts";

export interface Badge {
  severity: "error" | "warning";
  count: number;
}

/** What lies over the plain picture. Indices are of the scene's boxes. */
export interface Marks {
  selected: ReadonlySet<number>;
  /** Box that the keyboard is at, -1: none, or the view has no focus. */
  focus: number;
  hover: number;
  /** Values to light: under the pointer and selected, and those of selected boxes. */
  strongValues: ReadonlySet<number>;
  litValues: ReadonlySet<number>;
  /** Search matches: how many a box is or holds. */
  matches: ReadonlyMap<number, number>;
  badges: ReadonlyMap<number, Badge>;
  /** Values that a run left numbers for; true where NaN or infinities are among them. */
  ran: ReadonlyMap<number, boolean>;
  /** Scene coordinates. */
  lasso: Rect | null;
}

/** Texts that change without the scene changing. */
export interface Texts {
  /** Parts of the line of facts. */
  facts(box: Box): string[];
  label(value: number): string;
  /** Name of what makes a value, for portals. */
  origin(value: number): string;
}

const RADIUS = 6;
/** Sideways strip of colour at a box's left. */
const STRIPE = 4;

export class Painter {
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

  paint(index: SceneIndex, list: DrawList, camera: Camera, marks: Marks, pixelRatio: number): void {
    const ctx = this.#ctx, palette = this.#palette, { scene } = index;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = palette.ground;
    ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    const scale = camera.zoom * pixelRatio;
    ctx.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
    this.#frames(scene, list, camera);
    this.#edges(scene, list, camera);
    this.#litEdges(index, marks, camera);
    if (list.detail === FAR) this.#farBoxes(scene, list, marks, camera);
    else for (const i of list.boxes) this.#box(scene, i, list.detail === NEAR, camera, marks);
    this.#frameTitles(scene, list, camera, marks);
    this.#portals(scene, list, camera, marks);
    this.#labels(scene, list, marks);
    this.#outlines(scene, list, camera, marks);
    this.#badges(scene, list, camera, marks);
    if (marks.lasso) this.#lasso(marks.lasso, camera);
  }

  // ---------------------------------------------------------------------------------------------------------- frames

  #frames(scene: Scene, list: DrawList, camera: Camera): void {
    const ctx = this.#ctx;
    ctx.strokeStyle = this.#palette.frameBorder;
    ctx.lineWidth = 1 / Math.min(1, camera.zoom);
    for (const i of list.frames) {
      ctx.fillStyle = this.#frameColor(scene, i);
      ctx.beginPath();
      ctx.roundRect(scene.x[i]!, scene.y[i]!, scene.w[i]!, scene.h[i]!, 10);
      ctx.fill();
      ctx.stroke();
    }
  }

  #frameColor(scene: Scene, i: number): string {
    return this.#palette.frames[scene.depth[i]! % 2 ? 1 : 0];
  }

  /** Titles keep a readable size while there is room; they lie over lines that pass through the title bar. */
  #frameTitles(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx, text = this.#text, palette = this.#palette;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.frames) {
      const grow = Math.min(Math.max(1, 10 / (12.5 * camera.zoom)), FRAME_HEADER / 15);
      if (12.5 * grow * camera.zoom < 7) continue;
      const x = scene.titleX[i]!, right = scene.x[i]! + scene.w[i]!;
      const title = text.fit(scene.boxes[i]!.title, "title", (right - x - PADDING - SIGN) / grow);
      if (!title) continue;
      const y = scene.y[i]! + FRAME_HEADER / 2 + 1;
      const width = text.measure(title, "title") * grow;
      ctx.fillStyle = this.#frameColor(scene, i);
      ctx.fillRect(x - 3, y - 8 * grow, width + 6, 16 * grow);
      ctx.font = text.css("title", grow);
      ctx.fillStyle = marks.hover === i ? palette.text : palette.dim;
      ctx.fillText(title, x, y);
      if (camera.zoom > 0.4) this.#foldSign(scene.x[i]! + scene.w[i]! - SIGN / 2 - 6, y, true);
    }
  }

  /** A minus (open) or plus (folded) in a small rounded square. */
  #foldSign(x: number, y: number, open: boolean): void {
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

  // ----------------------------------------------------------------------------------------------------------- edges

  #edges(scene: Scene, list: DrawList, camera: Camera): void {
    const ctx = this.#ctx;
    ctx.strokeStyle = this.#palette.edge;
    ctx.lineWidth = Math.max(1.15, 0.75 / camera.zoom);
    ctx.globalAlpha = list.detail === FAR ? 0.7 : 1;
    this.#trace(scene, list.segments, camera.zoom);
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (list.detail === FAR) return;
    ctx.fillStyle = this.#palette.edge;
    this.#arrows(scene, list.segments, 1);
  }

  /** Puts segments into the current path: curves with vertical ends, plain lines where nobody could tell. */
  #trace(scene: Scene, segments: readonly number[], zoom: number): void {
    const ctx = this.#ctx, points = scene.segments;
    const straight = zoom < 0.12;
    ctx.beginPath();
    for (const i of segments) {
      const x1 = points[4 * i]!, y1 = points[4 * i + 1]!, x2 = points[4 * i + 2]!, y2 = points[4 * i + 3]!;
      if (straight && (Math.abs(x2 - x1) + y2 - y1) * zoom < 0.7) continue;
      ctx.moveTo(x1, y1);
      if (straight || x1 === x2) ctx.lineTo(x2, y2);
      else {
        const middle = (y1 + y2) / 2;
        ctx.bezierCurveTo(x1, middle, x2, middle, x2, y2);
      }
    }
  }

  #arrows(scene: Scene, segments: readonly number[], size: number): void {
    const ctx = this.#ctx, points = scene.segments;
    const half = 3.2 * size, long = 6 * size;
    ctx.beginPath();
    for (const i of segments) {
      const arrow = scene.segmentArrow[i]!;
      if (arrow === ARROW_NONE) continue;
      const down = arrow === ARROW_DOWN;
      const x = points[4 * i + (down ? 2 : 0)]!, y = points[4 * i + (down ? 3 : 1)]!;
      const back = down ? y - long : y + long;
      ctx.moveTo(x, y);
      ctx.lineTo(x - half, back);
      ctx.lineTo(x + half, back);
      ctx.closePath();
    }
    ctx.fill();
  }

  #litEdges(index: SceneIndex, marks: Marks, camera: Camera): void {
    const ctx = this.#ctx, palette = this.#palette;
    const draw = (values: ReadonlySet<number>, width: number): void => {
      ctx.strokeStyle = ctx.fillStyle = palette.accent;
      ctx.lineWidth = Math.max(width, width / camera.zoom / 1.2);
      for (const value of values) {
        const segments = index.segmentsOf(value);
        this.#trace(index.scene, segments, camera.zoom);
        ctx.stroke();
        if (camera.zoom > 0.2) this.#arrows(index.scene, segments, 1.25);
      }
    };
    ctx.globalAlpha = 0.75;
    draw(marks.litValues, 1.3);
    ctx.globalAlpha = 1;
    draw(marks.strongValues, 2.2);
  }

  // ----------------------------------------------------------------------------------------------------------- boxes

  #colors(box: Box): BoxColors {
    if (box.kind === NODE) return this.#palette.category(box.category);
    return box.kind === GROUP ? this.#palette.group : this.#palette.terminal;
  }

  /** Plain blocks of colour, one path per colour. */
  #farBoxes(scene: Scene, list: DrawList, marks: Marks, camera: Camera): void {
    const ctx = this.#ctx, { x, y, w, h } = scene;
    const byColor = new Map<string, number[]>();
    for (const i of list.boxes) {
      const color = this.#colors(scene.boxes[i]!).far;
      const same = byColor.get(color);
      if (same) same.push(i);
      else byColor.set(color, [i]);
    }
    for (const [color, boxes] of byColor) {
      ctx.fillStyle = color;
      ctx.beginPath();
      for (const i of boxes) ctx.rect(x[i]!, y[i]!, w[i]!, h[i]!);
      ctx.fill();
    }
    if (!marks.matches.size) return;
    const least = 5 / camera.zoom;
    ctx.fillStyle = this.#palette.match;
    for (const i of list.boxes) {
      if (!marks.matches.has(i)) continue;
      const width = Math.max(w[i]!, least), height = Math.max(h[i]!, least);
      ctx.fillRect(x[i]! + (w[i]! - width) / 2, y[i]! + (h[i]! - height) / 2, width, height);
    }
  }

  #box(scene: Scene, i: number, near: boolean, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx, palette = this.#palette;
    const box = scene.boxes[i]!, colors = this.#colors(box);
    const x = scene.x[i]!, y = scene.y[i]!, w = scene.w[i]!, h = scene.h[i]!;
    const terminal = box.kind !== NODE && box.kind !== GROUP;
    const radius = terminal ? h / 2 : RADIUS;
    if (box.kind === GROUP) this.#stack(x, y, w, h, colors);
    if (marks.matches.has(i)) this.#halo(x, y, w, h, radius, palette.matchSoft, 5);
    ctx.fillStyle = palette.box;
    ctx.strokeStyle = marks.hover === i ? colors.strong : colors.border;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, radius);
    ctx.fill();
    ctx.fillStyle = colors.fill;
    ctx.fill();
    if (box.kind === OUTSIDE) ctx.setLineDash([4, 3]);
    ctx.stroke();
    ctx.setLineDash([]);
    if (box.kind === NODE) {
      ctx.fillStyle = colors.strong;
      ctx.beginPath();
      ctx.roundRect(x, y, STRIPE, h, [RADIUS, 0, 0, RADIUS]);
      ctx.fill();
    }
    if (near) this.#words(box, colors, x, y, w, h);
    else this.#title(box, colors, x, y, w, h, camera.zoom);
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

  #words(box: Box, colors: BoxColors, x: number, y: number, w: number, h: number): void {
    const ctx = this.#ctx, text = this.#text, palette = this.#palette;
    const terminal = box.kind !== NODE && box.kind !== GROUP;
    const left = x + PADDING + (box.kind === NODE ? 2 : 0), room = w - (left - x) - PADDING + 4;
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
        ctx.fillStyle = palette.dim;
        ctx.fillText(facts, x + w / 2, y + h / 2 + 7);
      }
      return;
    }
    ctx.textAlign = "left";
    ctx.font = text.css("title");
    ctx.fillStyle = colors.strong;
    const sign = box.kind === GROUP || box.enter ? SIGN - 6 : 0;
    let line = y + MARGIN + TITLE_LINE / 2;
    ctx.fillText(text.fit(box.title, "title", room - sign), left, line);
    line += TITLE_LINE / 2 + TEXT_LINE / 2;
    if (box.subtitle) {
      ctx.font = text.css("text");
      ctx.fillStyle = palette.dim;
      ctx.fillText(text.fit(box.subtitle, "text", room), left, line);
      line += TEXT_LINE;
    }
    if (facts) {
      ctx.font = text.css("small");
      ctx.fillStyle = palette.dim;
      ctx.fillText(facts, left, line);
    }
    if (box.kind === GROUP) this.#foldSign(x + w - SIGN / 2 - 3, y + MARGIN + TITLE_LINE / 2, false);
    if (box.enter) this.#enterSign(x + w - SIGN / 2 - 2, y + MARGIN + TITLE_LINE / 2, colors);
  }

  /** As many facts as there is room for, and how many are left out. */
  #fitFacts(parts: string[], room: number): string {
    const text = this.#text;
    for (let shown = parts.length; shown > 1; shown--) {
      const line = parts.slice(0, shown).join(" · ") + (shown < parts.length ? ` +${parts.length - shown}` : "");
      if (text.measure(line, "small") <= room) return line;
    }
    const more = parts.length > 1 ? ` +${parts.length - 1}` : "";
    return parts.length ? text.fit(parts[0]!, "small", room - text.measure(more, "small"), false) + more : "";
  }

  /** A small frame within a frame: this node has a graph inside. */
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

  /** Only the title, as large as the box and the zoom ask for. */
  #title(box: Box, colors: BoxColors, x: number, y: number, w: number, h: number, zoom: number): void {
    const ctx = this.#ctx, text = this.#text;
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

  // ----------------------------------------------------------------------------------------------- labels and portals

  #labels(scene: Scene, list: DrawList, marks: Marks): void {
    const ctx = this.#ctx, text = this.#text, palette = this.#palette;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.labels) {
      const { value, x, y, room } = scene.labels[i]!;
      const ran = marks.ran.get(value);
      if (ran !== undefined) {
        ctx.fillStyle = ran ? palette.error : palette.accent;
        ctx.beginPath();
        ctx.arc(x - 6, y, 3, 0, 2 * Math.PI);
        ctx.fill();
      }
      const label = this.#texts.label(value);
      const shown = ran ? `NaN/Inf · ${label}` : label;
      if (!shown || room < 14) continue;
      ctx.font = text.css("small");
      ctx.fillStyle = ran ? palette.error : marks.strongValues.has(value) ? palette.accent : palette.label;
      ctx.fillText(text.fit(shown, "small", room, false), x, y);
    }
  }

  #portals(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx, text = this.#text, palette = this.#palette;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.portals) {
      const portal = scene.portals[i]!;
      const lit = marks.strongValues.has(portal.value) || marks.litValues.has(portal.value);
      const { x, y, room, atSource } = portal;
      ctx.strokeStyle = ctx.fillStyle = lit ? palette.accent : palette.dim;
      ctx.lineWidth = lit ? 1.8 : 1.1;
      const far = atSource ? y + 9 : y - 11;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(x, far);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(x, far, 2.6, 0, 2 * Math.PI);
      ctx.fill();
      if (camera.zoom < 0.56 || room < 20 || atSource) continue;
      ctx.font = text.css("small");
      ctx.fillText(text.fit(this.#texts.origin(portal.value), "small", Math.min(room - 10, 110)), x + 7, far);
    }
  }

  // ------------------------------------------------------------------------------------------------------------ marks

  #radiusOf(scene: Scene, i: number): number {
    const { kind } = scene.boxes[i]!;
    if (scene.frame[i]) return 10;
    return kind === NODE || kind === GROUP ? RADIUS : scene.h[i]! / 2;
  }

  #halo(x: number, y: number, w: number, h: number, radius: number, color: string, width: number): void {
    const ctx = this.#ctx;
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.roundRect(x - width, y - width, w + 2 * width, h + 2 * width, radius + width);
    ctx.fill();
  }

  #outlines(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx, palette = this.#palette;
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
      if (marks.selected.has(i)) {
        outline(i, palette.accentSoft, Math.max(6, 5 * pixel), Math.max(3, 2.5 * pixel));
        outline(i, palette.accent, Math.max(2, 1.8 * pixel), 0);
      }
      if (marks.focus === i && !(marks.selected.size === 1 && marks.selected.has(i))) {
        ctx.setLineDash([4 * pixel, 3 * pixel]);
        outline(i, palette.text, Math.max(1.2, 1.2 * pixel), Math.max(5, 4 * pixel));
        ctx.setLineDash([]);
      }
    };
    list.frames.forEach(shown);
    if (marks.matches.size || marks.selected.size || marks.focus >= 0) list.boxes.forEach(shown);
    if (list.detail === FAR) return;
    for (const i of list.boxes) {
      const count = marks.matches.get(i);
      if (count && scene.boxes[i]!.kind === GROUP) this.#pill(scene.x[i]! + scene.w[i]!, scene.y[i]!, String(count), palette.match, "#1b1200");
    }
  }

  #pill(right: number, y: number, words: string, fill: string, ink: string): void {
    const ctx = this.#ctx, text = this.#text;
    const width = Math.max(16, text.measure(words, "small") + 10);
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
    const ctx = this.#ctx, palette = this.#palette;
    for (const i of [...list.frames, ...list.boxes]) {
      const badge = marks.badges.get(i);
      if (!badge) continue;
      const color = badge.severity === "error" ? palette.error : palette.warning;
      const left = scene.x[i]!, y = scene.y[i]!;
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

  #lasso(rect: Rect, camera: Camera): void {
    const ctx = this.#ctx, palette = this.#palette;
    ctx.fillStyle = palette.accentSoft;
    ctx.strokeStyle = palette.accent;
    ctx.lineWidth = 1 / camera.zoom;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(rect.x, rect.y, rect.width, rect.height);
    ctx.globalAlpha = 1;
    ctx.strokeRect(rect.x, rect.y, rect.width, rect.height);
  }
}

