/**
 * Rows: every box gets a rank so that arcs point downwards, after arcs that close cycles are turned around.
 *
 * Longest path, then tightened: boxes with more outputs than inputs slide down to their consumers, the others up, which
 * shortens lines without network simplex's cost (Gansner et al., "A technique for drawing directed graphs", 1993, §2).
 */

import { type Adjacency, adjacency, degree } from "./csr.ts";
import { networkSimplex } from "./simplex.ts";

/** Marks the arcs to turn around so that no cycle is left; self loops are marked too. Depth first, in index order. */
export function backArcs(count: number, from: Int32Array, to: Int32Array): Uint8Array {
  const back = new Uint8Array(from.length);
  const out = adjacency(count, from, to);
  if (topological(count, out, adjacency(count, to, from)).length === count) return back;
  const OPEN = 1,
    DONE = 2;
  const state = new Uint8Array(count);
  const next = out.start.slice(0, count);
  const path: number[] = [];
  for (const root of rootsFirst(count, to)) {
    if (state[root]) continue;
    state[root] = OPEN;
    path.push(root);
    while (path.length) {
      const v = path[path.length - 1]!;
      const k = next[v]!++;
      if (k === out.start[v + 1]!) {
        state[v] = DONE;
        path.pop();
        continue;
      }
      const w = out.node[k]!;
      if (state[w] === OPEN) back[out.arc[k]!] = 1;
      else if (!state[w]) {
        state[w] = OPEN;
        path.push(w);
      }
    }
  }
  return back;
}

/** Vertices that nothing enters, then all the others: a search from there finds few back arcs. */
function rootsFirst(count: number, to: Int32Array): number[] {
  const entered = new Uint8Array(count);
  for (const v of to) entered[v] = 1;
  const roots: number[] = [],
    others: number[] = [];
  for (let v = 0; v < count; v++) (entered[v] ? others : roots).push(v);
  return roots.concat(others);
}

/** Vertices in topological order; those on or behind a cycle are left out. */
export function topological(count: number, out: Adjacency, into: Adjacency): Int32Array {
  const waiting = new Int32Array(count),
    order = new Int32Array(count);
  let head = 0,
    tail = 0;
  for (let v = 0; v < count; v++) {
    waiting[v] = degree(into, v);
    if (!waiting[v]) order[tail++] = v;
  }
  while (head < tail) {
    const v = order[head++]!;
    for (let k = out.start[v]!; k < out.start[v + 1]!; k++) {
      const w = out.node[k]!;
      if (--waiting[w]! === 0) order[tail++] = w;
    }
  }
  return order.subarray(0, tail);
}

/**
 * Ranks from 0 of an acyclic graph. `free` vertices only are ranked; the others get -1 and their arcs are ignored.
 *
 * With a hint (earlier ranks, -1 for new vertices) vertices stay in their rows as far as the arcs allow.
 */
export function ranks(
  count: number,
  from: Int32Array,
  to: Int32Array,
  free: Uint8Array,
  hint: Int32Array | null = null,
): Int32Array {
  let arcCount = 0;
  const src = new Int32Array(from.length),
    dst = new Int32Array(from.length);
  for (let a = 0; a < from.length; a++) {
    if (!free[from[a]!] || !free[to[a]!]) continue;
    src[arcCount] = from[a]!;
    dst[arcCount++] = to[a]!;
  }
  const out = adjacency(count, src.subarray(0, arcCount), dst.subarray(0, arcCount));
  const into = adjacency(count, dst.subarray(0, arcCount), src.subarray(0, arcCount));
  const order = topological(count, out, into);
  if (hint) return keptRanks(hint, order, out, into, free);
  const rank = new Int32Array(count);
  for (const v of order) {
    for (let k = out.start[v]!; k < out.start[v + 1]!; k++) {
      const w = out.node[k]!;
      if (rank[w]! <= rank[v]!) rank[w] = rank[v]! + 1;
    }
  }
  for (let pass = 0; pass < 3; pass++) tighten(rank, order, out, into);
  if (count + arcCount <= EXACT) shortest(count, src.subarray(0, arcCount), dst.subarray(0, arcCount), rank);
  stackLeaves(rank, out, into, -1);
  stackLeaves(rank, into, out, 1);
  spreadLonely(rank, out, into, free);
  closeGaps(rank, free);
  return rank;
}

/**
 * Earlier ranks; what is new stands right above what reads it or right below what it reads, and pushes down what is in
 * the way.
 */
function keptRanks(hint: Int32Array, order: Int32Array, out: Adjacency, into: Adjacency, free: Uint8Array): Int32Array {
  const rank = hint.slice();
  for (let i = order.length - 1; i >= 0; i--) {
    const v = order[i]!;
    if (hint[v]! >= 0 || degree(into, v)) continue;
    let lowest = Infinity;
    for (let k = out.start[v]!; k < out.start[v + 1]!; k++)
      if (rank[out.node[k]!]! >= 0) lowest = Math.min(lowest, rank[out.node[k]!]!);
    rank[v] = lowest === Infinity ? 0 : lowest - 1;
  }
  for (const v of order) {
    for (let k = into.start[v]!; k < into.start[v + 1]!; k++) rank[v] = Math.max(rank[v]!, rank[into.node[k]!]! + 1);
  }
  closeGaps(rank, free);
  return rank;
}

/** Vertices and arcs up to which the arcs get the least length in rows that there is. */
const EXACT = 30_000;
const PIVOTS = 20_000;

/** Network simplex on ranks; parts that no arc joins start together in the first row. */
function shortest(count: number, tail: Int32Array, head: Int32Array, rank: Int32Array): void {
  const ones = new Float64Array(tail.length).fill(1);
  const place = Float64Array.from(rank);
  networkSimplex({ count, tail, head, apart: ones, weight: ones }, place, PIVOTS);
  for (let v = 0; v < count; v++) rank[v] = Math.round(place[v]!);
}

/** One pass up and one down; each vertex moves only inside its slack, so ranks stay valid. */
function tighten(rank: Int32Array, order: Int32Array, out: Adjacency, into: Adjacency): void {
  for (let i = order.length - 1; i >= 0; i--) {
    const v = order[i]!;
    const outs = degree(out, v),
      ins = degree(into, v);
    if (outs === 0 || outs <= ins) continue;
    let lowest = rank[out.node[out.start[v]!]!]!;
    for (let k = out.start[v]!; k < out.start[v + 1]!; k++) lowest = Math.min(lowest, rank[out.node[k]!]!);
    rank[v] = lowest - 1;
  }
  for (const v of order) {
    const outs = degree(out, v),
      ins = degree(into, v);
    if (ins === 0 || ins <= outs) continue;
    let highest = -1;
    for (let k = into.start[v]!; k < into.start[v + 1]!; k++) highest = Math.max(highest, rank[into.node[k]!]!);
    rank[v] = highest + 1;
  }
}

/** Boxes that only touch one other are set in several rows where that has more than this many of them. */
const LEAVES_PER_ROW = 12;

/**
 * Stacks the many boxes that only feed (step -1; or are only fed by, 1) one box, as one row of them would be too wide.
 */
function stackLeaves(rank: Int32Array, ahead: Adjacency, behind: Adjacency, step: -1 | 1): void {
  for (let v = 0; v < rank.length; v++) {
    if (degree(behind, v) <= LEAVES_PER_ROW) continue;
    const leaves = [...behind.node.subarray(behind.start[v]!, behind.start[v + 1]!)].filter(
      (u) => degree(ahead, u) === 1 && degree(behind, u) === 0,
    );
    if (leaves.length <= LEAVES_PER_ROW) continue;
    const rows = Math.ceil(leaves.length / Math.max(LEAVES_PER_ROW, Math.ceil(Math.sqrt(3 * leaves.length))));
    // The rows take the boxes by turns, so that the lines of one row pass between the boxes of the next.
    leaves.forEach((u, i) => {
      rank[u] = rank[v]! + step * (1 + (i % rows));
    });
  }
}

/** Boxes without any arc would all sit in the first row: spread them over rows. */
function spreadLonely(rank: Int32Array, out: Adjacency, into: Adjacency, free: Uint8Array): void {
  const lonely: number[] = [];
  for (let v = 0; v < rank.length; v++) if (free[v] && degree(out, v) + degree(into, v) === 0) lonely.push(v);
  const columns = Math.max(4, Math.ceil(Math.sqrt(lonely.length / 1.5)));
  lonely.forEach((v, i) => {
    rank[v] = Math.floor(i / columns);
  });
}

/** Renumbers so that used ranks are 0, 1, 2 … ; vertices that are not free get -1. */
function closeGaps(rank: Int32Array, free: Uint8Array): void {
  let low = 0,
    high = -1;
  for (let v = 0; v < rank.length; v++) {
    if (!free[v]) continue;
    low = Math.min(low, rank[v]!);
    high = Math.max(high, rank[v]!);
  }
  const used = new Int32Array(high - low + 2);
  for (let v = 0; v < rank.length; v++) if (free[v]) used[rank[v]! - low] = 1;
  let next = 0;
  for (let r = 0; r < used.length; r++) used[r] = used[r] ? next++ : next;
  for (let v = 0; v < rank.length; v++) rank[v] = free[v] ? used[rank[v]! - low]! : -1;
}
