import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeKernel } from "../../dev/fake_kernel.ts";
import { FakeModel } from "../../dev/fake_model.ts";
import { App } from "../../src/app.ts";
import { Client } from "../../src/kernel/client.ts";
import { Store } from "../../src/model/store.ts";

test("an edit's changed shapes are kept with what they were, and the refusing node's changed input is the culprit", async () => {
  const kernel = new FakeKernel(new FakeModel({ blocks: [1, 1], control: false }));
  const store = new Store(),
    app = new App(new Client(kernel.transport, store));
  await app.start();
  const conv = [...store.nodes.values()].find(({ op }) => op === "Conv")!;
  await app.edits.setAttribute(conv.id, "strides", [1, 1], "ints");
  const { effects } = app.impact;
  assert.deepEqual(effects.value?.changed.get(conv.outputs[0]!), ["1×64×112×112", "1×64×224×224"]);
  assert.ok(app.impact.noticed.value);
  const after = store.uses(conv.outputs[0]!)[0]!.node;
  const refusal = {
    severity: "error" as const,
    code: "",
    message: "",
    node: after,
    value: 0,
    expected: "",
    found: "",
    hint: "",
  };
  assert.equal(app.impact.culprit(refusal), conv.outputs[0]);
  assert.equal(app.impact.culprit({ ...refusal, value: 77 }), 77);
  await app.edits.renameNode(conv.id, "first");
  assert.equal(effects.value, null, "a name changes no shape");
  app.client.dispose();
  app.dispose();
});
