/** Ways to look at a tensor at large, by its shape: as channels, an image, a wave, the largest few. Pure. */

export type Way = "boxes" | "attention" | "image" | "channels" | "plane" | "wave" | "top";

export const WAY_WORDS: Record<Way, string> = {
  boxes: "boxes",
  attention: "attention",
  image: "color image",
  channels: "all planes",
  plane: "one heat map",
  wave: "wave and spectrum",
  top: "largest 5",
};

/** Values beyond which the largest few are not looked for. */
const MOST_RANKED = 200_000;

/** The facts that the model around a value tells of it. */
export interface Around {
  /** Whether a Softmax makes the value. */
  isSoftmax?: boolean;
  /** Whether the value is an output of the model. */
  isOutput?: boolean;
  /** Whether the model takes an image. */
  takesImages?: boolean;
}

/** Whether rows, or columns, of a shape may be boxes of a detector: four numbers and more. */
export function mayBeBoxes(shape: readonly number[], { isOutput, takesImages }: Around): boolean {
  const [last = 0, before = 0] = [shape.at(-1), shape.at(-2)];
  const others = shape.slice(1, -2);
  if (!takesImages || shape.length < 2 || (shape.length > 3 && others.some((dim) => dim !== 1))) return false;
  const columns = last > before && before >= 5 && last >= 100 ? before : last; // [84, 8400] lies on its side
  // Rows of many numbers without a batch before them are scores of classes.
  const most = shape.length > 2 ? 512 : 7;
  return columns === 4 || (isOutput === true && columns >= 5 && columns <= most);
}

/** The ways that make sense, the best first. `image`: the kernel takes it for one. */
export function waysToLook(shape: readonly number[], dtype: string, image: boolean, around: Around = {}): Way[] {
  if (!shape.every((dim) => dim > 0) || /string|bool/.test(dtype)) return shape.length > 1 ? ["plane"] : [];
  const [last = 1, before = 1] = [shape.at(-1), shape.at(-2)];
  const others = shape.slice(0, -1).reduce((product, dim) => product * dim, 1);
  const ways: Way[] = [];
  if (mayBeBoxes(shape, around)) ways.push("boxes");
  if (around.isSoftmax && shape.length >= 3 && last > 1 && before > 1) ways.push("attention");
  if (image) ways.push("image");
  if (shape.length >= 3 && last > 1 && before > 1) ways.push("channels");
  if (last >= 64 && others <= 8 && last > 1000) ways.push("wave");
  if (last > 1 && others <= 64 && last <= MOST_RANKED && !ways.length) ways.push("top");
  if (shape.length >= 2 && last > 1) ways.push("plane");
  if (last >= 16 && others <= 8 && !ways.includes("wave")) ways.push("wave");
  if (last > 1 && last <= MOST_RANKED && !ways.includes("top")) ways.push("top");
  return ways;
}

/** The axis whose planes are shown side by side, and how many there are. */
export function planesOf(shape: readonly number[]): { axis: number; count: number } {
  const axis = shape.length - 3;
  return { axis, count: shape[axis] ?? 1 };
}

/** The largest few of some numbers with where they stand; NaN is left out. */
export function largest(numbers: readonly number[], most: number): { at: number; number: number }[] {
  return numbers
    .map((number, at) => ({ at, number }))
    .filter(({ number }) => !Number.isNaN(number))
    .sort((a, b) => b.number - a.number || a.at - b.at)
    .slice(0, most);
}

/** Shares of the whole by softmax, for numbers that are none yet. */
export function shares(numbers: readonly number[]): number[] {
  const sum = numbers.reduce((total, number) => total + number, 0);
  if (numbers.every((number) => number >= 0) && Math.abs(sum - 1) < 1e-2) return [...numbers];
  const most = Math.max(...numbers.filter((number) => !Number.isNaN(number)));
  const raised = numbers.map((number) => (Number.isNaN(number) ? 0 : Math.exp(number - most)));
  const all = raised.reduce((total, number) => total + number, 0) || 1;
  return raised.map((number) => number / all);
}

/** Bytes of a heat map of their own scale as those of a common one: what 3 to 255 stand for is from low to high. */
export function rescaled(
  bytes: Uint8Array,
  range: { low: number; high: number },
  common: { low: number; high: number },
): Uint8Array {
  const span = common.high - common.low || 1;
  return bytes.map((code) => {
    if (code < 3) return code;
    const number = range.low + ((code - 3) / 252) * (range.high - range.low);
    return 3 + Math.round(Math.min(1, Math.max(0, (number - common.low) / span)) * 252);
  });
}

/** Boxes left when of those of one class that overlap by more than `most` only the first stays; the best come first. */
export function withoutOverlaps<Box extends { corners: readonly number[]; label: number }>(
  boxes: readonly Box[],
  most = 0.5,
): Box[] {
  const left: Box[] = [];
  for (const box of boxes)
    if (!left.some((other) => other.label === box.label && overlap(other.corners, box.corners) > most)) left.push(box);
  return left;
}

/** Area that two boxes share, of the area that they cover together. */
export function overlap(a: readonly number[], b: readonly number[]): number {
  const side = (low: number) => Math.max(0, Math.min(a[low + 2]!, b[low + 2]!) - Math.max(a[low]!, b[low]!));
  const area = ([x0 = 0, y0 = 0, x1 = 0, y1 = 0]: readonly number[]) => Math.max(0, x1 - x0) * Math.max(0, y1 - y0);
  const shared = side(0) * side(1);
  return shared / (area(a) + area(b) - shared || 1);
}

/** Places along an axis of some length that are labeled: round steps, at most `most` of them. */
export function ticks(length: number, most = 8): number[] {
  if (length <= most) return Array.from({ length }, (_, i) => i);
  const rough = (length - 1) / (most - 1),
    scale = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * scale).find((candidate) => candidate >= rough) ?? rough;
  return Array.from({ length: Math.floor((length - 1) / step) + 1 }, (_, i) => i * step);
}
