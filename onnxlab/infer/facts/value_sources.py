"""Facts of values that no node makes: graph inputs, initializers; and what the model declares about any value."""

from __future__ import annotations

from weakref import proxy

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import ValueRecord
from onnxlab.infer.facts.symbols import named_elements, unknown_dim, wants_names
from onnxlab.infer.facts.type_protos import Unknown, dims_of, fact_of_initializer, fact_of_type, stored_fact
from onnxlab.shapes import MAX_RANK, UNKNOWN, Dim, Fact, SparseTensorFact, TensorFact


class Sources:
    """Facts that come straight from messages, kept until `forget`.

    Attributes:
        tensors: facts of initializers that could be read, by value id; several Sources of a graph may share them.
        problems: by value id, what is wrong with a stored tensor.
    """

    def __init__(self, graph: ModelGraph, token: int, tensors: dict[int, Fact] | None = None) -> None:
        self._graph: ModelGraph = proxy(graph)  # a proxy: the graph keeps a catalogue that holds a Sources
        self._token = token
        self._facts: dict[int, Fact] = {}
        self.tensors: dict[int, Fact] = {} if tensors is None else tensors
        self.problems: dict[int, Diagnostic] = {}

    def forget(self, value: int) -> None:
        """Drop what is known of a value."""
        self._facts.pop(value, None)
        self.tensors.pop(value, None)
        self.problems.pop(value, None)

    def forget_declared(self, value: ValueRecord) -> None:
        """Drop what is known of a value from its declaration; the fact of a stored tensor stays."""
        if value.initializer is None:
            self._facts.pop(value.id, None)

    def fact(self, value: ValueRecord) -> Fact:
        """The fact of an initializer, else of the declared type; small integers of a graph input get names.

        A graph input with an initializer has the fact of this default, as in onnx and ONNX Runtime's optimizer.
        """
        fact = self.tensors.get(value.id) or self._facts.get(value.id)
        return self._read(value) if fact is None else fact

    def _read(self, value: ValueRecord) -> Fact:
        cache = self._facts
        if value.initializer is None:
            fact = self._input(value)
        else:
            fact = self._initializer(value)
            if value.id not in self.problems:
                cache = self.tensors
        if (shape := fact.shape) is None or len(shape) > MAX_RANK:
            fact = self._followed(value, fact)
        cache[value.id] = fact
        return fact

    def _followed(self, value: ValueRecord, fact: Fact) -> Fact:
        """The fact without its dims where it has, or is declared to have, more than arrays have."""
        if value.initializer is None:
            rank = len(dims_of(value.info.type)) if value.info is not None and fact.shape is None else 0
        else:
            rank = fact.rank or 0
        if rank <= MAX_RANK:
            return fact
        message = f"{value.name!r} has {rank:,} dims; its shape is not followed"
        expected, actual = f"at most {MAX_RANK} dims", f"{rank:,} dims"
        self.problems[value.id] = Diagnostic(
            "warning", "rank-too-large", message, 0, value.id, value.scope, expected, actual
        )
        return type(fact)(fact.elem_type) if isinstance(fact, (TensorFact, SparseTensorFact)) else fact

    def _input(self, value: ValueRecord) -> Fact:
        fact = self.declared(value)
        if value.is_input and isinstance(fact, TensorFact) and wants_names(fact):
            return named_elements(fact, self._token, None, value.id, "input", value.name)
        return fact

    def _initializer(self, value: ValueRecord) -> Fact:
        try:
            return fact_of_initializer(value.initializer, lambda _: self._graph.array(value.id))
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            message = f"the data of initializer {value.name!r} cannot be read: {error}"
            self.problems[value.id] = Diagnostic("error", "bad-tensor", message, 0, value.id, value.scope)
            proto = value.initializer
            known = getattr(proto, "data_type", 0)
            return stored_fact(known, proto.dims) if known else UNKNOWN

    def declared(self, value: ValueRecord, unknown: Unknown | None = None) -> Fact:
        """The declared fact of a value: of its graph input, output or value_info; UNKNOWN where there is none.

        `unknown(axis)` gives the dims that are declared without a size; by default they are symbols of the value.
        """
        if value.info is None:
            return UNKNOWN

        def named_after_value(axis: int) -> Dim:
            return unknown_dim(self._token, None, value.id, "declared", axis, value.name)

        return fact_of_type(value.info.type, unknown or named_after_value)
