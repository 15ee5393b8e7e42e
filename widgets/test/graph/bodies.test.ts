/** Subgraphs of control flow drawn inside their node. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { firstLook, hiddenIn, withFolded, withOpen } from "../../src/graph/groups/fold.ts";
import { BODY, INPUT, keyOf, NODE, OUTPUT, OUTSIDE } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { boxOfNode, step } from "../../src/graph/input/walk.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import { CONTROL } from "../../src/kernel/protocol.ts";
import type { Store } from "../../src/model/store.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { control, loop } from "../fixtures/networks.ts";
import { looseEnds, overlaps, sceneOf } from "../fixtures/scenes.ts";

const find = (store: Store, op: string): number => [...store.nodes.values()].find((node) => node.op === op)!.id;

function opened(model: ModelBuilder): { store: Store; hierarchy: Hierarchy; open: Set<number>; scene: Scene } {
  const store = model.store(),
    hierarchy = new Hierarchy(store, 1);
  const open = new Set(hierarchy.containers.keys());
  return { store, hierarchy, open, scene: sceneOf(store, hierarchy, open) };
}

function inside(scene: Scene, outer: number, inner: number): boolean {
  const [a, b] = [scene.indexOf.get(outer)!, scene.indexOf.get(inner)!];
  const { x, y, w, h } = scene;
  return x[b]! >= x[a]! && y[b]! >= y[a]! && x[b]! + w[b]! <= x[a]! + w[a]! && y[b]! + h[b]! <= y[a]! + h[a]!;
}

test("an If opens to a frame with its branches side by side, then_branch first by name", () => {
  const { scene, store } = opened(control());
  const host = keyOf(NODE, find(store, "If")),
    branches = [keyOf(BODY, 2), keyOf(BODY, 3)];
  assert.equal(scene.frame[scene.indexOf.get(host)!], 1);
  for (const branch of branches) assert.ok(inside(scene, host, branch));
  const [then, other] = branches.map((key) => scene.indexOf.get(key)!) as [number, number];
  assert.deepEqual([scene.boxes[then]!.title, scene.boxes[other]!.title], ["then_branch", "else_branch"]);
  assert.equal(scene.y[then], scene.y[other]);
  for (const node of store.nodes.values())
    if (node.scope > 1) assert.ok(inside(scene, keyOf(BODY, node.scope), keyOf(NODE, node.id)));
  assert.deepEqual(overlaps(scene), []);
});

test("lines lead through the frames: captures dashed, results from both branches to what reads them", () => {
  for (const model of [control(), loop()]) {
    const { scene, store } = opened(model);
    assert.deepEqual(looseEnds(scene, store), []);
  }
  const { scene, store } = opened(control());
  const captured = store.nodes.get(find(store, "Mul"))!.outputs[0]!,
    result = store.nodes.get(find(store, "If"))!.outputs[0]!;
  const dashes = (value: number): number[] =>
    [...scene.segmentValue.keys()].filter((s) => scene.segmentValue[s] === value).map((s) => scene.segmentDashed[s]!);
  assert.ok(dashes(captured).length > 3 && dashes(captured).every((dash) => dash === 1));
  assert.ok(dashes(result).length > 3 && dashes(result).every((dash) => dash === 0));
});

test("a control edge is dashed, and apart from the data that goes the same way", () => {
  const model = new ModelBuilder(),
    x = model.input("x", "4");
  const data = model.node("Split", [x], "4", "", 2),
    control = data + 1;
  model.values[control - 1]!.flags |= CONTROL;
  model.within("net", () => {
    model.output(model.node("Add", [data, control], "4"));
    model.node("Send", [control], "");
  });
  const store = model.store(),
    scene = sceneOf(store, new Hierarchy(store, 1), new Set());
  const dashes = (value: number): Set<number> =>
    new Set(
      [...scene.segmentValue.keys()].filter((s) => scene.segmentValue[s] === value).map((s) => scene.segmentDashed[s]!),
    );
  assert.deepEqual([dashes(data), dashes(control)], [new Set([0]), new Set([1])]);
});

test("folded, a node with subgraphs is a box that what they capture leads to; entered, they have it from outside", () => {
  const store = control().store(),
    hierarchy = new Hierarchy(store, 1);
  const scene = sceneOf(store, hierarchy, new Set());
  const captured = store.nodes.get(find(store, "Mul"))!.outputs[0]!;
  assert.ok([...scene.segmentValue].some((value, s) => value === captured && scene.segmentDashed[s] === 1));
  assert.ok(!scene.indexOf.has(keyOf(BODY, 2)));
  const entered = new Hierarchy(store, 2);
  assert.ok(sceneOf(store, entered, new Set()).indexOf.has(keyOf(OUTSIDE, captured)));
});

test("a Loop hands values to its body and takes them back, also one inside another", () => {
  const { scene, store, hierarchy, open } = opened(loop());
  const loops = [...store.nodes.values()].filter(({ op }) => op === "Loop");
  assert.equal(loops.length, 2);
  const [outer, nested] = loops as [(typeof loops)[0], (typeof loops)[0]];
  const body = [...store.scopes.values()].find(({ owner }) => owner === outer.id)!;
  assert.ok(inside(scene, keyOf(NODE, outer.id), keyOf(NODE, nested.id)));
  // The carried value goes in at its formal's box, and what the body makes of it comes out as the Loop's output.
  const ends = (value: number, key: number, edge: "top" | "bottom"): boolean => {
    const i = scene.indexOf.get(key)!,
      y = scene.y[i]! + (edge === "top" ? 0 : scene.h[i]!);
    return [...scene.segmentValue.keys()].some(
      (s) =>
        scene.segmentValue[s] === value &&
        Math.abs(scene.segments[4 * s + (edge === "top" ? 3 : 1)]! - y) < 0.6 &&
        scene.segments[4 * s + (edge === "top" ? 2 : 0)]! >= scene.x[i]! &&
        scene.segments[4 * s + (edge === "top" ? 2 : 0)]! <= scene.x[i]! + scene.w[i]!,
    );
  };
  assert.ok(ends(outer.inputs[2]!, keyOf(INPUT, body.inputs[2]!), "top"));
  assert.ok(ends(outer.outputs[0]!, keyOf(OUTPUT, body.outputs[1]!), "bottom"));
  const ground = { store, hierarchy, open, scene };
  const up = step(ground, scene.indexOf.get(keyOf(INPUT, body.inputs[2]!))!, "up");
  assert.equal(scene.boxes[up]!.title, "Relu", "up from a formal leads to what makes the value");
  assert.equal(
    step(ground, scene.indexOf.get(keyOf(NODE, find(store, "Tanh")))!, "up"),
    scene.indexOf.get(keyOf(OUTPUT, body.outputs[1]!)),
  );
  assert.equal(
    step(ground, scene.indexOf.get(keyOf(OUTPUT, body.outputs[1]!))!, "down"),
    scene.indexOf.get(keyOf(NODE, find(store, "Tanh"))),
  );
});

test("a node deep inside is found in what is folded around it, and opening it opens the way", () => {
  const { store, hierarchy } = opened(loop());
  const deep = find(store, "Exp");
  const [outer] = [...store.nodes.values()].filter(({ op }) => op === "Loop");
  const folded = sceneOf(store, hierarchy, new Set());
  const ground = { store, hierarchy, open: new Set<number>(), scene: folded };
  assert.equal(folded.boxes[boxOfNode(ground, deep)]!.id, outer!.id);
  const open = withOpen(hierarchy, new Set(), hierarchy.containerOf(deep)!);
  assert.equal(hiddenIn(hierarchy, open, deep), 0);
  const scene = sceneOf(store, hierarchy, open);
  assert.equal(scene.boxes[boxOfNode({ ...ground, open, scene }, deep)]!.id, deep);
  assert.equal(hiddenIn(hierarchy, withFolded(hierarchy, open, keyOf(NODE, outer!.id)), deep), keyOf(NODE, outer!.id));
});

test("a first look opens small bodies with their node", () => {
  const store = control().store(),
    hierarchy = new Hierarchy(store, 1);
  const open = firstLook(store, hierarchy);
  assert.ok(open.has(keyOf(NODE, find(store, "If"))) && open.has(keyOf(BODY, 2)) && open.has(keyOf(BODY, 3)));
  assert.ok(!firstLook(store, hierarchy, 6).has(keyOf(NODE, find(store, "If"))));
});

test("a body that gives out what it did not make has a line all the way", () => {
  const model = new ModelBuilder();
  const x = model.input("x"),
    flag = model.input("flag");
  const relu = model.node("Relu", [x]);
  const result = model.node("If", [flag]);
  model.body("then_branch", () => model.output(model.node("Neg", [relu])));
  model.body("else_branch", () => model.output(relu));
  model.output(result);
  const { scene, store } = opened(model);
  assert.deepEqual(looseEnds(scene, store), []);
  assert.deepEqual(overlaps(scene), []);
  const passed = scene.boxes.filter(({ kind, id }) => kind === OUTPUT && id === relu);
  assert.deepEqual(
    passed.map(({ title }) => title),
    [store.values.get(relu)!.name],
  );
});
