/** Draws a draw list on a Canvas 2D. Stateless: what is selected, lit and marked comes in with each frame. */

import { NODE } from "../groups/group_keys.ts";
import { SIGN_RADIUS } from "../layout/columns.ts";
import type { Frame } from "../marks/motion.ts";
import { type Box, PADDING } from "../scene/boxes.ts";
import { ALL_WORDS, SIGN } from "../scene/pick.ts";
import { FRAME_HEADER, type Scene } from "../scene/scene.ts";
import { arrows, Backdrop, type Look, RIBBON, traced } from "./backdrop.ts";
import { BoxPainter } from "./box_painter.ts";
import type { Camera, Rect } from "./camera.ts";
import { isMap, paintMapLabels } from "./map_labels.ts";
import { MarkPainter } from "./mark_painter.ts";
import { Sheets } from "./sheets.ts";
import type { TextFitter } from "./text.ts";
import type { Palette } from "./theme.ts";
import { type DrawList, FAR, type SceneIndex } from "./visible.ts";

export interface Badge {
  severity: "error" | "warning";
  count: number;
}

/**
 * The number that a box is colored by: how large beside the largest, in words; `kind` where it is one of a few kinds.
 */
export interface Mark {
  share: number;
  text: string;
  kind?: number;
}

/** Marks over the plain picture. Indices are of the scene's boxes. */
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
  /** Numbers of boxes to color them by; null: they have their own colors. */
  heat: ReadonlyMap<number, Mark> | null;
  /** Bookmarked nodes: how many a box is or holds. */
  bookmarks: ReadonlyMap<number, number>;
  /** The boxes that alone are drawn strongly; null: all are. */
  trail: ReadonlySet<number> | null;
  /** Boxes that are drawn faintly. */
  dimmed: ReadonlyMap<number, number>;
  /** Boxes that a rewrite would take nodes out of, and how many; what would come in a box, in words. */
  going: ReadonlyMap<number, number>;
  coming: ReadonlyMap<number, string>;
  /** The places where values leave the box under the pointer. */
  ports: readonly { readonly x: number; readonly y: number }[];
  /** The wire that is dragged, in scene coordinates. */
  wire: { fromX: number; fromY: number; x: number; y: number } | null;
  /** Values that a run left numbers for, in words; `bad` where NaN or infinities are among them. */
  ran: ReadonlyMap<number, { bad: boolean; text: string }>;
  /** Folded groups, inputs and outputs that hold or are such a value. */
  badBoxes: ReadonlySet<number>;
  /** Values that stay what they are in every run. */
  pinned: ReadonlySet<number>;
  /** A small picture of a value's numbers, null where there is none yet. */
  thumbnail: ((value: number) => CanvasImageSource | null) | null;
  /**
   * Values that the last edit changed, with what they were and are; boxes that hold some of them; how strongly they
   * are marked.
   */
  changed: ReadonlyMap<number, readonly [before: string, now: string]>;
  changedBoxes: ReadonlySet<number>;
  flash: number;
  /** Box of the node that cannot accept the last edit, -1: none. */
  refusing: number;
  /** Rectangle drawn to select, in scene coordinates. */
  lasso: Rect | null;
}

/** Texts that change without the scene changing. */
export interface Texts {
  /** Parts of the line of facts. */
  facts(box: Box): string[];
  label(value: number): string;
  /** The number of equal groups, or of groups in a repeat, "" of anything else. */
  times(box: Box): string;
  /** The effect of a click in the title bar of a repeat, "" for other frames. */
  turns(box: Box): string;
  /** Name of what makes a value, for portals. */
  origin(value: number): string;
}

/** Values of a ribbon that are asked for their shapes. */
const SPOKEN = 24;
/** The zoom from which labels have a picture of their numbers, and its height. */
/** Gap between a shape and the numbers behind it, and the width of these. */
const GAP = 7,
  LEAST_NUMBERS = 40;
const PICTURES_FROM = 1.5,
  PICTURE = 22;

export class Painter {
  readonly #ctx: CanvasRenderingContext2D;
  readonly #text: TextFitter;
  readonly #palette: Palette;
  readonly #texts: Texts;
  readonly #boxes: BoxPainter;
  readonly #marks: MarkPainter;
  readonly #backdrop: Backdrop;
  readonly #sheets: Sheets;

  constructor(ctx: CanvasRenderingContext2D, text: TextFitter, palette: Palette, texts: Texts) {
    this.#ctx = ctx;
    this.#text = text;
    this.#palette = palette;
    this.#texts = texts;
    this.#boxes = new BoxPainter(ctx, text, palette, texts);
    this.#marks = new MarkPainter(ctx, text, palette);
    this.#backdrop = new Backdrop(palette);
    this.#sheets = new Sheets(
      (subject) => (part, list, zoom) => this.#ground(part, subject.index.scene, list, zoom, subject),
    );
  }

  /**
   * `motion`: boxes that are still on their way; lines and words come in as they arrive. False: a sharper picture is
   * to come.
   */
  paint(index: SceneIndex, camera: Camera, marks: Marks, pixelRatio: number, motion: Frame | null = null): boolean {
    const ctx = this.#ctx,
      scene = motion?.scene ?? index.scene,
      list = index.visible(camera.view, camera.zoom);
    const look = { heat: marks.heat, strength: (motion?.share ?? 1) * (marks.trail ? 0.35 : 1) };
    const scale = camera.zoom * pixelRatio;
    const place = (): void => ctx.setTransform(scale, 0, 0, scale, -camera.x * scale, -camera.y * scale);
    let sharp = true;
    if (!motion && list.detail === FAR && Sheets.suits(index, camera)) {
      this.#fill(ctx);
      sharp = this.#sheets.paint(ctx, { index, pixelRatio, ...look }, camera);
      place();
    } else {
      place();
      this.#ground(ctx, scene, list, camera.zoom, look);
    }
    if (!motion) this.#litEdges(index, marks, camera);
    this.#boxes.paint(scene, list, camera, marks);
    this.#frameTitles(scene, list, camera, marks);
    if (!motion) {
      this.#portals(scene, list, camera, marks);
      this.#labels(scene, list, marks, camera.zoom);
    }
    if (!motion && isMap(camera.zoom)) {
      ctx.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
      paintMapLabels(ctx, this.#text, this.#palette, scene, list, camera);
      place();
    }
    this.#marks.paint(scene, list, camera, marks);
    return sharp;
  }

  /** Fills the clipped area with the ground and the backdrop; the transform stays. */
  #ground(ctx: CanvasRenderingContext2D, scene: Scene, list: DrawList, zoom: number, look: Look): void {
    this.#fill(ctx);
    this.#backdrop.paint(ctx, scene, list, zoom, look);
  }

  #fill(ctx: CanvasRenderingContext2D): void {
    const placed = ctx.getTransform();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = this.#palette.ground;
    ctx.fillRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    ctx.setTransform(placed);
  }

  /** Titles keep a readable size while there is room; they lie over lines that pass through the title bar. */
  #frameTitles(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette;
    if (list.detail === FAR || isMap(camera.zoom)) return;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.frames) {
      const grow = Math.min(Math.max(1, 10 / (12.5 * camera.zoom)), FRAME_HEADER / 15);
      if (12.5 * grow * camera.zoom < 7) continue;
      const x = scene.titleX[i]!,
        right = scene.x[i]! + scene.w[i]!;
      const times = this.#texts.times(scene.boxes[i]!),
        turns = camera.zoom > 0.4 ? this.#texts.turns(scene.boxes[i]!) : "";
      const room = right - x - PADDING - SIGN - (turns ? ALL_WORDS : 0);
      const title = text.fit(scene.boxes[i]!.title, "title", room / grow - text.measure(times, "title")) + times;
      if (!title) continue;
      const y = scene.y[i]! + FRAME_HEADER / 2 + 1;
      const width = text.measure(title, "title") * grow;
      ctx.fillStyle = this.#backdrop.frameColor(scene, i);
      ctx.fillRect(x - 3, y - 8 * grow, width + 6, 16 * grow);
      ctx.font = text.css("title", grow);
      const box = scene.boxes[i]!;
      ctx.fillStyle =
        box.kind === NODE ? palette.category(box.category).strong : marks.hover === i ? palette.text : palette.dim;
      ctx.fillText(title, x, y);
      if (turns) {
        ctx.font = text.css("small");
        ctx.fillStyle = palette.accent;
        ctx.textAlign = "right";
        ctx.fillText(turns, right - SIGN - 8, y);
        ctx.textAlign = "left";
      }
      if (camera.zoom > 0.4) this.#boxes.foldSign(scene.x[i]! + scene.w[i]! - SIGN / 2 - 6, y, true);
    }
  }

  // ----------------------------------------------------------------------------------------------------------- edges

  #litEdges(index: SceneIndex, marks: Marks, camera: Camera): void {
    const ctx = this.#ctx,
      palette = this.#palette;
    const draw = (values: ReadonlySet<number>, width: number): void => {
      ctx.strokeStyle = ctx.fillStyle = palette.accent;
      ctx.lineWidth = Math.max(width, width / camera.zoom / 1.2);
      const { y, height } = camera.view,
        points = index.scene.segments;
      const inView = (i: number): boolean =>
        Math.max(points[4 * i + 1]!, points[4 * i + 3]!) >= y &&
        Math.min(points[4 * i + 1]!, points[4 * i + 3]!) <= y + height;
      const segments: number[] = [];
      for (const value of values) for (const i of index.segmentsOf(value)) if (inView(i)) segments.push(i);
      const { solid, thick, dashed } = traced(index.scene, segments, camera.zoom);
      for (const path of [solid, dashed]) if (path) ctx.stroke(path);
      ctx.lineWidth *= RIBBON / 1.5;
      if (thick) ctx.stroke(thick);
      if (camera.zoom > 0.2) arrows(ctx, index.scene, segments, 1.25);
    };
    ctx.globalAlpha = 0.75;
    draw(marks.litValues, 1.3);
    ctx.globalAlpha = 1;
    draw(marks.strongValues, 2.2);
  }

  // ----------------------------------------------------------------------------------------------- labels and portals

  #labels(scene: Scene, list: DrawList, marks: Marks, zoom: number): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette,
      turned = scene.flow === "right";
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.labels) {
      const { value: labeled, ribbon, x: left, y, room: whole } = scene.labels[i]!;
      const value = ribbon < 0 ? labeled : this.#speaking(scene.ribbons[ribbon]!);
      const count = ribbon < 0 ? "" : `×${scene.ribbons[ribbon]!.length} `;
      const x = left + text.measure(count, "small"),
        room = whole - text.measure(count, "small");
      if (count && whole >= 14) {
        ctx.font = text.css("small");
        ctx.fillStyle = palette.accent;
        ctx.fillText(count, left, y);
      }
      if (marks.flash > 0 && marks.changed.has(value)) {
        this.#flashed([marks.changed.get(value)![0], this.#texts.label(value)], x, y, marks.flash);
        continue;
      }
      const ran = marks.ran.get(value);
      const pinned = marks.pinned.has(value);
      if (ran !== undefined || pinned)
        this.#dot(left - (turned ? 4 : 6), y + (turned ? 7 : 0), ran?.bad ? palette.error : palette.accent, pinned);
      const label = this.#texts.label(value);
      const picture = ran && zoom >= PICTURES_FROM ? marks.thumbnail?.(value) : null;
      // The numbers of a value stand behind its shape: below it there may be a box.
      const behind = label ? text.measure(label, "small") + GAP : 0,
        numbers = ran && room - behind >= LEAST_NUMBERS ? text.fit(ran.text, "small", room - behind, false) : "";
      if (picture) {
        const words = behind + text.measure(numbers, "small");
        this.#thumbnail(picture, turned ? x : x + words + 8, turned ? y + 12 : y - 6, turned ? room : room - words - 8);
      }
      if (room < 14) continue;
      ctx.font = text.css("small");
      ctx.fillStyle = marks.strongValues.has(value) ? palette.accent : palette.label;
      if (label) ctx.fillText(text.fit(label, "small", room, false), x, y);
      if (!numbers) continue;
      ctx.fillStyle = ran?.bad ? palette.error : palette.dim;
      ctx.fillText(numbers, x + behind, y);
    }
  }

  /** A value's numbers beside its label, where there is room for them. */
  #thumbnail(picture: CanvasImageSource, x: number, y: number, room: number): void {
    const ctx = this.#ctx,
      { width, height } = picture as HTMLCanvasElement;
    const across = Math.min(2 * PICTURE, Math.max(PICTURE / 2, (PICTURE * width) / height));
    if (room < across) return;
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(picture, x, y, across, PICTURE);
    ctx.lineWidth = 0.5;
    ctx.strokeStyle = this.#palette.label;
    ctx.strokeRect(x, y, across, PICTURE);
  }

  /** The value of a ribbon whose shape says most: that of the highest rank. */
  #speaking(values: readonly number[]): number {
    let best = values[0]!,
      rank = -1;
    for (const value of values.slice(0, SPOKEN)) {
      const axes = this.#texts.label(value).split("×").length;
      if (axes > rank) [best, rank] = [value, axes];
    }
    return best;
  }

  /** Draws the dot of a value with numbers; a ring around it: pinned. */
  #dot(x: number, y: number, color: string, pinned: boolean): void {
    const ctx = this.#ctx;
    ctx.fillStyle = ctx.strokeStyle = color;
    ctx.beginPath();
    ctx.arc(x, y, 3, 0, 2 * Math.PI);
    ctx.fill();
    if (!pinned) return;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.arc(x, y, 5.5, 0, 2 * Math.PI);
    ctx.stroke();
  }

  /** Draw the old and the new text of a value over everything else as long as it flashes. */
  #flashed([before, now]: readonly [string, string], x: number, y: number, strength: number): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette;
    const words = text.fit(`${before || "?"} → ${now || "?"}`, "small", 260, false);
    ctx.font = text.css("small");
    ctx.globalAlpha = strength;
    ctx.fillStyle = palette.changed;
    ctx.beginPath();
    ctx.roundRect(x - 5, y - 8, text.measure(words, "small") + 10, 16, 4);
    ctx.fill();
    ctx.fillStyle = palette.onChanged;
    ctx.fillText(words, x, y + 0.5);
    ctx.globalAlpha = 1;
  }

  /** A line goes on in another column, at the same number. */
  #joint(x: number, y: number, number: number, lit: boolean): void {
    const ctx = this.#ctx,
      palette = this.#palette;
    ctx.strokeStyle = lit ? palette.accent : palette.edge;
    ctx.fillStyle = lit ? palette.accent : palette.box;
    ctx.lineWidth = 1.3;
    ctx.beginPath();
    ctx.arc(x, y, SIGN_RADIUS, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
    ctx.font = this.#text.css("small");
    ctx.fillStyle = lit ? palette.ground : palette.text;
    ctx.textAlign = "center";
    ctx.fillText(String(number), x, y + 0.5);
    ctx.textAlign = "left";
  }

  #portals(scene: Scene, list: DrawList, camera: Camera, marks: Marks): void {
    const ctx = this.#ctx,
      text = this.#text,
      palette = this.#palette,
      turned = scene.flow === "right";
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const i of list.portals) {
      const portal = scene.portals[i]!;
      const lit = marks.strongValues.has(portal.value) || marks.litValues.has(portal.value);
      const { x, y, room, atSource } = portal;
      if (portal.number) {
        this.#joint(x, y, portal.number, lit);
        continue;
      }
      ctx.strokeStyle = ctx.fillStyle = lit ? palette.accent : palette.dim;
      ctx.lineWidth = lit ? 1.8 : 1.1;
      const away = atSource ? 9 : -11,
        endX = turned ? x + away : x,
        endY = turned ? y : y + away;
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(endX, endY);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(endX, endY, 2.6, 0, 2 * Math.PI);
      ctx.fill();
      if (camera.zoom < 0.56 || room < 20 || atSource) continue;
      ctx.font = text.css("small");
      const from = scene.boxes[portal.from],
        whole = from?.folds ? from.title : this.#texts.origin(portal.value);
      const name = text.fit(whole, "small", Math.min(room - 10, 110));
      ctx.fillText(name, turned ? endX - 6 - text.measure(name, "small") : x + 7, endY);
    }
  }
}
