"""Problems of values: declared types that contradict what inference finds, and values that nothing makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

import onnx

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import ValueRecord
from onnxlab.infer.facts.symbols import is_open
from onnxlab.infer.facts.type_protos import dims_of, fact_of_type
from onnxlab.infer.facts.value_sources import Sources
from onnxlab.infer.rules.schema_checks import contradiction
from onnxlab.shapes import UNKNOWN, VARIES, Dim, Fact


class Conflicts:
    """Compares declared with inferred types, as late as possible, and each value once per fact.

    Attributes:
        unchecked: ids of the values to look at when diagnostics are asked for.
        found: the contradictions met so far, by value id.
    """

    def __init__(self, graph: ModelGraph, sources: Sources) -> None:
        self._graph = graph
        self._sources = sources
        self.unchecked: set[int] = set()
        self.found: dict[int, Diagnostic] = {}

    def diagnostics(self, facts: Mapping[int, Fact]) -> list[Diagnostic]:
        """Every contradiction, ordered by value id; then the readers of undefined values."""
        values = self._graph.values
        while self.unchecked:
            vid = self.unchecked.pop()
            value = values.get(vid)
            if value is None or value.info is None:  # most declare nothing, and looking facts up takes time
                conflict = None
            else:
                conflict = self._compare(value, facts.get(vid, UNKNOWN)) or self._negative(value)
            if conflict is None:
                self.found.pop(vid, None)
            else:
                self.found[vid] = conflict
        conflicts = [self.found[vid] for vid in sorted(self.found)]
        further = chain(declared_twice(self._graph, facts), unlike_outputs(self._graph, facts), self._unmade())
        return [*conflicts, *further]

    def of_outputs(self, facts: Mapping[int, Fact]) -> list[Diagnostic]:
        """The contradictions of the model's outputs alone."""
        values = [self._graph.values[vid] for vid in dict.fromkeys(self._graph.main.outputs)]
        conflicts = [self._compare(value, facts.get(value.id, UNKNOWN)) for value in values]
        return [conflict for conflict in conflicts if conflict is not None]

    def _unmade(self) -> Iterator[Diagnostic]:
        for value in [self._graph.values[vid] for vid in sorted(self._graph.index.undefined)]:
            for reader in dict.fromkeys(node for node, _ in value.uses):
                node = self._graph.nodes[reader]
                yield Diagnostic(
                    "error",
                    "undefined-value",
                    f"{self._graph.label(node)} ({node.proto.op_type}): it reads {value.name!r}, which nothing makes",
                    node.id,
                    value.id,
                    node.scope,
                    "a value that a node makes, an input or an initializer",
                    value.name,
                    "connect another value",
                )

    def _is_given(self, value: ValueRecord) -> bool:
        """Whether only the declaration tells of a value: of inputs, but for those that a body's owner feeds."""
        return value.is_input and value.initializer is None and self._graph.scopes[value.scope].kind != "subgraph"

    def _compare(self, value: ValueRecord, fact: Fact) -> Diagnostic | None:
        if value.info is None or fact is UNKNOWN or self._is_given(value):
            return None
        declared = self._sources.declared(value)
        aspect = contradiction(declared, fact)
        if declared is UNKNOWN and value.info.type.WhichOneof("value") == "opaque_type":
            aspect = "type"  # facts have no opaque types: no operator of ONNX makes one
        if not aspect:
            return None
        role = "graph output" if value.is_output else "body input" if value.is_input else "value"
        scope = self._graph.scopes[value.scope]
        node = value.producers[0][0] if value.producers else scope.owner if value.is_input else 0
        return Diagnostic(
            "warning",
            f"declared-{aspect}",
            f"the {role} {value.name!r} is declared as {declared}, but inference finds {fact}",
            node,
            value.id,
            value.scope,
            str(declared),
            str(fact),
            "correct the declared type, or the nodes before it",
        )

    def _negative(self, value: ValueRecord) -> Diagnostic | None:
        """The problem of a negative dim; declarations of sizes alone, which most are, need no second look."""
        assert value.info is not None
        shape = self._sources.declared(value).shape
        is_sizes = shape is None or all(isinstance(dim, int) for dim in shape)
        return None if is_sizes else negative_dim(value, value.info)


def negative_dim(value: ValueRecord, info: onnx.ValueInfoProto) -> Diagnostic | None:
    """The problem of a declared dim below 0, which onnx compares as a size, and inference here takes as unknown."""
    axis, size = next(
        ((axis, dim.dim_value) for axis, dim in enumerate(dims_of(info.type)) if dim.dim_value < 0), (0, 0)
    )
    if not size:
        return None
    return Diagnostic(
        "warning",
        "dim-negative",
        f"dim {axis} of {value.name!r} is declared as {size}, which is no size",
        value.producers[0][0] if value.producers else 0,
        value.id,
        value.scope,
        "a size from 0 on, a name or nothing",
        str(size),
        "name the dim, or leave it empty",
    )


def declared_twice(graph: ModelGraph, facts: Mapping[int, Fact]) -> Iterator[Diagnostic]:
    """Outputs of the model that are inputs too, or listed before, and are declared as something else here."""
    scope, seen = graph.main, set[int]()
    for vid, info in zip(scope.outputs, scope.proto.output, strict=True):
        value = graph.values[vid]
        if vid in seen or value.is_input:
            fact = facts.get(vid, UNKNOWN)
            declared = fact_of_type(info.type, lambda _: VARIES)
            if aspect := contradiction(declared, fact):
                node = value.producers[0][0] if value.producers else 0
                yield Diagnostic(
                    "warning", f"declared-{aspect}", f"the graph output {value.name!r} is declared as {declared}, but "
                    f"{'the graph input of this name is' if value.is_input else 'inference finds'} {fact}", node, vid,
                    value.scope, str(fact), str(declared), "declare the same type for both",
                )  # fmt: skip
            elif problem := negative_dim(value, info):
                yield problem
        seen.add(vid)


def unlike_outputs(graph: ModelGraph, facts: Mapping[int, Fact]) -> Iterator[Diagnostic]:
    """Outputs with a fixed dim that is declared by an input's symbol, or a varying dim that is declared as a number."""
    scope = graph.main
    names = {dim.dim_param for info in scope.proto.input for dim in info.type.tensor_type.shape.dim if dim.dim_param}
    for vid, info in zip(scope.outputs, scope.proto.output, strict=True) if names else ():
        shape, value = facts.get(vid, UNKNOWN).shape or (), graph.values[vid]
        dims = info.type.tensor_type.shape.dim
        if value.is_input or len(dims) != len(shape):
            continue
        for axis, (stated, dim) in enumerate(zip(dims, shape, strict=True)):
            if isinstance(dim, int) and stated.dim_param in names:
                yield _unlike(value, axis, stated.dim_param, dim, "fixed")
            elif stated.HasField("dim_value") and not isinstance(dim, int) and not is_open(dim):
                yield _unlike(value, axis, stated.dim_value, dim, "dynamic")


def _unlike(value: ValueRecord, axis: int, stated: Dim | str, dim: Dim, kind: str) -> Diagnostic:
    node = value.producers[0][0] if value.producers else 0
    how, hint = _SAID[kind]
    message = f"dim {axis} of the graph output {value.name!r} is declared as {stated}, but it is {dim}{how}"
    return Diagnostic("warning", f"output-{kind}", message, node, value.id, value.scope, str(stated), str(dim), hint)


_SAID = {
    "fixed": (
        " whatever the inputs are",
        "correct the declared dim, or what fixes it: a Reshape, Expand or Slice by a constant",
    ),
    "dynamic": (", which varies", "correct the declared dim: model.declarations('refresh')"),
}
