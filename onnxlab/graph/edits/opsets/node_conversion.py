"""Nodes in the words of another version of ai.onnx, by onnx's version converter. Works on messages alone.

onnx converts whole models, and loses content that its own representation cannot hold. Here the converter gets single
nodes, with the known types and data of their inputs, so that the rest of a model stays as it is. To a newer version,
onnx's adapters convert a node. To an older version, onnx has few adapters: one version at a time, a node stays as it is
where onnx's conversion to the newer version would leave it unchanged, and a node whose operator is too new is replaced
by the body in the operator's schema.

A call of the converter costs 40 ms, so that many unrelated nodes are converted in one call.
"""

import re
from collections.abc import Collection, Sequence

import onnx
from onnx import numpy_helper, shape_inference, version_converter

from onnxlab.graph.edits.opsets.attribute_references import SAMPLES, refers, sample
from onnxlab.graph.edits.opsets.changes_of_meaning import LOWERED, RAISED, Raise, Write
from onnxlab.graph.edits.opsets.facts import Facts, Nodes, Rewritten, computed, constants_in
from onnxlab.graph.edits.opsets.function_bodies import needed, written_out
from onnxlab.graph.edits.opsets.node_rewrites import (
    REWRITTEN,
    as_attributes,
    crossing_problem,
    non_negative,
    with_last_axis,
)
from onnxlab.graph.edits.opsets.schema_fit import (
    Types,
    constant_tensor,
    kept_since,
    misfit,
    same,
    same_with,
    since,
    without_new,
)
from onnxlab.graph.protos.attributes import encode
from onnxlab.graph.protos.renaming import graphs_of

_IR_VERSION = 10  # any version in which an initializer need not be an input

_VERSION = re.compile(r"(of ai\.onnx |^ai\.onnx )\d+")

Found = Nodes | str
"""The nodes that replace a node, in order, or the reason why it cannot be converted."""


def converted(
    nodes: Sequence[onnx.NodeProto],
    types: Types,
    constants: Sequence[onnx.TensorProto],
    old: int,
    new: int,
    unread: Collection[str] = (),
) -> list[Found]:
    """Convert nodes of version `old` to `new`: each stays, is replaced by nodes, or cannot be converted for a reason.

    Args:
        nodes: nodes that have no value in common.
        types: types of their inputs and outputs by name, as far as they are known.
        constants: data of inputs, as tensors with the names of the inputs.
        unread: outputs that nothing reads.
    """
    facts = Facts(dict(types), {tensor.name: tensor for tensor in constants}, frozenset(unread))
    referring = [node for node in nodes if refers(node)]
    plain = [node for node in nodes if not refers(node)]
    results = dict(zip(map(id, plain), _converted(plain, facts, old, new), strict=True))
    results.update((id(node), [node]) for node in referring)
    for number in range(SAMPLES if referring else 0):
        samples = [sample(node, number) for node in referring]
        for node, probe, part in zip(referring, samples, _converted(samples, facts, old, new), strict=True):
            if isinstance(part, str) or len(part) != 1 or not same(part[0], probe, new):
                results[id(node)] = "what it becomes depends on an attribute of its function; inline the function first"
    return [results[id(node)] for node in nodes]


def _converted(nodes: Sequence[onnx.NodeProto], facts: Facts, old: int, new: int) -> list[Found]:
    batch = _Batch(nodes, facts)
    if new > old:
        batch.up(old, new)
    for version in range(old, new, -1):
        batch.step_down(version)
    return [
        _reason_for(node, part, new) if isinstance(part, str) else part
        for node, part in zip(nodes, batch.parts, strict=True)
    ]


def _reason_for(node: onnx.NodeProto, reason: str, new: int) -> str:
    """The reason of a step, in words of the version that was asked for."""
    if not since(node, new) and _VERSION.search(reason):
        return f"ai.onnx {new} has no {node.op_type}"
    return _VERSION.sub(rf"\g<1>{new}", reason)


class _Batch:
    """Nodes as converted so far, each a part of its own, with the facts of the values around them."""

    def __init__(self, nodes: Sequence[onnx.NodeProto], facts: Facts) -> None:
        self.parts: list[Found] = [[node] for node in nodes]
        self._facts = Facts(dict(facts.types), dict(facts.constants), facts.unread)
        self._types, self._constants = self._facts.types, self._facts.constants
        self._wanted = {name for node in nodes for name in node.output if name}
        self._calls = 0

    def up(self, old: int, new: int) -> None:
        """Say the nodes in a newer version: from one change of an operator's meaning to the next."""
        versions = [old] * len(self.parts)
        while any(version < new for version in versions):
            version = min(versions)
            numbers = [number for number, current in enumerate(versions) if current == version]
            changes = {number: self._next_change(number, version, new) for number in numbers}
            for target in {change.takes if change else new for change in changes.values()}:
                group = [number for number, change in changes.items() if (change.takes if change else new) == target]
                self._raise(group, version, target)
            for number, change in changes.items():
                if change is not None:
                    self._write(number, change)
                versions[number] = change.gives if change else new

    def _next_change(self, number: int, version: int, new: int) -> Raise | None:
        """The next version in which what a part's operator means has to be written anew."""
        if isinstance(part := self.parts[number], str):
            return None
        changes = [change for node in part for change in RAISED.get(node.op_type, ())]
        return min(
            (change for change in changes if version <= change.takes and change.gives <= new),
            key=lambda change: change.takes, default=None,
        )  # fmt: skip

    def _write(self, number: int, change: Raise) -> None:
        """Write the nodes of a part anew whose meaning changes."""
        if isinstance(part := self.parts[number], str):
            return
        self._infer([part] if len(part) > 1 else [], change.takes)
        pieces = [
            _rewritten(change.write, node, self._facts, change.takes)
            if change in RAISED.get(node.op_type, ())
            else None
            for node in part
        ]
        if all(piece is None for piece in pieces):
            self._raise([number], change.takes, change.gives)
        elif reasons := [piece for piece in pieces if isinstance(piece, str)]:
            self.parts[number] = reasons[0]
        else:
            nodes: Nodes = []
            for node, piece in zip(part, pieces, strict=True):
                nodes += [node] if piece is None or isinstance(piece, str) else piece
            self.parts[number] = constants_in(nodes, change.gives)

    def _raise(self, numbers: list[int], old: int, new: int) -> None:
        """Have parts converted to a newer version by onnx, where their operators differ."""
        parts = {number: part for number in numbers if not isinstance(part := self.parts[number], str)}
        if old < 13 <= new:
            parts = {number: [with_last_axis(node, self._types, 1) for node in part] for number, part in parts.items()}
        unchanged = [number for number, part in parts.items() if all(_is_kept(node, old) for node in part)]
        rest = {number: part for number, part in parts.items() if number not in set(unchanged)} if old != new else {}
        for number in unchanged:
            problems = (misfit(node, new, self._types) for node in parts[number])
            self.parts[number] = next(filter(None, problems), "") or parts[number]
        for number, part in zip(rest, self._by_onnx(list(rest.values()), old, new), strict=True):
            self.parts[number] = part

    def step_down(self, version: int) -> None:
        """Say the parts, which are of a version, in the one before it."""
        changed = {
            number: part for number, part in enumerate(self.parts) if not isinstance(part, str)
            and any(since(node, version) != since(node, version - 1) for node in part)
        }  # fmt: skip
        if not changed:
            return
        self._infer([part for part in changed.values() if len(part) > 1], version)
        places = [(number, node) for number, part in changed.items() for node in part]
        pieces: dict[int, list[Found]] = {number: [] for number in changed}
        for (number, _), piece in zip(places, self._down([node for _, node in places], version), strict=True):
            pieces[number].append(piece)
        for number, alternatives in pieces.items():
            reasons = [piece for piece in alternatives if isinstance(piece, str)]
            part_nodes = [node for piece in alternatives if not isinstance(piece, str) for node in piece]
            self.parts[number] = reasons[0] if reasons else needed(part_nodes, self._wanted)

    def _down(self, nodes: Nodes, version: int) -> list[Found]:
        """Convert each node of a version to the one before it."""
        older = version - 1
        results: list[Found] = [[node] for node in nodes]
        changed = [number for number, node in enumerate(nodes) if since(node, version) != since(node, older)]
        for number in changed:
            if (write := LOWERED.get((nodes[number].op_type, version))) is None:
                continue
            if (written := _rewritten(write, nodes[number], self._facts, version)) is not None:
                results[number] = self._lowered(nodes[number], written, version)
        changed = [number for number in changed if len(results[number]) == 1 and results[number][0] is nodes[number]]
        bare = {number: without_new(nodes[number], version, older, defaults=True) for number in changed}
        if version == 13:
            bare = {number: with_last_axis(node, self._types, -1) for number, node in bare.items()}
        if version == 11:
            bare = {number: non_negative(node, self._types) for number, node in bare.items()}
        tried = {number: without_new(node, version, older) for number, node in bare.items()}
        crossing = {number: crossing_problem(node, version, older, self._types) for number, node in bare.items()}
        reasons = {number: misfit(node, older, self._types) for number, node in tried.items()}
        pairs = {
            number: (tried[number], node) for number, node in bare.items()
            if not reasons[number] and not crossing[number]
        }  # fmt: skip
        proved = self._proved(pairs, version)
        left = [number for number in changed if number not in proved]
        for number in proved:
            results[number] = [tried[number]]
        for number, lowered in zip(left, self._way_down([bare[place] for place in left], version), strict=True):
            results[number] = lowered
            if isinstance(lowered, str):
                lost = "" if bare[number] is tried[number] else misfit(bare[number], older, self._types)
                reason = crossing[number] or lost or reasons[number] or lowered
                results[number] = self._written_out(nodes[number], version) or reason
        return results

    def _lowered(self, node: onnx.NodeProto, written: Nodes | str, version: int) -> Found:
        """The nodes written for the version before, if they are of that; else those of the operator's body."""
        if not isinstance(written, str):
            written = constants_in(
                [without_new(part, version, version - 1, defaults=True) for part in written], version - 1
            )
        if not isinstance(written, str):
            written = next(filter(None, (misfit(part, version - 1, self._types) for part in written)), "") or written
        return (self._written_out(node, version) or written) if isinstance(written, str) else written

    def _way_down(self, nodes: Nodes, version: int) -> list[Found]:
        """The nodes that onnx's adapters give for the version before, where its way up gives the originals back.

        The check is needed since some adapters are wrong: that of Softmax 13 leaves an axis of another meaning in 12.
        """
        results = self._by_onnx([[node] for node in nodes], version, version - 1)
        lowered = {number: part for number, part in enumerate(results) if not isinstance(part, str)}
        for number, back in zip(lowered, self._by_onnx(list(lowered.values()), version - 1, version), strict=True):
            if isinstance(back, str) or not same_with(self._constants, back, nodes[number], version):
                results[number] = f"onnx's {nodes[number].op_type} of ai.onnx {version - 1} would mean something else"
        return results

    def _proved(self, pairs: dict[int, tuple[onnx.NodeProto, onnx.NodeProto]], version: int) -> set[int]:
        """For which of some pairs the first, in the version before, means what the second means in this one.

        This holds where onnx's conversion to the newer version makes the second of the first, or where the operator's
        versions differ only in types and attributes.
        """
        proved = {
            number for number, (node, newer) in pairs.items()
            if version > (kept_since(node.op_type) or version) and len(node.attribute) == len(newer.attribute)
        }  # fmt: skip
        unproved = [number for number in pairs if number not in proved]
        raised = self._by_onnx([[pairs[number][0]] for number in unproved], version - 1, version)
        for number, back in zip(unproved, raised, strict=True):
            if not isinstance(back, str) and len(back) == 1 and same(back[0], pairs[number][1], version):
                proved.add(number)
        return proved

    def _written_out(self, node: onnx.NodeProto, version: int) -> Nodes:
        """A node in the version before, rewritten or as its operator's body; [] where neither is known."""
        if attributes := as_attributes(node, version, self._types, self._constants):
            return attributes
        if (rewritten := REWRITTEN.get((node.op_type, version))) is not None:
            return rewritten(node, self._types)
        nodes, of = written_out(node, version, self._types) or ([], version)
        if of < version:
            lowered = self._by_onnx([nodes], of, version)[0]
            nodes = [] if isinstance(lowered, str) else lowered
        if not nodes or of > version:
            return []
        self._infer([nodes], version)
        pieces = self._down(nodes, version)
        lost = any(isinstance(piece, str) for piece in pieces)
        nodes = [] if lost else [inner for piece in pieces if not isinstance(piece, str) for inner in piece]
        return needed(nodes, {name for name in node.output if name})

    def _by_onnx(self, parts: list[Nodes], old: int, new: int) -> list[Found]:
        """Parts as onnx's converter gives them; where it refuses them together, halves of them."""
        if not parts:
            return []
        model = self._model(parts, old)
        try:
            for node in model.graph.node:
                self._refuse(node, old, new)
            graph = version_converter.convert_version(model, new).graph
        except Exception as error:  # RuntimeError, ConvertError or ValueError, with the reason at its end
            if len(parts) == 1:
                return [f"onnx cannot convert it: {_reason(error)}"]
            half = len(parts) // 2
            return self._by_onnx(parts[:half], old, new) + self._by_onnx(parts[half:], old, new)
        before = {tensor.name: tensor for tensor in model.graph.initializer}
        fresh = [tensor for tensor in graph.initializer if not _equal(tensor, before.get(tensor.name))]
        nodes = [_constant(tensor) for tensor in fresh] + list(graph.node)
        self._make_names_unique(nodes, {name for part in parts for node in part for name in node.output})
        return [self._checked(part, new) for part in _shared_out(nodes, parts)]

    def _checked(self, part: Nodes, version: int) -> Found:
        """The nodes, or why they are none of their version after all: some adapters leave attributes that it lacks."""
        written = constants_in(part, version)
        if isinstance(written, str):
            return written
        return next(filter(None, (misfit(node, version, self._types) for node in written)), "") or written

    def _refuse(self, node: onnx.NodeProto, old: int, new: int) -> None:
        """Keep from onnx what it gets wrong; in a body it would convert nodes that have their own turn."""
        problem = crossing_problem(node, old, new, self._types)
        if any(graphs_of(attribute) for attribute in node.attribute):
            problem = f"{node.op_type} has a body and is another operator there"
        if problem:
            raise ValueError(f"failed: {problem}")

    def _make_names_unique(self, nodes: Nodes, reserved: set[str]) -> None:
        self._calls += 1
        names = {
            name: f"{name}#{self._calls}" for node in nodes for name in node.output if name and name not in reserved
        }
        for node in nodes:
            for strings in (node.input, node.output):
                for slot, name in enumerate(strings):
                    strings[slot] = names.get(name, name)

    def _infer(self, parts: list[Nodes], version: int) -> None:
        """Find types of the values between the nodes of parts, and those that are constants."""
        for node in [node for part in parts for node in part if node.op_type == "Constant"]:
            if (tensor := constant_tensor(node)) is not None:
                self._constants[node.output[0]] = tensor
        if parts:
            known = shape_inference.infer_shapes(self._model(parts, version), data_prop=True).graph.value_info
            self._types.update((info.name, info.type) for info in known)
        for node in [node for part in parts for node in part]:
            if (tensor := computed(node, self._facts, version)) is not None:
                self._constants[tensor.name] = tensor

    def _model(self, parts: list[Nodes], version: int) -> onnx.ModelProto:
        model = onnx.ModelProto(ir_version=_IR_VERSION, opset_import=[onnx.OperatorSetIdProto(version=version)])
        graph = model.graph
        graph.name = "parts"
        nodes = [node for part in parts for node in part]
        graph.node.extend(nodes)
        outputs = dict.fromkeys(name for node in nodes for name in node.output if name)
        read = dict.fromkeys(name for node in nodes for name in node.input if name)
        for name in read.keys() - outputs:
            if name in self._constants:
                graph.initializer.append(self._constants[name])
            else:
                graph.input.add(name=name).type.CopyFrom(self._types.get(name, onnx.TypeProto()))
        for name in outputs:
            if name in self._wanted or name not in read:
                graph.output.add(name=name).type.CopyFrom(self._types.get(name, onnx.TypeProto()))
        return model


def _rewritten(write: Write, node: onnx.NodeProto, facts: Facts, version: int) -> Rewritten:
    """The node in other words; a reason where it is none of its version, as in a damaged file."""
    if problem := misfit(node, version, {}):
        return problem
    try:
        return write(node, facts)
    except (IndexError, TypeError, ValueError):
        return "its attributes and inputs do not belong together"


def _is_kept(node: onnx.NodeProto, version: int) -> bool:
    """Whether a node of a version stays as it is in all later ones."""
    begin = kept_since(node.op_type)
    return begin is not None and version >= begin


def _shared_out(nodes: Nodes, parts: list[Nodes]) -> list[Nodes]:
    """The nodes part by part: what makes the values of a part belongs to it, and what makes what that reads."""
    owner = {name: number for number, part in enumerate(parts) for node in part for name in node.output if name}
    shares: list[Nodes] = [[] for _ in parts]
    for node in reversed(nodes):
        number = next((owner[name] for name in node.output if name in owner), None)
        if number is not None:
            shares[number].insert(0, node)
            for name in node.input:
                if name:
                    owner.setdefault(name, number)
    return shares


def _reason(error: Exception) -> str:
    return str(error).rpartition("failed: ")[2].strip().splitlines()[0]


def _equal(tensor: onnx.TensorProto, other: onnx.TensorProto | None) -> bool:
    """Whether two tensors hold the same; the converter writes data anew."""
    return other is not None and (
        tensor == other or numpy_helper.to_array(tensor).tobytes() == numpy_helper.to_array(other).tobytes()
    )


def _constant(tensor: onnx.TensorProto) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type="Constant", output=[tensor.name])
    node.attribute.append(encode("value", tensor, "tensor"))
    return node
