/** Rows of the tables of a model, and their order. Pure functions of the store. */

import { nodeLabel, scopeLabel, shortOp } from "./names.ts";
import { GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "./protocol.ts";
import type { Store } from "./store.ts";

export type Cell = string | number;

export interface Row {
  key: string;
  /** What a click on the first cell shows. */
  kind: "node" | "value" | "scope" | "none";
  id: number;
  cells: Cell[];
}

/** Columns of each table; `numbers` are those of numbers, which stand to the right. */
export const TABLES = {
  nodes: { columns: ["node", "operator", "group", "inputs", "outputs"], numbers: [3, 4] },
  values: { columns: ["value", "shape", "elements", "made by", "read by", "role"], numbers: [2, 4] },
  initializers: { columns: ["initializer", "shape", "elements", "read by"], numbers: [2, 3] },
  groups: { columns: ["group", "nodes", "parameters"], numbers: [1, 2] },
  operators: { columns: ["operator", "nodes", "parameters"], numbers: [1, 2] },
  functions: { columns: ["function", "nodes"], numbers: [1] },
  opsets: { columns: ["domain", "version"], numbers: [1] },
  diagnostics: { columns: ["where", "severity", "what"], numbers: [] },
} as const satisfies Record<string, { columns: readonly string[]; numbers: readonly number[] }> as Record<TableName, { columns: readonly string[]; numbers: readonly number[] }>;

export type TableName = "nodes" | "values" | "initializers" | "groups" | "operators" | "functions" | "opsets" | "diagnostics";

export function rowsOf(store: Store, name: TableName): Row[] {
  return MAKERS[name](store);
}

const MAKERS: Record<TableName, (store: Store) => Row[]> = {
  nodes: (store) => [...store.nodes.values()].map((node) => ({
    key: `n${node.id}`, kind: "node", id: node.id,
    cells: [nodeLabel(store, node.id), shortOp(node.op), groupPath(store, node.group), count(node.inputs), count(node.outputs)],
  })),
  values: (store) => valueRows(store, () => true, (value) => [
    value.label, elements(value.label), made(store, value.id), store.uses(value.id).length, role(value.flags),
  ]),
  initializers: (store) => valueRows(store, (flags) => (flags & INITIALIZER) !== 0, (value) => [
    value.label, elements(value.label), store.uses(value.id).length,
  ]),
  groups: (store) => totals(store, (node) => ancestors(store, node.group)).map(({ key, nodes, parameters }) => ({
    key: `g${key}`, kind: "none", id: Number(key), cells: [groupPath(store, Number(key)), nodes, parameters],
  })),
  operators: (store) => totals(store, (node) => [node.op]).map(({ key, nodes, parameters }) => ({
    key, kind: "none", id: 0, cells: [key, nodes, parameters],
  })),
  functions: (store) => [...store.scopes.values()].filter(({ kind }) => kind === "function").map((scope) => ({
    key: `s${scope.id}`, kind: "scope", id: scope.id,
    cells: [scopeLabel(store, scope.id), [...store.nodes.values()].filter((node) => node.scope === scope.id).length],
  })),
  opsets: (store) => Object.entries(store.opsets).map(([domain, version]) => ({
    key: domain, kind: "none", id: 0, cells: [domain || "ai.onnx", version],
  })),
  diagnostics: (store) => store.diagnostics.map((each, i) => ({
    key: String(i), kind: each.node ? "node" : each.value ? "value" : "none", id: each.node || each.value,
    cells: [each.node ? nodeLabel(store, each.node) : (store.values.get(each.value)?.name ?? "model"), each.severity, each.message],
  })),
};

function valueRows(
  store: Store, wanted: (flags: number) => boolean, rest: (value: { id: number; label: string; flags: number }) => Cell[],
): Row[] {
  return [...store.values.values()].filter(({ flags }) => wanted(flags)).map((value) => ({
    key: `v${value.id}`, kind: "value", id: value.id, cells: [value.name, ...rest(value)],
  }));
}

interface Total {
  key: string;
  nodes: number;
  parameters: number;
}

/** Nodes and parameters by key, most nodes first; a node may count for several keys, an initializer once for each. */
function totals(store: Store, keysOf: (node: { group: number; op: string }) => (string | number)[]): Total[] {
  const found = new Map<string, Total & { seen: Set<number> }>();
  for (const node of store.nodes.values()) {
    for (const each of keysOf(node)) {
      const key = String(each);
      let total = found.get(key);
      if (!total) found.set(key, (total = { key, nodes: 0, parameters: 0, seen: new Set() }));
      total.nodes++;
      for (const value of node.inputs) {
        const record = store.values.get(value);
        if (!record || !(record.flags & INITIALIZER) || total.seen.has(value)) continue;
        total.seen.add(value);
        total.parameters += elements(record.label) || 0;
      }
    }
  }
  return [...found.values()].sort((a, b) => b.nodes - a.nodes);
}

function ancestors(store: Store, group: number): number[] {
  const path: number[] = [];
  for (let id = group; id && path.length < 100; id = store.groups.get(id)?.parent ?? 0) path.push(id);
  return path;
}

function groupPath(store: Store, group: number): string {
  return ancestors(store, group).reverse().map((id) => store.groups.get(id)?.name ?? "?").join("/");
}

const count = (ids: readonly number[]): number => ids.filter((id) => id > 0).length;

function made(store: Store, value: number): string {
  const producer = store.producer(value);
  return producer ? nodeLabel(store, producer.node) : "";
}

function role(flags: number): string {
  const words = [flags & GRAPH_INPUT && "input", flags & GRAPH_OUTPUT && "output", flags & INITIALIZER && "initializer"];
  return words.filter(Boolean).join(", ");
}

/** Elements of a shape "64×3×7×7", 1 for "scalar", "" where a dim is unknown. */
export function elements(label: string): number | "" {
  if (label === "scalar") return 1;
  const dims = label.split("×");
  return dims.every((dim) => /^\d+$/.test(dim)) ? dims.reduce((product, dim) => product * Number(dim), 1) : "";
}

/** Rows by a column (-1: as they came); numbers by size, words by the alphabet with numbers inside them by size. */
export function sorted(rows: Row[], column: number, down: boolean): Row[] {
  if (column < 0) return rows;
  const collator = new Intl.Collator("en", { numeric: true });
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = a.cells[column]!, right = b.cells[column]!;
    if (typeof left === "number" && typeof right === "number") return sign * (left - right);
    if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1; // what is unknown comes last
    return sign * collator.compare(String(left), String(right));
  });
}
