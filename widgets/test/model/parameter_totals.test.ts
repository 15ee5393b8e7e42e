import assert from "node:assert/strict";
import { test } from "node:test";
import { INITIALIZER, type ValueRecord } from "../../src/kernel/protocol.ts";
import { constantsOf, parameterTotals, readBy, typeWords } from "../../src/model/parameter_totals.ts";
import { transformer } from "../fixtures/networks.ts";

function valuesOf(values: [label: string, dtype: string, flags: number][]): ValueRecord[] {
  return values.map(([label, dtype, flags], i) => ({ id: i + 1, name: `v${i}`, label, dtype, flags, scope: 1 }));
}

test("what is stored is counted, what is computed is not", () => {
  const totals = parameterTotals(
    valuesOf([
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
  assert.equal(typeWords(parameterTotals(valuesOf(few))), "float16");
  assert.deepEqual(parameterTotals([]), { elements: 0, bytes: 0, types: [] });
});

test("parameters of nodes count once however many of them read them", () => {
  const store = transformer(2).store(),
    ids = [...store.nodes.keys()];
  const all = parameterTotals(readBy(store, ids)).elements;
  assert.ok(all > 0 && all <= parameterTotals(store.values.values()).elements);
  assert.equal(parameterTotals(readBy(store, [...ids, ...ids])).elements, all);
  assert.equal(parameterTotals(readBy(store, [])).elements, 0);
});

test("what Constant nodes hold is counted like what is stored beside the nodes", () => {
  const store = transformer(1).store();
  const before = parameterTotals(store.values.values(), constantsOf(store));
  const [node] = [...store.nodes.values()].filter(({ op }) => op === "MatMul"),
    value = store.values.get(node!.outputs[0]!)!;
  Object.assign(value, { label: "100×50", dtype: "float32" });
  node!.op = "Constant";
  const after = parameterTotals(store.values.values(), constantsOf(store));
  assert.deepEqual([after.elements - before.elements, after.bytes - before.bytes], [5000, 20000]);
});
