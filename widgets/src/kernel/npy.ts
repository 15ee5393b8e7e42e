/** NumPy's file format, as far as the page writes it, and images as arrays of the shape that an input takes. */

/** The way from bytes of an image to numbers: (byte / divisor − mean) / std, by channel in the order that is given. */
export interface ImageNumbers {
  divisor: number;
  mean: readonly number[];
  std: readonly number[];
  /** Whether channels are in the order blue, green, red. */
  reversed: boolean;
}

const plain = (divisor: number): ImageNumbers => ({ divisor, mean: [0, 0, 0], std: [1, 1, 1], reversed: false });

export const IMAGE_PRESETS: Record<string, ImageNumbers> = {
  "0 to 1": plain(255),
  "0 to 255": plain(1),
  "-1 to 1": { divisor: 255, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5], reversed: false },
  ImageNet: { divisor: 255, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], reversed: false },
  CLIP: {
    divisor: 255,
    mean: [0.48145466, 0.4578275, 0.40821073],
    std: [0.26862954, 0.26130258, 0.27577711],
    reversed: false,
  },
  "Caffe (BGR)": { divisor: 1, mean: [103.939, 116.779, 123.68], std: [1, 1, 1], reversed: true },
};

/** The way to bring an image to the size that an input takes. */
export type ImageFit = "stretch" | "crop" | "pad";

/** A .npy file of float32. */
export function npy(data: Float32Array, shape: readonly number[]): Uint8Array<ArrayBuffer> {
  const tuple = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const words = `{'descr': '<f4', 'fortran_order': False, 'shape': (${tuple}), }`;
  const header = `${words.padEnd(Math.ceil((words.length + 11) / 64) * 64 - 11)}\n`;
  const file = new Uint8Array(10 + header.length + 4 * data.length);
  file.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  file.set(new TextEncoder().encode(header), 10);
  const view = new DataView(file.buffer, 10 + header.length);
  data.forEach((number, i) => view.setFloat32(4 * i, number, true));
  return file;
}

/** The axis of channels of an input of some shape, and its size of images; 0 where any size will do. */
export function imagePlace(
  label: string,
): { last: boolean; channels: number; height: number; width: number; rank: number } | null {
  const dims = label.split("×").map((dim) => (/^\d+$/.test(dim) ? Number(dim) : 0));
  if (dims.length < 2 || dims.length > 4) return null;
  if (dims.length === 2) return { last: false, channels: 1, height: dims[0]!, width: dims[1]!, rank: 2 };
  const [first, second, third] = dims.slice(-3) as [number, number, number];
  const is = (channels: number) => channels === 1 || channels === 3;
  if (is(first)) return { last: false, channels: first, height: second, width: third, rank: dims.length };
  if (is(third)) return { last: true, channels: third, height: first, width: second, rank: dims.length };
  return null;
}

/** RGBA bytes of an image as numbers in the order that an input takes. */
export function imageArray(
  rgba: Uint8ClampedArray,
  height: number,
  width: number,
  { last, channels, rank }: { last: boolean; channels: number; rank: number },
  { divisor, mean, std, reversed }: ImageNumbers,
): { data: Float32Array; shape: number[] } {
  const data = new Float32Array(channels * height * width);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < channels; c++) {
      const byte =
        channels === 3
          ? rgba[4 * i + (reversed ? 2 - c : c)]!
          : 0.299 * rgba[4 * i]! + 0.587 * rgba[4 * i + 1]! + 0.114 * rgba[4 * i + 2]!;
      data[last ? i * channels + c : c * height * width + i] = (byte / divisor - (mean[c] ?? 0)) / (std[c] || 1);
    }
  }
  const shape = rank === 2 ? [height, width] : last ? [height, width, channels] : [channels, height, width];
  return { data, shape: rank === 4 ? [1, ...shape] : shape };
}

/** The place of an image of one size in another: [x, y, width, height]; what lies outside is cut off. */
export function imageFrame(
  from: { width: number; height: number },
  to: { width: number; height: number },
  fit: ImageFit,
): [number, number, number, number] {
  if (fit === "stretch") return [0, 0, to.width, to.height];
  const across = to.width / from.width,
    down = to.height / from.height;
  const scale = fit === "crop" ? Math.max(across, down) : Math.min(across, down);
  const width = from.width * scale,
    height = from.height * scale;
  return [(to.width - width) / 2, (to.height - height) / 2, width, height];
}

/** An image in the size that an input takes. */
export interface SizedImage {
  canvas: OffscreenCanvas;
  height: number;
  width: number;
}

/** Reads an image file and brings it to the size that an input takes. Throws where the browser cannot read it. */
export async function sizedImage(file: File, label: string, fit: ImageFit): Promise<SizedImage> {
  const place = imagePlace(label);
  if (!place)
    throw new Error(`An input of shape ${label || "unknown"} takes no image: it has no axis of one or three channels.`);
  const bitmap = await createImageBitmap(file);
  const height = place.height || bitmap.height,
    width = place.width || bitmap.width;
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d")!.drawImage(bitmap, ...imageFrame(bitmap, { width, height }, fit));
  bitmap.close();
  return { canvas, height, width };
}

/** An image that has its size as a .npy file. */
export function imageFile(
  { canvas, height, width }: SizedImage,
  name: string,
  label: string,
  numbers: ImageNumbers,
): File {
  const place = imagePlace(label)!;
  const { data: rgba } = canvas.getContext("2d")!.getImageData(0, 0, width, height);
  const { data, shape } = imageArray(rgba, height, width, place, numbers);
  return new File([npy(data, shape)], `${name}.npy`);
}
