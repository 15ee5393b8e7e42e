import assert from "node:assert/strict";
import { test } from "node:test";
import { shortDims } from "../../src/model/short_dims.ts";
import { residualChain } from "../fixtures/networks.ts";

test("long dims get letters, those of most values first, and keep them over edits", () => {
  const store = residualChain(3).store();
  const values = [...store.values.values()];
  const often = "past_length+sequence_length",
    once = "floor((height+2)/2)";
  values[0]!.label = `n×${once}`;
  values[1]!.label = `n×${often}`;
  values[2]!.label = `${often}×A×64`;
  values[3]!.label = "n×2*seq×a_name_short";
  values[4]!.label = "DynamicDimension.0×64";
  const names = shortDims(store);
  assert.equal(shortDims(store), names);
  assert.deepEqual(
    names.rows.map(({ short, expression, values: where }) => [short, expression, where.length]),
    [
      ["B", often, 2],
      ["C", "DynamicDimension.0", 1],
      ["D", once, 1],
    ],
    "A is a name of the model",
  );
  assert.equal(names.shortened(values[2]!.label), "B×A×64");
  assert.equal(names.shortened(values[3]!.label), values[3]!.label);
  assert.equal(names.shortened("scalar"), "scalar");
  assert.equal(names.shortened("new_name*new_name+1"), "E", "expressions that come later have letters too");
  for (const value of values.slice(1, 5)) value.label = "1×2";
  store.version++;
  assert.deepEqual(
    names.rows.map(({ short }) => short),
    ["D"],
  );
});
