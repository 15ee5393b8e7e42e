import assert from "node:assert/strict";
import { test } from "node:test";
import { rankOperators } from "../../src/model/operators.ts";
import { bytes, elements, rowsOf, sorted, TABLES, type TableName } from "../../src/model/tables.ts";
import { transformer } from "../fixtures/networks.ts";

const store = transformer(2).store();

test("every row has a cell for every column", () => {
  for (const name of Object.keys(TABLES) as TableName[]) {
    for (const row of rowsOf(store, name)) assert.equal(row.cells.length, TABLES[name].columns.length, name);
  }
  assert.equal(rowsOf(store, "nodes").length, store.nodes.size);
  assert.equal(rowsOf(store, "values").length, store.values.size);
});

test("totals of groups hold what is in the groups below, each parameter once", () => {
  const [name, outer, weights] = rowsOf(store, "groups")[0]!.cells as [string, number, number];
  const inner = rowsOf(store, "groups").filter(({ cells }) => String(cells[0]).startsWith(`${name}/`));
  assert.ok(
    inner.length > 3 && inner.every(({ cells }) => (cells[1] as number) < outer && (cells[2] as number) <= weights),
  );
  const stored = rowsOf(store, "initializers").reduce((sum, { cells }) => sum + (Number(cells[3]) || 0), 0);
  assert.ok(weights <= stored && weights > stored / 2);
});

test("totals add what the kernel counted, and bytes of what is known", () => {
  const conv = [...store.nodes.values()].find(({ op }) => op === "MatMul")!;
  const flops = new Map([
    [conv.id, 1000],
    [[...store.nodes.keys()].at(-1)!, 7],
  ]);
  const extra = {
    flops,
    about: { doc_string: "", metadata: { author: "me" }, fields: { ir_version: 10, producer_name: "" } },
  };
  const sum = rowsOf(store, "operators", extra).reduce((total, { cells }) => total + Number(cells[5]), 0);
  assert.equal(sum, 1007);
  assert.deepEqual(
    rowsOf(store, "metadata", extra).map(({ cells }) => cells),
    [
      ["ir_version", "10"],
      ["author", "me"],
    ],
  );
  const value = (label: string, dtype: string) => bytes({ id: 1, name: "", label, flags: 0, scope: 1, dtype });
  assert.deepEqual(
    [value("2×3", "float32"), value("3×3", "int4"), value("4", "bool"), value("n×3", "float32"), value("2", "")],
    [24, 5, 4, "", ""],
  );
  assert.deepEqual(
    [value("8", "float8e4m3fn"), value("2", "complex128"), value("2", "string"), bytes(undefined)],
    [8, 32, "", ""],
  );
});

test("rows sort by size of numbers, inside words too, and what is unknown comes last", () => {
  const row = (...cells: (string | number)[]) => ({ key: String(cells), kind: "none" as const, id: 0, cells });
  const rows = [row("layer.10", 3), row("layer.9", ""), row("layer.1", 20)];
  assert.deepEqual(
    sorted(rows, 0, false).map(({ cells }) => cells[0]),
    ["layer.1", "layer.9", "layer.10"],
  );
  assert.deepEqual(
    sorted(rows, 1, true).map(({ cells }) => cells[1]),
    [20, 3, ""],
  );
  assert.equal(sorted(rows, -1, false), rows);
});

test("elements of a shape", () => {
  assert.deepEqual(["64×3×7×7", "scalar", "batch×3", ""].map(elements), [9408, 1, "", ""]);
});

test("operators are found by name first, and by what they do", () => {
  const operator = (op: string, summary: string) => ({ op, summary, inputs: [1, 1] as [number, number], category: "" });
  const all = [
    operator("Softmax", "Normalized exponential."),
    operator("Relu", "Rectified linear."),
    operator("LeakyRelu", "Leaky rectified."),
  ];
  assert.deepEqual(
    rankOperators(all, "relu").map(({ op }) => op),
    ["Relu", "LeakyRelu"],
  );
  assert.deepEqual(
    rankOperators(all, "exponential").map(({ op }) => op),
    ["Softmax"],
  );
  assert.deepEqual(rankOperators(all, "leaky exponential"), []);
  assert.equal(rankOperators(all, "").length, 3);
});
