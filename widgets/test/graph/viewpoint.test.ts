import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../src/graph/canvas/camera.ts";
import { TextFitter } from "../../src/graph/canvas/text.ts";
import { firstLook } from "../../src/graph/groups/fold.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { layout } from "../../src/graph/layout/layout.ts";
import { freeSide } from "../../src/graph/scene/compose.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import { SceneBuilder } from "../../src/graph/scene/scene_builder.ts";
import {
  nodeSubtitle,
  opTitle,
  parameterName,
  relativeName,
  withoutOperator,
} from "../../src/graph/scene/short_names.ts";
import { anchorsOf, home, MARGIN, Viewpoint } from "../../src/graph/view/viewpoint.ts";
import type { ModelBuilder } from "../fixtures/model.ts";
import { residualChain, transformer } from "../fixtures/networks.ts";

function camera(): Camera {
  return Object.assign(new Camera(), { width: 800, height: 600 });
}

function scenes(model: ModelBuilder): { all: Scene; folded: Scene } {
  const store = model.store();
  const hierarchy = new Hierarchy(store, 1);
  const builder = new SceneBuilder(store, { solve: (inputs) => inputs.map(layout) }, (text) => 6 * text.length);
  const all = builder.build(hierarchy, firstLook(store, hierarchy)) as Scene;
  return { all, folded: builder.build(hierarchy, new Set()) as Scene };
}

test("a node that is all of its scope is called after it", () => {
  assert.equal(nodeSubtitle("/conv_in/Conv_6", "Conv"), "conv_in");
  assert.equal(nodeSubtitle("/conv_in/Conv", "Conv", "conv_in"), "", "its group says so");
  assert.equal(nodeSubtitle("/conv_in/Conv_6", "Conv", "net/conv_in"), "Conv_6");
  assert.equal(nodeSubtitle("/conv_in/first", "Conv"), "first");
});

test("a first look shows all of a small graph, else its beginning at a size to read", () => {
  const small = camera(),
    large = camera();
  home(small, scenes(residualChain(0)).all);
  assert.ok(small.zoom > 0.75 && small.toScreenY(0) > 0);
  const { all } = scenes(residualChain(60));
  home(large, all);
  assert.ok(large.zoom >= 0.75);
  assert.ok(Math.abs(large.toScreenY(0) - MARGIN) < 1);
  assert.ok(large.toScreenX(all.x[0]!) > 0 && large.toScreenX(all.x[0]!) < 800);
});

test("where all can only be read with less around it, there is less around it", () => {
  const { all } = scenes(residualChain(0));
  const view = Object.assign(new Camera(), { width: all.width + 40, height: all.height + 40 });
  home(view, all);
  assert.equal(view.zoom, 1);
});

test("a label of a line to the right stands where no other line of its box is", () => {
  assert.equal(freeSide(20, []), -7);
  assert.equal(freeSide(20, [32]), -7);
  assert.equal(freeSide(32, [20]), 9);
  assert.equal(freeSide(32, [20, 44]), null);
});

test("zooming keeps the point under the pointer, fitting shows everything", () => {
  const view = camera();
  view.zoomAt(1.7, 300, 200);
  const before = [view.toSceneX(300), view.toSceneY(200)];
  view.zoomAt(0.4, 300, 200);
  assert.ok(Math.abs(view.toSceneX(300) - before[0]!) < 1e-9 && Math.abs(view.toSceneY(200) - before[1]!) < 1e-9);
  view.fit({ x: 0, y: 0, width: 5000, height: 300 }, 20);
  assert.ok(view.toScreenX(0) >= 20 - 1e-6 && view.toScreenX(5000) <= 780 + 1e-6);
});

test("what an anchor names stays where it was on the screen", () => {
  const { all, folded } = scenes(transformer(2));
  const view = camera();
  home(view, all);
  const frame = all.boxes.findIndex(({ title }) => title === "bert");
  const anchors = anchorsOf(view, all, [frame]);
  const before = view.toScreenX(all.x[frame]! + all.w[frame]! / 2);
  new Viewpoint().keep(view, folded, anchors);
  const after = folded.boxes.findIndex(({ title }) => title === "bert");
  assert.ok(Math.abs(view.toScreenX(folded.x[after]! + folded.w[after]! / 2) - before) < 1);
});

test("bringing into view moves as little as needed, and enlarges what is too small", () => {
  const { all } = scenes(residualChain(30));
  const view = camera();
  home(view, all);
  const before = { ...view };
  new Viewpoint().bringIntoView(view, all, 1, 0.7);
  assert.ok(view.equals(before));
  const last = all.boxes.length - 1;
  view.zoom = 0.05;
  new Viewpoint().bringIntoView(view, all, last, 0.7);
  assert.equal(view.zoom, 0.7);
  assert.ok(view.toScreenY(all.y[last]!) > 0 && view.toScreenY(all.y[last]! + all.h[last]!) < 600);
});

test("text is shortened in the middle or at the end, never wider than its room", () => {
  const fitter = new TextFitter({ font: "", measureText: (text) => ({ width: 6 * Array.from(text).length }) }, "sans");
  assert.equal(fitter.fit("short", "text", 60), "short");
  assert.equal(fitter.fit("a_very_long_name", "text", 60), "a_ver…name");
  assert.equal(fitter.fit("a_very_long_name", "text", 60, false), "a_very_lo…");
  assert.equal(fitter.fit("wide", "text", 5), "");
});

test("names are cut to what a box needs", () => {
  assert.deepEqual(["Conv", "com.microsoft::Gelu"].map(opTitle), ["Conv", "Gelu"]);
  assert.deepEqual(
    [
      ["/a/b/MatMul", "MatMul", "b"],
      ["/a/MatMul_1", "MatMul", "a"],
    ].map(([name, op, around]) => nodeSubtitle(name!, op!, around)),
    ["", "MatMul_1"],
  );
  assert.deepEqual(["layer1.0.conv1.weight", "onnx::Conv_193", "1045", "resnetv17_conv0_weight"].map(parameterName), [
    "weight",
    "",
    "",
    "weight",
  ]);
  assert.equal(relativeName("encoder/attention", "encoder"), "attention");
  assert.equal(relativeName("blocks.0", "blocks"), "blocks.0", "a number alone says nothing");
});

test("beside its operator a name goes without a step that only repeats it", () => {
  assert.equal(withoutOperator("/stem/bn/BatchNormalization", "BatchNormalization"), "/stem/bn");
  assert.equal(withoutOperator("/layer/MatMul_1", "com.microsoft::MatMul"), "/layer");
  assert.equal(withoutOperator("/layer/query/projection", "MatMul"), "/layer/query/projection");
  assert.equal(withoutOperator("Relu", "Relu"), "Relu");
  assert.equal(withoutOperator("/Relu", "Relu"), "/Relu");
});
