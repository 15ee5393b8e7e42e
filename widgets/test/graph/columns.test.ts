/** Tall layouts in columns. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../../src/graph/canvas/camera.ts";
import { keyOf, NODE } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { SIGN_RADIUS } from "../../src/graph/layout/columns.ts";
import type { Scene } from "../../src/graph/scene/scene.ts";
import { SceneBuilder } from "../../src/graph/scene/scene_builder.ts";
import { home, MARGIN } from "../../src/graph/view/viewpoint.ts";
import type { Store } from "../../src/model/store.ts";
import { commit } from "../fixtures/commits.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { mesh, residualChain } from "../fixtures/networks.ts";
import { looseEnds, measure, overlaps, solver } from "../fixtures/scenes.ts";

function draw(
  store: Store,
  flow: "down" | "right" = "down",
  columns = true,
  builder = new SceneBuilder(store, solver, measure),
): Scene {
  const scene = builder.build(new Hierarchy(store, 1), new Set(), flow, columns);
  assert.ok(!(scene instanceof Promise));
  return scene;
}

/** Box by box in reading order: where a column begins. */
function breaks(scene: Scene, store: Store): number[] {
  const at = [...store.nodes.keys()].flatMap((id) => scene.indexOf.get(keyOf(NODE, id)) ?? []);
  return at.filter((i, k) => k > 0 && scene.y[i]! < scene.y[at[k - 1]!]! - 200).map((i) => scene.boxes[i]!.id);
}

test("a chain of hundreds of boxes is put into columns of the shape of a screen, lines whole and no box on another", () => {
  const store = residualChain(60).store();
  for (const flow of ["down", "right"] as const) {
    const tall = draw(store, flow, false),
      scene = draw(store, flow);
    const aspect = scene.width / scene.height;
    assert.ok(aspect > 0.8 && aspect < 3.2, `${flow}: ${scene.width} × ${scene.height}`);
    assert.ok(Math.max(tall.width / tall.height, tall.height / tall.width) > 8);
    assert.deepEqual(overlaps(scene), []);
    assert.equal(scene.boxes.length, tall.boxes.length);
    assert.equal(scene.crossings, tall.crossings);
    for (const places of [scene.x, scene.y]) assert.ok(places.every((place) => place >= 0));
    scene.x.forEach((x, i) =>
      assert.ok(x + scene.w[i]! <= scene.width + 1 && scene.y[i]! + scene.h[i]! <= scene.height + 1),
    );
    if (flow === "down") assert.deepEqual(looseEnds(scene, store), []);
  }
});

test("a line goes on in the next column at its number; signs cover neither boxes nor each other", () => {
  const store = residualChain(60).store();
  for (const flow of ["down", "right"] as const) {
    const { portals, x, y, w, h } = draw(store, flow);
    const signs = portals.filter(({ number }) => number > 0);
    assert.ok(signs.length >= 4);
    for (const sign of signs) {
      const twins = signs.filter(({ number }) => number === sign.number);
      assert.deepEqual(twins.map(({ atSource }) => atSource).sort(), [false, true]);
      const twin = twins.find((candidate) => candidate !== sign)!;
      assert.deepEqual(sign.elsewhere, { x: twin.x, y: twin.y });
      assert.equal(sign.value, twin.value);
      for (const other of signs)
        if (other !== sign) assert.ok(Math.hypot(other.x - sign.x, other.y - sign.y) > 2 * SIGN_RADIUS);
      x.forEach((left, i) => {
        const dx = Math.max(left - sign.x, 0, sign.x - left - w[i]!),
          dy = Math.max(y[i]! - sign.y, 0, sign.y - y[i]! - h[i]!);
        assert.ok(Math.hypot(dx, dy) > SIGN_RADIUS, "a box is under a sign");
      });
    }
  }
});

test("a first look at columns has no empty half beside the first one, whichever way they run", () => {
  const store = residualChain(60).store();
  for (const flow of ["down", "right"] as const) {
    const camera = new Camera(),
      scene = draw(store, flow);
    Object.assign(camera, { width: 900, height: 600 });
    home(camera, scene);
    assert.ok(
      camera.x >= -MARGIN / camera.zoom && camera.y >= -MARGIN / camera.zoom && camera.zoom > 0.7,
      `${flow}: ${camera.x}, ${camera.y}`,
    );
    const first = scene.indexOf.get(keyOf(NODE, 1))!;
    assert.ok(camera.toScreenX(scene.x[first]!) < 900 && camera.toScreenY(scene.y[first]!) < 600);
  }
});

test("what is not tall stays as it is, and so does what too many lines run along", () => {
  const wide = mesh(5, 8).store();
  assert.deepEqual(draw(wide).x, draw(wide, "down", false).x);
  const model = new ModelBuilder();
  let side = Array.from({ length: 17 }, (_, i) => model.input(`in${i}`, "8"));
  for (let i = 0; i < 260; i++) side = side.map((value) => model.node("Relu", [value], "8"));
  model.output(model.node("Concat", side, "8"));
  const narrow = model.store(),
    drawn = draw(narrow);
  assert.ok(drawn.height > 8 * drawn.width);
});

test("an edit at the end leaves the columns before it where they are", () => {
  const model = residualChain(60),
    store = model.store(),
    builder = new SceneBuilder(store, solver, measure);
  const before = draw(store, "down", true, builder),
    began = breaks(before, store);
  assert.ok(began.length >= 3);
  const last = [...store.nodes.values()].at(-1)!;
  store.apply(
    commit({
      nodes: Array.from({ length: 12 }, (_, i) => ({
        ...last,
        id: 90_001 + i,
        name: `more_${i}`,
        inputs: [i ? 90_000 + i : last.outputs[0]!],
        outputs: [90_001 + i],
      })),
      values: Array.from({ length: 12 }, (_, i) => ({
        id: 90_001 + i,
        name: `more_${i}`,
        label: "8",
        flags: 0,
        scope: 1,
      })),
      history: store.history,
    }),
  );
  const after = draw(store, "down", true, builder);
  assert.deepEqual(breaks(after, store).slice(0, began.length), began);
});
