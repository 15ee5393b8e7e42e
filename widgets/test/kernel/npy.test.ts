import assert from "node:assert/strict";
import { test } from "node:test";
import { IMAGE_PRESETS, imageArray, imageFrame, imagePlace, npy } from "../../src/kernel/npy.ts";

test("a .npy file begins with its type and shape on a multiple of 64 bytes", () => {
  const file = npy(Float32Array.of(1, -2.5), [2]);
  const length = file[8]! + 256 * file[9]!;
  assert.equal((10 + length) % 64, 0);
  const header = new TextDecoder().decode(file.subarray(10, 10 + length));
  assert.match(header, /^\{'descr': '<f4', 'fortran_order': False, 'shape': \(2,\), \} *\n$/);
  assert.equal(new DataView(file.buffer, 10 + length).getFloat32(4, true), -2.5);
  assert.match(new TextDecoder().decode(npy(new Float32Array(6), [1, 2, 3])), /\(1, 2, 3\)/);
});

test("an input says where its channels are and how large an image it takes", () => {
  assert.deepEqual(imagePlace("n×3×224×224"), { last: false, channels: 3, height: 224, width: 224, rank: 4 });
  assert.deepEqual(imagePlace("1×h×w×1"), { last: true, channels: 1, height: 0, width: 0, rank: 4 });
  assert.deepEqual(imagePlace("28×28"), { last: false, channels: 1, height: 28, width: 28, rank: 2 });
  assert.equal(imagePlace("n×5×7×9"), null);
  assert.equal(imagePlace(""), null);
});

test("pixels go where the channels are", () => {
  const rgba = Uint8ClampedArray.of(255, 0, 51, 255, 0, 255, 102, 255); // two pixels
  const first = imageArray(rgba, 1, 2, { last: false, channels: 3, rank: 4 }, IMAGE_PRESETS["0 to 1"]!);
  assert.deepEqual(first.shape, [1, 3, 1, 2]);
  assert.deepEqual(
    [...first.data].map((number) => Math.round(number * 10) / 10),
    [1, 0, 0, 1, 0.2, 0.4],
  );
  const last = imageArray(rgba, 1, 2, { last: true, channels: 3, rank: 3 }, IMAGE_PRESETS["0 to 255"]!);
  assert.deepEqual(
    [last.shape, [...last.data]],
    [
      [1, 2, 3],
      [255, 0, 51, 0, 255, 102],
    ],
  );
  const gray = imageArray(rgba, 1, 2, { last: false, channels: 1, rank: 2 }, IMAGE_PRESETS["0 to 255"]!);
  assert.deepEqual(gray.shape, [1, 2]);
  assert.ok(Math.abs(gray.data[0]! - 82.059) < 1e-3);
});

test("mean and std hold by channel, in the order in which the input takes them", () => {
  const rgba = Uint8ClampedArray.of(255, 0, 51, 255);
  const place = { last: false, channels: 3, rank: 4 };
  const normalized = (preset: string) =>
    [...imageArray(rgba, 1, 1, place, IMAGE_PRESETS[preset]!).data].map((number) => Math.round(number * 1000) / 1000);
  assert.deepEqual(normalized("ImageNet"), [2.249, -2.036, -0.916]);
  assert.deepEqual(normalized("Caffe (BGR)"), [-52.939, -116.779, 131.32]);
});

test("an image is stretched, cropped in the middle, or padded", () => {
  const from = { width: 200, height: 100 },
    to = { width: 50, height: 50 };
  assert.deepEqual(imageFrame(from, to, "stretch"), [0, 0, 50, 50]);
  assert.deepEqual(imageFrame(from, to, "crop"), [-25, 0, 100, 50]);
  assert.deepEqual(imageFrame(from, to, "pad"), [0, 12.5, 50, 25]);
});
