// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/watching.py: change that, and run it again.
/** Watches of a model as the page lists, adds and removes them. */

import type { MethodTraits } from "./words.ts";

export type WatchState = "holds" | "fails" | "unknown";

/** A watch and what came of it. */
export interface WatchInfo {
  /** Name of the value or node, "*" for every value. */
  name: string;
  text: string;
  state: WatchState;
  why: string;
  /** The values that fail, or the subject where none does; not all of many. */
  values: number[];
}

/** All watches, in the order in which they were added. */
export interface WatchList {
  watches: WatchInfo[];
  /** The watches of the model's file that cannot be read. */
  refused: string[];
  /** The measures that an expression may ask for. */
  measures: string[];
}

/** Parameters and answer of each method. */
export interface Watching {
  watches: [Record<string, never>, WatchList];
  /** Watches a value by an expression. */
  watch: [{ value?: number | null; text: string }, WatchList];
  /** Forgets a watch by its place. */
  unwatch: [{ place: number }, WatchList];
}

export const WATCHING: Record<keyof Watching, MethodTraits> = {
  watches: { repeatable: true },
  watch: {},
  unwatch: {},
};
