// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/runs.py: change that, and run it again.
/** Runs that a page asks for, and their results: numbers, tensors, colors. */

import type { Statistics, TensorPart } from "./records.ts";
import type { MethodTraits, Nothing, WireInt, WireNumber } from "./words.ts";

/** The source of an input of a run: `text` holds numbers or JSON, `file` is the id of an upload. */
export interface GivenInput {
  how: "random" | "zeros" | "ones" | "last" | "text" | "file";
  text?: string;
  file?: string;
}

/** The result of a run. */
export interface RunResult {
  run: number;
  seconds: number;
  values: Statistics[];
}

/** The time of each node in the fastest of some runs, in columns; `provider` is a place in `providers`, or -1. */
export interface ProfileTable {
  seconds: number;
  runs: number;
  nodes: number[];
  ms: number[];
  flops: WireInt[];
  /** Bytes read and written. */
  moved: WireInt[];
  /** Milliseconds that the machine needs at least, by its measured roofline. */
  least: number[];
  /** Whether that is for the arithmetic; else it is for the memory. */
  arithmetic: boolean[];
  providers: string[];
  provider: number[];
}

/** The values that are pinned. */
export interface Pinned {
  pinned: number[];
}

/** A box of a detector: left, top, right, bottom as shares of the image; class -1: none is told. */
export interface FoundBox {
  corners: WireNumber[];
  score: WireNumber;
  label: number;
}

/** The boxes of a detector, the highest scores first. */
export interface FoundBoxes {
  /** The input that they lie on. */
  image: number;
  /** The layout in which the numbers were read. */
  layout: string;
  /** The other layouts in which they may be read. */
  layouts: string[];
  /** All of them, sent or not. */
  count: number;
  boxes: FoundBox[];
}

/** Whether there was a run to stop. */
export interface Stopped {
  stopped: boolean;
}

/** Parameters and answer of each method. */
export interface Runs {
  run: [
    { nodes?: number[] | null; seed?: number | null; inputs?: Record<string, GivenInput> | null; sizes?: Record<string, number> | null; deadline?: number | null },
    RunResult,
  ];
  stop: [{ run: number }, Stopped];
  /** Runs the model node by node and colors the boxes by time. */
  profile: [Record<string, never>, ProfileTable];
  overlay: [{ by?: string | null }, Nothing];
  tensor: [
    { value: number; rows?: number | null; columns?: number | null; at?: number[] | null; top?: number | null; left?: number | null; height?: number | null; width?: number | null; pixels?: number | null; picture?: string | null },
    TensorPart,
  ];
  /** Boxes in the output of a detector. */
  boxes: [{ value: number; item?: number | null; layout?: string | null }, FoundBoxes];
  /** A value stays what it was in the last run. */
  pin: [{ value: number; on: boolean }, Pinned];
}

export const RUNS: Record<keyof Runs, MethodTraits> = {
  run: { long: true },
  stop: {},
  profile: { long: true },
  overlay: { long: true },
  tensor: { repeatable: true },
  boxes: { repeatable: true },
  pin: {},
};
