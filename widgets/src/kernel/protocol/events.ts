// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/events.py: change that, and run it again.
/** Events that the kernel sends by itself, numbered, so that a page that missed one asks for a snapshot. */

import type { Diagnostic, GroupRecord, History, NodeRecord, ScopeRecord, ValueRecord } from "./records.ts";
import type { WireNumber } from "./words.ts";

/** The changes of an edit, an undo or a redo. */
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
  facts: [number[], string[], string[]];
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
  /** The edit in Python. */
  python?: string;
  /** Session of the view that made the edit, null when it came from Python. */
  origin: string | null;
}

/** The progress of a run. */
export interface ProgressEvent {
  event: "progress";
  seq: number;
  run: number;
  done: number;
  total: number;
  node: string;
}

/** All problems, where the background found others than the last commit told. */
export interface DiagnosticsEvent {
  event: "diagnostics";
  seq: number;
  diagnostics: Diagnostic[];
}

/** The model was saved, or its recoverable edits are others. */
export interface HistoryEvent {
  event: "history";
  seq: number;
  history: History;
  dirty: boolean;
  path?: string | null;
  opsets?: Record<string, number>;
}

/** Python closed the view. */
export interface ClosedEvent {
  event: "closed";
  seq: number;
}

/** The view shows another model from now on; `former` is the name of the one before. */
export interface OpenedEvent {
  event: "opened";
  seq: number;
  title: string;
  former: string;
}

/** Other numbers to color nodes by. */
export interface OverlayEvent {
  /** The texts for which the numbers stand where they are places in a list, not sizes. */
  kinds?: string[];
  title: string;
  unit: string;
  nodes: number[];
  numbers: WireNumber[];
  event: "overlay";
  seq: number;
}

export type KernelEvent = OverlayEvent | CommitEvent | ProgressEvent | DiagnosticsEvent | HistoryEvent | OpenedEvent | ClosedEvent;
