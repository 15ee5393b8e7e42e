import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeModel } from "../../dev/fake_model.ts";
import { SearchIndex, scoreWord } from "../../src/find/search.ts";
import { Store } from "../../src/model/store.ts";

function indexOf(names: string[], op = "Relu"): { index: SearchIndex; store: Store } {
  const store = new Store();
  names.forEach((name, i) => {
    store.nodes.set(i + 1, { id: i + 1, name, op, category: "", group: 0, scope: 1, inputs: [], outputs: [] });
  });
  return { index: new SearchIndex(store), store };
}

const textsOf = (index: SearchIndex, query: string) => index.search(query).hits.map((hit) => hit.text);

test("exact before beginning before word before inside; shorter first", () => {
  const { index } = indexOf(["deconv1", "layer/conv1", "conv10", "conv1", "conv1_longer_name"]);
  assert.deepEqual(textsOf(index, "conv1"), ["conv1", "conv10", "conv1_longer_name", "layer/conv1", "deconv1"]);
});

test("every word must occur, in the name or the operator", () => {
  const { index } = indexOf(["layer1/a", "layer2/a", "layer2/b"]);
  assert.deepEqual(textsOf(index, "relu layer2"), ["layer2/a", "layer2/b"]);
  assert.deepEqual(textsOf(index, "layer2 sigmoid"), []);
});

test("operators are found without their domain, before values of the same name", () => {
  const { index, store } = indexOf(["a", "b"], "com.microsoft::Gelu");
  store.values.set(9, { id: 9, name: "gelu_out", label: "1×2", flags: 0, scope: 1 });
  index.invalidate();
  const { hits, total } = index.search("gelu");
  assert.deepEqual(
    hits.map((hit) => [hit.kind, hit.id]),
    [
      ["node", 1],
      ["node", 2],
      ["value", 9],
    ],
  );
  assert.equal(hits[0]?.detail, "Gelu");
  assert.equal(total, 3);
});

test("a word with :: means the operator with its domain", () => {
  const { index } = indexOf(["a"], "ai.onnx.ml::ZipMap");
  assert.deepEqual(textsOf(index, "ai.onnx.ml::ZipMap"), ["a"]);
  assert.deepEqual(textsOf(index, "ml::zip"), ["a"]);
  assert.deepEqual(textsOf(index, "onnx"), []);
});

test("upper and lower case are the same; an empty query finds nothing", () => {
  const { index } = indexOf(["Encoder"]);
  assert.deepEqual(textsOf(index, "eNcOd"), ["Encoder"]);
  assert.deepEqual(index.search("  "), { hits: [], total: 0, problem: "" });
});

test("new names are found after invalidate", () => {
  const { index, store } = indexOf(["old"]);
  assert.equal(index.search("new").total, 0);
  store.nodes.get(1)!.name = "new";
  index.invalidate();
  assert.deepEqual(textsOf(index, "new"), ["new"]);
});

test("a nameless node is called after its output", () => {
  const model = new FakeModel({ blocks: [1] });
  const store = new Store();
  for (const node of model.nodes.values()) store.nodes.set(node.id, node);
  for (const value of model.values.values()) store.values.set(value.id, value);
  assert.ok(textsOf(new SearchIndex(store), "relu").some((text) => text.startsWith("→ ")));
});

test("100,000 nodes are searched without looking at each again and again", () => {
  const { index } = indexOf(
    Array.from({ length: 100_000 }, (_, i) => `/encoder/layer.${i % 97}/attention/MatMul_${i}`),
    "MatMul",
  );
  const names = Array.from({ length: 100_000 }, (_, i) => `/ENCODER/layer.${i % 97}/attention/MatMul_${i}`);
  const time = (action: () => unknown) => {
    const start = performance.now();
    action();
    return performance.now() - start;
  };
  const fastest = (action: () => unknown) => Math.min(...Array.from({ length: 8 }, () => time(action)));
  const search = fastest(() => index.search("layer.5 matmul"));
  const look = fastest(() => names.filter((name) => name.toLowerCase().includes("layer.5")));
  console.log(`100,000 nodes searched in ${search.toFixed(1)} ms; a plain look takes ${look.toFixed(1)} ms`);
  // not a measurement, which `python -m bench widget` prints: work that grows faster than the names is far beyond
  assert.ok(search < 100 * look, `${search.toFixed(1)} ms against ${look.toFixed(1)} ms`);
});

test("a word scores by where it stands", () => {
  assert.equal(scoreWord("conv", "relu"), 0);
  assert.ok(scoreWord("a/conv", "conv") > scoreWord("deconv", "conv"));
});
