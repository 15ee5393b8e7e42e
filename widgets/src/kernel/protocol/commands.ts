// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/commands.py: change that, and run it again.
/** Requests of a page that change the model, its history or its file, and their answers. */

import type { MethodTraits, Nothing } from "./words.ts";

/** The effect of an edit. */
export interface Edited {
  version: number;
  /** The edit in Python, "" where nothing changed. */
  python: string;
}

/** An edit of the history, and the same in Python. */
export interface StepInfo {
  label: string;
  python: string;
}

/** The whole history, oldest first; `position` steps are done, and the first `dropped` cannot be undone any more. */
export interface Steps {
  steps: StepInfo[];
  position: number;
  dropped: number;
}

/** The progress of an upload. */
export interface Uploaded {
  bytes: number;
}

/** A part of the model as a file; its bytes come as a buffer. */
export interface Extracted {
  name: string;
  python: string;
}

/** Unsaved work: edits, oldest first, the fields of the file that they change, and notes. */
export interface Unsaved {
  path: string;
  /** The name that a copy would get. */
  copy: string;
  edits: string[];
  fields: string[];
  /** Edits and fields that are not listed. */
  more: [number, number];
  notes: string[];
}

/** The file that was written. */
export interface Saved {
  path: string;
  bytes: number;
}

/** The number of steps that were made again. */
export interface Recovered {
  steps: number;
}

/** The model that the view shows now, and the one before. */
export interface Opened {
  title: string;
  former: string;
}

/** Methods that change the model, and say which version of it they are made on. */
export type EditCommands = "edit" | "undo" | "redo" | "go_to" | "apply_weights";

/** Parameters and answer of each method. */
export interface Commands {
  /** A row of the table of edits; `Edits` has their parameters. */
  edit: [
    { edit: string; on: string; subject: number[]; parameters: Record<string, unknown>; version?: number | null },
    Edited,
  ];
  undo: [{ version?: number | null }, Edited];
  redo: [{ version?: number | null }, Edited];
  go_to: [{ position: number; version?: number | null }, Edited];
  history: [Record<string, never>, Steps];
  /** A piece of a file, base64; an edit that takes a file names it by its id. */
  upload: [{ file: string; name: string; offset: number; data: string }, Uploaded];
  /** Shows a file that was sent, or a part of the model, in the place of the model. */
  open: [{ file?: string | null; nodes?: number[] | null }, Opened];
  /** Replaces initializers by the tensors of a file that have their names. */
  apply_weights: [{ file: string; version?: number | null }, Edited];
  /** Nodes as a model of their own, or for none the whole model; its bytes come as a buffer. */
  extract: [{ nodes: number[] }, Extracted];
  /** The changes that saving would make in the file. */
  unsaved: [Record<string, never>, Unsaved];
  /** Replaces the file, or writes a copy beside it, which the model belongs to from then on. */
  save: [{ copy?: boolean | null; version?: number | null }, Saved];
  recover: [Record<string, never>, Recovered];
  discard: [Record<string, never>, Nothing];
}

export const COMMANDS: Record<keyof Commands, MethodTraits> = {
  edit: { edits: true },
  undo: { edits: true },
  redo: { edits: true },
  go_to: { edits: true },
  history: { repeatable: true },
  upload: {},
  open: { long: true },
  apply_weights: { edits: true },
  extract: {},
  unsaved: { repeatable: true },
  save: {},
  recover: {},
  discard: {},
};
