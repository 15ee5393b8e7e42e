import assert from "node:assert/strict";
import { test } from "node:test";
import { colorOf, commonScale, decode, gradient, pixels } from "../../src/look/color_map.ts";

const lightness = ([r, g, b]: readonly number[]) => 0.299 * r! + 0.587 * g! + 0.114 * b!;

test("larger numbers are lighter where all have one sign, and zero is the lightest where they have two", () => {
  const rising = [2, 3, 4, 5, 6].map((number) => lightness(colorOf(number, 2, 6)));
  assert.deepEqual(
    rising,
    [...rising].sort((a, b) => a - b),
  );
  const signed = [-3, -1, 0, 1, 3].map((number) => colorOf(number, -3, 1));
  assert.equal(Math.max(...signed.map(lightness)), lightness(signed[2]!));
  assert.ok(signed[0]![2]! > signed[0]![0]!, "negative is blue");
  assert.ok(signed[4]![0]! > signed[4]![2]!, "positive is red");
});

test("bytes stand for numbers from low to high, and for what is not finite", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 255].map((code) => decode(code, -2, 6)),
    [NaN, Infinity, -Infinity, -2, 6],
  );
});

test("heat maps have colors, images their own, and what is not a number stands out in both", () => {
  const picture = { height: 1, width: 2, channels: 1, low: 0, high: 1 };
  assert.deepEqual([...pixels(picture, Uint8Array.of(255, 0)).subarray(0, 3)], [...colorOf(1, 0, 1)]);
  assert.deepEqual([...pixels(picture, Uint8Array.of(255, 3), true)], [255, 255, 255, 255, 0, 0, 0, 255]);
  const colors = pixels({ ...picture, channels: 3 }, Uint8Array.of(255, 3, 3, 0, 0, 0));
  assert.deepEqual([...colors.subarray(0, 4)], [255, 0, 0, 255]);
  assert.deepEqual(
    [...colors.subarray(4, 7)],
    [...colorOf(NaN, 0, 1)].map((_, k) => colorOf(NaN, 0, 1)[k]),
  );
  assert.match(gradient(0, 1), /^linear-gradient\(to right, rgb\(/);
});

test("pictures that are compared give one number one color", () => {
  const a = { height: 1, width: 1, channels: 1, low: 0, high: 6 },
    b = { height: 1, width: 1, channels: 1, low: -2, high: 4 };
  const empty = { picture: { ...a, low: 9, high: 9 }, bytes: Uint8Array.of(0, 1, 2) };
  const scale = commonScale([{ picture: a, bytes: Uint8Array.of(3) }, { picture: b, bytes: Uint8Array.of(3) }, empty]);
  assert.equal(commonScale([empty]), undefined);
  assert.deepEqual(scale, [-2, 6]);
  const four = 3 + (252 * 4) / 6; // of a; the largest of b
  assert.deepEqual([...pixels(a, Uint8Array.of(four), false, scale)], [...pixels(b, Uint8Array.of(255), false, scale)]);
  assert.deepEqual([...pixels(a, Uint8Array.of(3), false, scale).subarray(0, 3)], [...colorOf(0, -2, 6)]);
});
