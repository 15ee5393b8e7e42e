/**
 * Layered layout of one container (a scope or an open group): pure, deterministic, on typed arrays.
 *
 * Steps: turn cycle-closing arcs around, rank, cut long fan-outs into portals, lay one trunk of wires per net, order
 * the rows, assign x, draw. O((V + W) log V) per sweep, W the wires.
 */

import { xCoordinates } from "./coordinates.ts";
import { initialStyle, layered, markPortals, trunksOf } from "./layers.ts";
import { orderRows } from "./order.ts";
import { BOTTOM, FREE, type LayoutInput, type LayoutResult, LOOP, REVERSED, TOP } from "./problem.ts";
import { backArcs, ranks } from "./ranks.ts";
import { draw } from "./routes.ts";

/** Lays the boxes out. Throws RangeError when an index of the input is out of range. */
export function layout(input: LayoutInput): LayoutResult {
  const { from, netOf } = links(input);
  const back = backArcs(input.count, from, input.netTarget);
  const style = initialStyle(input, back, netOf);
  const rank = rowsOfBoxes(input, from, style);
  if (input.portals !== false) markPortals(input, rank, style);
  const graph = layered(input, rank, trunksOf(input, style));
  const crossings = orderRows(graph, input.hint);
  return draw(input, graph, xCoordinates(graph), style, crossings);
}

/** Source box and net per target. */
function links(input: LayoutInput): { from: Int32Array; netOf: Int32Array } {
  const from = new Int32Array(input.netTarget.length),
    netOf = new Int32Array(input.netTarget.length);
  for (let net = 0; net < input.netSource.length; net++) {
    const source = input.netSource[net]!;
    if (!(source >= 0 && source < input.count))
      throw new RangeError(`net ${net} leaves box ${source} of ${input.count}`);
    for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
      const target = input.netTarget[k]!;
      if (!(target >= 0 && target < input.count))
        throw new RangeError(`net ${net} enters box ${target} of ${input.count}`);
      from[k] = source;
      netOf[k] = net;
    }
  }
  return { from, netOf };
}

/** Ranks of all boxes: TOP ones first, free ones by their arcs, BOTTOM ones last. */
function rowsOfBoxes(input: LayoutInput, from: Int32Array, style: Uint8Array): Int32Array {
  const links: number[] = [];
  for (let k = 0; k < style.length; k++) if (style[k] !== LOOP) links.push(k);
  const upper = Int32Array.from(links, (k) => (style[k] === REVERSED ? input.netTarget[k]! : from[k]!));
  const lower = Int32Array.from(links, (k) => (style[k] === REVERSED ? from[k]! : input.netTarget[k]!));
  const free = Uint8Array.from(input.pin, (pin) => (pin === FREE ? 1 : 0));
  const rank = ranks(input.count, upper, lower, free, input.hintRow ?? null);
  const first = input.pin.includes(TOP) ? 1 : 0;
  let last = first;
  for (let v = 0; v < input.count; v++) {
    if (input.pin[v] === FREE) last = Math.max(last, (rank[v]! += first) + 1);
  }
  for (let v = 0; v < input.count; v++) {
    if (input.pin[v] === TOP) rank[v] = 0;
    else if (input.pin[v] === BOTTOM) rank[v] = last;
  }
  return rank;
}
