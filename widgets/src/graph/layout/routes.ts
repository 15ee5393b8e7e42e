/**
 * The drawing from coordinates: heights of rows, places of ports, and lines.
 *
 * Lines run straight down through rows, in the column of their own box or wire, and curve only in the gaps between
 * rows, where no box is: so no line crosses a box or the label strip under one.
 */

import { adjacency } from "./csr.ts";
import { branchPoint, type Layered, lowerEnd, type Trunk } from "./layers.ts";
import {
  ARROW_DOWN,
  ARROW_NONE,
  ARROW_UP,
  FREE,
  LABEL_STRIP,
  LABEL_WIDTH,
  type LayoutInput,
  type LayoutResult,
  PORTAL,
  REVERSED,
  ROW_GAP,
  ROW_GAP_MAX,
  STRAIGHT_GAP,
  WIRE_GAP,
} from "./problem.ts";

/** Distance between ports of one box, and from the box's corners. */
const PORT_GAP = 16;
/** Height below the last row of a frame. */
const LEAVING_GAP = 8;
const PORT_MARGIN = 14;

interface Rows {
  /** The ends of curves above and the beginnings of curves below, per row. */
  top: Float64Array;
  bottom: Float64Array;
  /** Top of each box. */
  boxTop: Float64Array;
  height: number;
}

/** Turns x centers into the final result; see LayoutResult. */
export function draw(
  input: LayoutInput,
  graph: Layered,
  x: Float64Array,
  style: Uint8Array,
  crossings: number,
): LayoutResult {
  shiftToOrigin(graph, x);
  const rows = stackRows(input, graph, x, style);
  const ports = placePorts(input, graph, x, style);
  const lines = new Lines();
  for (const trunk of graph.trunks) drawTrunk(input, graph, x, rows, ports, trunk, lines);
  const corner = new Float32Array(input.count);
  let width = 0;
  for (let v = 0; v < input.count; v++) corner[v] = x[v]! - graph.half[v]!;
  for (let v = 0; v < graph.size; v++) width = Math.max(width, x[v]! + graph.half[v]!);
  input.netSource.forEach((box, net) => {
    if (input.pin[box] === FREE) width = Math.max(width, ports.source[net]! + LABEL_WIDTH);
  });
  return {
    x: corner,
    y: new Float32Array(rows.boxTop),
    row: graph.rank.slice(0, input.count),
    rowBottom: new Float32Array(rows.bottom),
    width,
    height: rows.height,
    style,
    ...lines.result(),
    sourceX: ports.source,
    targetX: ports.target,
    ...labelRooms(input, graph, x, ports, width),
    crossings,
    joints: [],
  };
}

function shiftToOrigin(graph: Layered, x: Float64Array): void {
  let low = Infinity;
  for (let v = 0; v < graph.size; v++) low = Math.min(low, x[v]! - graph.half[v]!);
  for (let v = 0; v < graph.size; v++) x[v]! -= low;
}

/** Stacks rows: as high as their highest box with its strips, further apart where lines go far sideways. */
function stackRows(input: LayoutInput, graph: Layered, x: Float64Array, style: Uint8Array): Rows {
  const { above, below } = strips(input, style);
  const height = new Float64Array(graph.rows),
    wander = new Float64Array(graph.rows);
  for (let v = 0; v < input.count; v++) {
    const r = graph.rank[v]!;
    height[r] = Math.max(height[r]!, above[v]! + input.height[v]! + below[v]!);
  }
  for (let a = 0; a < graph.from.length; a++) {
    const u = graph.from[a]!,
      v = graph.to[a]!,
      r = graph.rank[u]!;
    wander[r] = Math.max(wander[r]!, Math.abs(x[u]! - x[v]!));
  }
  const top = new Float64Array(graph.rows),
    bottom = new Float64Array(graph.rows);
  let y = 0;
  for (let r = 0; r < graph.rows; r++) {
    top[r] = y;
    bottom[r] = y + height[r]!;
    // Lines that go straight out of a frame need no room to curve in.
    const leaves = r === graph.rows - 2 && height[r + 1] === 0 && wander[r]! < 1;
    const gap = wander[r]! < 1 ? STRAIGHT_GAP : Math.min(ROW_GAP_MAX, ROW_GAP + wander[r]! / 12);
    y = bottom[r]! + (leaves ? LEAVING_GAP : gap);
  }
  const boxTop = new Float64Array(input.count);
  for (let v = 0; v < input.count; v++) {
    const r = graph.rank[v]!;
    const slack = height[r]! - above[v]! - input.height[v]! - below[v]!;
    boxTop[v] = top[r]! + above[v]! + slack / 2;
  }
  return { top, bottom, boxTop, height: graph.rows ? bottom[graph.rows - 1]! : 0 };
}

/** Heights kept free above boxes that portals enter and below boxes that values leave. */
function strips(input: LayoutInput, style: Uint8Array): { above: Float64Array; below: Float64Array } {
  const above = new Float64Array(input.count),
    below = new Float64Array(input.count);
  for (let net = 0; net < input.netSource.length; net++) {
    const source = input.netSource[net]!;
    if (input.pin[source] === FREE) below[source] = LABEL_STRIP;
    for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
      const target = input.netTarget[k]!;
      if (style[k] === PORTAL && input.pin[target] === FREE) above[target] = LABEL_STRIP;
    }
  }
  return { above, below };
}

interface Ports {
  source: Float32Array;
  target: Float32Array;
}

/** A port to place: `index` into Ports.source or .target, where its line would like it. */
interface Wish {
  index: number;
  x: number;
}

/**
 * Places ports on the edges of boxes: given ones where they are, a single one in the middle, several near their lines
 * and in the lines' order.
 */
function placePorts(input: LayoutInput, graph: Layered, x: Float64Array, style: Uint8Array): Ports {
  const { sourcePort, targetPort, netSource, netTarget } = input;
  const source = new Float32Array(netSource.length),
    target = new Float32Array(netTarget.length);
  const left = (box: number): number => x[box]! - graph.half[box]!;
  const below = linesBelow(input, graph, x);
  placeSides(netSource, graph, x, source, (net) => {
    const port = sourcePort[net]!;
    return Number.isNaN(port) ? { x: below[net]!, fixed: false } : { x: left(netSource[net]!) + port, fixed: true };
  });
  const above = linesAbove(input, graph, x, source);
  placeSides(netTarget, graph, x, target, (k) => {
    const box = netTarget[k]!,
      port = targetPort[k]!;
    if (!Number.isNaN(port)) return { x: left(box) + port, fixed: true };
    if (style[k] === REVERSED) return { x: x[box]!, fixed: true };
    return { x: style[k] === PORTAL ? left(box) + 2 * graph.half[box]! : above[k]!, fixed: false };
  });
  return { source, target };
}

/** Places the ports on one side of every box; `boxOf` names the box of each port. */
function placeSides(
  boxOf: Int32Array,
  graph: Layered,
  x: Float64Array,
  places: Float32Array,
  wishFor: (port: number) => { x: number; fixed: boolean },
): void {
  const { start, arc } = adjacency(graph.boxes, boxOf, boxOf);
  const wishes: Wish[] = [];
  for (let box = 0; box < graph.boxes; box++) {
    wishes.length = 0;
    for (let k = start[box]!; k < start[box + 1]!; k++) {
      const index = arc[k]!;
      const wish = wishFor(index);
      if (wish.fixed) places[index] = wish.x;
      else wishes.push({ index, x: wish.x });
    }
    spread(wishes, x[box]! - graph.half[box]!, 2 * graph.half[box]!, places);
  }
}

/** Mean x of where each net goes next, below its source. */
function linesBelow(input: LayoutInput, graph: Layered, x: Float64Array): Float64Array {
  const below = new Float64Array(input.netSource.length);
  for (let net = 0; net < below.length; net++) below[net] = x[input.netSource[net]!]!;
  for (const trunk of graph.trunks) {
    if (trunk.reversed) continue;
    const rank = graph.rank[trunk.source]!;
    let sum = trunk.wires ? x[trunk.wire]! : 0,
      count = trunk.wires ? 1 : 0;
    for (const link of trunk.links) {
      const end = input.netTarget[link]!,
        port = input.targetPort[link]!;
      if (branchPoint(trunk, rank, graph.rank[end]!) !== trunk.source) continue;
      sum += Number.isNaN(port) ? x[end]! : x[end]! - graph.half[end]! + port;
      count++;
    }
    if (count) below[trunk.net] = sum / count;
  }
  return below;
}

/** x from which the line to each target comes. */
function linesAbove(input: LayoutInput, graph: Layered, x: Float64Array, source: Float32Array): Float64Array {
  const above = new Float64Array(input.netTarget.length);
  for (const trunk of graph.trunks) {
    if (trunk.reversed) continue;
    const rank = graph.rank[trunk.source]!;
    for (const link of trunk.links) {
      const turn = branchPoint(trunk, rank, graph.rank[input.netTarget[link]!]!);
      above[link] = turn === trunk.source ? source[trunk.net]! : x[turn]!;
    }
  }
  return above;
}

/**
 * Gives each wish a place between the corners, in order, PORT_GAP apart (less where it is tight), moving them least.
 */
function spread(wishes: Wish[], left: number, width: number, places: Float32Array): void {
  const count = wishes.length;
  if (!count) return;
  const margin = Math.min(PORT_MARGIN, width / 2);
  if (count === 1) {
    places[wishes[0]!.index] = left + width / 2;
    return;
  }
  const step = count > 1 ? Math.min(PORT_GAP, (width - 2 * margin) / (count - 1)) : 0;
  wishes.sort((a, b) => a.x - b.x || a.index - b.index);
  const blocks: { sum: number; count: number }[] = [];
  wishes.forEach((wish, i) => {
    blocks.push({ sum: wish.x - i * step, count: 1 });
    while (blocks.length > 1) {
      const last = blocks[blocks.length - 1]!,
        before = blocks[blocks.length - 2]!;
      if (before.sum / before.count <= last.sum / last.count) break;
      before.sum += last.sum;
      before.count += last.count;
      blocks.pop();
    }
  });
  const low = left + margin,
    high = left + width - margin - (count - 1) * step;
  let i = 0;
  for (const block of blocks) {
    const base = Math.min(Math.max(block.sum / block.count, low), Math.max(low, high));
    for (let j = 0; j < block.count; j++, i++) places[wishes[i]!.index] = base + i * step;
  }
}

/** Collects segments. */
class Lines {
  #points: number[] = [];
  #net: number[] = [];
  #arrow: number[] = [];

  add(net: number, x1: number, y1: number, x2: number, y2: number, arrow: number): void {
    this.#points.push(x1, y1, x2, y2);
    this.#net.push(net);
    this.#arrow.push(arrow);
  }

  /** Straight down if both x agree, else a curve from y2 to y3 between two straight ends y1–y2 and y3–y4. */
  bend(net: number, x1: number, y1: number, y2: number, x2: number, y3: number, y4: number, arrow: number): void {
    if (Math.abs(x1 - x2) < 0.5) {
      this.add(net, x2, y1, x2, y4, arrow);
      return;
    }
    if (y2 - y1 > 0.5) this.add(net, x1, y1, x1, y2, ARROW_NONE);
    else y2 = y1;
    if (y4 - y3 > 0.5) {
      this.add(net, x1, y2, x2, y3, ARROW_NONE);
      this.add(net, x2, y3, x2, y4, arrow);
    } else this.add(net, x1, y2, x2, y4, arrow);
  }

  result(): Pick<LayoutResult, "segments" | "segmentNet" | "segmentArrow"> {
    return {
      segments: new Float32Array(this.#points),
      segmentNet: new Int32Array(this.#net),
      segmentArrow: new Uint8Array(this.#arrow),
    };
  }
}

/** The line of a trunk: down its wires, with a branch to each target. */
function drawTrunk(
  input: LayoutInput,
  graph: Layered,
  x: Float64Array,
  rows: Rows,
  ports: Ports,
  trunk: Trunk,
  lines: Lines,
): void {
  const { net, source } = trunk;
  const rank = graph.rank[source]!;
  const startX = trunk.reversed ? x[source]! : ports.source[net]!;
  const startY = rows.boxTop[source]! + input.height[source]!;
  let columnX = startX,
    columnY = startY;
  for (let i = 0; i < trunk.wires; i++) {
    const wireX = x[trunk.wire + i]!,
      row = rank + 1 + i;
    if (Math.abs(wireX - columnX) >= 0.5) {
      if (rows.bottom[row - 1]! > columnY) lines.add(net, columnX, columnY, columnX, rows.bottom[row - 1]!, ARROW_NONE);
      lines.add(net, columnX, rows.bottom[row - 1]!, wireX, rows.top[row]!, ARROW_NONE);
      columnX = wireX;
      columnY = rows.top[row]!;
    }
  }
  const last = rank + trunk.wires;
  if (trunk.wires && rows.bottom[last]! > columnY) {
    lines.add(net, columnX, columnY, columnX, rows.bottom[last]!, ARROW_NONE);
  }
  for (const link of trunk.links) {
    const box = lowerEnd(input, trunk, link);
    const row = graph.rank[box]!;
    const turn = branchPoint(trunk, rank, row);
    const atSource = turn === source;
    const fromX = atSource ? startX : x[turn]!;
    const fromY = atSource && !trunk.wires ? startY : rows.bottom[row - 1]!;
    if (atSource && trunk.wires && link === trunk.links[0]) stem(lines, trunk, x, startX, startY, rows.bottom[rank]!);
    const toX = trunk.reversed ? x[box]! : ports.target[link]!;
    const arrow = input.pin[box] !== FREE ? ARROW_NONE : trunk.reversed ? ARROW_NONE : ARROW_DOWN;
    lines.bend(net, fromX, fromY, rows.bottom[row - 1]!, toX, rows.top[row]!, rows.boxTop[box]!, arrow);
  }
  if (trunk.reversed) lines.add(net, startX, startY, startX, startY + LABEL_STRIP / 2, ARROW_UP);
}

/** The piece from a source down to the end of its row, unless the first wire is straight below and brings it along. */
function stem(lines: Lines, trunk: Trunk, x: Float64Array, startX: number, startY: number, rowBottom: number): void {
  const straight = Math.abs(x[trunk.wire]! - startX) < 0.5;
  if (straight || rowBottom <= startY) return;
  lines.add(trunk.net, startX, startY, startX, rowBottom, ARROW_NONE);
}

/** Free pixels to the right of stems: to the next port of the box, or to what is next in the row. */
function labelRooms(
  input: LayoutInput,
  graph: Layered,
  x: Float64Array,
  ports: Ports,
  width: number,
): Pick<LayoutResult, "labelRoom" | "portalRoom"> {
  const limit = new Float64Array(input.count);
  for (let v = 0; v < input.count; v++) {
    const next = graph.rowStart[graph.rank[v]!]! + graph.pos[v]! + 1;
    const w = next < graph.rowStart[graph.rank[v]! + 1]! ? graph.order[next]! : -1;
    limit[v] = w < 0 ? width + WIRE_GAP : x[w]! - graph.half[w]!;
  }
  return {
    labelRoom: roomsBeside(input.netSource, ports.source, limit),
    portalRoom: roomsBeside(input.netTarget, ports.target, limit),
  };
}

/** Free pixels from each port to the next one of its box, or to the box's limit. */
function roomsBeside(boxOf: Int32Array, place: Float32Array, limit: Float64Array): Float32Array {
  const room = new Float32Array(boxOf.length);
  const { start, arc } = adjacency(limit.length, boxOf, boxOf);
  for (let box = 0; box < limit.length; box++) {
    const begin = start[box]!,
      end = start[box + 1]!;
    if (end - begin > 1) arc.subarray(begin, end).sort((a, b) => place[a]! - place[b]! || a - b);
    for (let k = begin; k < end; k++) {
      const next = k + 1 < end ? place[arc[k + 1]!]! : limit[box]!;
      room[arc[k]!] = Math.max(0, next - place[arc[k]!]!);
    }
  }
  return room;
}
