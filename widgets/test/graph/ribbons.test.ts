/** Values between two boxes as one line. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { SceneIndex } from "../../src/graph/canvas/visible.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { pickAt } from "../../src/graph/scene/pick.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import type { Store } from "../../src/model/store.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { looseEnds, overlaps, sceneOf } from "../fixtures/scenes.ts";

/** Two groups with `count` values between them, of which a third one reads the first. */
function blocks(count: number): Store {
  const model = new ModelBuilder(),
    x = model.input("x", "4");
  const relus = model.within("first", () => Array.from({ length: count }, () => model.node("Relu", [x], "4")));
  const sums = model.within("second", () => relus.map((value) => model.node("Exp", [value], "4")));
  const last = model.within("third", () => [model.node("Neg", [relus[0]!], "4"), model.node("Abs", [sums[0]!], "4")]);
  for (const value of [...sums.slice(1), ...last]) model.output(value);
  return model.store();
}

function linesInto(scene: Scene, title: string): number[] {
  const i = scene.boxes.findIndex((box) => box.title === title);
  const { segments, segmentArrow, x, y, w } = scene;
  return [...segmentArrow.keys()].filter((s) => {
    const [px, py] = [segments[4 * s + 2]!, segments[4 * s + 3]!];
    return segmentArrow[s] && Math.abs(py - y[i]!) < 1 && px >= x[i]! && px <= x[i]! + w[i]!;
  });
}

test("two groups have one line between them, that is found by each of its values and opens to all", () => {
  const store = blocks(60),
    hierarchy = new Hierarchy(store, 1),
    scene = sceneOf(store, hierarchy, new Set());
  const [line, ...others] = linesInto(scene, "second");
  assert.deepEqual(others, []);
  const values = scene.ribbons[scene.segmentRibbon[line!]!]!;
  assert.equal(values.length, 60);
  const index = new SceneIndex(scene);
  for (const value of values) assert.ok(index.segmentsOf(value).includes(line!));
  const x = scene.segments[4 * line! + 2]!,
    y = (scene.segments[4 * line! + 1]! + scene.segments[4 * line! + 3]!) / 2;
  const pick = pickAt(index, x, y, 4);
  assert.ok(pick.what === "value" && scene.ribbons[pick.ribbon]!.length === 60);
});

test("it goes through frames as one line, to one port, and parts at the boxes inside", () => {
  const store = blocks(12),
    hierarchy = new Hierarchy(store, 1);
  for (const opened of ["first", "second", "third", "all"]) {
    const keys = [...hierarchy.containers.values()].filter(({ name }) => opened === "all" || name === opened);
    const scene = sceneOf(store, hierarchy, new Set(keys.map(({ key }) => key)));
    assert.deepEqual(overlaps(scene), []);
    assert.deepEqual(looseEnds(scene, store), []);
    assert.equal(linesInto(scene, "second").length, 1, opened);
  }
});

test("lines between single nodes stay apart", () => {
  const model = new ModelBuilder(),
    x = model.input("x", "4");
  const [a, b] = [model.node("Relu", [x], "4"), model.node("Exp", [x], "4")];
  model.output(model.node("Add", [a, b], "4"));
  const store = model.store();
  assert.deepEqual(sceneOf(store, new Hierarchy(store, 1), new Set()).ribbons, []);
});
