"""The values that attributes of operators are limited to, which onnx.defs says only in prose: strings and flags.

Source: https://onnx.ai/onnx/operators/, the text of each attribute.
"""

from __future__ import annotations

from typing import Final

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_POST_TRANSFORM = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_NODE_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_DIRECTION = ("forward", "reverse", "bidirectional")
_ACTIVATIONS = (
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus",
)  # fmt: skip
_REDUCTION = ("none", "add", "mul", "max", "min")
_GRID = ("linear", "nearest", "cubic")
_PAD = ("constant", "reflect", "edge", "wrap")
_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")

# (domain, operator or "*", attribute): (since_version from which it holds, allowed values), …
_CHOICES: Final[dict[tuple[str, str, str], tuple[tuple[int, tuple[str, ...]], ...]]] = {
    ("", "*", "auto_pad"): ((1, _AUTO_PAD),),
    ("", "*", "direction"): ((1, _DIRECTION),),
    ("", "*", "activations"): ((1, _ACTIVATIONS),),
    ("", "BitShift", "direction"): ((11, ("LEFT", "RIGHT")),),
    ("", "Cast", "round_mode"): ((24, ("up", "down", "nearest")),),
    ("", "CastLike", "round_mode"): ((24, ("up", "down", "nearest")),),
    ("", "CausalConvWithState", "activation"): ((27, ("none", "silu", "swish")),),
    ("", "DepthToSpace", "mode"): ((11, ("DCR", "CRD")),),
    ("", "Gelu", "approximate"): ((20, ("none", "tanh")),),
    ("", "GridSample", "mode"): ((16, ("bilinear", "nearest", "bicubic")), (20, _GRID)),
    ("", "GridSample", "padding_mode"): ((16, ("zeros", "border", "reflection")),),
    ("", "ImageDecoder", "pixel_format"): ((20, ("RGB", "BGR", "Grayscale")),),
    ("", "LinearAttention", "update_rule"): ((27, ("linear", "gated", "delta", "gated_delta")),),
    ("", "NegativeLogLikelihoodLoss", "reduction"): ((12, ("none", "sum", "mean")),),
    ("", "SoftmaxCrossEntropyLoss", "reduction"): ((12, ("none", "sum", "mean")),),
    ("", "Pad", "mode"): ((1, _PAD[:3]), (19, _PAD)),
    ("", "Resize", "mode"): ((10, ("nearest", "linear")), (11, ("nearest", "linear", "cubic"))),
    ("", "Resize", "nearest_mode"): ((11, ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),),
    ("", "Resize", "keep_aspect_ratio_policy"): ((18, ("stretch", "not_larger", "not_smaller")),),
    ("", "Resize", "coordinate_transformation_mode"): (
        (11, (*_COORDINATES, "tf_half_pixel_for_nn", "tf_crop_and_resize")),
        (13, (*_COORDINATES, "tf_crop_and_resize")),
        (19, ("half_pixel", "half_pixel_symmetric", *_COORDINATES[1:], "tf_crop_and_resize")),
    ),
    ("", "RoiAlign", "mode"): ((10, ("avg", "max")),),
    ("", "RoiAlign", "coordinate_transformation_mode"): ((16, ("half_pixel", "output_half_pixel")),),
    ("", "ScatterElements", "reduction"): ((16, _REDUCTION[:3]), (18, _REDUCTION)),
    ("", "ScatterND", "reduction"): ((16, _REDUCTION[:3]), (18, _REDUCTION)),
    ("", "SpaceToDepth", "mode"): ((28, ("DCR", "CRD")),),
    ("", "StringNormalizer", "case_change_action"): ((10, ("NONE", "LOWER", "UPPER")),),
    ("", "TensorScatter", "mode"): ((24, ("linear", "circular")),),
    ("", "TfIdfVectorizer", "mode"): ((9, ("TF", "IDF", "TFIDF")),),
    ("", "Upsample", "mode"): ((1, ("nearest", "bilinear")), (7, ("nearest", "linear"))),
    ("ai.onnx.ml", "*", "post_transform"): ((1, _POST_TRANSFORM),),
    ("ai.onnx.ml", "*", "nodes_modes"): ((1, _NODE_MODES),),
    ("ai.onnx.ml", "*", "kernel_type"): ((1, ("LINEAR", "POLY", "RBF", "SIGMOID")),),
    ("ai.onnx.ml", "CastMap", "map_form"): ((1, ("DENSE", "SPARSE")),),
    ("ai.onnx.ml", "CastMap", "cast_to"): ((1, ("TO_FLOAT", "TO_STRING", "TO_INT64")),),
    ("ai.onnx.ml", "Normalizer", "norm"): ((1, ("MAX", "L1", "L2")),),
    ("ai.onnx.ml", "TreeEnsembleRegressor", "aggregate_function"): ((1, ("AVERAGE", "SUM", "MIN", "MAX")),),
    ("ai.onnx.preview.training", "Momentum", "mode"): ((1, ("standard", "nesterov")),),
}

FLAGS: Final = frozenset((
    "align_corners", "allowzero", "antialias", "broadcast", "ceil_mode", "center_point_box", "count_include_pad",
    "detect_negative", "detect_positive", "exclude_outside", "exclusive", "fmod", "input_forget", "interleaved",
    "inverse", "is_case_sensitive", "is_causal", "is_test", "keepdims", "largest", "layout", "linear_before_reset",
    "multi_class", "new_axis", "noop_with_empty_axes", "one_class", "onesided", "output_sequence", "periodic",
    "reverse", "saturate", "select_last_index", "sorted", "spatial", "storage_order", "training_mode", "transA",
    "transB", "upper", "zeros",
))  # fmt: skip
"""Names of those integer attributes of ONNX's own operators that mean yes or no, 1 or 0."""


def find(domain: str, op_type: str, attribute: str, since_version: int) -> tuple[str, ...] | None:
    """Return the values that a string attribute may have in this version, or None where any text will do."""
    rows = _CHOICES.get((domain, op_type, attribute)) or _CHOICES.get((domain, "*", attribute), ())
    return next((allowed for since, allowed in reversed(rows) if since <= since_version), None)
