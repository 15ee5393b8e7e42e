"""The words of each kernel's records, by name: what the planner writes and the kernel reads.

Numba is not imported here nor by anything that plans, so that finding out what a region takes costs little.
"""

from __future__ import annotations

WORDS = 32
"""int64 words of a record; the first two are the address of the code and the number of units."""

CALL = ("table", "threads", "shared", "scratch", "stop", "repeats", "moves", "moved", "condition", "done")
"""Words that a call of the interpreter begins with: four addresses, and how many threads call with the same `shared`.

`shared` is zero when the first of them begins, `scratch` is each thread's own, and once the word at `stop` is not 0, no
more work is done. One thread alone may ask for `repeats`, which are 0 in other calls: after each, `moved` moves are
made, which are rows of MOVE at `moves`, and the byte at `condition`, where there is one, says whether to go on; `done`
takes their number.
"""

MOVE = ("nbytes", "target", "source")
"""Words of a move: bytes that are copied; of none, the word at `target` grows by `source`."""

COPY_DIMS = 6

TILE = 512
"""Elements of a register of the elementwise machine."""

REGISTERS = 24
OPERAND_WORDS = 8
FLOAT, BOOL, HALF, SHORT, BYTE, UBYTE, INT, BRAIN = range(8)
"""Kinds of elements in memory: float32, bool, float16, int16, int8, uint8, int32, bfloat16."""

QUAD_ROWS = 12
"""Rows of the largest tile of quads."""

LSTM, GRU, RNN = range(3)
ACTIVATIONS = (
    "sigmoid", "tanh", "relu", "softsign", "softplus", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh",
    "hardsigmoid", "elu",
)  # fmt: skip
"""Of recurrent layers, in the order of their codes."""

_GEMM = (
    "kernel", "units", "x", "offsets", "tap_bytes", "taps", "length", "weights", "bias", "y", "places", "residual",
    "sources", "low", "high", "rows", "columns", "row_block", "panel_block", "row_blocks", "panel_blocks", "batches",
    "zeros",
)  # fmt: skip
_GEMV = (
    "kernel", "units", "x", "weights", "bias", "y", "residual", "low", "high", "length", "columns", "block",
)  # fmt: skip
_SCALED = (*_GEMM, "kind", "scale", "shift", "factor")
_DOT = (*_SCALED, "narrow")
_RANGE = ("kernel", "units", "x", "count", "chunk", "extents", "found", "chunks", "y")
_RECURRENT = (
    "kernel", "units", "projected", "p_step", "p_row", "weights", "scales", "h0", "c0", "y", "y_step", "y_direction",
    "y_row", "h_last", "c_last", "lengths", "first", "last", "steps", "batch", "rows", "hidden", "direction", "bias",
    "peepholes", "functions", "kind", "flag", "clip", "table", "work", "work_bytes",
)  # fmt: skip
_FOREST = (
    "kernel", "units", "x", "x_row", "rows", "unit_rows", "nodes", "roots", "trees", "votes", "voted", "targets", "y",
    "choices", "names", "threshold", "base", "divisor", "aggregate", "pair", "always", "number",
    "plain", "full",
)  # fmt: skip
_MACHINE = (
    "kernel", "units", "x", "x_row", "rows", "unit_rows", "features", "vectors", "padded", "function", "parameters",
    "weights", "starts", "classes", "rho", "sigmoids", "choices", "names", "y", "y_row", "kind",
)  # fmt: skip
_TEXTS = (
    "kernel", "units", "texts", "ends", "rows", "delimiter", "delimiter_bytes", "classes", "least", "slots", "mask",
    "letters", "otherwise", "filler", "unknown", "tree", "levels", "shortest", "skip", "numbers", "counts", "y",
    "width", "once", "weights", "single",
)  # fmt: skip
_LOW_BITS = (
    "kernel", "units", "x", "offsets", "places", "y", "rows", "columns", "depth", "weights", "scales", "zeros", "block",
    "blocks", "nibbles", "unit_panels", "bias",
)  # fmt: skip
_COPYING = (
    "kernel", "units", "source", "target", "item",
    *(f"{prefix}{dim}" for dim in range(COPY_DIMS) for prefix in ("size", "from", "to")),
)  # fmt: skip
_ELEMENTWISE = (
    "kernel", "units", "target", "target_row", "program", "length", "operands", "operand_count", "rows", "columns",
    "size1", "size2", "to0", "to1", "to2", "tile_rows", "tile_columns", "row_items", "column_items", "unit_items",
    "items", "kind",
)  # fmt: skip
_WINDOWS = (
    "kernel", "units", "x", "offsets", "tap_bytes", "taps", "pixels", "channels", "y", "places", "weights", "bias",
    "counts", "low", "high", "unit_pixels", "zeros",
)  # fmt: skip
_ROWS = (
    "kernel", "units", "x", "y", "rows", "length", "x_row", "y_row", "scale", "bias", "epsilon", "divisor", "mode",
    "unit_rows", "residual", "residual_row", "columns", "step",
)  # fmt: skip

_WINOGRAD = (
    "kernel", "units", "image", "planes", "plane_bytes", "channels", "height", "width", "tiles_down", "tiles_across",
    "row", "pixel", "top", "left", "tiles", "unit_tiles", "image_bytes", "bias", "residual", "residual_bytes",
    "residual_row", "residual_pixel", "low", "high", "wild", "patches", "patch_bytes", "inner", "taps", "made_height",
    "made_width", "edge",
)  # fmt: skip
_ATTENTION = (
    "kernel", "units", "q", "q_offsets", "keys", "values", "y", "places", "mask", "mask_row", "rows", "total", "depth",
    "width", "row_block", "row_blocks", "batches", "scale", "cap", "left", "right", "empty", "score_row",
    "score_places", "result_row", "result_places", "sinks",
)  # fmt: skip
_GATHER = (
    "kernel", "units", "source", "target", "outer", "count", "source_outer", "target_outer", "source_step",
    "target_step", "size", "indices", "wide", "inner", "fault", "unit",
)  # fmt: skip
_SCATTER = (
    "kernel", "units", "target", "rows", "parts", "sizes", "steps", "indices", "wide", "places", "updates", "inner",
    "item", "reduction", "fault",
)  # fmt: skip
_ORDER = (
    "kernel", "units", "x", "outer", "size", "inner", "outer_bytes", "step", "inner_bytes", "largest", "last", "count",
    "places", "y", "unit",
)  # fmt: skip
_INTEGERS = (
    "kernel", "units", "a", "b", "y", "a_step", "b_step", "a_kind", "b_kind", "y_kind", "operation", "count", "unit",
    "c", "c_step", "fault",
)  # fmt: skip
_RESAMPLE = (
    "kernel", "units", "source", "target", "outer", "count", "source_outer", "target_outer", "target_step", "taps",
    "offsets", "weights", "columns", "unit",
)  # fmt: skip

FIELDS = {
    "gemm": _GEMM,
    "gemv": _GEMV,
    "dot": _DOT,
    "depthwise_dot": _DOT,
    "quad_dot": (*_SCALED, "sums", "room"),
    "recurrent": _RECURRENT,
    "forest": _FOREST,
    "choose": _FOREST,
    "vector_machine": _MACHINE,
    "text_counts": _TEXTS,
    "low_bits": _LOW_BITS,
    "extent": _RANGE,
    "byte_range": _RANGE,
    "to_levels": _RANGE,
    "copy": _COPYING,
    "clear": _COPYING,
    "elementwise": _ELEMENTWISE,
    "depthwise": _WINDOWS,
    "max_pool": _WINDOWS,
    "average_pool": _WINDOWS,
    "softmax": _ROWS,
    "norm": _ROWS,
    "reduce_rows": _ROWS,
    "reduce_columns": _ROWS,
    "winograd_input": _WINOGRAD,
    "winograd_output": _WINOGRAD,
    "attention": _ATTENTION,
    "gather": _GATHER,
    "resample": _RESAMPLE,
    "scatter": _SCATTER,
    "arg": _ORDER,
    "top": _ORDER,
    "integers": _INTEGERS,
}

MODULES = {
    "gemm": "gemm",
    "gemv": "gemv",
    "dot": "dot",
    "depthwise_dot": "dot",
    "quad_dot": "dot_u8s8",
    "recurrent": "recurrent",
    "forest": "trees",
    "choose": "trees",
    "vector_machine": "vector_machines",
    "text_counts": "texts",
    "low_bits": "low_bits",
    "extent": "ranges",
    "byte_range": "ranges",
    "to_levels": "ranges",
    "copy": "copies",
    "clear": "copies",
    "elementwise": "elementwise",
    "depthwise": "windows",
    "max_pool": "windows",
    "average_pool": "windows",
    "softmax": "rows",
    "norm": "rows",
    "reduce_rows": "rows",
    "reduce_columns": "rows",
    "winograd_input": "winograd",
    "winograd_output": "winograd",
    "attention": "attention",
    "gather": "gather",
    "resample": "gather",
    "scatter": "gather",
    "arg": "rows",
    "top": "rows",
    "integers": "integers",
    "tally": "tally",
}
"""The module of `kernels` that a kernel is in."""
INTERPRETER = "interpret"
"""The entry that runs records: the one that is no kernel."""


def module_of(name: str) -> str:
    """The module of `kernels` that a kernel, or the interpreter, is in."""
    return "interpreter" if name == INTERPRETER else MODULES[name]
