import assert from "node:assert/strict";
import { test } from "node:test";
import { overlap, ticks, waysToLook, withoutOverlaps } from "../../src/look/tensor_ways.ts";

test("what a Softmax makes is attention, and an output of rows of boxes is drawn on the image", () => {
  assert.equal(waysToLook([1, 12, 7, 7], "float32", false, { isSoftmax: true })[0], "attention");
  assert.ok(!waysToLook([1, 1000], "float32", false, { isSoftmax: true }).includes("attention"));
  const detector = { isOutput: true, takesImages: true };
  assert.equal(waysToLook([1, 300, 6], "float32", false, detector)[0], "boxes");
  assert.equal(waysToLook([1, 84, 8400], "float32", false, detector)[0], "boxes");
  assert.equal(waysToLook([100, 4], "float32", false, { takesImages: true })[0], "boxes");
  assert.notEqual(waysToLook([1, 300, 6], "float32", false, { isOutput: true })[0], "boxes");
  assert.notEqual(waysToLook([1, 1000], "float32", false, detector)[0], "boxes");
  assert.equal(waysToLook([2, 100], "float32", false, detector)[0], "top", "scores of a hundred classes");
  assert.equal(waysToLook([100, 6], "float32", false, detector)[0], "boxes");
});

test("of boxes of one class that overlap the first stays", () => {
  const box = (left: number, label: number) => ({ corners: [left, 0, left + 10, 10], label });
  assert.equal(overlap([0, 0, 10, 10], [5, 0, 15, 10]), 1 / 3);
  const [first, near, other, far] = [box(0, 1), box(1, 1), box(1, 2), box(20, 1)];
  assert.deepEqual(withoutOverlaps([first!, near!, other!, far!]), [first, other, far]);
  assert.deepEqual(withoutOverlaps([{ corners: [NaN, 0, 1, 1], label: 0 }]).length, 1);
});

test("labels of an axis are round and few", () => {
  assert.deepEqual(ticks(3), [0, 1, 2]);
  assert.deepEqual(ticks(128), [0, 20, 40, 60, 80, 100, 120]);
  assert.ok(ticks(1500).length <= 8);
});
