/** One graph drawn by four layout engines, with the same boxes and gaps: ours, dagre, elk's layered one, and dot. */

import { spawnSync } from "node:child_process";
import dagre from "@dagrejs/dagre";
import ELK, { type ElkExtendedEdge } from "elkjs/lib/elk.bundled.js";
import { layout } from "../src/graph/layout/layout.ts";
import {
  BOX_GAP,
  LABEL_STRIP,
  type LayoutInput,
  type LayoutResult,
  LINE,
  ROW_GAP,
  WIRE_GAP,
} from "../src/graph/layout/problem.ts";
import type { Drawing, Point, Rectangle } from "./quality.ts";

/** A graph to draw: sizes of the boxes, and for each value the box that makes it and those that read it. */
export interface Graph {
  name: string;
  width: number[];
  height: number[];
  nets: [source: number, targets: number[]][];
}

const RANK_GAP = LABEL_STRIP + ROW_GAP;
const DOT_SECONDS = 100;

export const arcsOf = ({ nets }: Graph): [number, number][] =>
  nets.flatMap(([source, targets]) => targets.map((target): [number, number] => [source, target]));

export function problem(graph: Graph, portals = false): LayoutInput {
  const count = graph.width.length,
    arcs = arcsOf(graph);
  const netStart = new Int32Array(graph.nets.length + 1);
  graph.nets.forEach(([, targets], i) => (netStart[i + 1] = netStart[i]! + targets.length));
  return {
    count,
    width: Float32Array.from(graph.width),
    height: Float32Array.from(graph.height),
    pin: new Uint8Array(count),
    netSource: Int32Array.from(graph.nets, ([source]) => source),
    netStart,
    netTarget: Int32Array.from(arcs, ([, target]) => target),
    sourcePort: new Float32Array(graph.nets.length).fill(NaN),
    targetPort: new Float32Array(arcs.length).fill(NaN),
    hint: null,
    portals,
  };
}

/** Our layout, every line drawn to its end. */
export function ours(graph: Graph): Drawing {
  const input = problem(graph);
  const result = layout(input);
  const boxes = graph.width.map((width, v) => ({ x: result.x[v]!, y: result.y[v]!, width, height: graph.height[v]! }));
  const arcs: Drawing["arcs"] = [];
  input.netSource.forEach((source, net) => {
    const lines = segmentsOf(result, net);
    for (let k = input.netStart[net]!; k < input.netStart[net + 1]!; k++) {
      const to = input.netTarget[k]!;
      if (result.style[k] !== LINE) continue;
      arcs.push({ from: source, to, line: trace(lines, { x: result.targetX[k]!, y: result.y[to]! }) });
    }
  });
  return { boxes, arcs };
}

function segmentsOf({ segments, segmentNet }: LayoutResult, net: number): [Point, Point][] {
  const lines: [Point, Point][] = [];
  for (let s = 0; s < segmentNet.length; s++) {
    if (segmentNet[s] !== net) continue;
    lines.push([
      { x: segments[4 * s]!, y: segments[4 * s + 1]! },
      { x: segments[4 * s + 2]!, y: segments[4 * s + 3]! },
    ]);
  }
  return lines;
}

/** Up from a target along the segments of its net; a branch begins somewhere on a vertical segment. */
function trace(lines: [Point, Point][], target: Point): Point[] {
  const near = (a: number, b: number): boolean => Math.abs(a - b) < 0.7;
  const line = [target];
  for (let at = target; ; ) {
    const step =
      lines.find(([, end]) => near(end.x, at.x) && near(end.y, at.y)) ??
      lines.find(([start, end]) => near(start.x, at.x) && near(end.x, at.x) && start.y < at.y - 0.7 && end.y > at.y);
    if (!step) return line.reverse();
    at = step[0];
    line.push(at);
  }
}

export function byDagre(graph: Graph): Drawing {
  const drawn = new dagre.graphlib.Graph({ multigraph: true });
  drawn.setGraph({ nodesep: BOX_GAP, ranksep: RANK_GAP, edgesep: WIRE_GAP });
  drawn.setDefaultEdgeLabel(() => ({}));
  graph.width.forEach((width, v) => drawn.setNode(String(v), { width, height: graph.height[v]! }));
  arcsOf(graph).forEach(([from, to], i) => drawn.setEdge(String(from), String(to), {}, String(i)));
  dagre.layout(drawn);
  const boxes = graph.width.map((width, v): Rectangle => {
    const { x, y } = drawn.node(String(v)) as Point;
    return { x: x - width / 2, y: y - graph.height[v]! / 2, width, height: graph.height[v]! };
  });
  const arcs = arcsOf(graph).map(([from, to], i) => ({
    from,
    to,
    line: (drawn.edge(String(from), String(to), String(i)) as { points: Point[] }).points,
  }));
  return { boxes, arcs };
}

export async function byElk(graph: Graph): Promise<Drawing> {
  const elk = new ELK();
  const result = await elk.layout({
    id: "root",
    layoutOptions: {
      "elk.algorithm": "layered",
      "elk.direction": "DOWN",
      "elk.edgeRouting": "POLYLINE",
      "elk.spacing.nodeNode": String(BOX_GAP),
      "elk.layered.spacing.nodeNodeBetweenLayers": String(RANK_GAP),
      "elk.spacing.edgeEdge": String(WIRE_GAP),
      "elk.layered.mergeEdges": "true",
    },
    children: graph.width.map((width, v) => ({ id: String(v), width, height: graph.height[v]! })),
    edges: arcsOf(graph).map(([from, to], i) => ({ id: `e${i}`, sources: [String(from)], targets: [String(to)] })),
  });
  const boxes = graph.width.map((width, v): Rectangle => {
    const { x = 0, y = 0 } = result.children![v]!;
    return { x, y, width, height: graph.height[v]! };
  });
  const arcs = arcsOf(graph).map(([from, to], i) => {
    const [section] = (result.edges![i] as ElkExtendedEdge).sections ?? [];
    return { from, to, line: section ? [section.startPoint, ...(section.bendPoints ?? []), section.endPoint] : [] };
  });
  return { boxes, arcs };
}

/** Lays a graph out with dot; null where that takes longer than DOT_SECONDS. */
export function byDot(graph: Graph): Drawing | null {
  const inch = (pixels: number): string => (pixels / 72).toFixed(4);
  const lines = [
    `digraph { graph [nodesep=${inch(BOX_GAP)} ranksep=${inch(RANK_GAP)}] node [shape=box fixedsize=true label=""] edge [arrowhead=none]`,
    ...graph.width.map((width, v) => `${v} [width=${inch(width)} height=${inch(graph.height[v]!)}]`),
    ...arcsOf(graph).map(([from, to]) => `${from} -> ${to}`),
    "}",
  ];
  const run = spawnSync("dot", ["-Tplain", "-y"], {
    input: lines.join("\n"),
    timeout: DOT_SECONDS * 1000,
    maxBuffer: 1 << 28,
    encoding: "utf8",
  });
  if (run.error || run.status !== 0) return null;
  const boxes: Rectangle[] = [],
    arcs: Drawing["arcs"] = [];
  for (const line of run.stdout.replace(/\\\n/g, "").split("\n")) {
    const words = line.split(" ");
    const number = (i: number): number => Number(words[i]) * 72;
    if (words[0] === "node") {
      const [width, height] = [number(4), number(5)];
      boxes[Number(words[1])] = { x: number(2) - width / 2, y: number(3) - height / 2, width, height };
    } else if (words[0] === "edge") {
      const control = Array.from({ length: Number(words[3]) }, (_, i) => ({
        x: number(4 + 2 * i),
        y: number(5 + 2 * i),
      }));
      arcs.push({ from: Number(words[1]), to: Number(words[2]), line: flattened(control) });
    }
  }
  return { boxes, arcs };
}

/** Points along the cubic curves of a spline: the first point, then three for each curve. */
function flattened(control: Point[], steps = 8): Point[] {
  const points = control.slice(0, 1);
  for (let i = 0; i + 3 < control.length; i += 3) {
    const [a, b, c, d] = control.slice(i, i + 4) as [Point, Point, Point, Point];
    for (let k = 1; k <= steps; k++) {
      const t = k / steps,
        s = 1 - t;
      const mix = (p: number, q: number, r: number, e: number): number =>
        s * s * s * p + 3 * s * s * t * q + 3 * s * t * t * r + t * t * t * e;
      points.push({ x: mix(a.x, b.x, c.x, d.x), y: mix(a.y, b.y, c.y, d.y) });
    }
  }
  return points;
}
