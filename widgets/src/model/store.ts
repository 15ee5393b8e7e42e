/**
 * The model as the page knows it: records by id, and who makes and uses each value.
 *
 * A store is filled by a snapshot and kept in step by commit events; it never talks to the kernel (client.ts does) and
 * draws nothing. Listeners hear of each change once, with what changed.
 */

import { Emitter } from "../emitter.ts";
import type {
  CommitEvent,
  Diagnostic,
  GroupRecord,
  History,
  NodeRecord,
  ScopeRecord,
  Section,
  Snapshot,
  ValueRecord,
} from "../kernel/protocol.ts";
import { type Rows, Wires } from "./wires.ts";

export type { Diagnostic, GroupRecord, History, NodeRecord, ScopeRecord, ValueRecord } from "../kernel/protocol.ts";

/** One end of a value: input or output `slot` of `node`. */
export interface Port {
  node: number;
  slot: number;
}

/** The changes of a commit, for listeners. */
export interface CommitChange {
  version: number;
  label: string;
  kind: "edit" | "undo" | "redo";
  origin: string | null;
  /** Nodes, connections, groups or scopes came, went or moved: the layout is stale. */
  structural: boolean;
  /** Nodes added or changed. */
  nodes: number[];
  /** Values added or changed (renamed, other flags), labels not included. */
  values: number[];
  removedNodes: number[];
  removedValues: number[];
  /** Values whose shape or element type is different now, as they were and are. */
  labels: Map<number, [before: string, now: string]>;
  /** The first node that cannot accept what the edit changed. */
  refusal: Diagnostic | null;
}

export interface StoreEvents {
  reset: void;
  commit: CommitChange;
  diagnostics: Diagnostic[];
  history: History;
}

const NO_HISTORY: History = { undo: null, redo: null, length: 0, position: 0 };
const NONE = new Int32Array(0);
const NO_ROWS: Rows = { nodes: NONE, inStarts: NONE, inputs: NONE, outStarts: NONE, outputs: NONE };

export class Store {
  nodes = new Map<number, NodeRecord>();
  values = new Map<number, ValueRecord>();
  groups = new Map<number, GroupRecord>();
  scopes = new Map<number, ScopeRecord>();
  diagnostics: Diagnostic[] = [];
  history: History = NO_HISTORY;
  /** The model's version that this store shows; 0 before the first snapshot. */
  version = 0;
  /** Whether the model changed since it was loaded or saved. */
  dirty = false;
  title = "";
  path: string | null = null;
  /** Opset version by domain, "" for ai.onnx. */
  opsets: Record<string, number> = {};
  /** Values that were pinned when the model was fetched. */
  pinned: number[] = [];

  /** Slots are looked up in the node when asked for. */
  #wires = new Wires(NO_ROWS);
  /** Place of every node that was ever here since the snapshot: one that comes back by undo takes its old place. */
  #ranks: Map<number, number> | null = null;
  readonly #emitter = new Emitter<StoreEvents>();

  /** The node output that makes a value, or null for graph inputs, initializers and unknown ids. */
  producer(value: number): Port | null {
    const node = this.#wires.maker(value);
    return node ? { node, slot: this.nodes.get(node)!.outputs.indexOf(value) } : null;
  }

  /** The node that makes a value, 0: none. */
  maker(value: number): number {
    return this.#wires.maker(value);
  }

  /** The node inputs that take a value, uses inside subgraphs included; file order at first, then order of change. */
  uses(value: number): readonly Port[] {
    const ports: Port[] = [];
    for (const node of this.#wires.readers(value)) {
      const { inputs } = this.nodes.get(node)!;
      for (let slot = inputs.indexOf(value); slot >= 0; slot = inputs.indexOf(value, slot + 1))
        ports.push({ node, slot });
    }
    return ports;
  }

  /** Calls `listener` on each event of a kind; returns the function that stops it. */
  on<E extends keyof StoreEvents>(event: E, listener: (payload: StoreEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener);
  }

  /**
   * Takes a whole model. Throws RangeError, and keeps what it had, when the buffer is shorter than its sections say.
   */
  reset(snapshot: Snapshot, buffer: ArrayBuffer | ArrayBufferView): void {
    const section = sections(snapshot, buffer);
    const rows: Rows = {
      nodes: section("node_id"),
      inStarts: section("in_ptr"),
      inputs: section("in_val"),
      outStarts: section("out_ptr"),
      outputs: section("out_val"),
    };
    const nodes = decodeNodes(snapshot, section, rows);
    const values = decodeValues(snapshot, section);
    this.nodes = nodes;
    this.values = values;
    this.groups = new Map(snapshot.groups.map((group) => [group.id, group]));
    this.scopes = new Map(snapshot.scopes.map((scope) => [scope.id, scope]));
    this.diagnostics = snapshot.diagnostics;
    this.history = snapshot.history;
    this.version = snapshot.version;
    this.dirty = snapshot.dirty;
    this.title = snapshot.title;
    this.path = snapshot.path;
    this.opsets = snapshot.opsets ?? {};
    this.pinned = snapshot.pinned ?? [];
    this.#wires = new Wires(rows);
    this.#ranks = null;
    this.#emitter.emit("reset", undefined);
    this.#emitter.emit("diagnostics", this.diagnostics);
    this.#emitter.emit("history", this.history);
  }

  /** Follows one commit. The caller has checked that it is the next one (client.ts counts events). */
  apply(commit: CommitEvent): void {
    const before = commit.facts[0].map((id) => this.values.get(id));
    let structural = commit.groups !== null || commit.scopes !== null || commit.removed_nodes.length > 0;
    if (structural || commit.nodes.some(({ id }) => !this.nodes.has(id))) this.#rank();
    for (const id of commit.removed_nodes) this.#removeNode(id);
    const cameBack = commit.nodes.some(({ id }) => !this.nodes.has(id) && this.#ranks?.has(id));
    for (const node of commit.nodes) structural = this.#putNode(node) || structural;
    if (cameBack) this.#restoreOrder();
    for (const id of commit.removed_values) {
      structural = this.values.delete(id) || structural;
      this.#wires.forget(id);
    }
    for (const value of commit.values) structural = this.#putValue(value) || structural;
    const labels = this.#putLabels(commit.facts, before);
    if (commit.groups) this.groups = new Map(commit.groups.map((group) => [group.id, group]));
    if (commit.scopes) this.scopes = new Map(commit.scopes.map((scope) => [scope.id, scope]));
    this.version = commit.version;
    this.dirty = commit.dirty;
    this.opsets = commit.opsets ?? this.opsets;
    this.#emitter.emit("commit", {
      version: commit.version,
      label: commit.label,
      kind: commit.kind,
      origin: commit.origin,
      structural,
      nodes: commit.nodes.map((node) => node.id),
      values: commit.values.map((value) => value.id),
      removedNodes: commit.removed_nodes,
      removedValues: commit.removed_values,
      labels,
      refusal: commit.refusal ?? null,
    });
    this.setDiagnostics(commit.diagnostics);
    this.setHistory(commit.history, commit.dirty, commit.path);
  }

  setDiagnostics(diagnostics: Diagnostic[]): void {
    this.diagnostics = diagnostics;
    this.#emitter.emit("diagnostics", diagnostics);
  }

  /** Takes over a history; `path` is left out where it did not change. */
  setHistory(history: History, dirty: boolean, path?: string | null): void {
    this.history = history;
    this.dirty = dirty;
    if (path !== undefined) this.path = path;
    this.#emitter.emit("history", history);
  }

  /** Adds or replaces a node; true when the picture's structure changed with it. */
  #putNode(node: NodeRecord): boolean {
    const before = this.nodes.get(node.id);
    this.nodes.set(node.id, node);
    if (!before) {
      this.#wires.add(node);
      const ranks = this.#rank();
      if (!ranks.has(node.id)) ranks.set(node.id, ranks.size);
      return true;
    }
    const rewired = !sameIds(before.inputs, node.inputs) || !sameIds(before.outputs, node.outputs);
    if (rewired) {
      this.#wires.remove(before);
      this.#wires.add(node);
    }
    return rewired || before.group !== node.group || before.scope !== node.scope;
  }

  /** Places of the nodes, noted when nodes first come or go: until then they are those of the map. */
  #rank(): Map<number, number> {
    if (!this.#ranks) {
      const ranks = (this.#ranks = new Map<number, number>());
      for (const id of this.nodes.keys()) ranks.set(id, ranks.size);
    }
    return this.#ranks;
  }

  /** Nodes that came back stand at the end of the map: puts them between their old neighbors again. */
  #restoreOrder(): void {
    const ranks = this.#rank();
    const ranked = [...this.nodes.values()].sort((a, b) => ranks.get(a.id)! - ranks.get(b.id)!);
    this.nodes = new Map(ranked.map((node) => [node.id, node]));
  }

  #removeNode(id: number): void {
    const node = this.nodes.get(id);
    if (!node) return;
    this.#wires.remove(node);
    this.nodes.delete(id);
  }

  /** Adds or replaces a value; a new one, or one that became an input, output or initializer, changes the structure. */
  #putValue(value: ValueRecord): boolean {
    const before = this.values.get(value.id);
    this.values.set(value.id, value);
    return !before || before.flags !== value.flags || before.scope !== value.scope;
  }

  /** Takes over labels and types; `before`: the values as they were, undefined for new ones. */
  #putLabels([ids, labels, types]: CommitEvent["facts"], before: (ValueRecord | undefined)[]): CommitChange["labels"] {
    const changed: CommitChange["labels"] = new Map();
    ids.forEach((id, i) => {
      const value = this.values.get(id),
        was = before[i];
      const label = labels[i];
      if (!value || label === undefined) return;
      const dtype = types?.[i] ?? value.dtype ?? "";
      if (was && label !== was.label) changed.set(id, [was.label, label]);
      else if (was && dtype !== (was.dtype ?? "")) changed.set(id, [was.dtype ?? "", dtype]);
      value.label = label;
      value.dtype = dtype;
    });
    return changed;
  }
}

function sameIds(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}

/** Typed views of the buffer's sections; copies only when the bytes arrived unaligned. */
function sections(snapshot: Snapshot, buffer: ArrayBuffer | ArrayBufferView): (name: Section) => Int32Array {
  const bytes = ArrayBuffer.isView(buffer)
    ? new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new Uint8Array(buffer);
  const whole = bytes.byteLength >> 2;
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  const ints = new Int32Array(aligned.buffer, aligned.byteOffset, whole);
  return (name) => {
    const [offset, length] = snapshot.sections[name] ?? [0, 0];
    if (offset < 0 || length < 0 || offset + length > whole) {
      throw new RangeError(`snapshot section ${name} is [${offset}, ${length}] in a buffer of ${whole} int32`);
    }
    return ints.subarray(offset, offset + length);
  };
}

const NOTHING_SHARED = "0".charCodeAt(0);

/** The names in full; see Snapshot.coded. */
function fullNames(names: string[], coded: boolean | undefined): string[] {
  if (!coded) return names;
  let before = "";
  return names.map((name) => (before = before.slice(0, name.charCodeAt(0) - NOTHING_SHARED) + name.slice(1)));
}

/** A plain array of a part; several times faster than Array.from for the short ones that nodes have. */
function slice(ints: Int32Array, from: number, to: number): number[] {
  const part: number[] = [];
  for (let i = from; i < to; i++) part.push(ints[i]!);
  return part;
}

function decodeNodes(snapshot: Snapshot, section: (name: Section) => Int32Array, rows: Rows): Map<number, NodeRecord> {
  const { nodes: ids, inStarts, inputs, outStarts, outputs } = rows;
  const op = section("node_op"),
    group = section("node_group"),
    scope = section("node_scope");
  const names = fullNames(snapshot.names, snapshot.coded);
  const nodes = new Map<number, NodeRecord>();
  for (let i = 0; i < snapshot.n; i++) {
    const id = ids[i]!;
    const opIndex = op[i]!;
    nodes.set(id, {
      id,
      name: names[i] ?? "",
      op: snapshot.ops[opIndex] ?? "?",
      category: snapshot.categories[opIndex] ?? "",
      group: group[i]!,
      scope: scope[i]!,
      inputs: slice(inputs, inStarts[i]!, inStarts[i + 1]!),
      outputs: slice(outputs, outStarts[i]!, outStarts[i + 1]!),
    });
  }
  return nodes;
}

function decodeValues(snapshot: Snapshot, section: (name: Section) => Int32Array): Map<number, ValueRecord> {
  const ids = section("value_id"),
    flags = section("value_flags"),
    scope = section("value_scope");
  const names = fullNames(snapshot.value_names, snapshot.coded),
    places = section("value_label");
  const values = new Map<number, ValueRecord>();
  for (let i = 0; i < snapshot.m; i++) {
    const id = ids[i]!,
      place = places.length ? places[i]! : i;
    values.set(id, {
      id,
      name: names[i] ?? "",
      label: snapshot.labels[place] ?? "",
      dtype: snapshot.types?.[place] ?? "",
      flags: flags[i]!,
      scope: scope[i]!,
    });
  }
  return values;
}
