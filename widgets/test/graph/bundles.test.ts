import assert from "node:assert/strict";
import { test } from "node:test";
import { bundlesOf } from "../../src/graph/groups/bundles.ts";
import { Hierarchy } from "../../src/graph/groups/hierarchy.ts";
import { facts } from "../../src/graph/scene/boxes.ts";
import type { Store } from "../../src/model/store.ts";
import { ModelBuilder } from "../fixtures/model.ts";
import { sceneOf } from "../fixtures/scenes.ts";

function withInputs(names: readonly string[]): { store: Store; inputs: readonly number[] } {
  const model = new ModelBuilder();
  const inputs = names.map((name) => model.input(name));
  model.output(model.node("Concat", inputs));
  const store = model.store();
  return { store, inputs: store.scopes.get(1)!.inputs };
}

/** Names of the bundles with the number of their values. */
function bundled(names: readonly string[]): string[] {
  const { store, inputs } = withInputs(names);
  return [...new Set(bundlesOf(store, inputs).values())].map(({ name, values }) => `${name} ×${values.length}`);
}

const layers = [0, 1, 2, 3, 4, 5];

test("inputs that differ in numbers and in one word are one", () => {
  assert.deepEqual(bundled(layers.map((i) => `past.${i}.key`)), ["past.{0…5}.key ×6"]);
  assert.deepEqual(bundled(layers.flatMap((i) => [`past.${i}.k`, `past.${i}.v`])), ["past.{0…5}.{k,v} ×12"]);
  assert.deepEqual(bundled(["ids", ...layers.map((i) => `x_07_${i}`)]), ["x_07_{0…5} ×6"], "digits stay as they are");
});

test("what differs in two words, or is there another number of times, is not put together", () => {
  assert.deepEqual(bundled(layers.flatMap((i) => [`enc.${i}.key`, `dec.${i}.value`])), [
    "enc.{0…5}.key ×6",
    "dec.{0…5}.value ×6",
  ]);
  assert.deepEqual(bundled([...layers.map((i) => `p.${i}.k`), ...layers.slice(1).map((i) => `p.${i}.v`)]), [
    "p.{0…5}.k ×6",
    "p.{1…5}.v ×5",
  ]);
  assert.deepEqual(bundled(["a1", "a2", "a3"]), [], "few are drawn one by one");
});

test("one box for several inputs says the shape that all of them have", () => {
  const { store, inputs } = withInputs(layers.flatMap((i) => [`past.${i}.k`, `past.${i}.v`]));
  const [box] = sceneOf(store, new Hierarchy(store, 1), new Set()).boxes.filter(({ title }) => title.includes("past"));
  for (const value of inputs) store.values.get(value)!.label = "1×12×past×64";
  assert.deepEqual(facts(store, box!), ["1×12×past×64"]);
  store.values.get(inputs[1]!)!.label = "1×12×64×past";
  assert.deepEqual(facts(store, box!), ["2 shapes"]);
});
