/**
 * Draws graphs with every engine and prints one JSON object per graph: `node bench.mjs layout < graphs.json`, where
 * graphs.json is a list of Graph (engines.ts). bench/widget.py makes that list and reads what comes out.
 */

import { readFileSync } from "node:fs";
import { layout } from "../src/graph/layout/layout.ts";
import { byDagre, byDot, byElk, type Graph, ours, problem } from "./engines.ts";
import { type Drawing, quality } from "./quality.ts";

type Engine = (graph: Graph) => Drawing | null | Promise<Drawing | null>;

const ENGINES: Record<string, Engine> = { ours, dagre: byDagre, elk: byElk, dot: byDot };

function fastest(action: () => unknown, repeats: number): number {
  let best = Infinity;
  for (let i = 0; i < repeats; i++) {
    const began = performance.now();
    action();
    best = Math.min(best, performance.now() - began);
  }
  return best;
}

for (const graph of JSON.parse(readFileSync(0, "utf8")) as (Graph & { engines?: string[]; timed?: boolean })[]) {
  const row: Record<string, unknown> = { name: graph.name, boxes: graph.width.length };
  for (const name of graph.engines ?? Object.keys(ENGINES)) {
    const began = performance.now();
    const drawing = await ENGINES[name]!(graph);
    row[name] = drawing && { ...quality(drawing), arcs: drawing.arcs.length, milliseconds: performance.now() - began };
  }
  if (graph.timed) {
    const input = problem(graph);
    row.timed = { ours: fastest(() => layout(input), 7), dagre: fastest(() => byDagre(graph), 2) };
  }
  console.log(JSON.stringify(row));
}
