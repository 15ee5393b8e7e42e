import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../src/graph/canvas/camera.ts";
import { GROUP, keyOf, NODE, REPEAT } from "../../src/graph/groups/group_keys.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import { inView } from "../../src/graph/view/lookout.ts";
import { outlineData, outlineRows } from "../../src/model/outline_rows.ts";
import type { Store } from "../../src/model/store.ts";
import { whereIs } from "../../src/model/where.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { transformer } from "../fixtures/networks.ts";

/** A frame of a repeat around a frame of a group around a node. */
function scene(repeat: number, group: number): Scene {
  const keys = [keyOf(REPEAT, repeat), keyOf(GROUP, group), keyOf(NODE, 1)];
  return {
    boxes: keys.map((key) => ({ key })),
    x: Float64Array.of(0, 100, 300),
    y: Float64Array.of(0, 100, 400),
    w: Float64Array.of(1000, 800, 100),
    h: Float64Array.of(1000, 800, 40),
    frame: Uint8Array.of(1, 1, 0),
    depth: Uint8Array.of(0, 1, 2),
  } as unknown as Scene;
}

function camera(x: number, y: number, size: number): Camera {
  const placed = new Camera();
  Object.assign(placed, { x, y, width: size, height: size });
  return placed;
}

test("what shows as a whole surrounds nothing; what reaches beyond does, with titles out of sight", () => {
  assert.deepEqual(inView({ scene: scene(5, 7) }, camera(-10, -10, 1020)).path, []);
  const inside = inView({ scene: scene(5, 7) }, camera(250, 300, 300));
  assert.deepEqual(
    inside.path.map(({ group, isRepeat, hidden }) => [group, isRepeat, hidden]),
    [
      [5, true, true],
      [7, false, true],
    ],
  );
  assert.deepEqual([...inside.groups], [5, 7]);
});

test("inside of one of a repeat, that one is where one is, not the first", () => {
  const group = (id: number, parent: number) => [id, { id, parent, name: `g${id}` }] as const;
  const store = { groups: new Map([group(1, 0), group(2, 0), group(3, 2)]) } as unknown as Store;
  const path = [
    { group: 1, isRepeat: true, hidden: true },
    { group: 3, isRepeat: false, hidden: false },
  ];
  assert.deepEqual(whereIs(store, path), [
    { id: 2, hidden: true },
    { id: 3, hidden: false },
  ]);
  assert.deepEqual(whereIs(store, []), []);
});

test("the outline lists groups, opens them, and filters by names and operators", () => {
  const store = transformer(3).store(),
    scope = [...store.nodes.values()][0]!.scope;
  const data = outlineData(store, scope, null);
  const closed = outlineRows(store, data, new Set(), "");
  assert.ok(closed.length < store.nodes.size / 2);
  const group = closed.find(({ kind }) => kind === "group")!;
  const open = outlineRows(store, data, new Set([group.id]), "");
  assert.ok(open.length > closed.length);
  assert.ok(open.filter(({ depth }) => depth === 1).length > 0);
  const op = store.nodes.values().next().value!.op;
  const filtered = outlineRows(store, data, new Set(), op);
  const count = [...store.nodes.values()].filter((node) => node.op === op).length;
  assert.ok(filtered.filter(({ kind, detail }) => kind === "node" && detail === op).length >= count);
  assert.deepEqual(outlineRows(store, data, new Set(), "no such thing"), []);
});

test("nodes that only make parameters are in the outline where a filter asks for them", () => {
  const model = new ModelBuilder();
  const x = model.input("x");
  const identity = model.node("Identity", [model.parameter("w", "8×8")], "8×8", "maker");
  model.node("Identity", [model.parameter("v", "8×8")], "8×8", "unread");
  model.output(model.node("MatMul", [x, identity], "8", "product"));
  const store = model.store(),
    data = outlineData(store, 1, null);
  const names = (filter: string) => outlineRows(store, data, new Set(), filter).map(({ name }) => name);
  assert.deepEqual(names(""), ["unread", "product"]);
  assert.deepEqual(names("maker"), ["maker"]);
});

test("weights count in the outline where they are read, and what makes them sets no order", () => {
  const model = new ModelBuilder();
  const shape = model.parameter("shape", "2");
  const weight = model.node("ConstantOfShape", [shape], "100×100", "maker"),
    small = model.node("MatMul", [model.input("x"), model.parameter("v", "8×8")], "8", "MatMul");
  model.output(model.node("Gemm", [small, weight], "8", "large"));
  const store = model.store(),
    data = outlineData(store, 1, null),
    ids = new Map([...store.nodes.values()].map(({ id, name }) => [name, id]));
  assert.deepEqual(
    data.children.get(0)!.map(({ id }) => id),
    ["MatMul", "large", "maker"].map((name) => ids.get(name)),
  );
  const number = (name: string) => data.ofNode.get(ids.get(name)!);
  assert.deepEqual([number("maker"), number("MatMul"), number("large")], [0, 64, 10000]);
  const words = outlineRows(store, data, new Set(), "").map(({ detail, name }) => [detail, name]);
  assert.deepEqual(words, [
    ["MatMul", ""],
    ["Gemm", "large"],
  ]);
});

test("nodes have the names of the picture in the outline, and whole ones where a filter asks", () => {
  const model = new ModelBuilder();
  model.output(model.node("BatchNormalization", [model.input("x")], "8", "/stem/bn/BatchNormalization"));
  const store = model.store(),
    data = outlineData(store, 1, null),
    open = new Set(store.groups.keys());
  const nodes = (filter: string) => outlineRows(store, data, open, filter).filter(({ kind }) => kind === "node");
  assert.deepEqual(
    nodes("").map(({ name, title }) => [name, title]),
    [["bn", "/stem/bn/BatchNormalization"]],
  );
  assert.equal(nodes("stem/bn")[0]?.name, "/stem/bn/BatchNormalization");
});
