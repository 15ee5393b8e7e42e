import assert from "node:assert/strict";
import { test } from "node:test";
import { type Constraints, networkSimplex } from "../../src/graph/layout/simplex.ts";

function random(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff;
}

/** A random acyclic problem, and places that keep its arcs apart. */
function example(seed: number, count: number): { constraints: Constraints; place: Float64Array } {
  const next = random(seed);
  const arcs: number[][] = [];
  for (let v = 1; v < count; v++) {
    for (let u = 0; u < v; u++) if (next() < 0.5) arcs.push([u, v, 1 + Math.floor(next() * 2), Math.floor(next() * 4)]);
  }
  const column = (i: number): number[] => arcs.map((arc) => arc[i]!);
  const place = Float64Array.from({ length: count }, (_, v) => 3 * v);
  return {
    constraints: {
      count,
      tail: Int32Array.from(column(0)),
      head: Int32Array.from(column(1)),
      apart: Float64Array.from(column(2)),
      weight: Float64Array.from(column(3)),
    },
    place,
  };
}

function cost({ tail, head, weight }: Constraints, place: ArrayLike<number>): number {
  return weight.reduce((sum, w, a) => sum + w * (place[head[a]!]! - place[tail[a]!]!), 0);
}

function isFeasible({ tail, head, apart }: Constraints, place: ArrayLike<number>): boolean {
  return apart.every((least, a) => place[head[a]!]! - place[tail[a]!]! >= least - 1e-9);
}

/** The least cost over all whole places from 0 to `range`. */
function bruteForce(constraints: Constraints, range: number): number {
  const place = new Array<number>(constraints.count).fill(0);
  let least = Infinity;
  const set = (v: number): void => {
    if (v === constraints.count) {
      if (isFeasible(constraints, place)) least = Math.min(least, cost(constraints, place));
      return;
    }
    for (place[v] = 0; place[v]! <= range; place[v]!++) set(v + 1);
  };
  set(0);
  return least;
}

test("no whole places cost less", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { constraints, place } = example(seed, 5);
    networkSimplex(constraints, place, 1000);
    assert.ok(isFeasible(constraints, place), `seed ${seed}`);
    assert.ok(Math.abs(cost(constraints, place) - bruteForce(constraints, 8)) < 1e-9, `seed ${seed}`);
  }
});

test("larger problems stay feasible and never cost more, with few pivots too", () => {
  for (const pivots of [0, 3, 5000]) {
    const { constraints, place } = example(99, 60);
    const before = cost(constraints, place);
    networkSimplex(constraints, place, pivots);
    assert.ok(isFeasible(constraints, place));
    if (pivots === 5000) assert.ok(cost(constraints, place) < before);
  }
});

test("parts that no arc joins are placed each for itself", () => {
  const arcs = {
    tail: Int32Array.of(0, 2),
    head: Int32Array.of(1, 3),
    apart: Float64Array.of(1, 2),
    weight: Float64Array.of(1, 1),
  };
  const place = Float64Array.of(0, 9, 0, 9);
  networkSimplex({ count: 4, ...arcs }, place, 100);
  assert.deepEqual([place[1]! - place[0]!, place[3]! - place[2]!], [1, 2]);
});
