// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/rewriting.py: change that, and run it again.
/** Requests of a page about rewriting: rules that apply, nodes that go and come, patterns; and applying rules. */

import type { MethodTraits, WireInt } from "./words.ts";

/** A match of a rule, and its effect on nodes. */
export interface RewritePlace {
  /** The node in whose place it is; 0: none. */
  at: number;
  label: string;
  what: string;
  /** Nodes that go. */
  going: number[];
  /** Operators of the nodes that come and stay. */
  coming: string[];
}

/** A rule or pass that applies somewhere. */
export interface RewriteInfo {
  rule: string;
  /** Key by which it is applied alone. */
  key: string;
  doc: string;
  count: number;
  places: RewritePlace[];
  /** Whether it can be applied at one place alone. */
  by_place: boolean;
}

/** The effect of optimizing or quantizing; `nodes` and bytes of tensors before and after. */
export interface Rewrites {
  rules: RewriteInfo[];
  nodes: [number, number];
  bytes: [WireInt, WireInt];
  /** Nodes and weights that quantizing leaves as they are, and why. */
  staying: string[];
}

/** The gain of a rule or pass alone: nodes and bytes less, and the verdict of running before and after. */
export interface RewriteGain {
  key: string;
  nodes: number;
  bytes: WireInt;
  /** Bytes alive at the peak of a run, by the shapes. */
  peak: WireInt;
  /** Seconds of a run, by provider. */
  seconds: Record<string, number>;
  verdict: string;
}

/** The gain of each rule alone, the most nodes first. */
export interface RewriteGains {
  gains: RewriteGain[];
}

/** The result of a rule at a node; `why` is empty where it applies. */
export interface NearMissInfo {
  rule: string;
  doc: string;
  why: string;
  /** The part of its pattern that matched, from 0 to 1. */
  progress: number;
}

/** Rules that apply at a node, or almost do, the nearest first. */
export interface NearMisses {
  rules: NearMissInfo[];
}

/** Nodes as a pattern. */
export interface PatternText {
  pattern: string;
}

/** The matches of a pattern: nodes, the outermost of each match first. */
export interface PatternPlaces {
  count: number;
  places: number[][];
}

/** The effect of a rewrite: matches that changed, what was taken back, and notes of the model that were lost. */
export interface Rewritten {
  version: number;
  python: string;
  applied: number;
  nodes: [number, number];
  bytes: [WireInt, WireInt];
  /** The verdict of running the model before and after. */
  verdict: string;
  refused: string[];
  /** Places that a rule matches and where its replacement cannot stand: why. */
  unfit: string[];
  lost: string[];
}

/** Methods that change the model, and say which version of it they are made on. */
export type EditRewriting = "rewrite";

/** Parameters and answer of each method. */
export interface Rewriting {
  /** The effect of optimizing to a level, of quantizing to a form, or of some rules: texts, or keys of rules. */
  rewrites: [{ level: string; rules: string[]; microsoft: boolean; protect?: string[] | null }, Rewrites];
  /** The gain of each rule of a level alone, measured by runs. */
  gains: [{ level: string; microsoft: boolean }, RewriteGains];
  near_misses: [{ node: number }, NearMisses];
  /** Nodes as a pattern, with constants as they are (`numbers`) or as any constant. */
  pattern: [{ nodes: number[]; numbers: boolean }, PatternText];
  pattern_places: [{ pattern: string }, PatternPlaces];
  /** Optimizes, quantizes to a form, or applies rules alone; the model is run before and after. */
  rewrite: [
    { level: string; rules: string[]; microsoft: boolean; version?: number | null; at?: number | null; protect?: string[] | null; at_most?: number | null },
    Rewritten,
  ];
}

export const REWRITING: Record<keyof Rewriting, MethodTraits> = {
  rewrites: { repeatable: true, long: true },
  gains: { repeatable: true, long: true },
  near_misses: { repeatable: true },
  pattern: { repeatable: true },
  pattern_places: { repeatable: true },
  rewrite: { long: true, edits: true },
};
