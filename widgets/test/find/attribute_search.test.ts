import assert from "node:assert/strict";
import { test } from "node:test";
import { type AttributeSource, attributePattern } from "../../src/find/attribute_search.ts";
import { completions } from "../../src/find/completion.ts";
import { distance, fuzzyScore, initials } from "../../src/find/fuzzy.ts";
import { SearchIndex } from "../../src/find/search.ts";
import { rankOperators } from "../../src/model/operators.ts";
import { residualChain } from "../fixtures/networks.ts";

const store = residualChain(3).store();
const convs = [...store.nodes.values()].filter(({ op }) => op === "Conv").map(({ id }) => id);
const columns: Record<string, Map<number, string>> = {
  kernel_shape: new Map(convs.map((id, i) => [id, i % 2 ? "1,1" : "3,3"])),
  strides: new Map(convs.map((id, i) => [id, i === 2 ? "2,2" : "1,1"])),
  epsilon: new Map([[convs[0]!, "1e-05"]]),
};
const source: AttributeSource = {
  names: new Map(Object.entries(columns).map(([name, column]) => [name, column.size])),
  column: (name) => columns[name] ?? null,
};
const index = new SearchIndex(store, source);
const idsOf = (query: string) => index.search(query).hits.map(({ id }) => id);

test("any attribute is searched, several at once, by patterns and numbers", () => {
  assert.deepEqual(new Set(idsOf("kernel_shape:3,3")), new Set(convs.filter((_, i) => i % 2 === 0)));
  assert.deepEqual(idsOf("op:Conv kernel_shape:3x3 strides:2,2"), [convs[2]]);
  assert.deepEqual(new Set(idsOf("kernel_shape:*,3")), new Set(idsOf("kernel_shape:[3,3]")));
  assert.deepEqual(idsOf("epsilon<1e-4"), [convs[0]]);
  assert.equal(idsOf("op:Conv -kernel_shape:3,3").length, convs.length - idsOf("kernel_shape:3,3").length);
});

test("a column that is on its way makes the search wait, and an unknown name is told", () => {
  const waiting = new SearchIndex(store, { ...source, column: () => null });
  assert.equal(waiting.search("strides:2,2").pending, true);
  assert.match(index.search("stride:2,2").problem ?? "", /no stride: .*attributes: kernel_shape, strides/);
});

test("operators are found by their initials and in spite of a slip", () => {
  assert.equal(initials("NonMaxSuppression"), "nms");
  assert.ok(fuzzyScore("NonMaxSuppression", "nms") > fuzzyScore("GlobalAveragePool", "globalaveragepol"));
  assert.ok(fuzzyScore("Sigmoid", "sigmiod") > 0);
  assert.equal(fuzzyScore("Relu", "conv"), 0);
  assert.equal(distance("covn", "conv", 2), 1);
  assert.equal(distance("abcdef", "uvwxyz", 2), 3);
  assert.ok(idsOf("gap").length > 0, "GlobalAveragePool");
  assert.deepEqual(new Set(idsOf("Covn")), new Set(convs));
});

test("the last word of a query is completed: fields, attributes, operators, values", () => {
  const words = (query: string) => completions(query, store, source).map(({ word }) => word);
  assert.equal(words("kern")[0], "kernel_shape:");
  assert.deepEqual(words("op:Conv kernel_shape:"), ["kernel_shape:1,1", "kernel_shape:3,3"].sort(byCount));
  assert.equal(completions("op:Conv ker", store, source)[0]?.query, "op:Conv kernel_shape:");
  assert.equal(words("op:gap")[0], "op:GlobalAveragePool");
  assert.ok(words("is:").includes("is:output"));
  assert.equal(completions("-op:Rel", store, source)[0]?.query, "-op:Relu");
  assert.deepEqual(words("op:Conv "), []);
});

function byCount(a: string, b: string): number {
  const count = (word: string) => [...columns.kernel_shape!.values()].filter((text) => word.endsWith(text)).length;
  return count(b) - count(a) || (a < b ? -1 : 1);
}

test("patterns of lists are written in several ways", () => {
  for (const text of ["3,3", "3x3", "[3,3]", "3×3"]) assert.equal(attributePattern(text), "3,3");
  assert.equal(attributePattern("linear"), "linear");
});

test("operators like the one that is replaced come first", () => {
  const operator = (op: string, category: string, inputs: [number, number]) => ({ op, summary: "", category, inputs });
  const all = [
    operator("Add", "math", [2, 2]),
    operator("Concat", "data", [1, 99]),
    operator("HardSwish", "activation", [1, 1]),
    operator("Relu", "activation", [1, 1]),
  ];
  assert.deepEqual(
    rankOperators(all, "", "HardSwish").map(({ op }) => op),
    ["Relu", "Concat", "Add"],
  );
  assert.equal(rankOperators(all, "hs")[0]?.op, "HardSwish");
});
