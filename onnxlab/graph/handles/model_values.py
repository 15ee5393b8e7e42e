"""Edits of a Model's inputs, outputs and initializers, by names and handles: thin calls of `graph.edits`."""

from collections.abc import Sequence
from typing import Any

from onnxlab.graph import edits
from onnxlab.graph.handles.handles import Value
from onnxlab.graph.handles.model_lookup import Lookup, ValueKey, ValueKeys
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
        """Give the graph another input.

        Args:
            name: name of the value.
            dtype: element type ("float32", a NumPy dtype or a DataType); None in a function, which declares no types.
            shape: an integer for each dim, a name for a dynamic one, None for an unknown one; None: of unknown rank.
            position: among the inputs; None: behind them.
            scope: path of the body or function; "" is the main graph.

        Returns:
            Value: the input.

        Raises:
            EditError: the name is in use, or there is no such type.

        Examples:
            >>> model.add_input("mask", "bool", ["batch", 10])
            <Value 'mask'>
            >>> print(model.fact("mask"))
            bool[batch,10]
        """
        where = self._scope_record(scope)
        info = name if where.is_function else declare(name, dtype, shape)
        return Value(self.graph, edits.add_input(self.graph, info, where, position).id)

    def remove_input(self, value: ValueKey) -> None:
        """Take an input away that no node reads; one with a default becomes an initializer.

        Args:
            value: name or handle.

        Raises:
            EditError: a node reads it.

        Examples:
            >>> mask = model.add_input("mask", "bool", [1])
            >>> model.remove_input(mask)
            >>> model.inputs
            (<Value 'image'>,)
        """
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
        """Make a value an output of the model, declared with the type that inference knows.

        A value of a function ("local::Block/h") is returned by each call of it; one in the body of a Loop or Scan is
        collected over the iterations, with their number as its first dim.

        Args:
            value: name, path or handle.
            position: among the outputs; None: behind them.
            dtype: element type to declare instead of the inferred one ("float32").
            shape: dims to declare instead of the inferred ones (["batch", 3, None]).
            scope: path of the body or function that returns the value; outputs of the node with this body, or of calls,
                are then set by `set_outputs`. Default: the value becomes an output of the model.

        Returns:
            tuple[Value, ...]: the outputs, one for each call where the value is in a function.

        Raises:
            EditError: the value is an output already, or made in only one branch of an If.

        Examples:
            >>> model.add_output("stem/relu_out")
            (<Value 'stem/relu_out'>,)
            >>> model.outputs
            (<Value 'probabilities'>, <Value 'stem/relu_out'>)
        """
        record = self._value_record(value)
        declaration = None if dtype is None and shape is None else declare(record.name, dtype, shape)
        known = self._declaration if declaration is None else lambda _: declaration
        if scope is not None:
            edits.declare_output(self.graph, record, known(record.id), position, self._scope_record(scope))
            return (Value(self.graph, record.id),)
        outputs = edits.add_output(self.graph, record, known, position)
        return tuple(Value(self.graph, output.id) for output in outputs)

    def remove_output(self, value: ValueKey, *, scope: str = "") -> None:
        """Take a value out of the outputs; what makes it stays.

        Args:
            value: name, path or handle.
            scope: path of the body or function that returns it; "" is the main graph.

        Raises:
            EditError: the value is no output.

        Examples:
            >>> added = model.add_output("logits")
            >>> model.remove_output("probabilities")
            >>> model.outputs
            (<Value 'logits'>,)
        """
        edits.remove_output(self.graph, self._value_record(value), self._scope_record(scope))

    def cut(self, outputs: ValueKeys = (), inputs: ValueKeys = (), *, siblings: bool = True) -> tuple[Value, ...]:
        """End the model at some values, or let it start at others, as one step.

        Outputs that depend on removed values are dropped, the others stay; nodes, inputs and stored tensors that
        are no longer needed are removed too. `extract` makes a new model instead and leaves this one as it is.

        Args:
            outputs: values that become outputs; nodes that depend on them are removed.
            inputs: values that become inputs; nodes that computed only them are removed.
            siblings: whether other values that cross the same border become outputs or inputs too.

        Returns:
            tuple[Value, ...]: the new outputs and inputs, siblings included.

        Raises:
            EditError: a value is not computed by a node of the main graph, or nothing would be removed.

        Examples:
            >>> model.cut("logits")
            (<Value 'logits'>,)
            >>> model.cut(inputs="stem/relu_out")
            (<Value 'stem/relu_out'>,)
            >>> model.inputs, model.outputs
            ((<Value 'stem/relu_out'>,), (<Value 'logits'>,))
        """
        ends, starts = self._value_records(outputs), self._value_records(inputs)
        done = edits.cut(self.graph, ends, starts, siblings, self._declaration)
        return tuple(Value(self.graph, changed.id) for changed in done)

    def remove_behind(self, value: ValueKey) -> int:
        """Remove all nodes that depend on a value, and the outputs that they compute; the value itself stays.

        Args:
            value: name or handle.

        Returns:
            int: number of nodes removed.

        Raises:
            EditError: nothing depends on the value, or no output would be left; `cut` makes the value an output.

        Examples:
            >>> features = model.add_output("stem/relu_out")
            >>> model.remove_behind("block1/relu2_out")
            14
        """
        return len(edits.remove_behind(self.graph, self._value_record(value)).nodes)

    def replace_dim(
        self, old: int | str, new: int | str | None, *, axis: int | None = None, values: ValueKeys | None = None
    ) -> int:
        """Let a dim be another one wherever an input or output declares it, as one step.

        A name is renamed or fixed; a size on an axis becomes dynamic for all inputs at once.

        Args:
            old: a name ("X.0" for axis 0 of X where it has none), or, with an axis, a size that inputs declare there.
            new: a size, a name, or None for unknown.
            axis: the only axis to change; None for all.
            values: the only inputs and outputs to change; None for all.

        Returns:
            int: number of declarations changed.

        Raises:
            EditError: no input or output declares `old`.

        Examples:
            >>> model.replace_dim("batch", 4)
            2
            >>> model.replace_dim(4, "n", axis=0)
            1
            >>> print(model.fact("image"))
            float32[n,1,8,8]
        """
        chosen = None if values is None else self._value_records(values)
        return edits.replace_dim(self.graph, old, new, axis, chosen)

    def add_initializer(self, name: str, array: Any, *, scope: str = "") -> Value:
        """Store an array under a new name.

        Args:
            name: name of the value.
            array: the data.
            scope: path of the body; "" is the main graph.

        Returns:
            Value: the initializer.

        Raises:
            EditError: the name is in use, or ONNX has no such element type.

        Examples:
            >>> model.add_initializer("half", np.float32(0.5))
            <Value 'half'>
            >>> model.add_node("Mul", ["logits", "half"], ["softer"]).outputs
            (<Value 'softer'>,)
        """
        return Value(self.graph, edits.add_initializer(self.graph, name, array, self._scope_record(scope)).id)

    def remove_initializer(self, value: ValueKey) -> None:
        """Take a stored array away that no node reads; one that is also an input becomes a required input.

        Args:
            value: name or handle.

        Raises:
            EditError: a node reads it.

        Examples:
            >>> half = model.add_initializer("half", np.float32(0.5))
            >>> model.remove_initializer("half")
        """
        edits.remove_initializer(self.graph, self._value_record(value))
