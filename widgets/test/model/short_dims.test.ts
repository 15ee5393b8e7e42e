import assert from "node:assert/strict";
import { test } from "node:test";
import { mainScope } from "../../src/model/names.ts";
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

test("an unnamed dim of an input is a question mark, and told where it is", () => {
  const store = residualChain(3).store();
  const scope = store.scopes.get(mainScope(store))!,
    [input] = scope.inputs.map((id) => store.values.get(id)!),
    others = [...store.values.values()].filter(({ id }) => id !== input!.id);
  input!.name = "encoder/X";
  input!.label = "X.0×X.1×4";
  others[0]!.label = "X.0";
  others[1]!.label = "2*X.0×X.1";
  others[2]!.label = "X.2×4";
  const names = shortDims(store);
  assert.equal(names.shortened(input!.label), "?×?1×4");
  assert.equal(names.shortened(others[0]!.label), "?");
  assert.equal(names.shortened(others[2]!.label), "X.2×4", "X has no axis 2 of that name");
  assert.deepEqual(
    names.rows.map(({ short, meaning }) => [short, meaning]),
    [
      ["?", "axis 0 of encoder/X"],
      ["?1", "axis 1 of encoder/X"],
    ],
  );
});
