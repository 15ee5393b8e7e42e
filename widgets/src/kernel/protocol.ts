/**
 * Every message between the kernel and the page, declared once: the twin of onnxlab/notebook/protocol/messages.py.
 *
 * Requests go from the page to the kernel and each gets exactly one reply with the same id; events come from the
 * kernel, numbered, so that a page that missed one notices and asks for a snapshot. Nothing here touches the DOM.
 */

export const PROTOCOL = 1;

/** JSON has neither NaN nor infinities, so the kernel writes them as these words. */
export type WireNumber = number | "nan" | "inf" | "-inf";

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
  /** Edits that were never saved and can be made again, in words; null where there are none, or the model was edited. */
  recoverable?: string | null;
}

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

/** Bits of ValueRecord.flags. */
export const GRAPH_INPUT = 1;
export const GRAPH_OUTPUT = 2;
export const INITIALIZER = 4;
export const FORMAL = 8;

export interface ValueRecord {
  id: number;
  name: string;
  /** What inference knows, short: "1×64×112×112"; "" when nothing is known. */
  label: string;
  flags: number;
  scope: number;
  /** Element type, "float32"; "" where it is unknown. */
  dtype?: string;
}

export interface GroupRecord {
  id: number;
  /** Group id, 0 at the top. */
  parent: number;
  name: string;
  kind: string;
  scope: number;
  /** What it is in the words of the field, "residual block"; "" where its name says it. */
  about?: string;
  /** Of a stage: how many units follow one another in it; else 0. */
  units?: number;
}

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

// ---------------------------------------------------------------------------------------------------------- requests

export interface Hello {
  protocol: number;
  session: string;
  can: Record<string, boolean>;
  probe?: unknown;
  /** The model's version, so that a page that lost the last event learns of it. */
  version?: number;
}

/** Names of the Int32 sections of a snapshot's buffer. */
export type Section =
  | "node_id" | "node_op" | "node_group" | "node_scope"
  | "in_ptr" | "in_val" | "out_ptr" | "out_val"
  | "value_id" | "value_flags" | "value_scope" | OptionalSection;

/** Where it is there, `labels` are the distinct ones, of which each value has a place. */
export type OptionalSection = "value_label";

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
  /**
   * Names leave out what they share with the one before: their first character, from "0" on, says how many characters.
   */
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
  sections: Record<Exclude<Section, OptionalSection>, [offset: number, length: number]> &
    Partial<Record<OptionalSection, [offset: number, length: number]>>;
}

export type AttributeType =
  | "int" | "float" | "string" | "ints" | "floats" | "strings"
  | "tensor" | "tensors" | "graph" | "graphs" | "sparse_tensor" | "sparse_tensors" | "type_proto" | "type_protos"
  | "undefined";

export interface TensorPreview {
  dtype: string;
  shape: number[];
  preview: string;
}

/** An integer; those that a double cannot hold exactly (int64 beyond 2^53) travel as decimal strings. */
export type WireInt = number | string;

export type AttributeValue = WireNumber | WireInt | string | (WireNumber | WireInt | string)[] | TensorPreview | null;

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

export interface Endpoint {
  id: number;
  label: string;
  op: string;
}

export interface InputInfo {
  slot: number;
  formal: string;
  value: number;
  name: string;
  label: string;
  initializer: boolean;
  producer: Endpoint | null;
}

export interface OutputInfo {
  slot: number;
  formal: string;
  value: number;
  name: string;
  label: string;
  uses: (Endpoint & { slot: number })[];
}

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
  bodies: { attribute: string; scope: number }[];
  metadata: Record<string, string>;
  doc_string: string;
  diagnostics: Diagnostic[];
}

export interface Documentation {
  title: string;
  text: string;
  since_version: number | null;
  deprecated: boolean;
}

export interface Histogram {
  counts: number[];
  low: WireNumber;
  high: WireNumber;
}

export interface Statistics {
  id: number;
  name: string;
  dtype: string;
  shape: number[] | null;
  count: number;
  min: WireNumber | null;
  max: WireNumber | null;
  mean: WireNumber | null;
  std: WireNumber | null;
  nan: number;
  inf: number;
  zeros: number;
  histogram: Histogram | null;
}

export interface ValueInfo {
  id: number;
  name: string;
  label: string;
  kind: string;
  producer: (Endpoint & { slot?: number }) | null;
  uses: (Endpoint & { slot: number })[];
  initializer: TensorPreview | null;
  statistics: Statistics | null;
}

/** Why a dim is what it is: `steps` lead from the value back; `lost` is the one that lost it first, -1 for none. */
export interface Explanation {
  name: string;
  fact: string;
  text: string;
  steps: ExplanationStep[];
  lost: number;
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

export interface RunResult {
  run: number;
  seconds: number;
  values: Statistics[];
}

/** Every method: its parameters and its result. Edits carry the version the view had. */
export interface Methods {
  hello: [Record<string, never>, Hello];
  probe: [{ ok: boolean }, unknown];
  snapshot: [Record<string, never>, Snapshot];
  inspect: [{ node: number }, NodeInfo];
  doc: [{ node: number }, Documentation];
  value: [{ value: number }, ValueInfo];
  explain: [{ value: number; axis?: number }, Explanation];
  set_attribute: [{ node: number; name: string; value: AttributeValue; type?: string; version?: number }, Edited];
  rename_node: [{ node: number; name: string; version?: number }, Edited];
  rename_value: [{ value: number; name: string; version?: number }, Edited];
  remove: [{ nodes: number[]; bypass: boolean; version?: number }, Edited];
  edit: [{ gesture: string; subject: number[]; given: Record<string, unknown>; version?: number }, Edited];
  undo: [{ version?: number }, Edited];
  redo: [{ version?: number }, Edited];
  go_to: [{ position: number; version?: number }, Edited];
  history: [Record<string, never>, Steps];
  overlay: [{ by?: string | null }, Record<string, never>];
  operators: [Record<string, never>, { operators: OperatorInfo[] }];
  operator_doc: [{ op: string }, Documentation];
  /** What a node, a value, or without either the model says about itself. */
  about: [{ node?: number; value?: number }, About];
  /** All elements of a small tensor: of an initializer, or of a node's attribute. */
  elements: [{ node?: number; name?: string; value?: number }, Elements];
  /** A piece of a file, base64; a gesture that takes a file names it by its id. */
  upload: [{ file: string; name: string; offset: number; data: string }, { bytes: number }];
  /** The likes of some nodes in every copy of their block. */
  copies: [{ nodes: number[] }, { copies: number[][] }];
  /** Nodes as a model of their own; its bytes come as a buffer. */
  extract: [{ nodes: number[] }, { name: string; python: string }];
  targets: [{ value: number; nodes: number[] }, Targets];
  /** What saving would change in the file. */
  unsaved: [Record<string, never>, Unsaved];
  /** Replaces the file, or writes a copy beside it, which the model belongs to from then on. */
  save: [{ copy?: boolean; version?: number }, { path: string; bytes: number }];
  recover: [Record<string, never>, { steps: number }];
  discard: [Record<string, never>, Record<string, never>];
  run: [{ nodes: number[] | null; seed?: number; inputs?: Record<string, GivenInput>; sizes?: Record<string, number>; deadline?: number }, RunResult];
  tensor: [{ value: number; rows?: number; columns?: number; at?: number[]; top?: number; left?: number; height?: number; width?: number; pixels?: number; picture?: string }, TensorPart];
  costs: [Record<string, never>, Costs];
  /** Ids of groups that are equal, class by class. */
  blocks: [Record<string, never>, { blocks: number[][] }];
  /** A value stays what it was in the last run, whatever makes it. */
  pin: [{ value: number; on: boolean }, { pinned: number[] }];
  stop: [{ run: number }, { stopped: boolean }];
}

/** What is not saved: the edits, oldest first, the fields of the file that they change, and what else there is to know. */
export interface Unsaved {
  path: string;
  /** The name that a copy would get. */
  copy: string;
  edits: string[];
  fields: string[];
  /** Edits and fields that are not listed. */
  more: [edits: number, fields: number];
  notes: string[];
}

/** How an input of a run is made: `text` holds numbers or JSON, `file` is the id of an upload. */
export interface GivenInput {
  how: "random" | "zeros" | "ones" | "last" | "text" | "file";
  text?: string;
  file?: string;
}

/** Floating-point operations by node, two columns; dims of unknown size count one. */
export interface Costs {
  nodes: number[];
  flops: WireInt[];
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
  /** It may be looked at as an image. */
  image: boolean;
  cells: (WireNumber | WireInt | string)[][];
  picture: TensorPicture | null;
}

/** Bytes [height, width, channels]: 0 not a number, 1 and 2 infinities, 3 to 255 from low to high. */
export interface TensorPicture {
  height: number;
  width: number;
  channels: number;
  low: WireNumber;
  high: WireNumber;
}

/** The whole history, oldest step first; `position` of them are done, and the first `dropped` cannot be undone any more. */
export interface Steps {
  steps: { label: string; python: string }[];
  position: number;
  dropped: number;
}

export interface OperatorInfo {
  /** "Conv", or "com.microsoft::Gelu" outside the default domain. */
  op: string;
  summary: string;
  /** At least and at most. */
  inputs: [least: number, most: number];
  category: string;
}

/** Where a value may be wired to, by node id: free input slots, or why there is none. */
export interface Targets {
  allowed: Record<string, number[]>;
  refused: Record<string, string>;
}

/** Numbers to color nodes by, two columns; none: the boxes have their own colors. */
export interface OverlayNumbers {
  /** What the numbers stand for where they are places in a list: a few kinds, not sizes. */
  kinds?: string[];
  title: string;
  unit: string;
  nodes: number[];
  numbers: WireNumber[];
}

export interface About {
  doc_string: string;
  metadata: Record<string, string>;
  /** Of the model only. */
  graph_doc_string?: string;
  fields?: Record<string, string | number>;
}

export interface Elements {
  dtype: string;
  shape: number[];
  /** In row-major order. */
  numbers: (WireNumber | string | boolean)[];
}

export interface Edited {
  version: number;
  /** The edit in Python, "" where it has no line. */
  python: string;
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M][0];
export type Result<M extends Method> = Methods[M][1];

export interface Request<M extends Method = Method> {
  id: number;
  method: M;
  params: Params<M>;
}

export interface WireError {
  code: string;
  message: string;
  hint?: string;
  node?: number | string;
}

/** `b64` carries the buffers as base64 where the front end's channel loses binary frames. */
export type Reply = { id: number; b64?: string[] } & ({ result: unknown } | { error: WireError });

// ------------------------------------------------------------------------------------------------------------ events

export interface CommitEvent {
  event: "commit";
  seq: number;
  version: number;
  label: string;
  kind: "edit" | "undo" | "redo";
  nodes: NodeRecord[];
  removed_nodes: number[];
  values: ValueRecord[];
  removed_values: number[];
  /** Value ids, their new labels and their element types: columns. */
  facts: [ids: number[], labels: string[], types?: string[]];
  groups: GroupRecord[] | null;
  scopes: ScopeRecord[] | null;
  diagnostics: Diagnostic[];
  history: History;
  dirty: boolean;
  path?: string | null;
  /** Opset version by domain. */
  opsets?: Record<string, number>;
  /** The first node that cannot accept what the edit changed. */
  refusal?: Diagnostic | null;
  /** The edit as a line of Python where it was made by hand in a view, else "". */
  python?: string;
  /** Session of the view that made the edit, null when it came from Python. */
  origin: string | null;
}

export interface ProgressEvent {
  event: "progress";
  seq: number;
  run: number;
  done: number;
  total: number;
  node: string;
}

export interface DiagnosticsEvent {
  event: "diagnostics";
  seq: number;
  diagnostics: Diagnostic[];
}

export interface HistoryEvent {
  event: "history";
  seq: number;
  history: History;
  dirty: boolean;
  path?: string | null;
  opsets?: Record<string, number>;
}

export interface ClosedEvent {
  event: "closed";
  seq: number;
}

export interface OverlayEvent extends OverlayNumbers {
  event: "overlay";
  seq: number;
}

export type KernelEvent = OverlayEvent | CommitEvent | ProgressEvent | DiagnosticsEvent | HistoryEvent | ClosedEvent;

/** A wire number as a JavaScript number, NaN and infinities included. */
export function fromWire(number: WireNumber): number {
  if (typeof number === "number") return number;
  return number === "nan" ? NaN : number === "inf" ? Infinity : -Infinity;
}
