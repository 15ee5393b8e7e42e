// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/schema.py: change that, and run it again.

export const PROTOCOL = 1;

/** JSON has neither NaN nor infinities, so the kernel writes them as these words. */
export type WireNumber = number | "nan" | "inf" | "-inf";

/** An integer; those that a double cannot hold exactly (int64 beyond 2^53) travel as decimal strings. */
export type WireInt = number | string;

/** An answer that says only that it was done. */
export type Nothing = Record<string, never>;

/** The traits of a method. */
export interface MethodTraits {
  /** Asking twice does no harm. */
  repeatable?: true;
  /** Whether it may take long. */
  long?: true;
  /** Whether it changes the model. */
  edits?: true;
  /** The parameter by which a page without a kernel holds the answers, "": it holds one. */
  recorded?: string;
}
