/** The dims of a model as things of their own: names that inputs and outputs declare, and sizes that inputs share. Pure. */

import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../kernel/protocol.ts";
import { mainScope } from "./names.ts";
import type { Store } from "./store.ts";

export interface SymbolRow {
  name: string;
  /** Inputs and outputs that declare it, [value, axis]. */
  inputs: [number, number][];
  outputs: [number, number][];
  /** Values whose shape depends on it. */
  values: number[];
  /** Nodes that make these values. */
  nodes: number[];
}

/** A size on an axis, the same in several inputs. */
export interface SizeRow {
  size: number;
  axis: number;
  inputs: number[];
  /** A name to make it dynamic by. */
  suggested: string;
}

/** The dims of a label, [] for a scalar and for what has no shape. */
export function dimsOf(label: string): string[] {
  return label === "" || label === "scalar" ? [] : label.split("×");
}

/** The names in a dim: "past", "seq" of "past+seq". */
export function namesIn(dim: string): string[] {
  return dim.match(/[A-Za-z_][\w.]*/g) ?? [];
}

const plainName = /^[A-Za-z_][\w.-]*$/;

/** Names that inputs and outputs of the main graph declare, those of most values first. */
export function symbolRows(store: Store): SymbolRow[] {
  const rows = new Map<string, SymbolRow>();
  const main = store.scopes.get(mainScope(store));
  const note = (ids: readonly number[], side: "inputs" | "outputs") => {
    for (const id of ids)
      dimsOf(store.values.get(id)?.label ?? "").forEach((dim, axis) => {
        if (!plainName.test(dim)) return;
        let row = rows.get(dim);
        if (!row) rows.set(dim, (row = { name: dim, inputs: [], outputs: [], values: [], nodes: [] }));
        row[side].push([id, axis]);
      });
  };
  note(main?.inputs ?? [], "inputs");
  note(main?.outputs ?? [], "outputs");
  const known = new Map<string, SymbolRow[]>();
  for (const { id, label } of store.values.values()) {
    let named = known.get(label);
    if (!named) known.set(label, (named = [...new Set(namesIn(label))].flatMap((name) => rows.get(name) ?? [])));
    for (const row of named) row.values.push(id);
  }
  for (const row of rows.values())
    row.nodes = [...new Set(row.values.flatMap((value) => store.producer(value)?.node ?? []))];
  return [...rows.values()].sort((a, b) => b.values.length - a.values.length || (a.name < b.name ? -1 : 1));
}

/** Sizes that inputs declare, axis by axis; those of most inputs first, the batch before all. */
export function sizeRows(store: Store): SizeRow[] {
  const rows = new Map<string, SizeRow>();
  const symbols = new Map<string, Set<number>>();
  for (const id of store.scopes.get(mainScope(store))?.inputs ?? []) {
    const value = store.values.get(id);
    if (!value || value.flags & INITIALIZER) continue;
    dimsOf(value.label).forEach((dim, axis) => {
      if (plainName.test(dim)) symbols.set(dim, (symbols.get(dim) ?? new Set()).add(axis));
      if (!/^\d+$/.test(dim)) return;
      const key = `${axis}/${dim}`;
      let row = rows.get(key);
      if (!row) rows.set(key, (row = { size: Number(dim), axis, inputs: [], suggested: "" }));
      row.inputs.push(id);
    });
  }
  const sorted = [...rows.values()].sort(
    (a, b) => Number(b.axis === 0) - Number(a.axis === 0) || b.inputs.length - a.inputs.length || a.axis - b.axis,
  );
  for (const row of sorted) row.suggested = suggestion(row, symbols, sorted);
  return sorted;
}

/** A name for a dim: "batch" for a first axis, the name that others have there, else a name that is free. */
function suggestion(
  { axis, size }: SizeRow,
  symbols: ReadonlyMap<string, Set<number>>,
  rows: readonly SizeRow[],
): string {
  const alongAxis = [...symbols].filter(([, axes]) => axes.has(axis)).map(([name]) => name);
  const first = rows.find((row) => row.axis === axis);
  const stem = axis === 0 ? "batch" : `dim_${axis}`;
  if (axis === 0 && first?.size === size && alongAxis.length === 1) return alongAxis[0]!;
  const used = new Set(symbols.keys());
  if (first?.size === size && !used.has(stem)) return stem;
  let number = 2;
  while (used.has(`${stem}_${number}`)) number++;
  return `${stem}_${number}`;
}

/** Whether a value is an input or output of the model. */
export function isEnd(store: Store, value: number): boolean {
  return ((store.values.get(value)?.flags ?? 0) & (GRAPH_INPUT | GRAPH_OUTPUT)) !== 0;
}
