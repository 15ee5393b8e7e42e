import assert from "node:assert/strict";
import { test } from "node:test";
import { type Field, initialEntry, readEntry, readNumber } from "../../src/edit/fields.ts";
import { rankValues } from "../../src/find/value_search.ts";
import { splitLabel } from "../../src/model/names.ts";

const field = (kind: string, more = {}): Field => ({ kind, name: "x", label: "X", ...more }) as Field;
const read = (kind: string, text: string): unknown => {
  const entry = readEntry(field(kind), text);
  return entry.ok ? entry.given : entry.error;
};

test("dims are numbers, names and question marks, however they are written", () => {
  for (const text of ["1, n, ?, 3", "[1, n, ?, 3]", "1 n ? 3", "(1,n,?,3,)"])
    assert.deepEqual(read("dims", text), [1, "n", "?", 3]);
  assert.deepEqual(read("dims", ""), []);
  assert.equal(read("dims?", ""), null);
  assert.deepEqual(read("dims?", "4"), [4]);
  assert.equal(read("dim", "batch"), "batch");
  assert.match(String(read("dim", " ")), /needed/);
});

test("one number fills, several are elements; what JSON cannot hold stays text", () => {
  assert.equal(read("numbers", "0.5"), 0.5);
  assert.deepEqual(read("numbers", "[7]"), [7]);
  assert.deepEqual(read("numbers", "1, 2.5 , nan, 1.0"), [1, 2.5, "nan", "1.0"]);
  assert.equal(read("numbers", "9007199254740993"), "9007199254740993");
  assert.equal(readNumber("1e400"), "1e400");
  assert.match(String(read("numbers", "")), /needed/);
});

test("texts, integers and what must not be empty", () => {
  assert.deepEqual(read("texts", "a, , b"), ["a", "", "b"]);
  assert.equal(read("int", "12"), 12);
  assert.match(String(read("int", "-1")), /whole number/);
  assert.equal(readEntry(field("text", { required: true }), " ").ok, false);
  assert.equal(readEntry(field("value"), 0).ok, false);
  assert.equal(readEntry(field("file"), null).ok, false);
  assert.equal(initialEntry(field("choice", { choices: [{ value: "a", label: "A" }] })), "a");
  assert.equal(initialEntry(field("bool", { initial: true })), true);
});

test("a label is a type and dims", () => {
  assert.deepEqual(splitLabel("float32[n,3,8*h]"), { dtype: "float32", dims: "n, 3, 8*h" });
  assert.deepEqual(splitLabel("int64[]"), { dtype: "int64", dims: "" });
  assert.deepEqual(splitLabel("sequence of tensors"), { dtype: "", dims: "" });
});

test("values are found by a few letters, those of other scopes are not", () => {
  const value = (id: number, name: string, scope = 1) => ({ id, name, scope, label: "", flags: 0 });
  const values = [
    value(1, "/layer.0/conv_out"),
    value(2, "inner_conv", 2),
    value(3, "conv"),
    value(4, "x"),
    value(5, ""),
  ];
  assert.deepEqual(
    rankValues(values, new Set([1]), "conv", 9).map(({ id }) => id),
    [3, 1],
  );
  assert.deepEqual(rankValues(values, new Set([1]), "", 2).length, 2);
  assert.deepEqual(
    rankValues(values, new Set([1, 2]), "conv inner", 9).map(({ id }) => id),
    [2],
  );
});

test("a grid gives what was changed", () => {
  const grid = field("grid", { shape: [2, 2], numbers: [1, 2, 3, 4] });
  assert.deepEqual(
    readEntry(
      grid,
      new Map([
        [3, "nan"],
        [0, " 7 "],
      ]),
    ),
    {
      ok: true,
      given: [
        [0, "7"],
        [3, "nan"],
      ],
    },
  );
  assert.equal(readEntry(grid, initialEntry(grid)).ok, false);
});
