/** NumPy's file format, as far as the page writes it, and images as arrays of the shape that an input takes. */

/** How the bytes of an image become numbers. */
export const SCALES = {
  "0 to 1": (byte: number) => byte / 255,
  "0 to 255": (byte: number) => byte,
  "-1 to 1": (byte: number) => byte / 127.5 - 1,
  ImageNet: (byte: number, channel: number) =>
    (byte / 255 - [0.485, 0.456, 0.406][channel]!) / [0.229, 0.224, 0.225][channel]!,
} as const;

export type Scale = keyof typeof SCALES;

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

/** Where an input of some shape has its channels and how large an image it takes; 0 where any size will do. */
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
  scale: Scale,
): { data: Float32Array; shape: number[] } {
  const data = new Float32Array(channels * height * width);
  const number: (byte: number, channel: number) => number = SCALES[scale];
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < channels; c++) {
      const byte =
        channels === 3 ? rgba[4 * i + c]! : 0.299 * rgba[4 * i]! + 0.587 * rgba[4 * i + 1]! + 0.114 * rgba[4 * i + 2]!;
      data[last ? i * channels + c : c * height * width + i] = number(byte, c);
    }
  }
  const shape = rank === 2 ? [height, width] : last ? [height, width, channels] : [channels, height, width];
  return { data, shape: rank === 4 ? [1, ...shape] : shape };
}

/** An image file, scaled to what the input takes, as a .npy file. Throws where the browser cannot read it. */
export async function imageFile(file: File, label: string, scale: Scale): Promise<File> {
  const place = imagePlace(label);
  if (!place)
    throw new Error(`An input of shape ${label || "unknown"} takes no image: it has no axis of one or three channels.`);
  const bitmap = await createImageBitmap(file);
  const height = place.height || bitmap.height,
    width = place.width || bitmap.width;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d")!;
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  const { data, shape } = imageArray(context.getImageData(0, 0, width, height).data, height, width, place, scale);
  return new File([npy(data, shape)], `${file.name}.npy`);
}
