"""Edits of a Model's inputs, outputs and initializers, by names and handles: thin calls of `graph.edits`."""

from collections.abc import Sequence
from typing import Any

from onnxlab.graph import edits
from onnxlab.graph.handles.handles import Value
from onnxlab.graph.handles.model_lookup import Lookup, ValueKey
from onnxlab.graph.protos.value_info import declare


class ValueEditing(Lookup):
    """Inputs, outputs and initializers of a model; see `Model`."""

    __slots__ = ()

    def add_input(
        self,
        name: str,
        dtype: Any = None,
        shape: Sequence[int | str | None] | None = None,
        *,
        position: int | None = None,
        scope: str = "",
    ) -> Value:
        """Give the graph (or the scope at a path) another input of a dtype ("float32") and shape."""
        where = self._scope_record(scope)
        info = name if where.is_function else declare(name, dtype, shape)
        return Value(self.graph, edits.add_input(self.graph, info, where, position).id)

    def remove_input(self, value: ValueKey) -> None:
        """Take an input away that nobody reads; one with a default becomes an initializer."""
        edits.remove_input(self.graph, self._value_record(value))

    def add_output(
        self,
        value: ValueKey,
        position: int | None = None,
        *,
        dtype: Any = None,
        shape: Sequence[int | str | None] | None = None,
        scope: str | None = None,
    ) -> tuple[Value, ...]:
        """Make a value an output of the model, declared with the type that inference knows; returns the outputs.

        Args:
            dtype: element type to declare instead of the inferred one ("float32").
            shape: dims to declare instead of the inferred ones (["batch", 3, None]).
            scope: path of the body or function that is to return it, and no more than that: what the node that has the
                body, or a call, makes of it is left to `set_outputs`. Default: it is carried out to the model.

        A value of a function ("local::Block/h") is returned by each call of it; one in the body of a Loop or Scan is
        collected over the iterations, with their number as its first dim.

        Raises:
            EditError: it is an output already, or made in one branch of an If alone.
        """
        record = self._value_record(value)
        given = None if dtype is None and shape is None else declare(record.name, dtype, shape)
        known = self._declaration if given is None else lambda _: given
        if scope is not None:
            edits.declare_output(self.graph, record, known(record.id), position, self._scope_record(scope))
            return (Value(self.graph, record.id),)
        made = edits.add_output(self.graph, record, known, position)
        return tuple(Value(self.graph, each.id) for each in made)

    def remove_output(self, value: ValueKey, *, scope: str = "") -> None:
        """Take a value out of the outputs of the graph, or of the body or function at a path; what makes it stays."""
        edits.remove_output(self.graph, self._value_record(value), self._scope_record(scope))

    def add_initializer(self, name: str, array: Any, *, scope: str = "") -> Value:
        """Store an array under a new name."""
        return Value(self.graph, edits.add_initializer(self.graph, name, array, self._scope_record(scope)).id)

    def remove_initializer(self, value: ValueKey) -> None:
        """Take a stored array away that nobody reads; one that is also an input becomes a required input."""
        edits.remove_initializer(self.graph, self._value_record(value))
