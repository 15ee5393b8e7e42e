"""Convert a model to another version of ai.onnx: only the nodes whose operators changed between the two."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnxlab import schemas
from onnxlab.errors import EditError, LoadError
from onnxlab.graph.edit.changes import Change, InsertNode, SetAttribute, SetField, SetInputs, SetOutputs
from onnxlab.graph.edit.merging import raise_ir_version
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import cast_constant_to_initializer, is_constant
from onnxlab.graph.edits.extraction import Declaration
from onnxlab.graph.edits.metadata import import_opset
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.opsets import Found, converted, is_written_with_bodies, since
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import GRAPH_KINDS, NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.renaming import Renaming, nodes_inside

Known = Callable[[int], "np.ndarray[Any, Any] | None"]
"""The elements of a value id, where they are known without running the model."""

_CASTS_TO_INTEGERS = 6
"""The first version whose Cast onnxruntime has: an integer that stands in a file cannot be made by one before."""

SMALL = 1024
"""Most bytes of an input whose data a conversion gets: axes, sizes, bounds; never weights."""


@recorded
def convert_opset(
    graph: ModelGraph, version: int, declaration: Declaration | None = None, known: Known | None = None
) -> int:
    """Convert the model, its bodies and its functions to another version of ai.onnx; returns how many nodes changed.

    Nodes whose operators did not change stay as they are, to the byte. Converted nodes keep their names, documentation
    and metadata; the names of additional nodes derive from theirs. Only the ai.onnx domain is converted.

    Args:
        declaration: returns the declaration of a value id; default: those of the model.
        known: returns elements of a value id that are known without running the model.

    Raises:
        EditError: there is no such version, or nodes cannot be expressed in it; the message lists them with reasons.
    """
    newest = schemas.latest_opset("")
    if not 1 <= version <= newest:
        raise EditError(f"there are versions 1 to {newest} of ai.onnx, so a model cannot be converted to {version!r}")
    roots: list[Scope] = [graph.main, *(graph.scopes[function_id] for function_id in graph.index.function_ids)]
    declaration = declaration or (lambda vid: graph.values[vid].info)
    before, changed, reached = set(graph.nodes), set[int](), 0
    with graph.edit() as edit:
        for stop in [*_stops(graph, roots, declaration, version), version]:
            imports = {root.id: graph.opset_version("", root) for root in roots}
            # operators of versions that no schema is of are those of the newest
            old = {root: min(imported, newest) for root, imported in imports.items() if imported is not None}
            if stop != version:
                old = {root: imported for root, imported in old.items() if imported > stop}
            work = _Conversion(graph, declaration, known or (lambda _: None), stop)
            plan, refused = work.plan(old)
            if refused:
                raise EditError(_refusal(refused, version, reached))
            for root in roots:
                if root.id in old and imports[root.id] != stop:
                    import_opset(graph, edit, "", stop, root)
            changed.update(node.id for node, nodes in plan if _replace(graph, node, nodes))
            reached = stop
        for node in [*graph.nodes.values()] if version < _CASTS_TO_INTEGERS else ():
            if node.id not in before or node.id in changed:
                cast_constant_to_initializer(graph, node)
        raise_ir_version(graph, _ir_version(version))
    return len(changed & before)


def _refusal(refused: list[str], version: int, reached: int) -> str:
    more = f" … and {len(refused) - 5} more." if len(refused) > 5 else ""
    number = "1 node" if len(refused) == 1 else f"{len(refused)} nodes"
    return (
        f"{number} cannot be converted to ai.onnx {version}: {' '.join(refused[:5])}{more} "
        f"Replace them, or choose another version{f', at first {reached}' if reached else ''}."
    )


def _stops(graph: ModelGraph, roots: Iterable[Scope], declaration: Declaration, version: int) -> list[int]:
    """Versions to stop at on the way down: where a node is written out with bodies, whose nodes then have a turn."""
    newest = schemas.latest_opset("")
    imports = {root.id: graph.opset_version("", root) for root in roots}
    stops: set[int] = set()
    for node in graph.nodes.values():
        current = imports.get(graph.root(graph.scopes[node.scope]).id)
        if current is None or current <= version or node.domain:
            continue
        current = first = min(current, newest)
        while schemas.find("", node.op_type, first) is not None:
            first = since(node.proto, first) - 1
        if version > first or first >= current:
            continue
        known = {graph.values[vid].name: info.type for vid in node.inputs if vid and (info := declaration(vid))}
        if is_written_with_bodies(node.proto, first + 1, known):
            stops |= {stop for stop in (first + 1, first) if version < stop < current}
    return sorted(stops, reverse=True)


def _ir_version(version: int) -> int:
    return helper.find_min_ir_version_for([onnx.OperatorSetIdProto(version=version)], ignore_unknown=True)


@dataclass(frozen=True, slots=True)
class _Question:
    """The question that decides a conversion: the node under short names of its own, and its values' facts."""

    node: onnx.NodeProto
    types: dict[str, onnx.TypeProto]
    constants: list[onnx.TensorProto]
    old: int
    unread: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[int, bytes]:
        """The part that is equal for nodes that do the same to the same."""
        messages = [self.node, *self.types.values(), *self.constants]
        data = [message.SerializeToString(deterministic=True) for message in messages]
        return self.old, b"".join(
            len(part).to_bytes(8) + part for part in [*data, *map(str.encode, (*self.types, "", *self.unread))]
        )

    def numbered(self, number: int) -> "_Question":
        """The same under names that no other question has."""
        names = {name: f"{number}.{name}" for name in (*self.node.input, *self.node.output) if name}
        constants = []
        for tensor in self.constants:
            constants.append(onnx.TensorProto())
            constants[-1].CopyFrom(tensor)
            constants[-1].name = f"{number}.{tensor.name}"
        node = Renaming(names).node(self.node)
        types = {f"{number}.{name}": proto_type for name, proto_type in self.types.items()}
        return _Question(node, types, constants, self.old, tuple(names[name] for name in self.unread))


class _Conversion:
    """The converted nodes of a model. Nodes that do the same to the same are converted once."""

    def __init__(self, graph: ModelGraph, declaration: Declaration, known: Known, version: int) -> None:
        self._graph = graph
        self._declaration = declaration
        self._known = known
        self._version = version

    def plan(self, versions: dict[int, int]) -> tuple[list[tuple[NodeRecord, list[onnx.NodeProto]]], list[str]]:
        """(each node that changes with those that come in its place, under their own names; why others cannot)."""
        questions: dict[tuple[int, bytes], _Question] = {}
        pending: list[tuple[NodeRecord, tuple[int, bytes], dict[str, str]]] = []
        refused: list[str] = []
        for node in self._graph.index.in_file_order():
            old = versions.get(self._graph.root(self._graph.scopes[node.scope]).id)
            if node.domain or old is None:
                continue
            if since(node.proto, old) not in (0, since(node.proto, self._version)):
                if not any(node.outputs):
                    refused.append(f"{self._graph.label(node)} ({node.op_type}): it has no output; remove it first.")
                    continue
                question, names = self._question(node, old)
                questions.setdefault(question.key, question)
                pending.append((node, question.key, names))
        answers = self._answers(questions)
        plan = []
        for node, key, names in pending:
            number, parts = answers[key]
            if not isinstance(parts, str) and (inner := self._unconverted(node, parts, key[0])):
                parts = f"it becomes {parts[-1].op_type} with {inner} inside, which {self._version} says otherwise"
            if isinstance(parts, str):
                refused.append(f"{self._graph.label(node)} ({node.op_type}): {parts}.")
            else:
                full_names = {f"{number}.{short}": name for short, name in names.items()}
                plan.append((node, _named(self._graph, node, parts, full_names)))
        return plan, refused

    def _unconverted(self, node: NodeRecord, parts: Sequence[onnx.NodeProto], old: int) -> str:
        """An operator in new bodies that another version has otherwise; bodies that the node keeps have a turn."""
        for part in parts:
            for inner in nodes_inside([part]) if part.op_type != node.op_type else ():
                if inner is not part and not inner.domain and since(inner, old) != since(inner, self._version):
                    return inner.op_type
        return ""

    def _answers(self, questions: dict[tuple[int, bytes], _Question]) -> dict[tuple[int, bytes], tuple[int, Found]]:
        """By key the number that is in the names of the nodes that each question's node becomes, and these."""
        answers: dict[tuple[int, bytes], tuple[int, Found]] = {}
        for old in {key[0] for key in questions}:
            keys = [key for key in questions if key[0] == old]
            numbered = [questions[key].numbered(number) for number, key in enumerate(keys)]
            types = {name: declared for question in numbered for name, declared in question.types.items()}
            constants = [tensor for question in numbered for tensor in question.constants]
            unread = [name for question in numbered for name in question.unread]
            results = converted([question.node for question in numbered], types, constants, old, self._version, unread)
            answers.update(zip(keys, enumerate(results), strict=True))
        return answers

    def _question(self, node: NodeRecord, old: int) -> tuple[_Question, dict[str, str]]:
        """A node's question, and what the short names in it stand for."""
        shown, names = self._canonical(node)
        values = [self._graph.values[vid] for vid in node.outputs if vid]
        idle = {value.name for value in values if not (value.uses or value.is_output)}
        unread = tuple(short for short, name in names.items() if name in idle)
        return _Question(shown, *self._surroundings(node, names), old, unread), names

    def _canonical(self, node: NodeRecord) -> tuple[onnx.NodeProto, dict[str, str]]:
        """The node with its values called after their slots, and what these names stand for."""
        shown = onnx.NodeProto(op_type=node.op_type)
        called: dict[str, str] = {}
        for slot, name in enumerate(node.proto.input):
            shown.input.append(called.setdefault(name, f"i{slot}") if name else "")
        for slot, name in enumerate(node.proto.output):
            shown.output.append(f"o{slot}" if name else "")
            called[name] = f"o{slot}"
        shown.attribute.extend(attribute for attribute in node.proto.attribute)
        return shown, {short: name for name, short in called.items() if name}

    def _surroundings(
        self, node: NodeRecord, names: dict[str, str]
    ) -> tuple[dict[str, onnx.TypeProto], list[onnx.TensorProto]]:
        """Types of a node's values by their short names, and the data of its small constant inputs."""
        values = {self._graph.values[vid].name: vid for vid in (*node.inputs, *node.outputs) if vid}
        types, constants = {}, []
        for short, name in names.items():
            if (info := self._declaration(values[name])) is not None and info.HasField("type"):
                types[short] = info.type
            if short[0] == "i" and (array := self._constant(self._graph.values[values[name]])) is not None:
                constants.append(tensors.from_array(array, short))
        return types, constants

    def _constant(self, value: ValueRecord) -> "np.ndarray[Any, Any] | None":
        stored = value.initializer
        try:
            if isinstance(stored, onnx.TensorProto) and not value.is_input:
                return self._graph.array(value.id) if _is_small(stored) else None
            if value.producer and is_constant(maker := self._graph.nodes[value.producer[0]]):
                for attribute in maker.proto.attribute:
                    if attribute.name == "value" and not attribute.ref_attr_name and _is_small(attribute.t):
                        return tensors.to_array(attribute.t, self._graph.base_dir)
        except LoadError:  # data that does not fit its type and shape, or lies in a file that is not there
            return None
        return self._known(value.id)


def _is_small(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type != onnx.TensorProto.STRING and tensors.nbytes(tensor) <= SMALL


def _named(
    graph: ModelGraph, node: NodeRecord, parts: Sequence[onnx.NodeProto], names: dict[str, str]
) -> list[onnx.NodeProto]:
    """Converted nodes with the model's own names, and fresh ones for what came in between."""
    scope = graph.scopes[node.scope]
    fresh, stem = FreshNames(graph, scope), node.name or next(filter(None, node.proto.output), node.op_type)
    new_names = dict(names)
    for part in parts:
        for name in part.output:
            if name and name not in new_names:
                new_names[name] = fresh.value(f"{stem}/{part.op_type}")
    renaming = Renaming(new_names)
    return [renaming.node(part) for part in parts]


def _replace(graph: ModelGraph, node: NodeRecord, parts: Sequence[onnx.NodeProto]) -> bool:
    """Put what a node became in its place; the part of it that is the node itself is changed where it stands."""
    main = _itself(node, parts)
    changes = list(_differences(node, parts[main]))
    scope = graph.scopes[node.scope]
    fresh, position = FreshNames(graph, scope), scope.position(node)
    for number, part in enumerate(parts):
        if number != main:
            part.name = fresh.node(f"{node.name}/{part.op_type}") if node.name else ""
            changes.append(InsertNode(scope.id, position + number, part))
    graph.apply(*changes)
    return bool(changes)


def _itself(node: NodeRecord, parts: Sequence[onnx.NodeProto]) -> int:
    """The part that replaces the node itself: of its operator, else one that computes an output of it, or the last."""
    alike = [number for number, part in enumerate(parts) if part.op_type == node.op_type]
    outputs = set(node.proto.output)
    makers = [number for number, part in enumerate(parts) if outputs.intersection(part.output)]
    return (alike or makers or [len(parts) - 1])[0]  # a damaged node may have no output


def _differences(node: NodeRecord, target: onnx.NodeProto) -> Sequence[Change]:
    """The changes that make a node say what another one says."""
    changes: list[Change] = []
    if target.op_type != node.op_type:
        changes.append(SetField(("node", node.id), "op_type", target.op_type))
    if list(target.input) != list(node.proto.input):
        changes.append(SetInputs(node.id, tuple(target.input)))
    if list(target.output) != list(node.proto.output):
        changes.append(SetOutputs(node.id, tuple(target.output)))
    before = {attribute.name: attribute for attribute in node.proto.attribute}
    after = {attribute.name: attribute for attribute in target.attribute}
    changes += [SetAttribute(node.id, name, None) for name in before if name not in after]
    for name, attribute in after.items():
        if name in before and attribute.type in GRAPH_KINDS and target.op_type == node.op_type:
            continue  # the nodes of a body have their own turn
        if name not in before or not _says_the_same(before[name], attribute):
            changes.append(SetAttribute(node.id, name, attribute))
    return changes


def _says_the_same(attribute: onnx.AttributeProto, other: onnx.AttributeProto) -> bool:
    """Whether two attributes hold the same; the converter drops documentation and writes tensors anew."""
    if attribute.type == onnx.AttributeProto.TENSOR == other.type:
        try:
            return tensors.from_array(tensors.to_array(attribute.t)) == tensors.from_array(tensors.to_array(other.t))
        except LoadError:
            return attribute.t == other.t
    bare = onnx.AttributeProto()
    bare.CopyFrom(attribute)
    bare.ClearField("doc_string")
    return bare == other
