"""The versions of ai.onnx in which operators got another meaning or other words, with what writes them anew.

These come before onnx's adapters, which leave such nodes as they are, or refuse more than needs be.
"""

from collections.abc import Callable
from dataclasses import dataclass

import onnx

from onnxlab.graph.edits.opsets import broadcasting, resizing, rewordings
from onnxlab.graph.edits.opsets.facts import Facts, Rewritten

Write = Callable[[onnx.NodeProto, Facts], Rewritten]


@dataclass(frozen=True, slots=True)
class Raise:
    """The way in which a node of the version `takes` becomes nodes of the version `gives`."""

    takes: int
    gives: int
    write: Write


RAISED: dict[str, list[Raise]] = {
    **{op_type: [Raise(6, 7, broadcasting.without_broadcast)] for op_type in broadcasting.BROADCASTING},
    "Cast": [Raise(5, 6, rewordings.cast_6)],
    "Dropout": [Raise(9, 10, rewordings.without_idle_mask), Raise(11, 12, rewordings.dropout_12)],
    "Gemm": [Raise(6, 7, broadcasting.gemm_7)],
    "GroupNormalization": [Raise(20, 21, rewordings.group_normalization_21)],
    "PRelu": [Raise(6, 7, broadcasting.prelu_7)],
    "Resize": [Raise(10, 11, resizing.to_resize_11), Raise(12, 13, resizing.to_resize_13)],
    "RoiAlign": [Raise(15, 16, rewordings.roi_align_16)],
    "Upsample": [Raise(9, 11, resizing.to_resize_11)],
}
"""By operator, in order of versions; a version between those of a row is left to onnx."""

LOWERED: dict[tuple[str, int], Write] = {
    **{(op_type, 7): broadcasting.with_broadcast for op_type in broadcasting.BROADCASTING},
    **{(op_type, 8): broadcasting.of_one_shape for op_type in broadcasting.VARIADIC},
    ("Cast", 6): rewordings.cast_5,
    ("Constant", 9): rewordings.constant_8,
    ("Constant", 12): rewordings.constant_11,
    ("Dropout", 10): rewordings.without_idle_mask,
    ("Dropout", 12): rewordings.dropout_10,
    ("Gemm", 7): broadcasting.gemm_6,
    ("Gemm", 11): broadcasting.gemm_10,
    ("GridSample", 20): rewordings.grid_sample_16,
    ("GroupNormalization", 21): rewordings.group_normalization_18,
    ("PRelu", 7): broadcasting.prelu_6,
    ("Pad", 18): rewordings.pad_13,
    ("Reshape", 14): rewordings.reshape_13,
    ("Resize", 10): resizing.to_upsample_9,
    ("Resize", 11): resizing.to_resize_10,
    ("Resize", 13): resizing.with_all_inputs,
    ("Resize", 18): resizing.with_all_axes,
    ("RoiAlign", 16): rewordings.roi_align_10,
    ("Upsample", 9): resizing.to_upsample_8,
}
"""By operator and the version whose nodes are written in the words of the version before."""
