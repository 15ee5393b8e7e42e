import assert from "node:assert/strict";
import { test } from "node:test";
import { layout } from "../../src/graph/layout/layout.ts";
import {
  BOTTOM,
  LABEL_STRIP,
  type LayoutInput,
  type LayoutResult,
  LINE,
  LOOP,
  PORTAL,
  REVERSED,
  TOP,
} from "../../src/graph/layout/problem.ts";
import { backArcs } from "../../src/graph/layout/ranks.ts";

type Edges = [source: number, targets: number[]][];

function problem(count: number, edges: Edges, width = 100): LayoutInput {
  const netStart = Int32Array.from([
    0,
    ...edges.map(
      (
        (sum) =>
        ([, targets]) =>
          (sum += targets.length)
      )(0),
    ),
  ]);
  const links = netStart[edges.length]!;
  return {
    count,
    width: new Float32Array(count).fill(width),
    height: Float32Array.from({ length: count }, (_, i) => 30 + 14 * (i % 3)),
    pin: new Uint8Array(count),
    netSource: Int32Array.from(edges, ([source]) => source),
    netStart,
    netTarget: Int32Array.from(edges.flatMap(([, targets]) => targets)),
    sourcePort: new Float32Array(edges.length).fill(NaN),
    targetPort: new Float32Array(links).fill(NaN),
    hint: null,
  };
}

/** Numbers in [0, 1), the same for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff;
}

function randomDag(count: number, seed: number, reach = 12): Edges {
  const next = random(seed);
  const targets: number[][] = Array.from({ length: count }, () => []);
  for (let v = 1; v < count; v++) {
    for (let i = 0; i < 1 + (next() < 0.5 ? 1 : 0); i++) {
      const u = Math.max(0, v - 1 - Math.floor(next() ** 2 * reach));
      if (!targets[u]!.includes(v)) targets[u]!.push(v);
    }
  }
  return targets.flatMap((list, v): Edges => (list.length ? [[v, list]] : []));
}

/** Layers of attention with shortcuts; one mask read by all of them. */
function transformer(layers: number): { count: number; edges: Edges } {
  const targets: number[][] = [];
  const node = (...inputs: number[]): number => {
    const v = targets.push([]) - 1;
    for (const input of inputs) targets[input]!.push(v);
    return v;
  };
  const mask = node(node(node()));
  let x = node(node());
  for (let l = 0; l < layers; l++) {
    const start = node(node(node(x)));
    const [q, k, v] = [0, 1, 2].map(() => node(node(node(start)))) as [number, number, number];
    const weights = node(node(node(node(node(q, k)), mask)));
    const sum = node(x, node(node(node(node(node(weights, v))))));
    x = node(sum, node(node(node(node(node(node(node(sum))))))));
  }
  return { count: targets.length, edges: targets.flatMap((list, v): Edges => (list.length ? [[v, list]] : [])) };
}

function overlaps(input: LayoutInput, { x, y }: LayoutResult): string[] {
  const order = Array.from({ length: input.count }, (_, i) => i).sort((a, b) => y[a]! - y[b]!);
  const pairs: string[] = [];
  order.forEach((a, i) => {
    for (const b of order.slice(i + 1)) {
      if (y[b]! >= y[a]! + input.height[a]!) break;
      if (x[a]! < x[b]! + input.width[b]! && x[b]! < x[a]! + input.width[a]!) pairs.push(`${a} and ${b}`);
    }
  });
  return pairs;
}

/** Segments that pass through a box or through the strip for labels under one whose value they are not. */
function collisions(input: LayoutInput, { x, y, segments, segmentNet }: LayoutResult): string[] {
  const crossings: string[] = [];
  const sources = new Set(input.netSource);
  for (let s = 0; s < segmentNet.length; s++) {
    const [x1, y1, x2, y2] = segments.subarray(4 * s, 4 * s + 4) as unknown as [number, number, number, number];
    for (let v = 0; v < input.count; v++) {
      const isSource = input.netSource[segmentNet[s]!] === v;
      const bottom = y[v]! + input.height[v]! + (sources.has(v) && !isSource ? LABEL_STRIP - 1 : -1);
      const crossesX = Math.max(x1, x2) > x[v]! + 1 && Math.min(x1, x2) < x[v]! + input.width[v]! - 1;
      if (crossesX && y2 > y[v]! + 1 && y1 < bottom) crossings.push(`segment ${s} and box ${v}`);
    }
  }
  return crossings;
}

test("boxes do not overlap, lines run downwards and pass no box", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const input = problem(60, randomDag(60, seed));
    const result = layout(input);
    assert.deepEqual(overlaps(input, result), []);
    assert.deepEqual(collisions(input, result), []);
    input.netSource.forEach((source, net) => {
      for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
        assert.ok(result.y[input.netTarget[k]!]! >= result.y[source]! + input.height[source]! + LABEL_STRIP);
      }
    });
  }
});

test("every line leads from its source to each target without a gap", () => {
  const input = problem(40, randomDag(40, 3));
  const { segments, segmentNet, sourceX, targetX, y, style } = layout(input);
  input.netSource.forEach((source, net) => {
    const points = new Set([`${sourceX[net]!.toFixed(1)} ${(y[source]! + input.height[source]!).toFixed(1)}`]);
    const pieces = [...segmentNet.keys()].filter((s) => segmentNet[s] === net);
    for (let round = 0; round < pieces.length; round++) {
      for (const s of pieces) {
        const [x1, y1, x2, y2] = segments.subarray(4 * s, 4 * s + 4) as unknown as [number, number, number, number];
        const onLine = pieces.some((o) => {
          const [a1, b1, a2, b2] = segments.subarray(4 * o, 4 * o + 4) as unknown as [number, number, number, number];
          return (
            a1 === a2 &&
            Math.abs(a1 - x1) < 0.6 &&
            b1 <= y1 + 0.1 &&
            y1 <= b2 + 0.1 &&
            points.has(`${a2.toFixed(1)} ${b2.toFixed(1)}`)
          );
        });
        if (points.has(`${x1.toFixed(1)} ${y1.toFixed(1)}`) || onLine) points.add(`${x2.toFixed(1)} ${y2.toFixed(1)}`);
      }
    }
    for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
      if (style[k] !== LINE) continue;
      const end = `${targetX[k]!.toFixed(1)} ${y[input.netTarget[k]!]!.toFixed(1)}`;
      assert.ok(points.has(end), `net ${net} reaches ${input.netTarget[k]}: ${end} of ${[...points].join(", ")}`);
    }
  });
});

test("the same problem gives the same layout", () => {
  const input = problem(200, randomDag(200, 7));
  const first = layout(input),
    second = layout(structuredClone(input));
  assert.deepEqual(first, second);
});

test("cycles are drawn with the arcs that close them turned around", () => {
  const input = problem(4, [
    [0, [1]],
    [1, [2]],
    [2, [1, 3]],
    [3, [3]],
  ]);
  const { style, y } = layout(input);
  assert.deepEqual([...style], [LINE, LINE, REVERSED, LINE, LOOP]);
  assert.ok(y[0]! < y[1]! && y[1]! < y[2]! && y[2]! < y[3]!);
});

test("back arcs leave no cycle in random graphs", () => {
  for (let seed = 1; seed < 30; seed++) {
    const next = random(seed);
    const from = Int32Array.from({ length: 60 }, () => Math.floor(next() * 25));
    const to = Int32Array.from({ length: 60 }, () => Math.floor(next() * 25));
    const back = backArcs(25, from, to);
    const forward = [...from.keys()].filter((a) => !back[a]);
    assert.equal(
      backArcs(
        25,
        Int32Array.from(forward, (a) => from[a]!),
        Int32Array.from(forward, (a) => to[a]!),
      ).indexOf(1),
      -1,
    );
    assert.deepEqual(overlaps(problem(25, []), layout(problem(25, []))), []);
  }
});

test("a shortcut bends, the path beside it stays straight", () => {
  const { x } = layout(
    problem(6, [
      [0, [1, 4]],
      [1, [2]],
      [2, [3]],
      [3, [4]],
      [4, [5]],
    ]),
  );
  assert.equal(new Set(Array.from(x, (left) => Math.round(left))).size, 1);
});

test("pinned boxes are first and last, ports are where they were given", () => {
  const input = problem(5, [
    [0, [1]],
    [1, [2, 4]],
    [3, [2]],
  ]);
  input.pin.set([TOP, 0, 0, TOP, BOTTOM]);
  input.targetPort[0] = 20;
  input.sourcePort[1] = 70;
  const { x, y, targetX, sourceX } = layout(input);
  assert.equal(y[0], y[3]);
  assert.ok(y[0]! < y[1]! && y[1]! < y[2]! && y[2]! < y[4]!);
  assert.ok(Math.abs(targetX[0]! - x[1]! - 20) < 1e-3);
  assert.ok(Math.abs(sourceX[1]! - x[1]! - 70) < 1e-3);
});

test("ports of frames are met without crossings", () => {
  // Two sources feed one frame whose ports are the other way round than their order.
  const input = problem(3, [
    [0, [2]],
    [1, [2]],
  ]);
  input.targetPort.set([90, 10]);
  const { x, crossings } = layout(input);
  assert.equal(crossings, 0);
  assert.ok(x[1]! < x[0]!);
});

test("far uses of a value that many read become portals, with a stub at each end", () => {
  const { count, edges } = transformer(8);
  const { style, crossings } = layout(problem(count, edges));
  assert.ok(style.includes(PORTAL));
  assert.equal(crossings, 0);
});

test("boxes without lines fill rows instead of one", () => {
  const input = problem(100, []);
  const { width, height } = layout(input);
  assert.ok(width < 3000 && height < 3000, `${width} by ${height}`);
  assert.deepEqual(overlaps(input, layout(input)), []);
});

test("with a hint boxes keep their order, and a new one goes beside its neighbors", () => {
  const before = layout(
    problem(5, [
      [0, [1, 2, 3]],
      [1, [4]],
      [2, [4]],
      [3, [4]],
    ]),
  );
  const input = problem(6, [
    [0, [1, 2, 3, 5]],
    [1, [4]],
    [2, [4]],
    [3, [4]],
    [5, [4]],
  ]);
  input.hint = Float32Array.from([...before.x, NaN]);
  const after = layout(input);
  const order = (x: Float32Array): number[] => [1, 2, 3].sort((a, b) => x[a]! - x[b]!);
  assert.deepEqual(order(after.x), order(before.x));
});

test("an index out of range is refused by name", () => {
  assert.throws(() => layout(problem(2, [[0, [2]]])), /net 0 enters box 2 of 2/);
  assert.throws(() => layout(problem(0, [[0, []]])), RangeError);
});

test("an empty problem has no extent", () => {
  const { width, height } = layout(problem(0, []));
  assert.deepEqual([width, height], [0, 0]);
});

test("time of layouts", (t) => {
  for (const size of [1000, 10_000, 50_000]) {
    const { count, edges } = transformer(Math.round(size / 30));
    const input = problem(count, edges);
    const began = performance.now();
    const { crossings } = layout(input);
    t.diagnostic(`transformer, ${count} boxes: ${(performance.now() - began).toFixed(0)} ms, ${crossings} crossings`);
    assert.equal(crossings, 0);
  }
});
