/** Measures text and shortens it to fit, each text once per width. */

import type { Font, Measure } from "../scene/boxes.ts";

/** CSS sizes and weights of the fonts, in pixels at zoom 1. */
export const FONTS: Record<Font, { size: number; weight: number }> = {
  title: { size: 13, weight: 600 },
  text: { size: 11.5, weight: 400 },
  small: { size: 11, weight: 400 },
};

const MAX_CACHED = 50_000;

/** The part of a canvas context that text measuring needs. */
export interface TextContext {
  font: string;
  measureText(text: string): { width: number };
}

export class TextFitter {
  readonly #context: TextContext;
  readonly #family: string;
  readonly #widths = new Map<string, number>();
  readonly #fitted = new Map<string, string>();

  constructor(context: TextContext, family: string) {
    this.#context = context;
    this.#family = family;
  }

  /** CSS shorthand of a font, `scale` times its size. */
  css(font: Font, scale = 1): string {
    return `${FONTS[font].weight} ${FONTS[font].size * scale}px ${this.#family}`;
  }

  readonly measure: Measure = (text, font) => {
    const key = `${font} ${text}`;
    let width = this.#widths.get(key);
    if (width === undefined) {
      if (this.#widths.size > MAX_CACHED) this.#widths.clear();
      this.#context.font = this.css(font);
      width = this.#context.measureText(text).width;
      this.#widths.set(key, width);
    }
    return width;
  };

  /** The text itself where it fits in `width`, else with its middle (or end) replaced by "…"; "" where nothing fits. */
  fit(text: string, font: Font, width: number, middle = true): string {
    if (this.measure(text, font) <= width) return text;
    const key = `${font} ${Math.round(width)} ${middle ? 1 : 0} ${text}`;
    let fitted = this.#fitted.get(key);
    if (fitted === undefined) {
      if (this.#fitted.size > MAX_CACHED) this.#fitted.clear();
      fitted = this.#shorten(text, font, width, middle);
      this.#fitted.set(key, fitted);
    }
    return fitted;
  }

  #shorten(text: string, font: Font, width: number, middle: boolean): string {
    const letters = Array.from(text);
    this.#context.font = this.css(font);
    const build = (letterCount: number): string => {
      const tail = middle ? Math.floor(letterCount / 2) : 0;
      return `${letters.slice(0, letterCount - tail).join("")}…${tail ? letters.slice(-tail).join("") : ""}`;
    };
    let low = 0,
      high = Math.min(letters.length - 1, 400);
    while (low < high) {
      const middleCount = (low + high + 1) >> 1;
      if (this.#context.measureText(build(middleCount)).width <= width) low = middleCount;
      else high = middleCount - 1;
    }
    return low ? build(low) : "";
  }
}
