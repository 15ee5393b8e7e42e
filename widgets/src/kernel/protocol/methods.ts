// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/methods.py: change that, and run it again.

import type { About, Blocks, Copies, Costs, Documentation, Edited, Elements, Explanation, Extracted, GivenInput, Hello, NodeInfo, Nothing, Operators, Pinned, Recovered, RunResult, Saved, Steps, Stopped, Targets, Unsaved, Uploaded, ValueInfo } from "./answers.ts";
import type { Snapshot, TensorPart } from "./records.ts";

export const PROTOCOL = 1;

/** Every method: its parameters and its answer. */
export interface Methods {
  hello: [Record<string, never>, Hello];
  /** Whether binary buffers arrive. */
  probe: [{ ok: boolean }, Nothing];
  snapshot: [Record<string, never>, Snapshot];
  inspect: [{ node: number }, NodeInfo];
  doc: [{ node: number }, Documentation];
  value: [{ value: number }, ValueInfo];
  explain: [{ value: number; axis?: number | null }, Explanation];
  /** A row of the table of edits; `Edits` has their parameters. */
  edit: [{ edit: string; on: string; subject: number[]; parameters: Record<string, unknown>; version?: number | null }, Edited];
  undo: [{ version?: number | null }, Edited];
  redo: [{ version?: number | null }, Edited];
  go_to: [{ position: number; version?: number | null }, Edited];
  history: [Record<string, never>, Steps];
  overlay: [{ by?: string | null }, Nothing];
  operators: [Record<string, never>, Operators];
  operator_doc: [{ op: string }, Documentation];
  targets: [{ value: number; nodes: number[] }, Targets];
  /** What a node, a value, or without either the model says about itself. */
  about: [{ node?: number | null; value?: number | null }, About];
  /** All elements of a small tensor: of an initializer, or of a node's attribute. */
  elements: [{ node?: number | null; name?: string | null; value?: number | null }, Elements];
  /** A piece of a file, base64; an edit that takes a file names it by its id. */
  upload: [{ file: string; name: string; offset: number; data: string }, Uploaded];
  /** The corresponding nodes in every copy of the block. */
  copies: [{ nodes: number[] }, Copies];
  /** Nodes as a model of their own; its bytes come as a buffer. */
  extract: [{ nodes: number[] }, Extracted];
  /** What saving would change in the file. */
  unsaved: [Record<string, never>, Unsaved];
  /** Replaces the file, or writes a copy beside it, which the model belongs to from then on. */
  save: [{ copy?: boolean | null; version?: number | null }, Saved];
  recover: [Record<string, never>, Recovered];
  discard: [Record<string, never>, Nothing];
  run: [{ nodes?: number[] | null; seed?: number | null; inputs?: Record<string, GivenInput> | null; sizes?: Record<string, number> | null; deadline?: number | null }, RunResult];
  tensor: [{ value: number; rows?: number | null; columns?: number | null; at?: number[] | null; top?: number | null; left?: number | null; height?: number | null; width?: number | null; pixels?: number | null; picture?: string | null }, TensorPart];
  costs: [Record<string, never>, Costs];
  blocks: [Record<string, never>, Blocks];
  /** A value stays what it was in the last run. */
  pin: [{ value: number; on: boolean }, Pinned];
  stop: [{ run: number }, Stopped];
}

export type Method = keyof Methods;
export type Params<M extends Method> = Methods[M][0];
export type Result<M extends Method> = Methods[M][1];

/** Methods that change the model. */
export type EditMethod = "edit" | "undo" | "redo" | "go_to";

/** Asking these twice does no harm. */
export const REPEATABLE: ReadonlySet<Method> = new Set<Method>([
  "hello", "probe", "snapshot", "inspect", "doc", "value", "explain", "history", "operators", "operator_doc",
  "targets", "about", "elements", "copies", "unsaved", "tensor", "costs", "blocks",
]);

/** These take as long as they take. */
export const LONG: ReadonlySet<Method> = new Set<Method>([
  "overlay", "run",
]);

/** The parameter by which a page without a kernel holds the answers of a method, "": it holds one. */
export const RECORDED: Partial<Record<Method, string>> = {
  hello: "",
  snapshot: "",
  inspect: "node",
  doc: "node",
  value: "value",
  about: "",
  costs: "",
  blocks: "",
};
