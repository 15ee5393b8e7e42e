import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProfileTable, Statistics } from "../../src/kernel/protocol.ts";
import { firstBad } from "../../src/look/first_bad.ts";
import { profileRows } from "../../src/look/profile.ts";
import { largest, planesOf, rescaled, shares, waysToLook } from "../../src/look/tensor_ways.ts";
import { namesIn, sizeRows, symbolRows } from "../../src/model/dims.ts";
import { residualChain } from "../fixtures/networks.ts";

const store = residualChain(2).store();
const nodes = [...store.nodes.values()];

function statistics(nan: number, inf = 0): Statistics {
  return { count: 10, nan, inf, min: -1, max: 2 } as unknown as Statistics;
}

test("the first node that made NaN is told, before any that made infinity", () => {
  const [early, middle, late] = [nodes[1]!, nodes[3]!, nodes[5]!].map(({ outputs }) => outputs[0]!) as [
    number,
    number,
    number,
  ];
  const ran = new Map([
    [early, statistics(0, 3)],
    [middle, statistics(2)],
    [late, statistics(9)],
  ]);
  const bad = firstBad(store, ran)!;
  assert.deepEqual([bad.node, bad.what, bad.count, bad.of], [nodes[3]!.id, "NaN", 2, 10]);
  assert.equal(firstBad(store, new Map([[early, statistics(0, 3)]]))?.what, "infinity");
  assert.equal(firstBad(store, new Map([[early, statistics(0)]])), null);
});

test("a profile is ranked by node, by operator and by group", () => {
  const chosen = nodes.slice(0, 4);
  const table: ProfileTable = {
    least: [0.1, 3, 0.1, 0.1],
    arithmetic: [false, true, false, false],
    seconds: 0.01,
    runs: 2,
    nodes: chosen.map(({ id }) => id),
    ms: [1, 6, 2, 1],
    flops: [0, 6_000_000, 0, 0],
    moved: [10, 10, 10, 10],
    providers: ["numpy"],
    provider: [0, 0, 0, -1],
  };
  const rows = profileRows(store, table, "node");
  assert.deepEqual([rows[0]!.nodes, rows[0]!.share, rows[0]!.provider], [[chosen[1]!.id], 0.6, "numpy"]);
  assert.match(rows[0]!.why, /arithmetic, 6 MFLOP at 1 GFLOP\/s, 10 B moved/);
  assert.equal(rows[0]!.ofRoofline, 0.5);
  assert.match(rows[1]!.why, /memory, 10 B moved/);
  const sums = profileRows(store, table, "operator");
  assert.equal(
    sums.reduce((sum, { ms }) => sum + ms, 0),
    10,
  );
  assert.ok(sums.length < rows.length || new Set(chosen.map(({ op }) => op)).size === rows.length);
  assert.equal(
    profileRows(store, table, "group").reduce((sum, { nodes: all }) => sum + all.length, 0),
    4,
  );
});

test("dims are listed by name and by size, with a name to make them dynamic by", () => {
  const [input] = [...store.scopes.values()].find(({ kind }) => kind === "graph")!.inputs;
  const value = store.values.get(input!)!,
    before = value.label;
  const fixed = sizeRows(store).find(({ axis }) => axis === 0)!;
  assert.deepEqual([fixed.size, fixed.suggested, fixed.inputs.includes(input!)], [1, "batch", true]);
  value.label = before.replace(/^1×/, "n×");
  assert.deepEqual(
    symbolRows(store).map(({ name, inputs }) => [name, inputs]),
    [["n", [[input, 0]]]],
  );
  assert.ok(sizeRows(store).every(({ axis }) => axis > 0));
  value.label = before;
  assert.deepEqual(namesIn("(past + seq)"), ["past", "seq"]);
});

test("a tensor is looked at by its shape", () => {
  assert.equal(waysToLook([1, 64, 56, 56], "float32", false)[0], "channels");
  assert.equal(waysToLook([1, 3, 64, 64], "float32", true)[0], "image");
  assert.equal(waysToLook([1, 1000], "float32", false)[0], "top");
  assert.equal(waysToLook([1, 16_000], "float32", false)[0], "wave");
  assert.deepEqual(waysToLook([0, 3], "float32", false), ["plane"]);
  assert.deepEqual(planesOf([1, 12, 7, 7]), { axis: 1, count: 12 });
});

test("the largest few, their shares, and planes on one scale", () => {
  assert.deepEqual(
    largest([1, NaN, 5, 3], 2).map(({ at }) => at),
    [2, 3],
  );
  assert.deepEqual(shares([0.25, 0.75]), [0.25, 0.75]);
  assert.ok(Math.abs(shares([0, Math.log(3)])[1]! - 0.75) < 1e-9);
  const bytes = Uint8Array.of(0, 2, 3, 255);
  assert.deepEqual([...rescaled(bytes, { low: 0, high: 1 }, { low: 0, high: 2 })], [0, 2, 3, 129]);
});
