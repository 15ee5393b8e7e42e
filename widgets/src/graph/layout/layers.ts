/**
 * The layered graph: boxes and, where a net passes a row, one wire vertex per net and row (a trunk).
 *
 * One trunk per value instead of one chain per arc keeps a mask that every layer reads from costing layers² vertices.
 */

import { type Adjacency, adjacency } from "./csr.ts";
import { BOX_GAP, type LayoutInput, LINE, LOOP, PORTAL, REVERSED, WIRE_GAP } from "./problem.ts";

/** A line down through the rows, from one box to targets below it. */
export interface Trunk {
  net: number;
  source: number;
  /** First wire vertex; the trunk's others follow, one a row. */
  wire: number;
  wires: number;
  /** Indices into netTarget. */
  links: number[];
  reversed: boolean;
}

export interface Layered {
  /** Boxes are the first `boxes` of `size` vertices, the rest are wires. */
  boxes: number;
  size: number;
  rows: number;
  rank: Int32Array;
  /** Half of the width. */
  half: Float32Array;
  /** Arcs join neighboring rows; the shifts say how far from the vertex's center they attach. */
  from: Int32Array;
  to: Int32Array;
  fromShift: Float32Array;
  toShift: Float32Array;
  /** Place of each arc among the ports on that side of its vertex, from the left; and how many ports that side has. */
  fromPort: Int32Array;
  toPort: Int32Array;
  portsBelow: Int32Array;
  portsAbove: Int32Array;
  down: Adjacency;
  up: Adjacency;
  /**
   * Vertices of row r, from left to right, are order[rowStart[r] .. rowStart[r + 1]); pos is their place in the row.
   */
  rowStart: Int32Array;
  order: Int32Array;
  pos: Int32Array;
  trunks: Trunk[];
}

/** Gap to keep between two neighbors of a row. */
export function gap(graph: Layered, left: number, right: number): number {
  const wires = (left >= graph.boxes ? 1 : 0) + (right >= graph.boxes ? 1 : 0);
  return wires === 2 ? WIRE_GAP : wires === 1 ? (BOX_GAP + WIRE_GAP) / 2 : BOX_GAP;
}

/** Cuts nets into trunks; `style` tells lines, portals, reversed lines and loops apart. */
export function trunksOf(input: LayoutInput, style: Uint8Array): Trunk[] {
  const trunks: Trunk[] = [];
  for (let net = 0; net < input.netSource.length; net++) {
    const source = input.netSource[net]!;
    const links: number[] = [];
    for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
      if (style[k] === LINE) links.push(k);
      if (style[k] === REVERSED) {
        trunks.push({ net, source: input.netTarget[k]!, wire: 0, wires: 0, links: [k], reversed: true });
      }
    }
    if (links.length) trunks.push({ net, source, wire: 0, wires: 0, links, reversed: false });
  }
  return trunks;
}

/** The box at the lower end of one of a trunk's links. */
export function lowerEnd(input: LayoutInput, trunk: Trunk, link: number): number {
  return trunk.reversed ? input.netSource[trunk.net]! : input.netTarget[link]!;
}

/** The vertex from which a trunk turns towards a target of the given rank. */
export function branchPoint(trunk: Trunk, sourceRank: number, targetRank: number): number {
  return targetRank - sourceRank === 1 ? trunk.source : trunk.wire + targetRank - sourceRank - 2;
}

/** Builds the layered graph; rows are filled in vertex order until order.ts sorts them. */
export function layered(input: LayoutInput, boxRank: Int32Array, trunks: Trunk[]): Layered {
  const boxes = input.count;
  let size = boxes,
    arcs = 0;
  for (const trunk of trunks) {
    let lowest = 0;
    for (const link of trunk.links) lowest = Math.max(lowest, boxRank[lowerEnd(input, trunk, link)]!);
    trunk.wire = size;
    trunk.wires = Math.max(0, lowest - boxRank[trunk.source]! - 1);
    size += trunk.wires;
    arcs += trunk.wires + trunk.links.length;
  }
  const rank = new Int32Array(size),
    half = new Float32Array(size);
  const from = new Int32Array(arcs),
    to = new Int32Array(arcs);
  const fromShift = new Float32Array(arcs),
    toShift = new Float32Array(arcs);
  for (let v = 0; v < boxes; v++) {
    rank[v] = boxRank[v]!;
    half[v] = input.width[v]! / 2;
  }
  let a = 0;
  for (const trunk of trunks) {
    const top = boxRank[trunk.source]!;
    const shift = trunk.reversed ? 0 : portShift(input, trunk.source, input.sourcePort[trunk.net]!);
    for (let i = 0; i < trunk.wires; i++) {
      rank[trunk.wire + i] = top + 1 + i;
      half[trunk.wire + i] = 1;
      from[a] = i ? trunk.wire + i - 1 : trunk.source;
      to[a] = trunk.wire + i;
      fromShift[a++] = i ? 0 : shift;
    }
    for (const link of trunk.links) {
      const target = lowerEnd(input, trunk, link);
      from[a] = branchPoint(trunk, top, boxRank[target]!);
      to[a] = target;
      fromShift[a] = from[a] === trunk.source ? shift : 0;
      toShift[a++] = trunk.reversed ? 0 : portShift(input, target, input.targetPort[link]!);
    }
  }
  const down = adjacency(size, from, to),
    up = adjacency(size, to, from);
  const below = portOrder(size, boxes, down, fromShift),
    above = portOrder(size, boxes, up, toShift);
  return {
    boxes,
    size,
    rank,
    half,
    from,
    to,
    fromShift,
    toShift,
    fromPort: below.port,
    portsBelow: below.ports,
    toPort: above.port,
    portsAbove: above.ports,
    down,
    up,
    trunks,
    ...rowsOf(size, rank),
  };
}

/** Numbers the ports of each box side from the left; arcs that attach at one place share a port. */
function portOrder(
  size: number,
  boxes: number,
  adjacent: Adjacency,
  shift: Float32Array,
): { port: Int32Array; ports: Int32Array } {
  const port = new Int32Array(shift.length),
    ports = new Int32Array(size).fill(1);
  const { start, arc } = adjacent;
  for (let v = 0; v < boxes; v++) {
    let fixed = false;
    for (let k = start[v]!; k < start[v + 1]!; k++) fixed ||= shift[arc[k]!] !== 0;
    if (!fixed) continue;
    const places = [...new Set(Array.from(arc.subarray(start[v]!, start[v + 1]!), (a) => shift[a]!))].sort(
      (a, b) => a - b,
    );
    ports[v] = places.length;
    for (let k = start[v]!; k < start[v + 1]!; k++) port[arc[k]!] = places.indexOf(shift[arc[k]!]!);
  }
  return { port, ports };
}

function portShift(input: LayoutInput, box: number, port: number): number {
  return Number.isNaN(port) ? 0 : port - input.width[box]! / 2;
}

function rowsOf(size: number, rank: Int32Array): Pick<Layered, "rows" | "rowStart" | "order" | "pos"> {
  let rows = 0;
  for (let v = 0; v < size; v++) rows = Math.max(rows, rank[v]! + 1);
  const rowStart = new Int32Array(rows + 1);
  for (let v = 0; v < size; v++) rowStart[rank[v]! + 1]!++;
  for (let r = 0; r < rows; r++) rowStart[r + 1]! += rowStart[r]!;
  const next = rowStart.slice(0, rows);
  const order = new Int32Array(size),
    pos = new Int32Array(size);
  for (let v = 0; v < size; v++) {
    const k = next[rank[v]!]!++;
    order[k] = v;
    pos[v] = k - rowStart[rank[v]!]!;
  }
  return { rows, rowStart, order, pos };
}

/** Spans beyond these many rows become portals: of any line, of a value with several targets, and how many that is. */
const LONG = 60;
const LONG_SHARED = 10;
const SHARED = 4;
/** Targets from which on a value that very much reads is cut. */
const FEW = 3;
/** A value with more targets than WIDE keeps lines only to its NEAREST. */
const WIDE = 20;
const NEAREST = 6;

/** Decides which links are portals, given ranks; leaves back arcs and loops as they are. */
export function markPortals(input: LayoutInput, rank: Int32Array, style: Uint8Array): void {
  for (let net = 0; net < input.netSource.length; net++) {
    const begin = input.netStart[net]!,
      end = input.netStart[net + 1]!;
    const top = rank[input.netSource[net]!]!;
    const links: number[] = [];
    for (let k = begin; k < end; k++) if (style[k] === LINE) links.push(k);
    const span = (k: number) => rank[input.netTarget[k]!]! - top;
    const shared = links.length >= SHARED;
    const farthest = input.shared?.[net] && links.length >= FEW ? 1 : shared ? LONG_SHARED : LONG;
    for (const k of links) if (span(k) > farthest) style[k] = PORTAL;
    if (links.length <= WIDE) continue;
    links.sort((a, b) => span(a) - span(b) || a - b);
    for (const k of links.slice(NEAREST)) style[k] = PORTAL;
  }
}

/** Styles before ranks are known: loops and back arcs. */
export function initialStyle(input: LayoutInput, back: Uint8Array, netOf: Int32Array): Uint8Array {
  const style = new Uint8Array(input.netTarget.length);
  for (let k = 0; k < style.length; k++) {
    if (input.netTarget[k] === input.netSource[netOf[k]!]) style[k] = LOOP;
    else if (back[k]) style[k] = REVERSED;
  }
  return style;
}
