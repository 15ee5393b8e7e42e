/** The pairs of two models, and the colors of boxes by kinds of which the first does not occur. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BODY, GROUP, INPUT, keyOf, NODE } from "../../src/graph/groups/group_keys.ts";
import type { PairInfo } from "../../src/kernel/protocol.ts";
import type { Store } from "../../src/model/store.ts";
import { powers } from "../../src/pair/error_curve.tsx";
import { Partners } from "../../src/pair/partners.ts";

/** Nodes with the group of each, and the group around each group. */
function store(nodes: [id: number, group: number][], groups: [id: number, parent: number][]): Store {
  return {
    nodes: new Map(nodes.map(([id, group]) => [id, { id, group }])),
    groups: new Map(groups.map(([id, parent]) => [id, { id, parent }])),
  } as unknown as Store;
}

function info(nodes: [number[], number[]], more: Partial<PairInfo> = {}): PairInfo {
  const empty = { a: [], b: [] };
  return {
    nodes: { a: nodes[0], b: nodes[1] },
    values: empty,
    scopes: empty,
    regions: [],
    ...more,
  } as unknown as PairInfo;
}

const A = store(
  [
    [1, 10],
    [2, 10],
    [3, 11],
    [4, 11],
  ],
  [
    [10, 12],
    [11, 12],
    [12, 0],
  ],
);
const B = store(
  [
    [101, 30],
    [102, 30],
    [103, 31],
  ],
  [
    [30, 32],
    [31, 32],
    [32, 0],
  ],
);

test("groups stand for the groups that share most of their nodes", () => {
  const partners = new Partners(
    info([
      [1, 2, 3],
      [101, 102, 103],
    ]),
    A,
    B,
  ); // prettier-ignore
  assert.equal(partners.key(0, keyOf(GROUP, 10)), keyOf(GROUP, 30));
  assert.equal(partners.key(0, keyOf(GROUP, 11)), keyOf(GROUP, 31));
  assert.equal(partners.key(0, keyOf(GROUP, 12)), keyOf(GROUP, 32));
  assert.equal(partners.key(1, keyOf(GROUP, 31)), keyOf(GROUP, 11));
  assert.equal(partners.key(0, keyOf(GROUP, 99)), 0);
});

test("nodes, values and scopes stand for what the kernel says, fused nodes for their region", () => {
  const more = {
    values: { a: [7], b: [70] },
    scopes: { a: [1], b: [2] },
    regions: [{ a_nodes: [3, 4], b_nodes: [103], text: "" }],
  };
  const partners = new Partners(info([[1], [101]], more), A, B);
  assert.deepEqual(partners.nodes(0, [1, 3, 4]), [101, 103]);
  assert.deepEqual(partners.nodes(1, [103]), [3, 4]);
  assert.equal(partners.value(1, 70), 7);
  assert.equal(partners.key(0, keyOf(INPUT, 7)), keyOf(INPUT, 70));
  assert.equal(partners.key(0, keyOf(BODY, 1)), keyOf(BODY, 2));
  assert.equal(partners.key(0, keyOf(NODE, 4)), keyOf(NODE, 103));
  assert.equal(partners.key(0, keyOf(NODE, 2)), 0);
  assert.equal(partners.scope(0, 1), 2);
});

test("before anything is known nothing stands for anything", () => {
  assert.equal(new Partners().key(0, keyOf(NODE, 1)), 0);
});

test("errors are written as people do", () => {
  assert.deepEqual([0, 0.5, 3.84, 1e-5, "inf" as const].map(powers), ["0", "0.5", "3.8", "1.0e-5", "∞"]);
});
