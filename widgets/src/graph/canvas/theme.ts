/**
 * Colors and fonts of the picture, from the CSS custom properties of the element it is in.
 *
 * Neutrals are mixed from the ground and ink of the page, so that the picture belongs to whatever theme JupyterLab has.
 * Categories have two palettes, both with contrast of at least 4.5 on their box; `--ol-category-<name>` overrides one.
 */

export type Rgb = readonly [number, number, number];

/** Operator families, as onnxlab/render/categories.py names them: [light, dark]. */
const CATEGORIES: Record<string, [string, string]> = {
  convolution: ["#1a5bbf", "#82b4ff"],
  matrix: ["#4a42c4", "#aba5ff"],
  recurrent: ["#7433b0", "#cfa4ff"],
  normalization: ["#0a6f6a", "#66d1c6"],
  activation: ["#a8400c", "#ffb37d"],
  pooling: ["#2a7030", "#8bd98f"],
  reduction: ["#596e00", "#c8d768"],
  shape: ["#4f5d73", "#b1bccb"],
  constant: ["#6e5f49", "#d3c2a4"],
  quantization: ["#9c2158", "#ff97c0"],
  control: ["#b5232a", "#ff958e"],
  sequence: ["#086a89", "#74cdea"],
  text: ["#7d5200", "#eabf6c"],
  tree: ["#3a6f26", "#a6d68b"],
  signal: ["#7d3386", "#eca5f3"],
  elementwise: ["#33606d", "#a2c7d4"],
  function: ["#8d2f99", "#efa0f7"],
  custom: ["#624292", "#cfb4ff"],
};

/**
 * Colors of kinds. Mixed into the ground of a box, light or dark, any two are apart where red and green, or blue and yellow,
 * look alike, and in gray print; a test holds the distances.
 */
export const KINDS = ["#bd9103", "#620579", "#87ba9f", "#297202", "#e04ca2", "#3e462e"];

export interface BoxColors {
  /** Color of title and stripe. */
  strong: string;
  fill: string;
  border: string;
  /** Solid color of a box too small for text. */
  far: string;
}

export interface Palette {
  dark: boolean;
  ground: string;
  text: string;
  dim: string;
  box: string;
  edge: string;
  label: string;
  /** Grounds of frames at even and odd depth: they alternate, so that nesting does not grow dark. */
  frames: readonly [string, string];
  frameBorder: string;
  accent: string;
  accentSoft: string;
  match: string;
  matchSoft: string;
  /** Ground and ink of what an edit changed. */
  changed: string;
  onChanged: string;
  error: string;
  warning: string;
  /** Nodes that a rewrite would bring. */
  coming: string;
  onBadge: string;
  family: string;
  category(name: string): BoxColors;
  /** Ground of a box by its share of the largest number, 0 to 1. */
  heat(share: number): string;
  /** Ground of a box that is one of a few kinds, by number. */
  kind(number: number): string;
  group: BoxColors;
  terminal: BoxColors;
}

/** Ground of a box of a kind. */
export function kindGround(box: Rgb, number: number, dark: boolean): Rgb {
  return mix(box, hex(KINDS[number % KINDS.length]!), dark ? 0.55 : 0.42);
}

/** Ground of a box by its share of the largest number, so that text is legible on it. */
export function heatGround(box: Rgb, share: number, dark: boolean): Rgb {
  return mix(box, dark ? [180, 74, 28] : [244, 128, 62], 0.9 * share);
}

/** Reads the colors that hold for an element now. */
export function readPalette(element: HTMLElement): Palette {
  const read = new PropertyReader(element);
  const [givenGround, givenInk, givenAccent] = read.colors(["--ol-ground", "--ol-ink", "--ol-accent"]);
  const ground = givenGround ?? [255, 255, 255];
  const dark = luminance(ground) < 0.4;
  const ink = givenInk ?? (dark ? [243, 245, 247] : [21, 25, 30]);
  const accent = givenAccent ?? (dark ? [100, 168, 240] : [23, 105, 194]);
  const box = dark ? mix(ground, ink, 0.055) : mix(ground, [255, 255, 255], 0.6);
  const canvas = dark ? mix(ground, [0, 0, 0], 0.12) : mix(ground, ink, 0.018);
  const match: Rgb = dark ? [255, 196, 61] : [217, 138, 0];
  const boxColors = (strong: Rgb): BoxColors => ({
    strong: css(strong),
    fill: css(mix(box, strong, dark ? 0.085 : 0.055)),
    border: css(mix(mix(box, ink, dark ? 0.2 : 0.16), strong, 0.28)),
    far: css(mix(canvas, strong, dark ? 0.62 : 0.55)),
  });
  const cache = new Map<string, BoxColors>();
  const palette: Palette = {
    dark,
    ground: css(canvas),
    text: css(mix(ground, ink, 0.92)),
    dim: css(mix(ground, ink, 0.66)),
    box: css(box),
    edge: css(mix(ground, ink, dark ? 0.42 : 0.38)),
    label: css(mix(ground, ink, 0.64)),
    frames: [css(mix(canvas, ink, dark ? 0.045 : 0.032)), css(mix(canvas, ink, dark ? 0.012 : 0.006))],
    frameBorder: css(mix(canvas, ink, dark ? 0.2 : 0.15)),
    accent: css(accent),
    accentSoft: css(accent, 0.22),
    match: css(match),
    matchSoft: css(match, 0.3),
    changed: dark ? "#e7c34c" : "#ffe08a",
    onChanged: "#231a00",
    error: read.text("--ol-error") || (dark ? "#ff9a91" : "#b3261e"),
    warning: read.text("--ol-warning") || (dark ? "#f2bd6b" : "#8a5300"),
    coming: read.text("--ol-good") || (dark ? "#7fd1a3" : "#1d7044"),
    onBadge: dark ? "#16191d" : "#ffffff",
    family: read.text("--ol-sans") || "system-ui, sans-serif",
    group: boxColors(mix(ground, ink, 0.86)),
    terminal: boxColors(mix(ground, ink, 0.6)),
    heat: (share) => css(heatGround(box, share, dark)),
    kind: (number) => css(kindGround(box, number, dark)),
    category(name) {
      let colors = cache.get(name);
      if (!colors) {
        const [light, darker] = CATEGORIES[name] ?? CATEGORIES.elementwise!;
        colors = boxColors(read.color(`--ol-category-${name}`) ?? hex(dark ? darker : light));
        cache.set(name, colors);
      }
      return colors;
    },
  };
  return palette;
}

/** The properties in which a probe can hold a color each. */
const PROBED = ["color", "backgroundColor", "borderTopColor"] as const;

/** Custom properties as text, and as colors whatever notation they use. */
class PropertyReader {
  readonly #style: CSSStyleDeclaration;
  readonly #element: HTMLElement;

  constructor(element: HTMLElement) {
    this.#element = element;
    this.#style = getComputedStyle(element);
  }

  text(name: string): string {
    return this.#style.getPropertyValue(name).trim();
  }

  color(name: string): Rgb | null {
    return this.text(name) ? this.colors([name])[0]! : null;
  }

  /**
   * Up to three properties as colors, null where there is none. They may be var() or color-mix(): the color of a child
   * is resolved, the property itself is not. Each child makes the browser compute styles anew, so one holds them all.
   */
  colors(names: readonly string[]): (Rgb | null)[] {
    const probe = this.#element.ownerDocument.createElement("span");
    names.forEach((name, i) => (probe.style[PROBED[i]!] = `var(${name})`));
    this.#element.append(probe);
    const style = getComputedStyle(probe);
    const resolved = names.map((name, i) => (this.text(name) ? style[PROBED[i]!] : ""));
    probe.remove();
    return resolved.map((color) => (color ? this.#rgb(color) : null));
  }

  #rgb(color: string): Rgb | null {
    const plain = /^rgb\((\d+), (\d+), (\d+)\)$/.exec(color);
    if (plain) return [Number(plain[1]), Number(plain[2]), Number(plain[3])];
    const canvas = this.#element.ownerDocument.createElement("canvas");
    canvas.width = canvas.height = 1;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) return null;
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return a ? [r!, g!, b!] : null;
  }
}

function hex(color: string): Rgb {
  const bits = parseInt(color.slice(1), 16);
  return [bits >> 16, (bits >> 8) & 255, bits & 255];
}

function mix(a: Rgb, b: Rgb, amount: number): Rgb {
  const part = (i: 0 | 1 | 2) => Math.round(a[i] + (b[i] - a[i]) * amount);
  return [part(0), part(1), part(2)];
}

function css([r, g, b]: Rgb, alpha = 1): string {
  return alpha === 1 ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

/** Perceived lightness, 0 to 1. */
function luminance([r, g, b]: Rgb): number {
  return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
}
