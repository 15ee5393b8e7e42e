"""Rules of normalizations that are written out, and of what comes before them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from onnxlab.graph.index.records import NodeRecord
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule

_SPREAD: Final = ("ReduceMean(Pow(d, 2), *_b)", "ReduceMean(Mul(d, d), *_b)")
_CENTERED: Final = "d := Sub(x:float, ReduceMean(x, *_a))"
_RMS: Final = ("ReduceMean(Pow(x:float, 2), *_b)", "ReduceMean(Mul(x:float, x), *_b)")


def _written(forms: tuple[str, ...], spreads: tuple[str, ...], tail: str) -> str:
    return " or ".join(tail.format(form.format(spread)) for form in forms for spread in spreads)


_LAYER: Final = (
    f"Div({_CENTERED}, Sqrt(Add({{}}, e:const)))",
    f"Mul({_CENTERED}, Reciprocal(Sqrt(Add({{}}, e:const))))",
)
_ROOT: Final = ("Div(x, Sqrt(Add({}, e:const)))", "Mul(x, Reciprocal(Sqrt(Add({}, e:const))))",
                "Mul(x, Div(1, Sqrt(Add({}, e:const))))")  # fmt: skip


def axes_of(match: Match, node: NodeRecord) -> list[int] | None:
    """The axes of a ReduceMean that keeps them, counted from the end; None where they are not known."""
    if not match.attribute(node, "keepdims", 1):
        return None
    axes = match.attribute(node, "axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        array = match.rewriting.constant(match.rewriting.graph.values[node.inputs[1]])
        axes = None if array is None else array.reshape(-1).tolist()
    rank = len(match.rewriting.shape(node.inputs[0]) or ())
    if not axes or not rank:
        return None
    return sorted(axis - rank if axis >= 0 else axis for axis in axes)


def _first_axis(match: Match) -> int:
    """The first axis, from the end, of the last axes that all means are along; 0 where they are along other axes."""
    means = [axes_of(match, node) for node in match.nodes if node.op_type == "ReduceMean"]
    axes = means[0]
    if axes is None or any(other != axes for other in means) or axes != list(range(-len(axes), 0)):
        return 0
    return axes[0]


def _normalized_dims(match: Match) -> tuple[Any, ...]:
    shape, axis = match.shape("x"), _first_axis(match)
    return shape[axis:] if shape is not None and axis else ()


def _fits(name: str) -> Callable[[Match], bool]:
    """A condition: a factor or summand has the dims that are normalized."""

    def holds(match: Match) -> bool:
        shape = match.shape(name)
        return shape is not None and shape == _normalized_dims(match)

    return holds


def _attributes(match: Match) -> "Mapping[str, Any] | str":
    epsilon = match.array("e")
    if epsilon is None or epsilon.size != 1:
        return "e is no single number"
    attributes: dict[str, Any] = {"axis": _first_axis(match), "epsilon": float(epsilon.reshape(()).astype(np.float64))}
    if "g" not in match.values:
        dims = _normalized_dims(match)
        x = match.values["x"]
        if not all(isinstance(dim, int) for dim in dims):
            return "the sizes that are normalized are not known"
        dtype = epsilon.dtype if match.elem_type("e") == match.rewriting.elem_type(x.id) else np.dtype(np.float32)
        attributes["one"] = np.ones(dims, dtype)
    return attributes


_LAST: Final = {"the means are not along the last axes": lambda match: _first_axis(match) != 0}
_SCALE: Final = {"g has not the sizes that are normalized": _fits("g")}
_BIAS: Final = {"b has not the sizes that are normalized": _fits("b")}
_PAIR: Final = "it is not along the last axis"


def _same_shapes(match: Match) -> bool:
    shape, other = match.shape("x"), match.shape("y")
    return shape is not None and shape == other and len(shape) == 3


RULES: Final = (
    Rule(
        "layer_normalization_bias",
        _written(_LAYER, _SPREAD, "Add(Mul({}, g:const), b:const)")
        + " => LayerNormalization(x, g, b, axis=axis, epsilon=epsilon)",
        "Fuse the nodes of a layer normalization into LayerNormalization.",
        {**_LAST, **_SCALE, **_BIAS},
        _attributes,
        "extended",
    ),
    Rule(
        "layer_normalization",
        _written(_LAYER, _SPREAD, "Mul({}, g:const)") + " => LayerNormalization(x, g, axis=axis, epsilon=epsilon)",
        "Fuse the nodes of a layer normalization without a bias into LayerNormalization.",
        {**_LAST, **_SCALE},
        _attributes,
        "extended",
    ),
    Rule(
        "layer_normalization_plain",
        _written(_LAYER, _SPREAD, "{}") + " => LayerNormalization(x, one, axis=axis, epsilon=epsilon)",
        "Fuse the nodes of a layer normalization without a scale into LayerNormalization with a scale of ones.",
        {**_LAST, "a factor follows, which is its scale": lambda match: not _scale_follows(match)},
        _attributes,
        "extended",
    ),
    Rule(
        "layer_normalization_add",
        "Add(LayerNormalization(x, g), b:const) => LayerNormalization(x, g, b)",
        "Fold a constant added to a LayerNormalization into its bias.",
        {"b has not the sizes of g": lambda match: match.shape("b") == match.shape("g") is not None},
        level="extended",
    ),
    Rule(
        "rms_normalization",
        _written(_ROOT, _RMS, "Mul({}, g:const)") + " => RMSNormalization(x, g, axis=axis, epsilon=epsilon)",
        "Fuse the nodes of an RMS normalization into RMSNormalization.",
        {**_LAST, **_SCALE},
        _attributes,
        "extended",
    ),
    Rule(
        "skip_layer_normalization_microsoft",
        "LayerNormalization(Add(x:float32|float16, y), g:const [n], b:const [n]?, axis=a, epsilon=e)"
        " => com.microsoft::SkipLayerNormalization(x, y, g, b, epsilon=e)",
        "Fuse the Add before a LayerNormalization into SkipLayerNormalization.",
        {
            "the two summands are no [batch, sequence, hidden] of one shape": _same_shapes,
            _PAIR: lambda match: match.attributes["a"] in (-1, 2),
        },
        level="extended",
    ),
)  # fmt: skip


def _scale_follows(match: Match) -> bool:
    """Whether the only reader is a Mul with a constant, which the LayerNormalization takes as its scale."""
    rewriting = match.rewriting
    value = rewriting.graph.values[match.root.outputs[0]]
    readers = [rewriting.graph.nodes[reader] for reader, _ in value.uses]
    if len(readers) != 1 or value.formal_outputs or readers[0].op_type != "Mul":
        return False
    return any(rewriting.stored(rewriting.graph.values[vid]) is not None for vid in readers[0].inputs if vid)
