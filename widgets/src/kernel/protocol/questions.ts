// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/questions.py: change that, and run it again.
/** Requests of a page about the model as it is, and their answers. */

import type { Diagnostic, Endpoint, ProducerEndpoint, Snapshot, Statistics, TensorPreview, UseEndpoint } from "./records.ts";
import type { MethodTraits, Nothing, WireInt, WireNumber } from "./words.ts";

export type AttributeType = "int" | "float" | "string" | "ints" | "floats" | "strings" | "tensor" | "tensors" | "graph" | "graphs" | "sparse_tensor" | "sparse_tensors" | "type_proto" | "type_protos" | "undefined";

export type AttributeValue = number | "nan" | "inf" | "-inf" | string | (number | string)[] | TensorPreview | null;

/** The version and the abilities of the kernel. */
export interface Hello {
  protocol: number;
  session: string;
  can: Record<string, boolean>;
  probe?: unknown;
  /** The model's version, so that a page that lost the last event learns of it. */
  version?: number;
}

/** An attribute of a node, or one that its operator has. */
export interface AttributeInfo {
  name: string;
  type: AttributeType;
  value: AttributeValue;
  /** False: the node does not carry the attribute and the schema's default holds. */
  set: boolean;
  required: boolean;
  default: AttributeValue;
  doc: string;
  choices: string[] | null;
  editable: boolean;
  /** Inside a function: the name of the function's attribute that this one takes its value from. */
  reference: string | null;
}

/** An input of a node: its slot and value. */
export interface InputInfo {
  slot: number;
  formal: string;
  value: number;
  name: string;
  label: string;
  initializer: boolean;
  producer: Endpoint | null;
}

/** An output of a node: its slot and value. */
export interface OutputInfo {
  slot: number;
  formal: string;
  value: number;
  name: string;
  label: string;
  uses: UseEndpoint[];
}

/** A body of a node. */
export interface BodyInfo {
  attribute: string;
  scope: number;
}

/** All about a node. */
export interface NodeInfo {
  id: number;
  name: string;
  label: string;
  op_type: string;
  domain: string;
  since_version: number | null;
  path: string;
  summary: string;
  attributes: AttributeInfo[];
  inputs: InputInfo[];
  outputs: OutputInfo[];
  bodies: BodyInfo[];
  metadata: Record<string, string>;
  doc_string: string;
  notes: Record<string, string>;
  diagnostics: Diagnostic[];
}

/** The documentation of an operator. */
export interface Documentation {
  title: string;
  text: string;
  since_version: number | null;
  deprecated: boolean;
}

/** All about a value. */
export interface ValueInfo {
  id: number;
  name: string;
  label: string;
  kind: string;
  producer: ProducerEndpoint | null;
  uses: UseEndpoint[];
  notes: Record<string, string>;
  initializer: TensorPreview | null;
  statistics: Statistics | null;
}

/** One value on the way; `node` makes it (0: none), `passes` where it only takes the dim over. */
export interface ExplanationStep {
  value: number;
  node: number;
  name: string;
  what: string;
  how: string;
  lost: string;
  edits: string[];
  passes: boolean;
}

/** The reason for a dim: `steps` lead from the value back; `lost` is the one that lost it first, -1 for none. */
export interface Explanation {
  name: string;
  fact: string;
  text: string;
  steps: ExplanationStep[];
  lost: number;
}

/** Notes of a node, a value or the model on itself. */
export interface About {
  doc_string: string;
  metadata: Record<string, string>;
  /** Documentation of the graph; of the model only. */
  graph_doc_string?: string;
  fields?: Record<string, WireInt>;
}

/** The statements of the format of the file on the whole model. */
export interface FormatInfo {
  title: string;
  /** The reason why nothing is inferred, "" where it is. */
  uninferred: string;
  pairs: Record<string, string>;
  columns: string[];
  rows: string[][];
  /** Rows that are not listed. */
  more: number;
}

/** The effect of applying a file of weights; of each list the first, and the number of the others. */
export interface WeightPreview {
  replaced: number;
  /** Initializers that the file does not have. */
  missing: string[];
  /** Tensors of the file that the model does not have. */
  extra: string[];
  /** Initializers that have another shape or type in the file, and which. */
  misfits: string[];
  more: [number, number, number];
}

/** An input or output of a model that may be inserted, and its type. */
export interface OfferedValue {
  name: string;
  label: string;
}

/** The kind of a file that was sent, and the ways to use it. */
export interface FileOffer {
  /** Title of its format, "" where that is not known. */
  title: string;
  nodes: number;
  initializers: number;
  inputs: OfferedValue[];
  outputs: OfferedValue[];
  /** The reason why it does not open as a model, "" where it does. */
  refused: string;
  /** The missing parts of it. */
  note: string;
  /** Arrays that an input or an initializer may take one of. */
  arrays: number;
  weights: WeightPreview | null;
  /** The cell in which torch converts it, since that runs what is in it; "" for most. */
  torch: string;
}

/** All elements of a small tensor. */
export interface Elements {
  dtype: string;
  shape: number[];
  /** In row-major order. */
  numbers: (number | "nan" | "inf" | "-inf" | string | boolean)[];
}

/** An operator that a node may be. */
export interface OperatorInfo {
  /** "Conv", or "com.microsoft::Gelu" outside the default domain. */
  op: string;
  summary: string;
  /** Least and largest number of inputs. */
  inputs: [number, number];
  category: string;
}

/** Operators that the model's opsets have. */
export interface Operators {
  operators: OperatorInfo[];
}

/** The places to which a value may be wired, by node id: free input slots, or the reason against it. */
export interface Targets {
  allowed: Record<string, number[]>;
  refused: Record<string, string>;
}

/** Names of attributes, the most frequent first, and how many nodes set each. */
export interface AttributeNames {
  names: string[];
  counts: number[];
}

/** The distinct texts of an attribute, and for each node that has it, or its default, the place of its text. */
export interface AttributeColumn {
  texts: string[];
  nodes: number[];
  places: number[];
}

/** The effect of a cut: ids of nodes, names of values; `siblings` are ids of corresponding values. */
export interface CutPreview {
  nodes: number[];
  /** Nodes of a part that is cut out. */
  kept: number;
  /** Initializers of a part that is cut out. */
  stored: number;
  outputs: string[];
  inputs: string[];
  lost_outputs: string[];
  lost_inputs: string[];
  siblings: number[];
}

/** Nodes in other places, copy by copy. */
export interface Copies {
  copies: number[][];
}

/** Floating-point operations by node, two columns; dims of unknown size count one. */
export interface Costs {
  nodes: number[];
  flops: WireInt[];
}

/** Ids of groups that are equal, class by class. */
export interface Blocks {
  blocks: number[][];
}

/** The number of tests of a feature by trees, and their least and largest threshold. */
export interface FeatureUse {
  feature: number;
  splits: number;
  low: WireNumber;
  high: WireNumber;
}

/** An ensemble of trees. */
export interface TreesInfo {
  count: number;
  splits: number;
  leaves: number;
  /** Depth of the lowest and of the highest tree. */
  depth: number[];
  /** The most used first. */
  features: FeatureUse[];
  /** Features that are not listed. */
  more: number;
  tree: number;
  /** The tree, a line for each split and leaf. */
  text: string;
}

/** Memory that is held, and the values that share it. */
export interface AliveInfo {
  values: number[];
  nbytes: WireInt;
}

/** Bytes alive while nodes run, in columns, each the most of one or several steps; nothing was run for it. */
export interface MemoryCurve {
  dims: Record<string, number>;
  /** Dims whose size was not given. */
  assumed: string[];
  /** Nodes that run. */
  steps: number;
  /** The node of each column. */
  nodes: number[];
  alive: WireInt[];
  peak: WireInt;
  peak_node: number;
  weights: WireInt;
  inputs: WireInt;
  at_peak: AliveInfo[];
  /** The number of values that are alive at the peak and not listed. */
  more: number;
  /** Inputs and outputs. */
  values: number[];
  /** Their shapes with these sizes. */
  labels: string[];
  /** Values of unknown size, which are not counted. */
  open: number;
  /** The refusals of nodes with these sizes. */
  refused: string[];
}

/** Parameters and answer of each method. */
export interface Questions {
  hello: [Record<string, never>, Hello];
  /** Whether binary buffers arrive. */
  probe: [{ ok: boolean }, Nothing];
  snapshot: [Record<string, never>, Snapshot];
  inspect: [{ node: number }, NodeInfo];
  doc: [{ node: number }, Documentation];
  value: [{ value: number }, ValueInfo];
  explain: [{ value: number; axis?: number | null }, Explanation];
  /** The notes of a node, a value, or without either the model on itself. */
  about: [{ node?: number | null; value?: number | null }, About];
  /** The kind of a file that was sent. */
  file: [{ file: string }, FileOffer];
  format: [Record<string, never>, FormatInfo];
  /** Problems by ONNX's rules, which come as an event. */
  check: [Record<string, never>, Nothing];
  /** All elements of a small tensor: of an initializer, or of a node's attribute. */
  elements: [{ node?: number | null; name?: string | null; value?: number | null }, Elements];
  /** All operators, or those whose first input may read a value. */
  operators: [{ value?: number | null }, Operators];
  operator_doc: [{ op: string }, Documentation];
  targets: [{ value: number; nodes: number[] }, Targets];
  attribute_names: [Record<string, never>, AttributeNames];
  attribute_column: [{ name: string }, AttributeColumn];
  /** The effect of ending the model at values, of starting it at others, or of cutting nodes out. */
  cut_preview: [
    { outputs: number[]; inputs: number[]; part: number[]; siblings: boolean; behind: boolean },
    CutPreview,
  ];
  /** The corresponding nodes in every copy of the block. */
  copies: [{ nodes: number[] }, Copies];
  trees: [{ node: number; tree?: number | null }, TreesInfo];
  /** The memory of a run for sizes of dims. */
  memory: [{ sizes?: Record<string, number> | null }, MemoryCurve];
  costs: [Record<string, never>, Costs];
  blocks: [Record<string, never>, Blocks];
}

export const QUESTIONS: Record<keyof Questions, MethodTraits> = {
  hello: { repeatable: true, recorded: "" },
  probe: { repeatable: true },
  snapshot: { repeatable: true, recorded: "" },
  inspect: { repeatable: true, recorded: "node" },
  doc: { repeatable: true, recorded: "node" },
  value: { repeatable: true, recorded: "value" },
  explain: { repeatable: true },
  about: { repeatable: true, recorded: "" },
  file: { repeatable: true },
  format: { repeatable: true, recorded: "" },
  check: { repeatable: true, long: true },
  elements: { repeatable: true },
  operators: { repeatable: true },
  operator_doc: { repeatable: true },
  targets: { repeatable: true },
  attribute_names: { repeatable: true, recorded: "" },
  attribute_column: { repeatable: true, recorded: "name" },
  cut_preview: { repeatable: true },
  copies: { repeatable: true },
  trees: { repeatable: true },
  memory: { repeatable: true, long: true },
  costs: { repeatable: true, recorded: "" },
  blocks: { repeatable: true, recorded: "" },
};
