// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/records.py: change that, and run it again.
/** The parts of a picture of the model: nodes, values, groups, scopes, problems, and the state of its history. */

import type { WireNumber } from "./words.ts";

export type Severity = "error" | "warning" | "info";

/** A problem pinned to a node or a value (id 0: to neither). */
export interface Diagnostic {
  severity: Severity;
  code: string;
  message: string;
  node: number;
  value: number;
  expected: string;
  found: string;
  hint: string;
}

/** The labels of the steps that undo and redo would take (null: none), and where in the history the model stands. */
export interface History {
  undo: string | null;
  redo: string | null;
  length: number;
  position: number;
  /** Edits that were never saved and can be made again; null where there are none, or the model was edited. */
  recoverable?: string | null;
}

/** A node as it is drawn. */
export interface NodeRecord {
  id: number;
  /** "" when the file gives the node no name. */
  name: string;
  /** "Conv", or "com.microsoft::Gelu" outside the default domain. */
  op: string;
  category: string;
  /** Group id, 0 at the top of its scope. */
  group: number;
  scope: number;
  /** Value id per slot, 0 where an optional input or output is absent. */
  inputs: number[];
  outputs: number[];
}

/** A value as it is drawn. */
export interface ValueRecord {
  id: number;
  name: string;
  /** The inferred fact, short: "1×64×112×112"; "" when nothing is known. */
  label: string;
  flags: number;
  scope: number;
  /** Element type, "float32"; "" where it is unknown. */
  dtype?: string;
}

/** A group of nodes. */
export interface GroupRecord {
  id: number;
  /** Group id, 0 at the top. */
  parent: number;
  name: string;
  kind: string;
  scope: number;
  /** The kind in the words of the field, "residual block"; "" where its name says it. */
  about?: string;
  /** Number of units that follow one another in a stage; else 0. */
  units?: number;
}

/** The main graph, a body or a function. */
export interface ScopeRecord {
  id: number;
  kind: "graph" | "subgraph" | "function";
  /** The node whose attribute holds this subgraph, 0 for the main graph and functions. */
  owner: number;
  attribute: string;
  name: string;
  inputs: number[];
  outputs: number[];
}

/** Numbers to color nodes by, two columns; none: the boxes have their own colors. */
export interface OverlayNumbers {
  /** The texts for which the numbers stand where they are places in a list, not sizes. */
  kinds?: string[];
  title: string;
  unit: string;
  nodes: number[];
  numbers: WireNumber[];
}

/** [offset, length] in int32 units of the sections of a snapshot's buffer. */
export interface Sections {
  node_id: [number, number];
  node_op: [number, number];
  node_group: [number, number];
  node_scope: [number, number];
  in_ptr: [number, number];
  in_val: [number, number];
  out_ptr: [number, number];
  out_val: [number, number];
  value_id: [number, number];
  value_flags: [number, number];
  value_scope: [number, number];
  /** The places of values in `labels`, which are distinct ones where this is there. */
  value_label?: [number, number];
}

/** The whole model as strings and one little-endian Int32 buffer; sections give [offset, length] in int32 units. */
export interface Snapshot {
  version: number;
  seq: number;
  title: string;
  path: string | null;
  dirty: boolean;
  ops: string[];
  categories: string[];
  n: number;
  m: number;
  names: string[];
  value_names: string[];
  /** Names leave out what they share with the one before: their first character, from 0 on, says how much. */
  coded?: boolean;
  labels: string[];
  /** The element types that go with the labels: value_label is a place in both. */
  types?: string[];
  groups: GroupRecord[];
  scopes: ScopeRecord[];
  diagnostics: Diagnostic[];
  history: History;
  overlay?: OverlayNumbers | null;
  /** Values that are pinned. */
  pinned?: number[];
  /** Opset version by domain. */
  opsets?: Record<string, number>;
  /** The number of times that the view showed another model before. */
  shown?: number;
  /** The name of the one before, "" for none. */
  former?: string;
  sections: Sections;
}

/** The first elements of a tensor. */
export interface TensorPreview {
  dtype: string;
  shape: number[];
  preview: string;
}

/** A node at the other end of a wire. */
export interface Endpoint {
  id: number;
  label: string;
  op: string;
}

/** A reader, and the slot that reads. */
export interface UseEndpoint {
  id: number;
  label: string;
  op: string;
  slot: number;
}

/** The maker of a value, and the slot there. */
export interface ProducerEndpoint {
  id: number;
  label: string;
  op: string;
  slot?: number;
}

/** The numbers of elements in equal parts between two numbers. */
export interface Histogram {
  counts: number[];
  low: WireNumber;
  high: WireNumber;
}

/** Statistics of the elements of a value. */
export interface Statistics {
  id: number;
  name: string;
  dtype: string;
  shape: number[] | null;
  count: number;
  min: number | "nan" | "inf" | "-inf" | null;
  max: number | "nan" | "inf" | "-inf" | null;
  mean: number | "nan" | "inf" | "-inf" | null;
  std: number | "nan" | "inf" | "-inf" | null;
  nan: number;
  inf: number;
  zeros: number;
  histogram: Histogram | null;
}

/** Bytes [height, width, channels]: 0 not a number, 1 and 2 infinities, 3 to 255 from low to high. */
export interface TensorPicture {
  height: number;
  width: number;
  channels: number;
  low: WireNumber;
  high: WireNumber;
}

/** A part of two axes of a tensor; axis -1: the tensor has none. The picture's bytes come as a buffer. */
export interface TensorPart {
  id: number;
  /** "stale": of the last run, and the model was edited above it since. */
  source: "stored" | "pinned" | "run" | "stale";
  dtype: string;
  shape: number[];
  rows: number;
  columns: number;
  at: number[];
  /** Whether it may be looked at as an image. */
  image: boolean;
  cells: ((number | "nan" | "inf" | "-inf" | string)[])[];
  picture: TensorPicture | null;
}

/** Bits of ValueRecord.flags. */
export const GRAPH_INPUT = 1;
export const GRAPH_OUTPUT = 2;
export const INITIALIZER = 4;
export const FORMAL = 8;
export const CONTROL = 16;
