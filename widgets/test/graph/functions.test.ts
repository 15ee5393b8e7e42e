/** Models that are made of functions: where they open, and which inputs of a function are weights. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { firstScope } from "../../src/graph/groups/first_scope.ts";
import { INPUT } from "../../src/graph/groups/group_keys.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { isWeight } from "../../src/model/weights.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { sceneOf } from "../fixtures/scenes.ts";

/** A main graph that calls Net alone, which calls Block three times; `data`: whether one call hands data as a weight. */
function nested(data = false): { model: ModelBuilder; net: number[]; block: number[] } {
  const model = new ModelBuilder();
  const x = model.input("x", "b×4"),
    stored = ["a", "b", "c"].map((name) => model.parameter(`${name}.weight`, "4×4"));
  const copied = model.node("Identity", [stored[2]!], "4×4");
  model.output(model.node("Net", [x, stored[0]!, stored[1]!, copied], "b×4"));
  const block = model.function("Block", () => {
    const inputs = [model.input("x", "b×4"), model.input("w", "4×4")];
    model.output(model.node("MatMul", inputs, "b×4"));
    return inputs;
  });
  const net = model.function("Net", () => {
    const inputs = ["x", "a.weight", "b.weight", "c.weight"].map((name, i) => model.input(name, i ? "4×4" : "b×4"));
    let last = inputs[0]!;
    for (const weight of inputs.slice(1)) last = model.node("Block", [last, data ? last : weight], "b×4");
    model.output(last);
    return inputs;
  });
  return { model, net, block };
}

test("inputs of a function are weights where every call fills them with what is stored, or made of it", () => {
  const { model, net, block } = nested();
  const store = model.store();
  assert.deepEqual(
    net.map((value) => isWeight(store, value)),
    [false, true, true, true],
  );
  assert.deepEqual(
    block.map((value) => isWeight(store, value)),
    [false, true],
  );
  const other = nested(true);
  assert.deepEqual(
    other.block.map((value) => isWeight(other.model.store(), value)),
    [false, false],
  );
});

test("a model that does nothing but call a function opens on what that is made of", () => {
  const { model } = nested();
  const store = model.store(),
    scope = firstScope(store);
  assert.equal(store.scopes.get(scope)!.name, "Net");
  const scene = sceneOf(store, new Hierarchy(store, scope), new Set());
  assert.equal(scene.boxes.filter(({ kind }) => kind === INPUT).length, 1); // weights are no boxes
  assert.equal(scene.boxes.filter(({ title }) => title === "Block").length, 3);
});

test("any other model opens on its main graph", () => {
  const { model } = nested();
  model.node("Relu", [1], "b×4");
  assert.equal(firstScope(model.store()), 1);
  assert.equal(firstScope(new ModelBuilder().store()), 1);
});
