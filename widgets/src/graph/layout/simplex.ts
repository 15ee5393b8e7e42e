/**
 * Network simplex: places on a line for vertices that arcs hold apart, with the least weighted length of the arcs
 * (Gansner et al., "A technique for drawing directed graphs", 1993, §2.3). Rows and x coordinates are both found so.
 *
 * The spanning tree is kept as child lists. The cut value of a tree arc is the sum of (weights out − weights in) over
 * the subtree below it, as all arcs inside it cancel; so a pivot only touches the two tree paths that it changes.
 */

import { type Adjacency, adjacency } from "./csr.ts";

/** Arc a asks that place[head[a]] − place[tail[a]] ≥ apart[a], and costs weight[a] for each unit of that difference. */
export interface Constraints {
  count: number;
  tail: Int32Array;
  head: Int32Array;
  apart: Float64Array;
  weight: Float64Array;
}

const EPSILON = 1e-7;
/** Candidates looked at for the arc that leaves the tree. */
const SEARCH = 40;

/** Improves `place`, which must keep all arcs apart already, until it is best or `pivots` steps are made; in place. */
export function networkSimplex(constraints: Constraints, place: Float64Array, pivots: number): void {
  if (constraints.count < 2 || !constraints.tail.length) return;
  new Simplex(constraints, place).run(pivots);
}

class Simplex {
  readonly #given: Constraints;
  readonly #place: Float64Array;
  readonly #out: Adjacency;
  readonly #into: Adjacency;
  /**
   * The tree: arc to the parent (-1: a link between components, of no weight), parent, and children as linked lists.
   */
  readonly #arc: Int32Array;
  readonly #parent: Int32Array;
  readonly #child: Int32Array;
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  /** Weights out minus weights in, over the subtree. */
  readonly #surplus: Float64Array;
  /** Vertices of the subtree that is being moved have the current stamp. */
  readonly #stamp: Int32Array;
  #now = 0;
  #from = 0;

  constructor(constraints: Constraints, place: Float64Array) {
    const { count, tail, head, weight } = constraints;
    this.#given = constraints;
    this.#place = place;
    this.#out = adjacency(count, tail, head);
    this.#into = adjacency(count, head, tail);
    this.#arc = new Int32Array(count).fill(-1);
    this.#parent = new Int32Array(count).fill(-1);
    this.#child = new Int32Array(count).fill(-1);
    this.#next = new Int32Array(count).fill(-1);
    this.#previous = new Int32Array(count).fill(-1);
    this.#stamp = new Int32Array(count);
    this.#surplus = new Float64Array(count);
    for (let a = 0; a < tail.length; a++) {
      this.#surplus[tail[a]!]! += weight[a]!;
      this.#surplus[head[a]!]! -= weight[a]!;
    }
    const order = this.#span();
    for (let i = order.length - 1; i > 0; i--) this.#surplus[this.#parent[order[i]!]!]! += this.#surplus[order[i]!]!;
  }

  run(pivots: number): void {
    for (let i = 0; i < pivots; i++) {
      const leaving = this.#leaving();
      if (leaving < 0 || !this.#pivot(leaving)) return;
    }
  }

  #slack(arc: number): number {
    const { tail, head, apart } = this.#given;
    return this.#place[head[arc]!]! - this.#place[tail[arc]!]! - apart[arc]!;
  }

  // ------------------------------------------------------------------------------------------------- first tree

  /** Spans all vertices by arcs without slack, moving the tree towards its nearest neighbor; returns them in order. */
  #span(): number[] {
    const { count, tail, head } = this.#given;
    const order: number[] = [],
      inside = new Uint8Array(count);
    const leaving = new Heap(),
      entering = new Heap();
    // Places of the tree are kept as if it had not moved, and so are the slacks in the heaps.
    let moved = 0;
    const enter = (v: number, parent: number, arc: number): void => {
      inside[v] = 1;
      this.#place[v]! -= moved;
      order.push(v);
      if (parent >= 0) this.#hang(v, parent, arc);
      for (let k = this.#out.start[v]!; k < this.#out.start[v + 1]!; k++) {
        if (!inside[this.#out.node[k]!]) leaving.push(this.#slack(this.#out.arc[k]!), this.#out.arc[k]!);
      }
      for (let k = this.#into.start[v]!; k < this.#into.start[v + 1]!; k++) {
        if (!inside[this.#into.node[k]!]) entering.push(this.#slack(this.#into.arc[k]!), this.#into.arc[k]!);
      }
    };
    enter(0, -1, -1);
    let unseen = 1;
    while (order.length < count) {
      while (leaving.size && inside[head[leaving.top]!]) leaving.pop();
      while (entering.size && inside[tail[entering.top]!]) entering.pop();
      if (!leaving.size && !entering.size) {
        while (inside[unseen]) unseen++;
        enter(unseen, order[order.length - 1]!, -1);
        continue;
      }
      const ahead = leaving.size ? leaving.key - moved : Infinity,
        behind = entering.size ? entering.key + moved : Infinity;
      if (ahead <= behind) {
        moved += ahead;
        const arc = leaving.pop();
        enter(head[arc]!, tail[arc]!, arc);
      } else {
        moved -= behind;
        const arc = entering.pop();
        enter(tail[arc]!, head[arc]!, arc);
      }
    }
    for (const v of order) this.#place[v]! += moved;
    return order;
  }

  #hang(v: number, parent: number, arc: number): void {
    this.#parent[v] = parent;
    this.#arc[v] = arc;
    const first = this.#child[parent]!;
    this.#next[v] = first;
    this.#previous[v] = -1;
    if (first >= 0) this.#previous[first] = v;
    this.#child[parent] = v;
  }

  #unhang(v: number): void {
    const next = this.#next[v]!,
      previous = this.#previous[v]!;
    if (previous >= 0) this.#next[previous] = next;
    else this.#child[this.#parent[v]!] = next;
    if (next >= 0) this.#previous[next] = previous;
  }

  // ----------------------------------------------------------------------------------------------------- pivots

  /** The lower end of a tree arc that should be longer, the worst of some; -1 when all is best. */
  #leaving(): number {
    const { count, tail } = this.#given;
    let worst = -1,
      least = -EPSILON,
      candidates = 0;
    for (let i = 0; i < count; i++) {
      const v = (this.#from + i) % count,
        arc = this.#arc[v]!;
      if (arc < 0) continue;
      const cut = tail[arc] === v ? this.#surplus[v]! : -this.#surplus[v]!;
      if (cut >= -EPSILON) continue;
      if (cut < least) {
        least = cut;
        worst = v;
      }
      if (++candidates === SEARCH) {
        this.#from = v + 1;
        break;
      }
    }
    return worst;
  }

  /** Moves the subtree below a tree arc away from the rest until another arc is tight, which replaces it. */
  #pivot(top: number): boolean {
    const { tail, head } = this.#given;
    const arc = this.#arc[top]!,
      upwards = tail[arc] === top;
    const members = this.#subtree(top);
    // The subtree moves down if it is the tail, until an arc from outside to it is tight; else up.
    const adjacent = upwards ? this.#into : this.#out;
    let entering = -1,
      least = Infinity;
    for (const v of members) {
      for (let k = adjacent.start[v]!; k < adjacent.start[v + 1]!; k++) {
        if (this.#stamp[adjacent.node[k]!] === this.#now) continue;
        const slack = this.#slack(adjacent.arc[k]!);
        if (slack < least) {
          least = slack;
          entering = adjacent.arc[k]!;
        }
      }
    }
    if (entering < 0) return false;
    if (least > 0) for (const v of members) this.#place[v]! += upwards ? -least : least;
    const inner = upwards ? head[entering]! : tail[entering]!,
      outer = upwards ? tail[entering]! : head[entering]!;
    this.#regraft(top, inner, outer, entering);
    return true;
  }

  #subtree(top: number): number[] {
    this.#now++;
    const members = [top];
    this.#stamp[top] = this.#now;
    for (let i = 0; i < members.length; i++) {
      for (let v = this.#child[members[i]!]!; v >= 0; v = this.#next[v]!) {
        this.#stamp[v] = this.#now;
        members.push(v);
      }
    }
    return members;
  }

  /** Cuts the subtree below `top` off and hangs it by its vertex `inner` to `outer`. */
  #regraft(top: number, inner: number, outer: number, arc: number): void {
    const total = this.#surplus[top]!;
    for (let v = this.#parent[top]!; v >= 0; v = this.#parent[v]!) this.#surplus[v]! -= total;
    this.#unhang(top);
    // Turn the path from inner to top around.
    let v = inner,
      parent = outer,
      link = arc,
      below = 0;
    for (;;) {
      const above = this.#parent[v]!,
        old = this.#arc[v]!,
        surplus = this.#surplus[v]!;
      if (v !== top) this.#unhang(v);
      this.#surplus[v] = total - below;
      this.#hang(v, parent, link);
      if (v === top) break;
      below = surplus;
      parent = v;
      link = old;
      v = above;
    }
    for (let w = outer; w >= 0; w = this.#parent[w]!) this.#surplus[w]! += total;
  }
}

/** A binary heap of numbers with keys, least first. */
class Heap {
  readonly #keys: number[] = [];
  readonly #items: number[] = [];

  get size(): number {
    return this.#items.length;
  }

  get key(): number {
    return this.#keys[0]!;
  }

  get top(): number {
    return this.#items[0]!;
  }

  push(key: number, item: number): void {
    const keys = this.#keys,
      items = this.#items;
    let i = items.length;
    while (i) {
      const up = (i - 1) >> 1;
      if (keys[up]! <= key) break;
      keys[i] = keys[up]!;
      items[i] = items[up]!;
      i = up;
    }
    keys[i] = key;
    items[i] = item;
  }

  pop(): number {
    const keys = this.#keys,
      items = this.#items,
      least = items[0]!;
    const key = keys.pop()!,
      item = items.pop()!,
      size = items.length;
    if (!size) return least;
    let i = 0;
    for (;;) {
      let down = 2 * i + 1;
      if (down >= size) break;
      if (down + 1 < size && keys[down + 1]! < keys[down]!) down++;
      if (keys[down]! >= key) break;
      keys[i] = keys[down]!;
      items[i] = items[down]!;
      i = down;
    }
    keys[i] = key;
    items[i] = item;
    return least;
  }
}
