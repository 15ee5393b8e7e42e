import assert from "node:assert/strict";
import { test } from "node:test";
import { Motion } from "../../src/graph/marks/motion.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";

function scene(places: [key: number, x: number, y: number][], scope = 1): Scene {
  const column = (of: (place: [number, number, number]) => number) => Float64Array.from(places, of);
  const boxes = places.map(([key]) => ({ key }));
  return {
    scope,
    boxes,
    x: column(([, x]) => x),
    y: column(([, , y]) => y),
    w: column(() => 80),
    h: column(() => 40),
    titleX: column(() => 0),
    indexOf: new Map(boxes.map(({ key }, i) => [key, i])),
  } as unknown as Scene;
}

const before = scene([
    [8, 0, 0],
    [16, 100, 50],
  ]),
  after = scene([
    [16, 300, 50],
    [24, 0, 90],
  ]);
const still = { x: 0, y: 0, scale: 1 };

test("boxes go from where they were to where they are, new ones stand where they belong", () => {
  const motion = new Motion(() => false);
  motion.start(before, after, still, 1000);
  const first = motion.frame(after, 1000)!;
  assert.deepEqual([first.share, first.scene.x[0], first.scene.x[1]], [0, 100, 0]);
  const middle = motion.frame(after, 1060)!.scene.x[0]!;
  assert.ok(middle > 100 && middle < 300);
  assert.equal(after.x[0], 300, "the scene itself says where boxes are");
  assert.equal(motion.frame(after, 1200), null);
  assert.equal(motion.frame(after, 1210), null);
});

test("the way begins where a box showed, whatever the camera did", () => {
  const motion = new Motion(() => false);
  motion.start(before, after, { x: 10, y: -5, scale: 2 }, 0);
  const { x, y, w } = motion.frame(after, 0)!.scene;
  assert.deepEqual([x[0], y[0], w[0]], [210, 95, 160]);
});

test("nothing moves where nothing moved, where it is not wanted, in another scope and in huge scenes", () => {
  const frameOf = (calm: boolean, from: Scene, to: Scene) => {
    const motion = new Motion(() => calm);
    motion.start(from, to, still, 0);
    return motion.frame(to, 1);
  };
  assert.equal(frameOf(false, before, scene([[8, 0, 1]])), null);
  assert.equal(frameOf(true, before, after), null);
  assert.equal(frameOf(false, before, scene([[16, 300, 50]], 2)), null);
  const huge = scene(Array.from({ length: 5000 }, (_, i) => [i, i, 0]));
  assert.equal(frameOf(false, huge, scene(Array.from({ length: 5000 }, (_, i) => [i, i + 50, 0]))), null);
  const motion = new Motion(() => false);
  motion.start(before, after, still, 0);
  assert.equal(motion.frame(before, 1), null, "another scene is shown by now");
});
