// Written by `python -m tests.support.twin` from onnxlab/notebook/protocol/schema.py: change that, and run it again.

/** JSON has neither NaN nor infinities, so the kernel writes them as these words. */
export type WireNumber = number | "nan" | "inf" | "-inf";

/** An integer; those that a double cannot hold exactly (int64 beyond 2^53) travel as decimal strings. */
export type WireInt = number | string;
