import assert from "node:assert/strict";
import { test } from "node:test";
import { heatGround, KINDS, kindGround, type Rgb } from "../../src/graph/canvas/theme.ts";

type Vision = readonly [Rgb, Rgb, Rgb];

/** Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB. */
const VISIONS: Record<string, Vision> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const times = (matrix: Vision, color: Rgb): Rgb => {
  const row = (weights: Rgb) => weights[0] * color[0] + weights[1] * color[1] + weights[2] * color[2];
  return [row(matrix[0]), row(matrix[1]), row(matrix[2])];
};

const linear = (byte: number) => (byte <= 10.31475 ? byte / 3294.6 : ((byte / 255 + 0.055) / 1.055) ** 2.4);

/** CIE L*a*b* of a color in linear RGB, white D65. */
function lab(color: Rgb): Rgb {
  const inside = color.map((part) => Math.min(1, Math.max(0, part))) as unknown as Rgb;
  const xyz = times(
    [
      [0.4124, 0.3576, 0.1805],
      [0.2126, 0.7152, 0.0722],
      [0.0193, 0.1192, 0.9505],
    ],
    inside,
  );
  const f = (ratio: number) => (ratio > 0.008856 ? Math.cbrt(ratio) : 7.787 * ratio + 16 / 116);
  const [x, y, z] = [f(xyz[0] / 0.9505), f(xyz[1]), f(xyz[2] / 1.089)];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const BOXES: [string, Rgb, boolean][] = [
  ["light", [255, 255, 255], false],
  ["dark", [29, 33, 38], true],
];

for (const [name, box, dark] of BOXES) {
  const grounds = Array.from({ length: KINDS.length }, (_, number) => kindGround(box, number, dark));

  for (const [vision, matrix] of Object.entries(VISIONS)) {
    test(`kinds are apart on ${name} boxes for ${vision}`, () => {
      const seen = grounds.map((color) => lab(times(matrix, color.map(linear) as unknown as Rgb)));
      for (const [first, a] of seen.entries()) {
        for (const [second, b] of seen.entries()) {
          if (second <= first) continue;
          const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
          assert.ok(distance >= 10, `${first} and ${second}: ${distance.toFixed(1)}`);
        }
      }
    });
  }

  test(`kinds are apart on ${name} boxes in gray print`, () => {
    const grays = grounds.map((color) => lab(color.map(linear) as unknown as Rgb)[0]).sort((a, b) => a - b);
    for (let i = 1; i < grays.length; i++) assert.ok(grays[i]! - grays[i - 1]! >= 3.5, grays.map(Math.round).join(" "));
  });

  test(`text is legible on ${name} boxes with a number of any size`, () => {
    const light = (color: Rgb) => 0.2126 * linear(color[0]) + 0.7152 * linear(color[1]) + 0.0722 * linear(color[2]);
    const text = light(dark ? [226, 228, 230] : [40, 43, 48]);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const [low, high] = [text, light(heatGround(box, share, dark))].sort((a, b) => a - b);
      assert.ok((high! + 0.05) / (low! + 0.05) >= 4.5, `${share}: ${(high! + 0.05) / (low! + 0.05)}`);
    }
  });
}

test("of two models what is added is greener than red, and what is removed redder than green", () => {
  const kinds = ["changed", "renamed", "added", "fused", "removed"]; // KINDS of onnxlab/notebook/panels/pairing.py
  const redness = (kind: string) => {
    const [red, green] = kindGround([255, 255, 255], kinds.indexOf(kind), false);
    return red - green;
  };
  assert.ok(redness("added") < 0 && redness("removed") > 0);
});
