"""Planted near misses: models that a rule would match but for one defect, and words that name it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.graph.query.patterns.syntax_tree import Literal, Name, Number
from onnxlab.transforms.patterns.rule_match import Match
from onnxlab.transforms.rules.rule import Rule
from tests.support.rewriting import rewriting_of


@dataclass(frozen=True)
class Defect:
    """A model with one defect.

    Attributes:
        what: the kind of defect, for messages.
        proto: the model.
        node: the value that the outermost node makes.
        words: pieces that a reason has that names the defect.
    """

    what: str
    proto: onnx.ModelProto
    node: str
    words: tuple[str, ...]


def defects(proto: onnx.ModelProto, rule: Rule) -> Iterator[Defect]:
    """Defects of a model that a rule matches, one each."""
    model = onnxlab.load(copied(proto))
    held = rewriting_of(model)
    for record in list(held.nodes()):
        if (record.op_type, record.domain) not in rule.roots:
            continue
        match = rule.find(held, record)
        if isinstance(match, Match):
            root = record.proto.output[0]
            yield from _of_nodes(proto, match, root)
            yield from _of_inputs(proto, match, root)
            yield from _of_attributes(proto, match, root)
            return


def copied(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model."""
    return onnx.ModelProto.FromString(proto.SerializeToString())


def _node(proto: onnx.ModelProto, output: str) -> onnx.NodeProto:
    return next(node for node in proto.graph.node if output in node.output)


def _of_nodes(proto: onnx.ModelProto, match: Match, root: str) -> Iterator[Defect]:
    calls = zip(match.nodes[1:], match.pattern.calls()[1:], strict=True)
    for node, call in calls:
        output = node.proto.output[0]
        other = copied(proto)
        _node(other, output).op_type = "Sinh" if len(node.inputs) == 1 else "PRelu"
        yield Defect("another operator", other, root, (f"is {_node(other, output).op_type}, not",))
        if not call.stays:
            other = copied(proto)
            other.graph.output.add(name=output)
            yield Defect("another reader", other, root, ("is read by an output",))


def _of_inputs(proto: onnx.ModelProto, match: Match, root: str) -> Iterator[Defect]:
    values = match.rewriting.graph.values
    for node, call in zip(match.nodes, match.pattern.calls(), strict=True):
        for slot, expected in enumerate(call.inputs):
            ids = [vid for vid in node.inputs if vid]
            if isinstance(expected, Number):
                constants = [vid for vid in ids if match.rewriting.stored(values[vid]) is not None]
                for vid in constants[:1]:
                    array = np.asarray(match.rewriting.constant(values[vid]))
                    if array.dtype.kind == "f":
                        changed = _with_constant(proto, values[vid].name, (array * 1.5 + 0.25).astype(array.dtype))
                        yield Defect("another number", changed, root, (f", not {expected}",))
                    yield Defect("no number", _with_input(proto, values[vid].name, array), root, ("is not known",))
            elif isinstance(expected, Name) and expected.constant and slot < len(ids):
                bound = match.values.get(expected.name)
                array = match.array(expected.name)
                if bound is not None and array is not None:
                    words = (f"{expected.name} is not constant",)
                    yield Defect("no constant", _with_input(proto, bound.name, array), root, words)


def _of_attributes(proto: onnx.ModelProto, match: Match, root: str) -> Iterator[Defect]:
    for node, call in zip(match.nodes, match.pattern.calls(), strict=True):
        for name, expected in call.attributes:
            if not isinstance(expected, Literal) or not isinstance(expected.value, int | float | list):
                continue
            other = copied(proto)
            changed = _node(other, node.proto.output[0])
            for place, attribute in reversed(list(enumerate(changed.attribute))):
                if attribute.name == name:
                    del changed.attribute[place]
            value = (
                expected.value[::-1] if isinstance(expected.value, list) else type(expected.value)(1 - expected.value)
            )
            if value != expected.value:
                changed.attribute.append(helper.make_attribute(name, value))
                yield Defect("another attribute", other, root, (f"has {name}=",))


def _with_constant(proto: onnx.ModelProto, name: str, array: np.ndarray) -> onnx.ModelProto:
    other = copied(proto)
    node = _node(other, name)
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(array)))
    return other


def _with_input(proto: onnx.ModelProto, name: str, array: np.ndarray) -> onnx.ModelProto:
    """The model with a constant as an input."""
    other = copied(proto)
    other.graph.node.remove(_node(other, name))
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    other.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    return other


def named(defect: Defect, rule: Rule) -> str:
    """The text in place of the defect, "" where it is named."""
    model = onnxlab.load(copied(defect.proto))
    reason = model.why_not(defect.node, rule)
    return "" if any(words in reason for words in defect.words) else reason or "it applies"
