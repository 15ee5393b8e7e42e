import assert from "node:assert/strict";
import { test } from "node:test";
import { INITIALIZER, type ValueRecord } from "../../src/kernel/protocol.ts";
import { parameterTotals, typeWords } from "../../src/model/parameter_totals.ts";
import { Store } from "../../src/model/store.ts";

function storeOf(values: [label: string, dtype: string, flags: number][]): Store {
  const store = new Store();
  values.forEach(([label, dtype, flags], i) => {
    const value: ValueRecord = { id: i + 1, name: `v${i}`, label, dtype, flags, scope: 1 };
    store.values.set(value.id, value);
  });
  return store;
}

test("what is stored is counted, what is computed is not", () => {
  const totals = parameterTotals(
    storeOf([
      ["100×50", "int8", INITIALIZER],
      ["100", "float32", INITIALIZER],
      ["scalar", "int64", INITIALIZER],
      ["1000", "float32", 0],
    ]),
  );
  assert.equal(totals.elements, 5101);
  assert.equal(totals.bytes, 5000 + 400 + 8);
  assert.deepEqual(totals.types, [
    ["int8", 5000],
    ["float32", 100],
    ["int64", 1],
  ]);
  assert.equal(typeWords(totals), "int8 98 %, float32 2 %");
});

test("a type of nearly all parameters stands alone", () => {
  const few: [string, string, number][] = [
    ["1000", "float16", INITIALIZER],
    ["3", "int64", INITIALIZER],
  ];
  assert.equal(typeWords(parameterTotals(storeOf(few))), "float16");
  assert.deepEqual(parameterTotals(storeOf([])), { elements: 0, bytes: 0, types: [] });
});
