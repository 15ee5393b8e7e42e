import assert from "node:assert/strict";
import { test } from "node:test";
import { SceneIndex } from "../../src/graph/canvas/visible.ts";
import { firstLook, hiddenIn } from "../../src/graph/groups/fold.ts";
import { GROUP, INPUT, idOf, keyOf, kindOf, NODE, OUTPUT } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { boxOfNode, step } from "../../src/graph/input/walk.ts";
import { ARROW_DOWN } from "../../src/graph/layout/problem.ts";
import { badgesOf, boxesOfValues, countsOf, heatOfBoxes, trailBoxes } from "../../src/graph/marks/marks.ts";
import { facts } from "../../src/graph/scene/boxes.ts";
import { contentOf } from "../../src/graph/scene/content.ts";
import { pickAt } from "../../src/graph/scene/pick.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import { SceneBuilder } from "../../src/graph/scene/scene_builder.ts";
import type { Store } from "../../src/model/store.ts";
import { commit } from "../fixtures/commits.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { control, mesh, residualChain, swin, transformer } from "../fixtures/networks.ts";
import { measure, overlaps, sceneOf, solver } from "../fixtures/scenes.ts";

function firstScene(
  model: ModelBuilder,
  scope = 1,
): { store: Store; hierarchy: Hierarchy; open: Set<number>; scene: Scene } {
  const store = model.store();
  const hierarchy = new Hierarchy(store, scope);
  const open = firstLook(store, hierarchy);
  return { store, hierarchy, open, scene: sceneOf(store, hierarchy, open) };
}

test("parts without names open up to twice as many boxes: folded they say nothing", () => {
  const opened = (kind: string): number => {
    const model = new ModelBuilder();
    let x = model.input("x");
    // branches of different lengths and operators, so that they are no run
    [50, 51, 52].forEach((count, i) =>
      model.within(`part ${i}`, () => {
        for (let k = 0; k < count; k++) x = model.node(["Sin", "Cos", "Exp"][i]!, [x], "4");
      }),
    );
    for (const group of model.groups) group.kind = kind as typeof group.kind;
    model.output(x);
    return firstScene(model).open.size;
  };
  assert.deepEqual([opened("scope"), opened("cut")], [1, 3]);
});

function center(scene: Scene, key: number): [number, number] {
  const i = scene.indexOf.get(key)!;
  return [scene.x[i]! + scene.w[i]! / 2, scene.y[i]! + scene.h[i]! / 2];
}

test("a first look opens groups up to about 100 boxes, alike ones together", () => {
  const { scene, store, hierarchy } = firstScene(swin());
  const shown = scene.boxes.filter((_, i) => !scene.frame[i]).length;
  assert.ok(shown > 5 && shown <= 110, `${shown} boxes`);
  const blocks = [...hierarchy.containers.values()].filter((container) => container.name === "mlp");
  const roomy = firstLook(store, hierarchy, 300);
  assert.equal(
    new Set(blocks.filter((container) => roomy.has(container.parent)).map((container) => roomy.has(container.key)))
      .size,
    1,
  );
});

test("boxes lie beside or inside one another, never across", () => {
  for (const model of [residualChain(4), transformer(3), control(), mesh(5, 8)]) {
    assert.deepEqual(overlaps(firstScene(model).scene), []);
  }
  assert.deepEqual(overlaps(firstScene(swin()).scene), []);
});

test("folding changes only which boxes show: contents are the same", () => {
  const { store, hierarchy } = firstScene(transformer(2));
  const top = contentOf(store, hierarchy, 0);
  assert.deepEqual(top.items.map(kindOf), [INPUT, INPUT, GROUP, NODE, OUTPUT]);
  const all = new Set(hierarchy.containers.keys());
  const open = sceneOf(store, hierarchy, all),
    folded = sceneOf(store, hierarchy, new Set());
  assert.equal(open.boxes.filter(({ kind }) => kind === NODE).length, store.nodes.size);
  assert.deepEqual(
    folded.boxes.map(({ title }) => title),
    [
      "input_ids",
      "attention_mask",
      "bert",
      "Gemm",
      top.items
        .map(idOf)
        .map((id) => store.values.get(id)?.name)
        .at(-1),
    ],
  );
});

test("values cross the border of a group through ports that the outer lines meet", () => {
  const { store, hierarchy } = firstScene(transformer(2));
  const bert = [...hierarchy.containers.values()].find((container) => container.name === "bert")!;
  const content = contentOf(store, hierarchy, bert.key);
  assert.deepEqual(content.top.map((id) => store.values.get(id)!.name).sort(), ["attention_mask", "input_ids"]);
  assert.equal(content.bottom.length, 1);
  const scene = sceneOf(store, hierarchy, new Set([bert.key]));
  const frame = scene.indexOf.get(bert.key)!;
  const at = (y: number): Set<string> =>
    new Set(
      [...scene.segmentValue.keys()]
        .flatMap((s) => [
          `${scene.segmentValue[s]} ${Math.round(scene.segments[4 * s]!)} ${scene.segments[4 * s + 1]!.toFixed(1) === y.toFixed(1)}`,
          `${scene.segmentValue[s]} ${Math.round(scene.segments[4 * s + 2]!)} ${scene.segments[4 * s + 3]!.toFixed(1) === y.toFixed(1)}`,
        ])
        .filter((text) => text.endsWith("true")),
    );
  // Outside and inside pieces of a line end in the same point of the frame's edge: one entry per value, not two.
  assert.equal(at(scene.y[frame]!).size, content.top.length);
  assert.equal(at(scene.y[frame]! + scene.h[frame]!).size, content.bottom.length);
});

test("groups of one thing are dissolved, and name scopes that are not convex draw all the same", () => {
  const model = new ModelBuilder();
  const x = model.input("x");
  const only = model.within("outer", () => model.within("inner", () => model.node("Relu", [x])));
  const a = model.within("scope", () => model.node("Neg", [only]));
  const between = model.node("Exp", [a]);
  model.groups.length; // "scope" goes on after a node outside of it: its quotient has a cycle.
  const again = model.nodes.push({
    name: "scope/Abs",
    op: "Abs",
    group: model.groups.length,
    scope: 1,
    inputs: [between],
    outputs: [model.value("again")],
  });
  model.output(model.nodes[again - 1]!.outputs[0]!);
  const { scene, hierarchy } = firstScene(model);
  assert.deepEqual(
    [...hierarchy.containers.values()].map(({ name }) => name),
    ["", "scope"],
  );
  assert.deepEqual(overlaps(scene), []);
  const folded = sceneOf(model.store(), hierarchy, new Set());
  assert.deepEqual(
    folded.boxes.map(({ title }) => title),
    ["x", "Relu", "scope", "Exp", "again"],
  );
});

test("initializers are facts of their consumer, not boxes", () => {
  const { scene, store } = firstScene(residualChain(1));
  assert.equal(scene.boxes.length, store.nodes.size + 2);
  const conv = scene.boxes.find(({ title }) => title === "Conv")!;
  assert.deepEqual(facts(store, conv), ["weight 64×3×7×7", "bias 64"]);
});

test("constants are drawn inside what reads them, unless something else than a node does", () => {
  const model = new ModelBuilder();
  const x = model.input("x");
  const [axes, second] = model.within("scope", () => [
    model.node("Constant", [], "1"),
    model.node("Constant", [], "2"),
  ]) as [number, number];
  const y = model.within("scope", () => model.node("Neg", [model.node("Unsqueeze", [x, axes], "1×4")]));
  [y, second].forEach((value) => model.output(value));
  const ground = firstScene(model);
  assert.deepEqual(
    ground.scene.boxes
      .filter(({ kind }) => kind === NODE)
      .map(({ title }) => title)
      .sort(),
    ["Constant", "Neg", "Unsqueeze"],
  );
  assert.equal(boxOfNode(ground, 1), ground.scene.indexOf.get(keyOf(NODE, 3)));
  assert.deepEqual(
    [...ground.hierarchy.containers.values()].map(({ size }) => size),
    [4, 2],
  );
});

test("what is made of weights alone is a parameter of what reads it, unless one asks for boxes", () => {
  const model = new ModelBuilder(),
    x = model.input("x"),
    shape = model.parameter("weight_shape", "4");
  const filled = model.node("ConstantOfShape", [shape], "64×3×7×7"),
    weight = model.node("Mul", [filled, model.node("Constant", [], "scalar")], "64×3×7×7");
  const noise = model.node("RandomNormal", [], "8"),
    dynamic = model.node("ConstantOfShape", [x], "8");
  model.output(model.node("Conv", [x, weight, noise, dynamic], "1×64×2×2"));
  const { scene, hierarchy, store, open } = firstScene(model),
    conv = scene.indexOf.get(keyOf(NODE, 6))!;
  assert.deepEqual(
    scene.boxes.filter(({ kind }) => kind === NODE).map(({ title }) => title),
    ["RandomNormal", "ConstantOfShape", "Conv"],
  );
  assert.deepEqual(facts(store, scene.boxes[conv]!), ["64×3×7×7"]);
  for (const node of [1, 2, 3]) assert.equal(boxOfNode({ hierarchy, open, scene }, node), conv);
  const all = sceneOf(store, new Hierarchy(store, 1, true), open);
  assert.equal(all.boxes.length, store.nodes.size + 2);
  assert.deepEqual(facts(store, all.boxes[all.indexOf.get(keyOf(NODE, 6))!]!), []);
});

test("new shapes change no box and so no layout", () => {
  const model = residualChain(2);
  const before = firstScene(model).scene;
  for (const value of model.values) value.label = value.label && "a×very×long×shape×of×a×value×1024";
  const after = firstScene(model).scene;
  assert.deepEqual(after.x, before.x);
  assert.deepEqual(after.segments, before.segments);
});

test("after an edit boxes keep their order and rows away from it", () => {
  const model = mesh(4, 6);
  const store = model.store();
  const builder = new SceneBuilder(store, solver, measure);
  const before = builder.build(new Hierarchy(store, 1), new Set()) as Scene;
  const last = [...store.nodes.values()].at(-1)!;
  store.apply(commit({ nodes: [{ ...last, inputs: [last.inputs[0]!] }], history: store.history }));
  const after = builder.build(new Hierarchy(store, 1), new Set()) as Scene;
  for (let row = 0; row < 4; row++) {
    const keys = [...store.nodes.values()].slice(row * 6, row * 6 + 5).map(({ id }) => keyOf(NODE, id));
    const order = (scene: Scene): number[] => [...keys].sort((a, b) => center(scene, a)[0] - center(scene, b)[0]);
    assert.deepEqual(order(after), order(before));
  }
});

test("picking finds boxes before lines, signs, title bars, labels and lines", () => {
  const { scene } = firstScene(transformer(1));
  const index = new SceneIndex(scene);
  scene.boxes.forEach((box, i) => {
    if (scene.frame[i]) {
      assert.deepEqual(pickAt(index, scene.x[i]! + 3, scene.y[i]! + 8, 1), {
        what: "frame",
        index: i,
        fold: false,
        all: false,
      });
      assert.deepEqual(pickAt(index, scene.x[i]! + scene.w[i]! - 8, scene.y[i]! + 12, 1), {
        what: "frame",
        index: i,
        fold: true,
        all: false,
      });
    } else {
      const [x, y] = center(scene, box.key);
      assert.deepEqual(pickAt(index, x, y, 4), { what: "box", index: i, fold: false, enter: false });
    }
  });
  const label = scene.labels[0]!;
  assert.deepEqual(pickAt(index, label.x + 4, label.y, 1), {
    what: "value",
    value: label.value,
    portal: -1,
    ribbon: -1,
  });
  assert.deepEqual(pickAt(index, -500, -500, 4), { what: "ground", frame: -1 });
});

test("what is drawn is what the camera sees", () => {
  const { scene } = firstScene(mesh(6, 20));
  const index = new SceneIndex(scene);
  const x = scene.width / 2,
    y = scene.height / 2;
  const hits = index.boxesIn(x - 150, y - 150, x + 150, y + 150);
  const expected = [...scene.boxes.keys()].filter(
    (i) =>
      scene.x[i]! <= x + 150 &&
      scene.x[i]! + scene.w[i]! >= x - 150 &&
      scene.y[i]! <= y + 150 &&
      scene.y[i]! + scene.h[i]! >= y - 150,
  );
  assert.ok(hits.length > 3);
  assert.deepEqual(hits, expected);
});

test("arrow keys walk along values and rows, through frames", () => {
  const ground = firstScene(transformer(1));
  const { scene, store } = ground;
  let box = scene.indexOf.get(keyOf(INPUT, store.scopes.get(1)!.inputs[0]!))!;
  const seen: string[] = [];
  while (box >= 0) {
    seen.push(scene.boxes[box]!.title);
    box = step(ground, box, "down");
  }
  assert.deepEqual(seen.slice(0, 3), ["input_ids", "Gather", "Add"]);
  assert.equal(seen.at(-2), "Gemm");
  const up = step(ground, scene.indexOf.get(keyOf(NODE, store.nodes.size))!, "up");
  assert.equal(scene.boxes[up]!.title, "LayerNormalization");
});

test("a picture that reads to the right is one that reads down, turned: nothing overlaps, lines begin and end at their boxes", () => {
  for (const model of [transformer(2), residualChain(3), mesh(6, 4)]) {
    const { store, hierarchy, open } = firstScene(model);
    const down = sceneOf(store, hierarchy, open);
    const scene = new SceneBuilder(store, solver, measure).build(hierarchy, open, "right");
    assert.ok(!(scene instanceof Promise));
    assert.deepEqual(new Set(scene.indexOf.keys()), new Set(down.indexOf.keys()));
    const { x, y, w, h, frame, segments, segmentArrow } = scene;
    for (let i = 0; i < x.length; i++) {
      assert.ok(x[i]! >= 0 && y[i]! >= 0 && x[i]! + w[i]! <= scene.width + 1 && y[i]! + h[i]! <= scene.height + 1);
      for (let j = 0; j < i; j++) {
        if (frame[i] || frame[j]) continue;
        const apart =
          x[i]! >= x[j]! + w[j]! || x[j]! >= x[i]! + w[i]! || y[i]! >= y[j]! + h[j]! || y[j]! >= y[i]! + h[i]!;
        assert.ok(apart, "boxes lie beside one another");
      }
    }
    const index = new SceneIndex(scene);
    segmentArrow.forEach((arrow, s) => {
      const [x1, , x2, y2] = segments.subarray(4 * s, 4 * s + 4) as unknown as [number, number, number, number];
      assert.ok(x1 <= x2 + 1e-6, "lines run to the right");
      if (arrow === ARROW_DOWN)
        assert.ok(
          index.boxesNear(x2, y2, 1).some((i) => Math.abs(x[i]! - x2) < 1),
          "an arrow ends at a box's left edge",
        );
    });
    const first = scene.boxes.findIndex(({ kind }, i) => kind === NODE && !frame[i]);
    if (first < 0) continue;
    const next = step({ store, hierarchy, open, scene }, first, "right");
    assert.ok(next < 0 || x[next]! > x[first]!, "the right arrow goes along values");
  }
});

test("numbers of a folded group add up, kinds are counted, and what flashes or lies on a trail is found in it", () => {
  const { store, hierarchy } = firstScene(transformer(1));
  const scene = sceneOf(store, hierarchy, new Set());
  const ground = { store, hierarchy, open: new Set<number>(), scene };
  const inside = [...store.nodes.values()].filter(({ op }) => op === "MatMul").map(({ id }) => id);
  const bert = scene.indexOf.get([...hierarchy.containers.values()].find(({ name }) => name === "bert")!.key)!;
  const numbers = new Map(inside.map((node, i) => [node, i % 3 ? 1 : 0]));
  const most = inside.filter((_, i) => i % 3).length;
  assert.deepEqual(heatOfBoxes(ground, { title: "", unit: "", kinds: [], numbers }).get(bert), {
    share: 1,
    text: String(most),
  });
  assert.deepEqual(heatOfBoxes(ground, { title: "", unit: "", kinds: ["cpu", "gpu"], numbers }).get(bert), {
    share: 1,
    kind: 1,
    text: `gpu +${inside.length - most}`,
  });
  const seconds = new Map(inside.map((node) => [node, 1])); // no node is of the first kind
  assert.equal(
    heatOfBoxes(ground, { title: "", unit: "", kinds: ["cpu", "gpu"], numbers: seconds }).get(bert)!.kind,
    1,
  );
  const errors = new Map(inside.map((node, i) => [node, i ? 1e-7 : 1e-2]));
  const worst = heatOfBoxes(ground, { title: "", unit: "", kinds: [], numbers: errors, scale: "log" }).get(bert)!;
  assert.ok(worst.text === "0.01" && worst.share > 0.5, "a group has the largest error of its nodes");
  const input = scene.boxes.findIndex(({ kind }) => kind === INPUT);
  const value = store.nodes.get(inside[0]!)!.outputs[0]!;
  assert.deepEqual(boxesOfValues(ground, [value, scene.boxes[input]!.id]), new Set([bert, input]));
  assert.deepEqual(trailBoxes(ground, new Set(inside.slice(0, 1))), new Set([bert]));
  const reader = store.uses(scene.boxes[input]!.id)[0]!.node;
  assert.ok(trailBoxes(ground, new Set([reader])).has(input));
});

test("badges and counts go to the folded group that hides their node", () => {
  const { store, hierarchy, open } = firstScene(transformer(1));
  const folded = sceneOf(store, hierarchy, new Set());
  const ground = { store, hierarchy, open: new Set<number>(), scene: folded };
  const inside = [...store.nodes.values()].filter(({ op }) => op === "MatMul").map(({ id }) => id);
  const bert = [...hierarchy.containers.values()].find(({ name }) => name === "bert")!;
  const box = folded.indexOf.get(bert.key)!;
  assert.deepEqual(countsOf(ground, inside), new Map([[box, inside.length]]));
  const problem = { code: "shape", message: "", value: 0, expected: "", found: "", hint: "" };
  const badges = badgesOf(ground, [
    { ...problem, severity: "warning", node: inside[0]! },
    { ...problem, severity: "error", node: inside[1]! },
    { ...problem, severity: "info", node: inside[2]! },
  ]);
  assert.deepEqual(badges, new Map([[box, { severity: "error", count: 2 }]]));
  assert.equal(hiddenIn(hierarchy, new Set(), inside[0]!), bert.key);
  assert.equal(hiddenIn(hierarchy, open, inside[0]!), 0);
  assert.ok(hierarchy.below(bert.key).length > 5);
});

test("time of a folded scene of 8,000 nodes", (t) => {
  const store = swin().store();
  const began = performance.now();
  const hierarchy = new Hierarchy(store, 1);
  const scene = sceneOf(store, hierarchy, firstLook(store, hierarchy));
  t.diagnostic(`${store.nodes.size} nodes, ${scene.boxes.length} boxes: ${(performance.now() - began).toFixed(0)} ms`);
  assert.ok(scene.boxes.length < 400);
});
