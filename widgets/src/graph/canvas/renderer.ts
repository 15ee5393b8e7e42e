/** The canvas with its palette, fonts and painter: what draws frames and says how long they took. */

import type { Frame } from "../marks/motion.ts";
import type { Measure } from "../scene/boxes.ts";
import { Camera } from "./camera.ts";
import { type Marks, Painter, type Texts } from "./painter.ts";
import { Surface } from "./surface.ts";
import { TextFitter } from "./text.ts";
import { type Palette, readPalette } from "./theme.ts";
import type { SceneIndex } from "./visible.ts";

export interface RendererOptions {
  texts: Texts;
  /** The scene to draw now; null for nothing yet. */
  current(): { index: SceneIndex; marks: Marks; motion: Frame | null } | null;
  /** Called when the element has a new size, which the camera knows by then. */
  resized(): void;
  /** Called after every frame. */
  painted(): void;
  /** Called when the colors were read anew. */
  themed(): void;
  /** Called after the first frame that shows a change announced by `changed`. */
  shown(paintMs: number): void;
}

/** JupyterLab says what theme it has before that theme's style sheet is there: colors are read again after so long. */
const THEME_SETTLES_MS = 300;

export class Renderer {
  readonly camera = new Camera();
  readonly #element: HTMLElement;
  readonly #options: RendererOptions;
  readonly #surface: Surface;
  #fitter: TextFitter | null = null;
  #painter: Painter | null = null;
  #fresh = false;
  #shown = false;
  #themeTimer: ReturnType<typeof setTimeout> | undefined;
  palette!: Palette;
  /** Frames drawn so far. */
  frames = 0;

  constructor(element: HTMLElement, options: RendererOptions) {
    this.#element = element;
    this.#options = options;
    this.#surface = new Surface(element, {
      paint: () => this.#paint(),
      resize: (width, height) => {
        this.camera.x += (this.camera.width - width) / 2 / this.camera.zoom;
        this.camera.width = width;
        this.camera.height = height;
        options.resized();
      },
    });
    this.#readTheme();
  }

  /** Widths in the fonts that are drawn with. */
  readonly measure: Measure = (text, font) => this.#fitter!.measure(text, font);

  /** The place of the canvas in the browser's viewport. */
  get place(): DOMRect {
    return this.#surface.canvas.getBoundingClientRect();
  }

  /** Draws a frame soon. */
  invalidate(): void {
    this.#surface.invalidate();
  }

  /** Draws a frame soon and reports it: the model or its layout looks different. */
  changed(): void {
    this.#fresh = true;
    // The first picture is made wherever it is, so that it is there when it is scrolled to.
    this.#surface.invalidate(!this.#shown);
  }

  /** Reads colors and fonts from the page again. */
  themeChanged(): void {
    this.#readTheme();
    clearTimeout(this.#themeTimer);
    this.#themeTimer = setTimeout(() => this.#readTheme(), THEME_SETTLES_MS);
  }

  destroy(): void {
    clearTimeout(this.#themeTimer);
    this.#surface.destroy();
  }

  #readTheme(): void {
    const palette = (this.palette = readPalette(this.#element));
    this.#fitter = new TextFitter(this.#surface.context, palette.family);
    this.#painter = new Painter(this.#surface.context, this.#fitter, palette, this.#options.texts);
    this.#surface.invalidate();
    this.#options.themed();
  }

  #paint(): void {
    // The surface measures itself while it is being made: there is nothing to draw with yet.
    const current = this.#painter && this.#options.current();
    if (!current) return;
    const began = performance.now();
    const { index, marks, motion } = current;
    const sharp = this.#painter!.paint(index, this.camera, marks, this.#surface.pixelRatio, motion);
    this.frames++;
    this.#options.painted();
    if (!sharp) this.#surface.invalidate();
    if (!this.#fresh) return;
    this.#fresh = false;
    this.#shown = true;
    this.#options.shown(performance.now() - began);
  }
}
