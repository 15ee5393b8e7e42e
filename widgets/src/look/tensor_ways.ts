/** Ways to look at a tensor at large, by its shape: as channels, an image, a wave, the largest few. Pure. */

export type Way = "image" | "channels" | "plane" | "wave" | "top";

export const WAY_WORDS: Record<Way, string> = {
  image: "color image",
  channels: "all planes",
  plane: "one heat map",
  wave: "wave form",
  top: "largest 5",
};

/** Values beyond which the largest few are not looked for. */
const MOST_RANKED = 200_000;

/** The ways that make sense, the best first. `image`: the kernel takes it for one. */
export function waysToLook(shape: readonly number[], dtype: string, image: boolean): Way[] {
  if (!shape.every((dim) => dim > 0) || /string|bool/.test(dtype)) return shape.length > 1 ? ["plane"] : [];
  const [last = 1, before = 1] = [shape.at(-1), shape.at(-2)];
  const others = shape.slice(0, -1).reduce((product, dim) => product * dim, 1);
  const ways: Way[] = [];
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
  own: { low: number; high: number },
  common: { low: number; high: number },
): Uint8Array {
  const span = common.high - common.low || 1;
  return bytes.map((code) => {
    if (code < 3) return code;
    const number = own.low + ((code - 3) / 252) * (own.high - own.low);
    return 3 + Math.round(Math.min(1, Math.max(0, (number - common.low) / span)) * 252);
  });
}
