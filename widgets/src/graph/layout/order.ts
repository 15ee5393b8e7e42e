/**
 * Order within rows: few crossings from several initial orders, barycenter sweeps and transposing neighbors
 * (Sugiyama et al. 1981; Gansner et al. 1993, §3; crossings counted as in Barth, Mutzel and Jünger 2004).
 */

import { type Adjacency, degree } from "./csr.ts";
import type { Layered } from "./layers.ts";

/** Depth-first orders to start from: from the top or the bottom, children forwards or backwards. */
const INITIAL_ORDERS = 4;
/** Graphs below this many vertices are transposed after every sweep, */
const SMALL = 2500;
/** and a start is given up after this many sweeps without a better order. */
const PATIENCE = 8;

/** Sorts the rows of `graph` in place and returns the number of crossings left. Deterministic. */
export function orderRows(graph: Layered, hint: Float32Array | null): number {
  const crossings = new Crossings(graph);
  const best = new Int32Array(graph.size);
  let fewest = Infinity;
  const keep = (): boolean => {
    const count = crossings.total();
    if (count >= fewest) return false;
    fewest = count;
    best.set(graph.order);
    return true;
  };
  const sorter = new RowSorter(graph);
  if (hint) {
    orderByHint(graph, hint);
    keep();
    const known = Uint8Array.from(hint, (x) => (Number.isNaN(x) ? 0 : 1));
    for (let i = 0; i < 4 && transpose(graph, known) > 0; i++);
    keep();
  } else {
    const small = graph.size < SMALL,
      sweeps = small ? 24 : graph.size < 3000 ? 10 : 6;
    for (let kind = 0; kind < INITIAL_ORDERS && fewest > 0; kind++) {
      depthFirst(graph, kind < 2, kind % 2 === 0);
      keep();
      for (let sweep = 0, idle = 0; sweep < sweeps && fewest > 0 && idle < PATIENCE; sweep++, idle++) {
        sorter.sweep(sweep % 2 === 0);
        if (small || sweep >= sweeps - 2) for (let i = 0; i < 8 && transpose(graph) > 0; i++);
        if (keep()) idle = -1;
      }
    }
  }
  graph.order.set(best);
  setPositions(graph);
  return fewest;
}

function setPositions({ rows, rowStart, order, pos }: Layered): void {
  for (let r = 0; r < rows; r++) {
    for (let i = rowStart[r]!; i < rowStart[r + 1]!; i++) pos[order[i]!] = i - rowStart[r]!;
  }
}

/** Places vertices row by row in the order a depth-first search meets them. */
function depthFirst(graph: Layered, fromTop: boolean, forwards: boolean): void {
  const { size, rank, rowStart, order, pos } = graph;
  const ahead = fromTop ? graph.down : graph.up,
    behind = fromTop ? graph.up : graph.down;
  const next = rowStart.slice(0, graph.rows);
  const seen = new Uint8Array(size);
  const stack: number[] = [];
  const visit = (root: number): void => {
    stack.push(root);
    while (stack.length) {
      const v = stack.pop()!;
      if (seen[v]) continue;
      seen[v] = 1;
      const k = next[rank[v]!]!++;
      order[k] = v;
      pos[v] = k - rowStart[rank[v]!]!;
      const begin = ahead.start[v]!,
        end = ahead.start[v + 1]!;
      for (let i = 0; i < end - begin; i++) {
        const w = ahead.node[forwards ? end - 1 - i : begin + i]!;
        if (!seen[w]) stack.push(w);
      }
    }
  };
  for (let v = 0; v < size; v++) if (!seen[v] && degree(behind, v) === 0) visit(v);
  for (let v = 0; v < size; v++) if (!seen[v]) visit(v);
}

/** Sorts rows by where their boxes were; wires and new boxes go between their neighbors. */
function orderByHint(graph: Layered, hint: Float32Array): void {
  const { size, rows, rowStart, order } = graph;
  const x = new Float64Array(size).fill(NaN);
  for (let v = 0; v < graph.boxes; v++) x[v] = hint[v]!;
  const guess = (v: number, adjacent: Adjacency): void => {
    let sum = 0,
      known = 0;
    for (let k = adjacent.start[v]!; k < adjacent.start[v + 1]!; k++) {
      const neighborX = x[adjacent.node[k]!]!;
      if (Number.isNaN(neighborX)) continue;
      sum += neighborX;
      known++;
    }
    if (known) x[v] = sum / known;
  };
  for (let r = 0; r < rows; r++) {
    for (let i = rowStart[r]!; i < rowStart[r + 1]!; i++) if (Number.isNaN(x[order[i]!]!)) guess(order[i]!, graph.up);
  }
  for (let r = rows - 1; r >= 0; r--) {
    for (let i = rowStart[r]!; i < rowStart[r + 1]!; i++) if (Number.isNaN(x[order[i]!]!)) guess(order[i]!, graph.down);
  }
  for (let v = 0; v < size; v++) if (Number.isNaN(x[v]!)) x[v] = 0;
  for (let r = 0; r < rows; r++) {
    order.subarray(rowStart[r]!, rowStart[r + 1]!).sort((a, b) => x[a]! - x[b]! || a - b);
  }
  setPositions(graph);
}

/** Sorts each row by the mean place of its neighbors in the row before, with room kept between calls. */
class RowSorter {
  readonly #graph: Layered;
  readonly #key: Float64Array;

  constructor(graph: Layered) {
    this.#graph = graph;
    this.#key = new Float64Array(graph.size);
  }

  sweep(downwards: boolean): void {
    const { rows } = this.#graph;
    if (downwards) for (let r = 1; r < rows; r++) this.#sort(r, this.#graph.up, true);
    else for (let r = rows - 2; r >= 0; r--) this.#sort(r, this.#graph.down, false);
  }

  #sort(row: number, adjacent: Adjacency, upwards: boolean): void {
    const { rowStart, order, pos, fromPort, toPort, portsBelow, portsAbove } = this.#graph;
    const begin = rowStart[row]!,
      end = rowStart[row + 1]!;
    if (end - begin < 2) return;
    const key = this.#key;
    for (let i = begin; i < end; i++) {
      const v = order[i]!;
      const count = degree(adjacent, v);
      if (!count) {
        key[v] = pos[v]!;
        continue;
      }
      let sum = 0;
      for (let k = adjacent.start[v]!; k < adjacent.start[v + 1]!; k++) {
        const w = adjacent.node[k]!,
          arc = adjacent.arc[k]!;
        sum +=
          pos[w]! + (upwards ? (fromPort[arc]! + 0.5) / portsBelow[w]! : (toPort[arc]! + 0.5) / portsAbove[w]!) - 0.5;
      }
      key[v] = sum / count;
    }
    const slice = order.subarray(begin, end);
    if (slice.length < 24) insertionSort(slice, key);
    else slice.sort((a, b) => key[a]! - key[b]! || pos[a]! - pos[b]!);
    for (let i = begin; i < end; i++) pos[order[i]!] = i - begin;
  }
}

/** Sorts stably; rows are mostly sorted already. */
function insertionSort(items: Int32Array, key: Float64Array): void {
  for (let i = 1; i < items.length; i++) {
    const v = items[i]!;
    const itemKey = key[v]!;
    let j = i - 1;
    for (; j >= 0 && key[items[j]!]! > itemKey; j--) items[j + 1] = items[j]!;
    items[j + 1] = v;
  }
}

/** Products of degrees beyond this are not compared one by one. */
const TOO_MANY_PAIRS = 4096;

/** Swaps neighbors where that removes crossings, but never two boxes that are both `fixed`; returns how many went. */
function transpose(graph: Layered, fixed: Uint8Array | null = null): number {
  const { rows, rowStart, order, pos, up, down } = graph;
  let removed = 0;
  for (let r = 0; r < rows; r++) {
    for (let i = rowStart[r]!; i < rowStart[r + 1]! - 1; i++) {
      const v = order[i]!,
        w = order[i + 1]!;
      if (fixed && v < graph.boxes && w < graph.boxes && fixed[v] && fixed[w]) continue;
      if (degree(up, v) * degree(up, w) + degree(down, v) * degree(down, w) > TOO_MANY_PAIRS) continue;
      const gain = crossingGain(graph, true, v, w) + crossingGain(graph, false, v, w);
      if (gain <= 0) continue;
      order[i] = w;
      order[i + 1] = v;
      pos[w]!--;
      pos[v]!++;
      removed += gain;
    }
  }
  return removed;
}

/** Crossings between the arcs (above or below) of v and w now, minus those if they changed places. */
function crossingGain(graph: Layered, above: boolean, v: number, w: number): number {
  const { pos } = graph;
  const { start, node, arc } = above ? graph.up : graph.down;
  const port = above ? graph.fromPort : graph.toPort;
  let gain = 0;
  for (let k = start[v]!; k < start[v + 1]!; k++) {
    const x = pos[node[k]!]!;
    for (let l = start[w]!; l < start[w + 1]!; l++) {
      const y = pos[node[l]!]!;
      const apart = x === y ? port[arc[k]!]! - port[arc[l]!]! : x - y;
      if (apart > 0) gain++;
      else if (apart < 0) gain--;
    }
  }
  return gain;
}

/** Bound of the ports of a row. */
const WIDEST = 2 ** 26;

/** Counts crossings between neighboring rows with a Fenwick tree, O(arcs log width). */
class Crossings {
  readonly #graph: Layered;
  readonly #tree: Int32Array;
  /** First port of each vertex, counted along its row. */
  readonly #firstPort: Int32Array;
  #ends = new Float64Array(64);

  constructor(graph: Layered) {
    this.#graph = graph;
    this.#firstPort = new Int32Array(graph.size);
    const ports = new Int32Array(graph.rows);
    for (let v = 0; v < graph.size; v++) ports[graph.rank[v]!]! += graph.portsAbove[v]!;
    this.#tree = new Int32Array(ports.reduce((a, b) => Math.max(a, b), 0) + 2);
  }

  total(): number {
    const { rows, rowStart } = this.#graph;
    let count = 0;
    for (let r = 0; r < rows - 1; r++) {
      const above = rowStart[r + 1]! - rowStart[r]!,
        ports = this.#numberPorts(r + 1);
      if (ports > 1 && (above > 1 || this.#graph.portsBelow[this.#graph.order[rowStart[r]!]!]! > 1))
        count += this.#between(r, ports);
    }
    return count;
  }

  #numberPorts(row: number): number {
    const { rowStart, order, portsAbove } = this.#graph;
    let ports = 0;
    for (let i = rowStart[row]!; i < rowStart[row + 1]!; i++) {
      this.#firstPort[order[i]!] = ports;
      ports += portsAbove[order[i]!]!;
    }
    return ports;
  }

  #between(row: number, ports: number): number {
    const { rowStart, order, portsBelow } = this.#graph;
    const tree = this.#tree.fill(0, 0, ports + 2);
    let count = 0,
      placed = 0;
    const enter = (ends: Float64Array): void => {
      for (let i = 0; i < ends.length; i++) {
        let before = 0;
        for (let q = (ends[i]! % WIDEST) + 1; q > 0; q -= q & -q) before += tree[q]!;
        count += placed - before;
      }
      for (let i = 0; i < ends.length; i++) for (let q = (ends[i]! % WIDEST) + 1; q <= ports; q += q & -q) tree[q]!++;
      placed += ends.length;
    };
    for (let i = rowStart[row]!; i < rowStart[row + 1]!; i++) {
      const v = order[i]!;
      const ends = this.#endsOf(v);
      if (portsBelow[v] === 1) {
        enter(ends);
        continue;
      }
      for (let from = 0, to = 1; to <= ends.length; to++) {
        if (to < ends.length && Math.floor(ends[to]! / WIDEST) === Math.floor(ends[from]! / WIDEST)) continue;
        enter(ends.subarray(from, to));
        from = to;
      }
    }
    return count;
  }

  /** Ends of a vertex's arcs below it: place in the row, plus WIDEST times the port that the arc leaves; sorted. */
  #endsOf(v: number): Float64Array {
    const { down, fromPort, toPort } = this.#graph;
    const arcs = degree(down, v);
    if (arcs > this.#ends.length) this.#ends = new Float64Array(2 * arcs);
    const ends = this.#ends.subarray(0, arcs);
    for (let i = 0; i < arcs; i++) {
      const arc = down.arc[down.start[v]! + i]!;
      ends[i] = this.#firstPort[down.node[down.start[v]! + i]!]! + toPort[arc]! + WIDEST * fromPort[arc]!;
    }
    return arcs > 1 ? ends.sort() : ends;
  }
}
