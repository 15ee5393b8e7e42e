import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQuery } from "../../src/find/query.ts";
import { SearchIndex } from "../../src/find/search.ts";
import type { Statistics } from "../../src/kernel/protocol.ts";
import { residualChain, transformer } from "../fixtures/networks.ts";

const store = residualChain(3).store();
const index = new SearchIndex(store);
const ops = (query: string) =>
  index
    .search(query, 10_000)
    .hits.filter(({ kind }) => kind === "node")
    .map(({ detail }) => detail);

test("conditions on operator, shape, rank and name hold together with words", () => {
  assert.deepEqual(new Set(ops("op:Conv")), new Set(["Conv"]));
  assert.equal(ops("op:conv shape:*,64,56,56").length, 6);
  assert.equal(ops("op:conv shape:*,64,*").length, 0);
  assert.deepEqual(ops("op:Conv layer1").length, 2);
  assert.deepEqual(ops("op:*pool*").length, 2);
  assert.deepEqual(new Set(ops("op:Relu name:relu1")), new Set(["Relu"]));
  assert.equal(ops("rank:2").length, 2);
});

test("a condition can be turned around", () => {
  assert.equal(ops("is:node -op:Conv").length, store.nodes.size - ops("op:Conv").length);
});

test("element types and sizes", () => {
  const value = [...store.values.values()].find(({ label }) => label === "1×64×56×56")!;
  value.dtype = "float16";
  assert.deepEqual(
    index
      .search("dtype:float16")
      .hits.map(({ id }) => id)
      .includes(value.id),
    true,
  );
  assert.equal(index.search("dtype:float* -is:node").total, 1);
  assert.ok(
    index
      .search("elements>200000 is:value")
      .hits.every(({ detail }) => detail === "1×64×56×56" || detail.startsWith("1×64×112")),
  );
  value.dtype = "";
});

test("groups and roles", () => {
  const scoped = new SearchIndex(transformer(3).store());
  const hits = scoped.search("group:layer.1 op:MatMul", 10_000).hits;
  assert.ok(hits.length >= 6 && hits.every(({ kind }) => kind === "node"));
  assert.deepEqual(
    index.search("is:input").hits.map(({ text }) => text),
    ["data"],
  );
});

test("what a run found can be asked for", () => {
  const relu = [...store.nodes.values()].find(({ op }) => op === "Relu")!;
  const none: Statistics = {
    id: 1,
    name: "",
    dtype: "",
    shape: null,
    count: 4,
    min: 0,
    max: "inf",
    mean: null,
    std: null,
    nan: 0,
    inf: 1,
    zeros: 0,
    histogram: null,
  };
  index.ran = new Map([[relu.outputs[0]!, { ...none, nan: 3 }]]);
  assert.deepEqual(
    index.search("nan>0 is:node").hits.map(({ id }) => id),
    [relu.id],
  );
  assert.equal(index.search("nan>3").total, 0);
  assert.equal(index.search("max>1000 is:node").total, 1);
});

test("an unknown field is named, with those that there are", () => {
  assert.match(index.search("color:red").problem ?? "", /no color: .* op, name, group/);
  assert.match(parseQuery("rank:many").problem, /number/);
  assert.deepEqual(index.search("color:red").hits, []);
  assert.deepEqual(parseQuery("onnx::Reshape_12").words, ["onnx::reshape_12"]);
});

test("a search of 100,000 nodes and as many values", (t) => {
  const big = residualChain(16_666).store();
  const many = new SearchIndex(big);
  many.search("warm");
  for (const query of ["relu1", "op:Conv shape:*,64,*,*", "layer16665.add"]) {
    let best = Infinity,
      total = 0;
    for (let i = 0; i < 4; i++) {
      const began = performance.now();
      ({ total } = many.search(query));
      best = Math.min(best, performance.now() - began);
    }
    t.diagnostic(`${query}: ${total} of ${big.nodes.size + big.values.size} in ${best.toFixed(0)} ms`);
    assert.ok(total > 0);
  }
});
