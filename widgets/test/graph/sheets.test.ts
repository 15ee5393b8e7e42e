import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../src/graph/canvas/camera.ts";
import { FRAME_LOAD, Sheets, type Subject } from "../../src/graph/canvas/sheets.ts";
import { SceneIndex } from "../../src/graph/canvas/visible.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";

const SIDE = 200,
  STEP = 30;

/** A square of SIDE × SIDE small boxes without lines. */
function many(): SceneIndex {
  const count = SIDE * SIDE,
    at = (place: (i: number) => number): Float64Array => Float64Array.from({ length: count }, (_, i) => place(i));
  const scene = {
    flow: "down",
    width: SIDE * STEP,
    height: SIDE * STEP,
    boxes: Array.from({ length: count }, () => ({})),
    x: at((i) => (i % SIDE) * STEP),
    y: at((i) => Math.floor(i / SIDE) * STEP),
    w: at(() => 20),
    h: at(() => 10),
    frame: new Uint8Array(count),
    segments: new Float64Array(),
    labels: [],
    portals: [],
  };
  return new SceneIndex(scene as unknown as Scene);
}

/** A canvas that only counts what is laid onto it. */
function context(): { ctx: CanvasRenderingContext2D; laid: number[][] } {
  const laid: number[][] = [];
  const document = { createElement: () => canvas() };
  const canvas = (): object => {
    const element: Record<string, unknown> = { width: 0, height: 0, ownerDocument: document };
    const ctx: Record<string, unknown> = {
      canvas: element,
      drawImage: (_: unknown, ...place: number[]) => laid.push(place),
    };
    for (const name of ["save", "restore", "beginPath", "rect", "clip", "setTransform"]) ctx[name] = () => undefined;
    element.getContext = () => ctx;
    return element;
  };
  return { ctx: (canvas() as HTMLCanvasElement).getContext("2d")!, laid };
}

test("what moves is moved as a bitmap, and made anew in bands when it rests", () => {
  const index = many(),
    { ctx, laid } = context(),
    camera = new Camera();
  Object.assign(camera, { width: 600, height: 600 });
  camera.fit({ x: 0, y: 0, width: SIDE * STEP, height: SIDE * STEP }, 20);
  let drawn = new Set<number>(),
    most = 0;
  const sheets = new Sheets(() => (_context, list) => {
    for (const i of list.boxes) drawn.add(i);
    most = Math.max(most, list.boxes.length);
  });
  const subject: Subject = { index, pixelRatio: 1, strength: 1, heat: null };
  const paint = (change: Partial<Subject> = {}): boolean => sheets.paint(ctx, { ...subject, ...change }, camera);

  assert.ok(Sheets.suits(index, camera));
  assert.ok(paint(), "all of it is made at once");
  assert.equal(drawn.size, SIDE * SIDE);

  drawn = new Set();
  camera.pan(13.3, 40.7);
  assert.ok(paint());
  assert.equal(drawn.size, 0, "panning draws nothing");
  assert.ok(laid.at(-1)!.every(Number.isInteger), "nor is it blurred");

  camera.zoomAt(1.5, 300, 300);
  assert.ok(!paint() && drawn.size === 0, "nor does zooming");
  assert.equal(laid.at(-1)!.length, 4, "what is there is scaled");
  most = 0;
  let frames = 1;
  while (!paint()) frames++;
  assert.ok(frames > 1 && most < FRAME_LOAD, `${frames} frames of ${most} boxes`);
  const { view } = camera;
  const seen = index.boxesIn(view.x, view.y, view.x + view.width, view.y + view.height);
  assert.ok(
    seen.every((i) => drawn.has(i)),
    "then it is sharp, all of it",
  );

  drawn = new Set();
  paint({ strength: 0.35 });
  assert.equal(drawn.size, SIDE * SIDE, "fainter lines are other bitmaps");
});

test("few boxes need no bitmap", () => {
  const camera = new Camera();
  Object.assign(camera, { width: 600, height: 600, zoom: 0.5 });
  assert.ok(!Sheets.suits(many(), camera));
});
