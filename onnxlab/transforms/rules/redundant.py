"""Rules of nodes that repeat or prepare what the next one can do itself."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from onnxlab.graph.edit.changes import SetInputs
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rewriting import Rewriting
from onnxlab.transforms.rules.rule import AnyRule, Procedure, Rule

_AGAIN: Final = ("Relu", "Abs", "Ceil", "Floor", "Round", "Sign")
_MOVES: Final = ("Expand", "Tile", "Slice", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity", "Gather")


def _keeps_shape(match: Match) -> bool:
    shape = match.shape("x")
    return shape is not None and shape == match.shape("result")


def _joined_axes(match: Match) -> "Mapping[str, Any] | str":
    """The axes of one Unsqueeze in place of two."""
    inner, outer, rank = match.array("a"), match.array("b"), match.rank("x")
    if inner is None or outer is None or rank is None:
        return "the rank of x is not known"
    middle = rank + inner.size
    first = {int(axis) % middle for axis in inner.reshape(-1)}
    last = {int(axis) % (middle + outer.size) for axis in outer.reshape(-1)}
    remaining = [axis for axis in range(middle + outer.size) if axis not in last]
    return {"c": np.array(sorted(last | {remaining[axis] for axis in first}), np.int64)}


def _pads(match: Match) -> "Mapping[str, Any] | str":
    """The pads of a Conv that does what a Pad before it did."""
    conv, pad = match.nodes[0], match.nodes[1]
    rank = match.rank("x")
    padding = match.attributes.get("p") or (None if match.array("p") is None else match.array("p").tolist())  # type: ignore[union-attr]
    fill = match.array("f") if "f" in match.values else match.attributes.get("f")
    if rank is None or padding is None or len(padding) != 2 * rank:
        return "the rank of x is not known"
    if fill is not None and np.any(np.asarray(fill) != 0):
        return f"{match.rewriting.graph.label(pad)} pads with {np.asarray(fill).reshape(-1)[:1].tolist()}, not 0"
    begins, ends = padding[:rank], padding[rank:]
    if any(begins[:2]) or any(ends[:2]) or min(padding) < 0:
        return "it pads batch or channels, or takes something away"
    if match.attribute(conv, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return "the Conv pads by itself"
    conv_pads = match.attribute(conv, "pads") or [0] * (2 * (rank - 2))
    return {"pads": [a + b for a, b in zip(conv_pads, [*begins[2:], *ends[2:]], strict=True)]}


def _drop_zero_states(rewriting: Rewriting, node: NodeRecord) -> str:
    """Leave out initial states of a recurrent layer that are zeros, which is their default."""
    slots = [slot for slot in (5, 6) if slot < len(node.inputs) and node.inputs[slot]]
    if node.op_type != "LSTM":
        slots = [slot for slot in slots if slot == 5]
    zeros = [slot for slot in slots if _is_zeros(rewriting, rewriting.input(node, slot))]
    if not zeros:
        return "no initial state is known to be zeros"
    place, label = rewriting.place(node), rewriting.graph.label(node)
    if not rewriting.allows("zero_states", place):
        return "it was refused before"
    names = ["" if slot in zeros else name for slot, name in enumerate(node.proto.input)]
    while names and not names[-1]:
        names.pop()
    rewriting.graph.apply(SetInputs(node.id, tuple(names)))
    rewriting.note("zero_states", place, label, "its initial state is zeros, as without one")
    return ""


def _is_zeros(rewriting: Rewriting, value: ValueRecord | None) -> bool:
    for _ in range(16):
        if value is None:
            return False
        array = rewriting.constant(value)
        if array is not None:
            return array.dtype.kind == "f" and not array.any() and not np.signbit(array).any()
        maker = rewriting.maker(value)
        if maker is None or maker.domain:
            return False
        if maker.op_type == "ConstantOfShape":
            stored = [attribute.t for attribute in maker.proto.attribute if attribute.name == "value"]
            return not stored or not tensors.to_array(stored[0], None).any()
        if maker.op_type not in _MOVES:
            return False
        value = rewriting.input(maker, 0)
    return False


def _flipped(match: Match) -> Mapping[str, Any]:
    return {"flipped": 0 if match.attributes["t"] else 1}


_SHAPE: Final = {"it makes x larger, or a shape is not known": _keeps_shape}

RULES: Final[tuple[AnyRule, ...]] = (
    *(
        Rule(f"{op_type.lower()}_again", f"{op_type}({op_type}(x)) => {op_type}(x)",
             f"Remove the second of two {op_type} nodes in sequence.")
        for op_type in _AGAIN
    ),
    Rule("not_not", "Not(Not(x)) => x", "Remove two Not nodes in sequence."),
    Rule("neg_neg", "Neg(Neg(x)) => x", "Remove two Neg nodes in sequence."),
    Rule("and_true", "And(x, 1) => x", "Remove And with a constant that is true.", _SHAPE),
    Rule("or_false", "Or(x, 0) => x", "Remove Or with a constant that is false.", _SHAPE),
    Rule("where_true", "Where(1, x, y) => x", "Replace Where with a true condition by its first value.", _SHAPE),
    Rule("where_false", "Where(0, y, x) => x", "Replace Where with a false condition by its second value.", _SHAPE),
    Rule("concat_concat", "Concat(Concat(*a, axis=k), *b, axis=k) => Concat(*a, *b)",
         "Merge two Concat nodes along the same axis."),
    Rule("unsqueezes", "Unsqueeze(Unsqueeze(x, a:const), b:const) => Unsqueeze(x, c)",
         "Merge two Unsqueeze nodes in sequence.",
         compute=_joined_axes),
    Rule("conv_pad",
         'Conv(Pad(x, p:const, f:const?, mode="constant"), w, *rest)'
         ' or Conv(Pad(x, pads=p, value=f, mode="constant"), w, *rest)'
         ' => Conv(x, w, *rest, pads=pads, auto_pad="NOTSET")',
         "Fold a Pad with zeros into the pads of the Conv after it.", compute=_pads),
    Rule("gemm_transpose_b", "Gemm(a, Transpose(b, perm=[1, 0]), *c, transB=t) => Gemm(a, b, *c, transB=flipped)",
         "Fold a Transpose of the second matrix into transB of the Gemm after it.", compute=_flipped),
    Rule("gemm_transpose_a", "Gemm(Transpose(a, perm=[1, 0]), b, *c, transA=t) => Gemm(a, b, *c, transA=flipped)",
         "Fold a Transpose of the first matrix into transA of the Gemm after it.", compute=_flipped),
    Procedure("zero_states", "Remove initial states of LSTM, GRU and RNN that are zeros.",
              ("LSTM", "GRU", "RNN"), _drop_zero_states),
)  # fmt: skip
