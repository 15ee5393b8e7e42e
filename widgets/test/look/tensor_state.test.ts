import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeKernel } from "../../dev/fake_kernel.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import { App } from "../../src/app.ts";
import { Client } from "../../src/kernel/client.ts";
import { dimNames } from "../../src/look/tensor_state.ts";
import { Store } from "../../src/model/store.ts";

test("sizes are asked for names that stand alone for a dim, each once", () => {
  const inputs = ["batch×3×h×w", "batch×seq_len", "scalar", "2*batch×?", ""].map((label, id) => ({
    id,
    name: "",
    label,
    flags: 0,
    scope: 1,
  }));
  assert.deepEqual(dimNames(inputs), ["batch", "h", "w", "seq_len"]);
});

test("a run is asked for with what was chosen and nothing else", () => {
  const app = new App(new Client(new FakeKernel(new FakeModel({ blocks: [1] })).transport, new Store()));
  assert.deepEqual(app.numbers.asked, {});
  app.numbers.choose("x", { how: "file", file: "1", fileName: "x.npy" });
  app.numbers.size("n", 4);
  assert.deepEqual(app.numbers.asked, { inputs: { x: { how: "file", text: undefined, file: "1" } }, sizes: { n: 4 } });
  app.numbers.choose("x", null);
  app.numbers.size("n", null);
  app.numbers.inputs.value = { ...app.numbers.inputs.value, seed: 7 };
  assert.deepEqual(app.numbers.asked, { seed: 7 });
  app.numbers.inputs.value = { ...app.numbers.inputs.value, seed: 0, deadline: 0 };
  assert.deepEqual(app.numbers.asked, { deadline: 0 });
  app.dispose();
  app.client.dispose();
});
