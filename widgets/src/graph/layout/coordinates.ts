/**
 * x coordinates: Brandes and Köpf, "Fast and simple horizontal coordinate assignment" (2001), with ports (arcs may
 * attach off center), then sliding straight runs towards their neighbors, which never makes the drawing longer.
 */

import { type Adjacency, adjacency, identity } from "./csr.ts";
import { gap, type Layered } from "./layers.ts";
import { networkSimplex } from "./simplex.ts";

/** x of the center of every vertex; rows keep their order and their gaps. */
export function xCoordinates(layers: Layered): Float64Array {
  const graph = alongSpines(layers);
  const conflict = innerConflicts(graph);
  const candidates: Float64Array[] = [];
  for (const downwards of [true, false]) {
    for (const mirrored of [false, true]) candidates.push(candidate(graph, conflict, downwards, mirrored));
  }
  const x = balance(graph, candidates);
  const passes = graph.size < 3000 ? 8 : graph.size < 30000 ? 4 : 2;
  for (let pass = 0; pass < passes && slide(graph, x, pass % 2 === 0) > 1; pass++);
  if (graph.size + graph.from.length <= EXACT) shortest(graph, x);
  return x;
}

/** Vertices and arcs up to which the sideways length of all lines is made the least that the order allows. */
const EXACT = 30_000;
/** The cost of a unit sideways: between boxes, so that where a main path and a shortcut meet the shortcut bends; … */
const BOX_TO_BOX = 2,
  BOX_TO_WIRE = 1;
/** … and inside a line, which rather bends at its ends. */
const WIRE_TO_WIRE = 4;

/** Network simplex on x: each arc gets a vertex at the left one of its ends (Gansner et al. 1993, §4.2). */
function shortest(graph: Layered, x: Float64Array): void {
  const { size, from, to, fromShift, toShift, rows, rowStart, order, half } = graph;
  const arcs = from.length,
    all = 2 * arcs + size - rows;
  const tail = new Int32Array(all),
    head = new Int32Array(all),
    apart = new Float64Array(all),
    weight = new Float64Array(all);
  const place = new Float64Array(size + arcs);
  place.set(x);
  let k = 0;
  for (let a = 0; a < arcs; a++) {
    const u = from[a]!,
      v = to[a]!,
      offset = fromShift[a]! - toShift[a]!;
    const wires = (isWire(graph, u) ? 1 : 0) + (isWire(graph, v) ? 1 : 0);
    place[size + a] = Math.min(x[u]! + offset, x[v]!);
    tail[k] = tail[k + 1] = size + a;
    head[k] = u;
    apart[k] = -offset;
    head[k + 1] = v;
    weight[k] = weight[k + 1] = wires === 2 ? WIRE_TO_WIRE : wires === 1 ? BOX_TO_WIRE : BOX_TO_BOX;
    k += 2;
  }
  for (let r = 0; r < rows; r++) {
    for (let i = rowStart[r]! + 1; i < rowStart[r + 1]!; i++) {
      const u = order[i - 1]!,
        v = order[i]!;
      tail[k] = u;
      head[k] = v;
      apart[k++] = half[u]! + half[v]! + gap(graph, u, v);
    }
  }
  networkSimplex(
    { count: size + arcs, tail: tail.subarray(0, k), head: head.subarray(0, k), apart, weight },
    place,
    PIVOTS,
  );
  x.set(place.subarray(0, size));
}

const PIVOTS = 20_000;

/**
 * Boxes with given ports get a spine, the port that their main input enters, and what they feed is aligned with that
 * too: aligned with the port it leaves, a column of equal frames would drift sideways by as much as their ports
 * differ.
 */
function alongSpines(graph: Layered): Layered {
  const { boxes, up, down, from } = graph;
  const fromShift = graph.fromShift.slice();
  for (let v = 0; v < boxes; v++) {
    if (graph.portsAbove[v]! === 1 && graph.portsBelow[v]! === 1 && !isShifted(graph, v)) continue;
    const spine = mainPort(graph, up, graph.toShift, v) ?? mainPort(graph, down, graph.fromShift, v) ?? 0;
    for (let k = down.start[v]!; k < down.start[v + 1]!; k++) fromShift[down.arc[k]!] = spine;
  }
  return from.length ? { ...graph, fromShift } : graph;
}

function isShifted({ up, down, fromShift, toShift }: Layered, v: number): boolean {
  for (let k = up.start[v]!; k < up.start[v + 1]!; k++) if (toShift[up.arc[k]!]) return true;
  for (let k = down.start[v]!; k < down.start[v + 1]!; k++) if (fromShift[down.arc[k]!]) return true;
  return false;
}

/**
 * Shift of a box's main arc on one side: one that comes from a box rather than a wire, and from one that feeds few
 * others; among equals the middle one. Null without arcs.
 */
function mainPort(graph: Layered, { start, arc, node }: Adjacency, shift: Float32Array, v: number): number | null {
  const arcs: { shift: number; cost: number }[] = [];
  for (let k = start[v]!; k < start[v + 1]!; k++) {
    const end = node[k]!;
    const fed = graph.down.start[end + 1]! - graph.down.start[end]!;
    arcs.push({ shift: shift[arc[k]!]!, cost: isWire(graph, end) ? Infinity : fed });
  }
  const least = Math.min(...arcs.map(({ cost }) => cost));
  const best = arcs.filter(({ cost }) => cost === least).sort((a, b) => a.shift - b.shift);
  return best[(best.length - 1) >> 1]?.shift ?? null;
}

const isWire = (graph: Layered, v: number): boolean => v >= graph.boxes;

/** Arcs that cross a run of wires: those must bend, so that long lines stay straight. */
function innerConflicts(graph: Layered): Uint8Array {
  const { rows, rowStart, order, pos, up } = graph;
  const conflict = new Uint8Array(graph.from.length);
  for (let r = 1; r < rows - 1; r++) {
    const begin = rowStart[r + 1]!,
      end = rowStart[r + 2]!,
      above = begin - rowStart[r]!;
    if (above < 2) continue;
    let low = 0,
      scanned = begin;
    for (let i = begin; i < end; i++) {
      const inner = innerNeighbor(graph, order[i]!);
      if (i < end - 1 && inner < 0) continue;
      const high = inner >= 0 ? pos[inner]! : above - 1;
      for (; scanned <= i; scanned++) {
        const w = order[scanned]!;
        for (let k = up.start[w]!; k < up.start[w + 1]!; k++) {
          const u = up.node[k]!,
            p = pos[u]!;
          if ((p < low || p > high) && !(isWire(graph, u) && isWire(graph, w))) conflict[up.arc[k]!] = 1;
        }
      }
      low = high;
    }
  }
  return conflict;
}

/** The wire above a wire, or -1. */
function innerNeighbor(graph: Layered, v: number): number {
  if (!isWire(graph, v)) return -1;
  const k = graph.up.start[v]!;
  return k < graph.up.start[v + 1]! && isWire(graph, graph.up.node[k]!) ? graph.up.node[k]! : -1;
}

/** One of the four layouts: aligned with the row above or below, packed to the left or (mirrored) the right. */
function candidate(graph: Layered, conflict: Uint8Array, downwards: boolean, mirrored: boolean): Float64Array {
  const { root, shift } = align(graph, conflict, downwards, mirrored);
  const x = compact(graph, root, shift, mirrored);
  const result = new Float64Array(graph.size);
  for (let v = 0; v < graph.size; v++) {
    const place = x[root[v]!]! + shift[v]!;
    result[v] = mirrored ? -place : place;
  }
  return result;
}

interface Blocks {
  root: Int32Array;
  /** Place of each vertex relative to its block's root, mirrored like the candidate. */
  shift: Float64Array;
}

/** Joins each vertex to its median neighbor where no joined arc is crossed. */
function align(graph: Layered, conflict: Uint8Array, downwards: boolean, mirrored: boolean): Blocks {
  const { size, rows, rowStart, order, pos, fromShift, toShift } = graph;
  const adjacent = downwards ? graph.up : graph.down;
  const sign = mirrored ? -1 : 1;
  const root = identity(size),
    joined = identity(size);
  const shift = new Float64Array(size);
  const sorted: number[] = [],
    medians: number[] = [];
  for (let i = 0; i < rows; i++) {
    const row = downwards ? i : rows - 1 - i;
    const begin = rowStart[row]!,
      end = rowStart[row + 1]!;
    let last = mirrored ? Infinity : -1;
    for (let j = 0; j < end - begin; j++) {
      const v = mirrored ? order[end - 1 - j]! : order[begin + j]!;
      medianEntries(adjacent, pos, v, sorted, medians);
      if (mirrored) medians.reverse();
      for (const k of medians) {
        if (joined[v] !== v) break;
        const u = adjacent.node[k]!,
          arc = adjacent.arc[k]!;
        const free = mirrored ? pos[u]! < last : pos[u]! > last;
        if (!free || conflict[arc]) continue;
        joined[u] = v;
        root[v] = root[u]!;
        joined[v] = root[v]!;
        const offset = downwards ? fromShift[arc]! - toShift[arc]! : toShift[arc]! - fromShift[arc]!;
        shift[v] = shift[u]! + sign * offset;
        last = pos[u]!;
      }
    }
  }
  return { root, shift };
}

/** Entries of the one or two middle neighbors, left first. `sorted` is room for the neighbors. */
function medianEntries(adjacent: Adjacency, pos: Int32Array, v: number, sorted: number[], result: number[]): void {
  result.length = 0;
  const begin = adjacent.start[v]!,
    count = adjacent.start[v + 1]! - begin;
  if (!count) return;
  if (count === 1) {
    result.push(begin);
    return;
  }
  const place = (k: number): number => pos[adjacent.node[k]!]!;
  sorted.length = 0;
  for (let k = begin; k < begin + count; k++) sorted.push(k);
  if (count > 2) sorted.sort((a, b) => place(a) - place(b) || a - b);
  else if (place(begin) > place(begin + 1)) sorted.reverse();
  const low = (count - 1) >> 1,
    high = count >> 1;
  result.push(sorted[low]!);
  if (high !== low) result.push(sorted[high]!);
}

/** Packs blocks to the left (in mirrored coordinates too), then pulls those with room towards their right neighbor. */
function compact(graph: Layered, root: Int32Array, shift: Float64Array, mirrored: boolean): Float64Array {
  const { size, rows, rowStart, order, half } = graph;
  const left = new Int32Array(size),
    right = new Int32Array(size),
    apart = new Float64Array(size);
  let count = 0;
  for (let r = 0; r < rows; r++) {
    const begin = rowStart[r]!,
      end = rowStart[r + 1]!;
    for (let j = 1; j < end - begin; j++) {
      const u = mirrored ? order[end - j]! : order[begin + j - 1]!;
      const v = mirrored ? order[end - 1 - j]! : order[begin + j]!;
      left[count] = root[u]!;
      right[count] = root[v]!;
      apart[count++] = half[u]! + half[v]! + gap(graph, u, v) + shift[u]! - shift[v]!;
    }
  }
  const rightOf = adjacency(size, left.subarray(0, count), right.subarray(0, count));
  const waiting = new Int32Array(size),
    queue = new Int32Array(size);
  for (let i = 0; i < count; i++) waiting[right[i]!]!++;
  let head = 0,
    tail = 0;
  for (let v = 0; v < size; v++) if (root[v] === v && !waiting[v]) queue[tail++] = v;
  const x = new Float64Array(size);
  while (head < tail) {
    const u = queue[head++]!;
    for (let k = rightOf.start[u]!; k < rightOf.start[u + 1]!; k++) {
      const v = rightOf.node[k]!;
      x[v] = Math.max(x[v]!, x[u]! + apart[rightOf.arc[k]!]!);
      if (--waiting[v]! === 0) queue[tail++] = v;
    }
  }
  for (let i = tail - 1; i >= 0; i--) {
    const u = queue[i]!;
    let limit = Infinity;
    for (let k = rightOf.start[u]!; k < rightOf.start[u + 1]!; k++) {
      limit = Math.min(limit, x[rightOf.node[k]!]! - apart[rightOf.arc[k]!]!);
    }
    if (limit < Infinity && limit > x[u]!) x[u] = limit;
  }
  return x;
}

/** Lines the candidates up with the narrowest and takes the mean of the two middle ones, which keeps all gaps. */
function balance(graph: Layered, candidates: Float64Array[]): Float64Array {
  const extents = candidates.map((x) => {
    let low = Infinity,
      high = -Infinity;
    for (let v = 0; v < graph.size; v++) {
      low = Math.min(low, x[v]! - graph.half[v]!);
      high = Math.max(high, x[v]! + graph.half[v]!);
    }
    return { low, high };
  });
  const narrowest = extents.reduce((a, b) => (b.high - b.low < a.high - a.low ? b : a));
  const moves = extents.map(({ low, high }, i) => (i % 2 === 0 ? narrowest.low - low : narrowest.high - high));
  const [a, b, c, d] = candidates as [Float64Array, Float64Array, Float64Array, Float64Array];
  const [ma, mb, mc, md] = moves as [number, number, number, number];
  const x = new Float64Array(graph.size);
  for (let v = 0; v < graph.size; v++) {
    const p = a[v]! + ma,
      q = b[v]! + mb,
      r = c[v]! + mc,
      s = d[v]! + md;
    x[v] = (p + q + r + s - Math.min(p, q, r, s) - Math.max(p, q, r, s)) / 2;
  }
  return x;
}

/** Arcs shorter than this sideways count as straight. */
const STRAIGHT = 0.01;

/**
 * Moves runs of vertices that straight arcs hold together to the median of what pulls at them, as far as their
 * neighbors leave room. No move makes the (weighted) lines longer; returns the pixels moved.
 */
function slide(graph: Layered, x: Float64Array, leftFirst: boolean): number {
  const { run, members } = straightRuns(graph, x);
  const runs = members.start.length - 1;
  const pulls: number[] = [];
  let moved = 0;
  for (let i = 0; i < runs; i++) {
    const place = leftFirst ? i : runs - 1 - i;
    const begin = members.start[place]!,
      end = members.start[place + 1]!;
    if (begin === end) continue;
    pulls.length = 0;
    let roomLeft = Infinity,
      roomRight = Infinity;
    for (let k = begin; k < end; k++) {
      const v = members.node[k]!;
      collectPulls(graph, x, run, v, pulls);
      const before = neighbor(graph, v, -1),
        after = neighbor(graph, v, 1);
      if (before >= 0)
        roomLeft = Math.min(
          roomLeft,
          x[v]! - x[before]! - graph.half[v]! - graph.half[before]! - gap(graph, before, v),
        );
      if (after >= 0)
        roomRight = Math.min(roomRight, x[after]! - x[v]! - graph.half[v]! - graph.half[after]! - gap(graph, v, after));
    }
    if (!pulls.length) continue;
    const move = Math.min(Math.max(closestMedian(pulls), -Math.max(0, roomLeft)), Math.max(0, roomRight));
    if (Math.abs(move) < STRAIGHT) continue;
    for (let k = begin; k < end; k++) x[members.node[k]!]! += move;
    moved += Math.abs(move);
  }
  return moved;
}

/** The vertex next to v in its row, or -1. */
function neighbor({ rank, rowStart, order, pos }: Layered, v: number, step: -1 | 1): number {
  const row = rank[v]!;
  const i = rowStart[row]! + pos[v]! + step;
  return i >= rowStart[row]! && i < rowStart[row + 1]! ? order[i]! : -1;
}

/**
 * The moves of v that would make each arc to another run straight. Arcs between boxes count twice, so that where a main
 * path and a shortcut meet, the shortcut bends.
 */
function collectPulls(graph: Layered, x: Float64Array, run: Int32Array, v: number, pulls: number[]): void {
  const { up, down, fromShift, toShift } = graph;
  const pull = (u: number, by: number): void => {
    pulls.push(by);
    if (!isWire(graph, u) && !isWire(graph, v)) pulls.push(by);
  };
  for (let k = up.start[v]!; k < up.start[v + 1]!; k++) {
    const u = up.node[k]!,
      arc = up.arc[k]!;
    if (run[u] !== run[v]) pull(u, x[u]! + fromShift[arc]! - toShift[arc]! - x[v]!);
  }
  for (let k = down.start[v]!; k < down.start[v + 1]!; k++) {
    const u = down.node[k]!,
      arc = down.arc[k]!;
    if (run[u] !== run[v]) pull(u, x[u]! + toShift[arc]! - fromShift[arc]! - x[v]!);
  }
}

/** The point of the median interval that is nearest to 0. */
function closestMedian(pulls: number[]): number {
  pulls.sort((a, b) => a - b);
  const low = pulls[(pulls.length - 1) >> 1]!,
    high = pulls[pulls.length >> 1]!;
  return low > 0 ? low : Math.min(high, 0);
}

/** Vertices joined by straight arcs, as runs: numbered by their first vertex, members in CSR form. */
function straightRuns(graph: Layered, x: Float64Array): { run: Int32Array; members: Adjacency } {
  const { size, from, to, fromShift, toShift } = graph;
  const run = identity(size);
  const find = (v: number): number => {
    while (run[v] !== v) {
      run[v] = run[run[v]!]!;
      v = run[v]!;
    }
    return v;
  };
  for (let a = 0; a < from.length; a++) {
    const u = from[a]!,
      v = to[a]!;
    if (Math.abs(x[u]! + fromShift[a]! - x[v]! - toShift[a]!) > STRAIGHT) continue;
    const p = find(u),
      q = find(v);
    run[Math.max(p, q)] = Math.min(p, q);
  }
  for (let v = 0; v < size; v++) run[v] = find(v);
  return { run, members: adjacency(size, run, identity(size)) };
}
