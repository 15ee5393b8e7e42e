// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/pairs.py: change that, and run it again.
/** Requests of a page with two models side by side, and their answers. */

import type { TensorPart } from "./records.ts";
import type { GivenInput, Stopped } from "./runs.ts";
import type { MethodTraits, Nothing, WireNumber } from "./words.ts";

export type ChangeKind = "added" | "removed" | "changed" | "renamed" | "moved";

/** One difference: what happened to what, and the ids of nodes and values that it is about. */
export interface ChangeInfo {
  kind: ChangeKind;
  subject: string;
  name: string;
  /** All of it. */
  text: string;
  field: string;
  old: string;
  new: string;
  a_nodes: number[];
  b_nodes: number[];
  a_value: number;
  b_value: number;
}

/** Nodes of the first model, and those of the second that stand for them. */
export interface RegionInfo {
  a_nodes: number[];
  b_nodes: number[];
  text: string;
}

/** Ids of what is paired, in two columns of equal length. */
export interface PairedColumns {
  a: number[];
  b: number[];
}

/** Nodes that differ, and for each the place of its kind in `kinds`. */
export interface SideColors {
  nodes: number[];
  kinds: number[];
}

/** Errors of values of the second side against the first, in the order in which the first side makes them. */
export interface ErrorColumns {
  a: number[];
  /** 0: recorded values. */
  b: number[];
  relative: WireNumber[];
  /** The part that roundings explain. */
  noise: WireNumber[];
  /** Error of the node alone that makes the value; [] where it was not asked for. */
  local: WireNumber[];
  sqnr: WireNumber[];
  cosine: WireNumber[];
  /** Index of the first element that is off, [] for none. */
  first: number[][];
  /** The reasons why two values cannot be compared by element, "" where they can. */
  problems: string[];
  /** Places of those whose own node is off, the furthest first. */
  guilty: number[];
  /** Place of the first that roundings do not explain, -1 for none. */
  diverges: number;
}

/** The shared state of the views of two models. */
export interface PairInfo {
  headline: string;
  names: [string, string];
  /** 1: the other side is recorded values. */
  sides: number;
  nodes: PairedColumns;
  values: PairedColumns;
  scopes: PairedColumns;
  changes: ChangeInfo[];
  /** Number of all changes, by kind. */
  counts: Record<string, number>;
  /** Changes that are not listed. */
  more: number;
  regions: RegionInfo[];
  kinds: string[];
  colors: [SideColors, SideColors];
  errors: ErrorColumns | null;
  /** A model was edited since the values were compared. */
  stale: boolean;
}

/** A model that the view can be compared with. */
export interface Counterpart {
  id: string;
  kind: "state" | "model" | "file";
  title: string;
  about: string;
}

/** The models that the view can be compared with. */
export interface CounterpartList {
  counterparts: Counterpart[];
}

/** A part of two nodes: what it is in each, "" where one lacks it. */
export interface PairedRow {
  part: string;
  a: string;
  b: string;
  differs: boolean;
  /** The distance of the stored numbers. */
  weights: string;
}

/** Two nodes side by side. */
export interface PairedNodes {
  rows: PairedRow[];
}

/** Parameters and answer of each method. */
export interface Pairs {
  /** The differences now; `again`: values are compared anew. */
  pair: [{ again: boolean }, PairInfo];
  /** A value of the first model that was compared: "a", "b", or their "difference". */
  paired_tensor: [
    { value: number; of: string; rows?: number | null; columns?: number | null; at?: number[] | null; top?: number | null; left?: number | null; height?: number | null; width?: number | null; pixels?: number | null },
    TensorPart,
  ];
  /** A node of each model, part by part. */
  paired_nodes: [{ a?: number | null; b?: number | null }, PairedNodes];
  /** Runs both models on inputs of the first; `local`: each node on those of its partner too. */
  compare_values: [
    { local: boolean; seed?: number | null; inputs?: Record<string, GivenInput> | null; sizes?: Record<string, number> | null; deadline?: number | null },
    PairInfo,
  ];
  /** Ends the runs of `compare_values`. */
  stop_comparing: [Record<string, never>, Stopped];
  counterparts: [Record<string, never>, CounterpartList];
  /** Shows the view's model and another side by side, in the place of the view. */
  compare: [{ counterpart?: string | null; file?: string | null }, Nothing];
}

export const PAIRS: Record<keyof Pairs, MethodTraits> = {
  pair: { repeatable: true, long: true, recorded: "" },
  paired_tensor: { repeatable: true, long: true },
  paired_nodes: { repeatable: true, long: true },
  compare_values: { long: true },
  stop_comparing: {},
  counterparts: { repeatable: true, long: true },
  compare: { long: true },
};
