"""Facts of values that no node makes: graph inputs, initializers; and what the model declares about any value."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.errors import Diagnostic
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import ValueRecord
from onnxlab.infer.symbols import named_elements, unknown_dim, wants_names
from onnxlab.infer.types import Unknown, fact_of_initializer, fact_of_type
from onnxlab.shapes import UNKNOWN, Dim, Fact, TensorFact


class Sources:
    """Facts that come straight from messages, kept until `forget`.

    Attributes:
        problems: by value id, what is wrong with a stored tensor.
    """

    def __init__(self, graph: ModelGraph, token: int) -> None:
        self._graph = graph
        self._token = token
        self._facts: dict[int, Fact] = {}
        self.problems: dict[int, Diagnostic] = {}

    def forget(self, value: int) -> None:
        self._facts.pop(value, None)
        self.problems.pop(value, None)

    def fact(self, value: ValueRecord) -> Fact:
        """The fact of an initializer, else of the declared type; small integers of a graph input get names.

        A graph input with an initializer is known by its default, as onnx and ONNX Runtime's optimiser take it.
        """
        found = self._facts.get(value.id)
        if found is None:
            found = self._facts[value.id] = self._read(value)
        return found

    def _read(self, value: ValueRecord) -> Fact:
        if value.initializer is not None:
            return self._initializer(value)
        fact = self.declared(value)
        if value.is_input and isinstance(fact, TensorFact) and wants_names(fact):
            return named_elements(fact, self._token, None, value.id, "input", value.name)
        return fact

    def _initializer(self, value: ValueRecord) -> Fact:
        def decode() -> np.ndarray[Any, Any] | None:
            return self._graph.array(value.id)

        try:
            return fact_of_initializer(value.initializer, decode)
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            message = f"the data of initializer {value.name!r} cannot be read: {error}"
            self.problems[value.id] = Diagnostic("error", "bad-tensor", message, 0, value.id, value.scope)
            proto = value.initializer
            return TensorFact(proto.data_type, tuple(proto.dims)) if hasattr(proto, "data_type") else UNKNOWN

    def declared(self, value: ValueRecord, unknown: Unknown | None = None) -> Fact:
        """What the model declares about a value: its graph input, output or value_info; UNKNOWN where nothing.

        Dims that are declared without a size are what `unknown(axis)` gives, by default symbols of the value.
        """
        if value.info is None:
            return UNKNOWN

        def named_after_value(axis: int) -> Dim:
            return unknown_dim(self._token, None, value.id, "declared", axis, value.name)

        return fact_of_type(value.info.type, unknown or named_after_value)
