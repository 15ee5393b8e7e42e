/** Compressed adjacency: for every vertex, the arcs that touch it on one side and the vertices at their other ends. */

export interface Adjacency {
  /** Entries of vertex v are start[v] .. start[v + 1]. */
  start: Int32Array;
  arc: Int32Array;
  node: Int32Array;
}

/** Arcs grouped by `from`, in arc order; `node` holds their `to`. O(vertices + arcs). */
export function adjacency(vertices: number, from: Int32Array, to: Int32Array): Adjacency {
  const arcs = from.length;
  const start = new Int32Array(vertices + 1);
  for (let a = 0; a < arcs; a++) start[from[a]! + 1]!++;
  for (let v = 0; v < vertices; v++) start[v + 1]! += start[v]!;
  const next = start.slice(0, vertices);
  const arc = new Int32Array(arcs),
    node = new Int32Array(arcs);
  for (let a = 0; a < arcs; a++) {
    const k = next[from[a]!]!++;
    arc[k] = a;
    node[k] = to[a]!;
  }
  return { start, arc, node };
}

/** Number of arcs of a vertex. */
export function degree(adjacent: Adjacency, vertex: number): number {
  return adjacent.start[vertex + 1]! - adjacent.start[vertex]!;
}

/** 0, 1, 2 … count - 1. */
export function identity(count: number): Int32Array {
  const numbers = new Int32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = i;
  return numbers;
}
