/** Pixels of a heat map or image (TensorPicture), and the legend of its colors. Pure. */

import { fromWire, type TensorPicture } from "../kernel/protocol.ts";

type Rgb = readonly [number, number, number];

/** Colors from small to large, each step as much lighter as the one before; and from negative over zero to positive. */
const RISING: readonly Rgb[] = [
  [38, 20, 72],
  [58, 74, 140],
  [33, 128, 141],
  [86, 180, 98],
  [245, 226, 60],
];
const SIGNED: readonly Rgb[] = [
  [24, 74, 156],
  [122, 168, 214],
  [243, 243, 240],
  [229, 148, 118],
  [172, 34, 34],
];
const NAN_COLOR: Rgb = [255, 0, 200],
  INFINITE: Rgb = [255, 32, 32];
const LEAST = 3,
  STEPS = 252;

/** Whether zero lies inside and is worth a color of its own. */
export function isSigned(low: number, high: number): boolean {
  return low < 0 && high > 0;
}

function between(stops: readonly Rgb[], share: number): Rgb {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1),
    i = Math.min(Math.floor(at), stops.length - 2);
  const [from, to] = [stops[i]!, stops[i + 1]!];
  const part = (k: 0 | 1 | 2) => Math.round(from[k] + (to[k] - from[k]) * (at - i));
  return [part(0), part(1), part(2)];
}

/** The color of a number in a picture whose numbers go from low to high; zero is in the middle where it lies inside. */
export function colorOf(number: number, low: number, high: number): Rgb {
  if (Number.isNaN(number)) return NAN_COLOR;
  if (!Number.isFinite(number)) return INFINITE;
  if (!isSigned(low, high)) return between(RISING, high > low ? (number - low) / (high - low) : 0.5);
  const most = Math.max(-low, high);
  return between(SIGNED, 0.5 + number / most / 2);
}

/** The number that a byte stands for. */
export function decode(code: number, low: number, high: number): number {
  if (code === 0) return NaN;
  if (code < LEAST) return code === 1 ? Infinity : -Infinity;
  return low + ((code - LEAST) / STEPS) * (high - low);
}

/** The least and the largest number of a scale of colors. */
export type Scale = readonly [low: number, high: number];

/** The scale that several pictures share, so that a color is one number in all of them; without a number none. */
export function commonScale(pictures: readonly { picture: TensorPicture; bytes: Uint8Array }[]): Scale | undefined {
  // The ends of a picture without a finite number mean nothing.
  const finite = pictures.filter(({ bytes }) => bytes.some((code) => code >= LEAST)).map(({ picture }) => picture);
  if (!finite.length) return undefined;
  return [Math.min(...finite.map(({ low }) => fromWire(low))), Math.max(...finite.map(({ high }) => fromWire(high)))];
}

/**
 * Pixels of a picture, four bytes each: heat maps in colors, images as they are, gray for one channel with `gray`.
 * The colors go from the least to the largest number of the picture, or of a scale.
 */
export function pixels(
  picture: TensorPicture,
  bytes: Uint8Array,
  gray = false,
  scale?: Scale,
): Uint8ClampedArray<ArrayBuffer> {
  const { height, width, channels } = picture;
  const low = fromWire(picture.low),
    high = fromWire(picture.high);
  const rgba = new Uint8ClampedArray(4 * height * width);
  const table = Array.from({ length: 256 }, (_, code) => colorOf(decode(code, low, high), ...(scale ?? [low, high])));
  for (let i = 0; i < height * width; i++) {
    const codes = bytes.subarray(i * channels, (i + 1) * channels);
    const plain = channels === 3 || gray;
    for (let k = 0; k < 3; k++) {
      const code = codes[channels === 3 ? k : 0]!;
      rgba[4 * i + k] = plain && code >= LEAST ? ((code - LEAST) / STEPS) * 255 : table[code]![k as 0 | 1 | 2];
    }
    rgba[4 * i + 3] = 255;
  }
  return rgba;
}

/** The colors as a CSS gradient from low to high. */
export function gradient(low: number, high: number): string {
  const stops = Array.from(
    { length: 9 },
    (_, i) => `rgb(${colorOf(low + (i / 8) * (high - low), low, high).join(" ")})`,
  );
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
