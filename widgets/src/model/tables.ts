/** Rows of the tables of a model, and their order. Pure functions of the store. */

import { type About, GRAPH_INPUT, GRAPH_OUTPUT, INITIALIZER } from "../kernel/protocol.ts";
import { groupsAround, nodeLabel, scopeLabel, shortOp } from "./names.ts";
import type { NodeRecord, Store, ValueRecord } from "./store.ts";

export type Cell = string | number;

export interface Row {
  key: string;
  /** The target of a click on the first cell; of an operator all its nodes. */
  kind: "node" | "value" | "scope" | "group" | "operator" | "none";
  id: number;
  cells: Cell[];
}

interface Table {
  columns: readonly string[];
  /** Columns of numbers, which stand to the right, and the units of some. */
  numbers: readonly number[];
  units?: Readonly<Record<number, string>>;
}

const TOTALS = ["nodes", "parameters", "weights", "values made", "FLOPs"] as const;
const TOTAL_UNITS = { 3: "B", 4: "B", 5: "FLOP" };

/** Columns of each table. */
export const TABLES = {
  nodes: {
    columns: ["node", "operator", "group", "inputs", "outputs", "FLOPs"],
    numbers: [3, 4, 5],
    units: { 5: "FLOP" },
  },
  values: {
    columns: ["value", "type", "shape", "elements", "bytes", "made by", "read by", "role"],
    numbers: [3, 4, 6],
    units: { 4: "B" },
  },
  initializers: {
    columns: ["initializer", "type", "shape", "elements", "bytes", "read by"],
    numbers: [3, 4, 5],
    units: { 4: "B" },
  },
  groups: { columns: ["group", ...TOTALS], numbers: [1, 2, 3, 4, 5], units: TOTAL_UNITS },
  operators: { columns: ["operator", ...TOTALS], numbers: [1, 2, 3, 4, 5], units: TOTAL_UNITS },
  functions: { columns: ["function", "nodes"], numbers: [1] },
  opsets: { columns: ["domain", "version"], numbers: [1] },
  metadata: { columns: ["key", "text"], numbers: [] },
  diagnostics: { columns: ["where", "severity", "what"], numbers: [] },
} as const satisfies Record<string, Table> as Record<TableName, Table>;

export type TableName =
  | "nodes"
  | "values"
  | "initializers"
  | "groups"
  | "operators"
  | "functions"
  | "opsets"
  | "metadata"
  | "diagnostics";

/** The columns of tables besides those of the store, asked of the kernel when a table is opened. */
export interface Extra {
  flops: ReadonlyMap<number, number>;
  about: About | null;
}

export const NO_EXTRA: Extra = { flops: new Map(), about: null };

export function rowsOf(store: Store, name: TableName, extra = NO_EXTRA): Row[] {
  return MAKERS[name](store, extra);
}

const MAKERS: Record<TableName, (store: Store, extra: Extra) => Row[]> = {
  nodes: (store, { flops }) =>
    [...store.nodes.values()].map((node) => ({
      key: `n${node.id}`,
      kind: "node",
      id: node.id,
      cells: [
        nodeLabel(store, node.id),
        shortOp(node.op),
        groupPath(store, node.group),
        count(node.inputs),
        count(node.outputs),
        flops.get(node.id) ?? "",
      ],
    })),
  values: (store) =>
    valueRows(
      store,
      () => true,
      (value) => [
        value.dtype ?? "",
        value.label,
        elements(value.label),
        bytes(value),
        producerLabel(store, value.id),
        store.uses(value.id).length,
        role(value.flags),
      ],
    ),
  initializers: (store) =>
    valueRows(
      store,
      (flags) => (flags & INITIALIZER) !== 0,
      (value) => [value.dtype ?? "", value.label, elements(value.label), bytes(value), store.uses(value.id).length],
    ),
  groups: (store, { flops }) =>
    totals(store, flops, (node) => groupsAround(store, node.group)).map((total) => ({
      key: `g${total.key}`,
      kind: "group",
      id: Number(total.key),
      cells: [groupPath(store, Number(total.key)), ...totalCells(total)],
    })),
  operators: (store, { flops }) =>
    totals(store, flops, (node) => [node.op]).map((total) => ({
      key: total.key,
      kind: "operator",
      id: 0,
      cells: [total.key, ...totalCells(total)],
    })),
  functions: (store) =>
    [...store.scopes.values()]
      .filter(({ kind }) => kind === "function")
      .map((scope) => ({
        key: `s${scope.id}`,
        kind: "scope",
        id: scope.id,
        cells: [
          scopeLabel(store, scope.id),
          [...store.nodes.values()].filter((node) => node.scope === scope.id).length,
        ],
      })),
  opsets: (store) =>
    Object.entries(store.opsets).map(([domain, version]) => ({
      key: domain,
      kind: "none",
      id: 0,
      cells: [domain || "ai.onnx", version],
    })),
  metadata: (_, { about }) => (about ? noteRows(about) : []),
  diagnostics: (store) =>
    store.diagnostics.map((diagnostic, i) => ({
      key: String(i),
      kind: diagnostic.node ? "node" : diagnostic.value ? "value" : "none",
      id: diagnostic.node || diagnostic.value,
      cells: [
        diagnostic.node ? nodeLabel(store, diagnostic.node) : (store.values.get(diagnostic.value)?.name ?? "model"),
        diagnostic.severity,
        diagnostic.message,
      ],
    })),
};

function valueRows(store: Store, fits: (flags: number) => boolean, rest: (value: ValueRecord) => Cell[]): Row[] {
  return [...store.values.values()]
    .filter(({ flags }) => fits(flags))
    .map((value) => ({ key: `v${value.id}`, kind: "value", id: value.id, cells: [value.name, ...rest(value)] }));
}

interface Total {
  key: string;
  nodes: number;
  parameters: number;
  /** Bytes of the initializers that are read, and of what is produced. */
  weights: number;
  produced: number;
  flops: number;
}

const totalCells = ({ nodes, parameters, weights, produced, flops }: Total): Cell[] => [
  nodes,
  parameters,
  weights,
  produced,
  flops,
];

/** Nodes and parameters by key, most nodes first; a node may count for several keys, an initializer once for each. */
function totals(
  store: Store,
  flops: ReadonlyMap<number, number>,
  keysOf: (node: NodeRecord) => (string | number)[],
): Total[] {
  const totalOf = new Map<string, Total & { seen: Set<number> }>();
  for (const node of store.nodes.values()) {
    for (const id of keysOf(node)) {
      const key = String(id);
      let total = totalOf.get(key);
      if (!total)
        totalOf.set(
          key,
          (total = { key, nodes: 0, parameters: 0, weights: 0, produced: 0, flops: 0, seen: new Set() }),
        );
      total.nodes++;
      total.flops += flops.get(node.id) ?? 0;
      for (const value of node.outputs) total.produced += bytes(store.values.get(value)) || 0;
      for (const value of node.inputs) {
        const record = store.values.get(value);
        if (!record || !(record.flags & INITIALIZER) || total.seen.has(value)) continue;
        total.seen.add(value);
        total.parameters += elements(record.label) || 0;
        total.weights += bytes(record) || 0;
      }
    }
  }
  return [...totalOf.values()].sort((a, b) => b.nodes - a.nodes);
}

function groupPath(store: Store, group: number): string {
  return groupsAround(store, group)
    .reverse()
    .map((id) => store.groups.get(id)?.name ?? "?")
    .join("/");
}

const count = (ids: readonly number[]): number => ids.filter((id) => id > 0).length;

function producerLabel(store: Store, value: number): string {
  const producer = store.producer(value);
  return producer ? nodeLabel(store, producer.node) : "";
}

function role(flags: number): string {
  const words = [
    flags & GRAPH_INPUT && "input",
    flags & GRAPH_OUTPUT && "output",
    flags & INITIALIZER && "initializer",
  ];
  return words.filter(Boolean).join(", ");
}

/** Elements of a shape "64×3×7×7", 1 for "scalar", "" where a dim is unknown. */
export function elements(label: string): number | "" {
  if (label === "scalar") return 1;
  const dims = label.split("×");
  return dims.every((dim) => /^\d+$/.test(dim)) ? dims.reduce((product, dim) => product * Number(dim), 1) : "";
}

/** Bytes of a value of known shape and type, "" of others; types of less than a byte are packed. */
export function bytes(value: ValueRecord | undefined): number | "" {
  const size = elements(value?.label ?? "");
  const bits = value?.dtype === "bool" ? 8 : Number(/\d+/.exec(value?.dtype ?? "")?.[0] ?? 0);
  return size === "" || !bits ? "" : Math.ceil((size * bits) / 8);
}

function noteRows({ fields, doc_string, graph_doc_string, metadata }: About): Row[] {
  const notes = { ...fields, "note of the model": doc_string, "note of the graph": graph_doc_string ?? "" };
  const known = Object.entries(notes)
    .filter(([, text]) => text !== "")
    .map(([key, text]) => [key, String(text)]);
  return [...known, ...Object.entries(metadata)].map(([key, text], i) => ({
    key: String(i),
    kind: "none",
    id: 0,
    cells: [key!, text!],
  }));
}

/** Rows by a column (-1: as they came); numbers by size, words by the alphabet with numbers inside them by size. */
export function sorted(rows: Row[], column: number, down: boolean): Row[] {
  if (column < 0) return rows;
  const collator = new Intl.Collator("en", { numeric: true });
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const left = a.cells[column]!,
      right = b.cells[column]!;
    if (typeof left === "number" && typeof right === "number") return sign * (left - right);
    if (typeof left !== typeof right) return typeof left === "number" ? -1 : 1; // unknown values come last
    return sign * collator.compare(String(left), String(right));
  });
}
