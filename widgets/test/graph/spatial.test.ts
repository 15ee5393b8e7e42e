import assert from "node:assert/strict";
import { test } from "node:test";
import { SpatialGrid } from "../../src/graph/canvas/spatial.ts";

test("what touches a rectangle is found, in rising order, few or many", () => {
  // A column of a thousand squares, written from the bottom up.
  const count = 1000,
    top = (i: number): number => (count - 1 - i) * 20;
  const grid = new SpatialGrid(
    { count, left: () => 0, top, right: () => 10, bottom: (i) => top(i) + 10 },
    10,
    20 * count,
  );
  for (const [from, to] of [
    [0, 5],
    [995, 1005],
    [300, 8000],
    [100, 19_000],
    [-10, 1e6],
    [11, 19],
  ] as const) {
    const touching = Array.from({ length: count }, (_, i) => i).filter((i) => top(i) <= to && top(i) + 10 >= from);
    assert.deepEqual(grid.query(-1, from, 11, to), touching, `${from} to ${to}`);
    assert.deepEqual(grid.query(-1, from, 11, to), touching, "again");
    assert.ok(
      grid.atMost(-1, from, 11, to) >= touching.length &&
        grid.atMost(-1, from, 11, to) <= Math.min(count, touching.length + 60),
    );
  }
});
