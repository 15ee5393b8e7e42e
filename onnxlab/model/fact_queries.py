"""Knowledge of a Model without running it: facts, their reasons, and problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from onnxlab.analysis import block_sizes
from onnxlab.analysis.check import Checker, combined, foreign_strings, unread
from onnxlab.argument_types import expect, plain
from onnxlab.errors import Diagnostic, NameLookupError
from onnxlab.formats.source import Source
from onnxlab.graph.handles.handles import Value
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.infer.live.size_trials import Trial
from onnxlab.infer.questions.dim_explanation import Explanation
from onnxlab.infer.questions.what_if import Sized, sizes_of
from onnxlab.model.graph_members import GraphMembers
from onnxlab.shapes import Fact

if TYPE_CHECKING:
    from onnxlab.execution.base.provider import Provider


class FactQueries(GraphMembers):
    """Facts and problems of a model; see `Model`."""

    __slots__ = ()

    trial: Trial
    _checker: Checker
    _source: Source

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything that inference found wrong, pinned to nodes.

        Where an edit made a dim of an input dynamic, other sizes are tried in the background; `check()` waits for that.

        Examples:
            >>> model.nodes["/block2/conv1/Conv"].attributes["strides"] = [1, 1]
            >>> model.diagnostics[0].code
            'shape-mismatch'
        """
        return [*self.inference.diagnostics, *(self.trial.diagnostics if self.trial.sizes else ())]

    def check(self, *, types: bool = True, providers: Sequence[str | Provider] | None = None) -> list[Diagnostic]:
        """List every problem of the model, pinned to nodes and values, as `onnxlab.check` finds them.

        After an edit only what it touched is checked again.

        Args:
            types: False leaves out what inference finds.
            providers: warn of versions that these do not read, as `["onnxruntime"]`.

        Returns:
            list[Diagnostic]: none where the model is valid.

        Raises:
            ProviderError: no provider has that name.

        Examples:
            >>> model.check()
            []
        """
        if providers is not None:
            return [*self.check(types=types), *unread(self.graph.header, providers)]
        if types:
            self.trial.finish()
        rules = [*foreign_strings(self._source.strings), *self._checker.problems()]
        if not types:
            return rules
        inferred = [*self.diagnostics, *block_sizes.doubts(self.graph, self.inference)]
        return combined(rules, inferred, self._checker.doubts)

    def tensor(self, value: int | str) -> LazyTensor:
        """Read the data of an initializer only where it is touched.

        Args:
            value: id or name of the initializer.

        Returns:
            LazyTensor: index it for a part, `np.asarray(…)` reads all.

        Raises:
            NameLookupError: no value has this name, or it is no dense initializer.
            LoadError: its type and shape describe no tensor.

        Examples:
            >>> model.tensor("head.fc.weight")[0, :2].shape
            (2,)
        """
        stored = self.value(value).initializer
        if not isinstance(stored, onnx.TensorProto):
            raise NameLookupError(f"{value!r} is no initializer with dense data")
        return LazyTensor(stored, self.graph.base_dir)

    def fact(self, value: int | str | Value) -> Fact:
        """Tell what inference knows of a value; always up to date.

        Args:
            value: id, name or handle.

        Returns:
            Fact: `.dtype`, `.shape` (sizes and symbols), `.value` (elements that are known).

        Raises:
            NameLookupError: no value has this name.

        Examples:
            >>> print(model.fact("logits"))
            float32[batch,10]
            >>> model.fact("logits").shape
            (<Expr batch>, 10)
        """
        return self.inference.fact(self._value_id(value))

    def explain(self, value: int | str | Value, axis: int | None = None) -> Explanation:
        """Explain why the dims of a value are what they are.

        The explanation goes back through the nodes that the dims come from, with the edits that touched them, to a
        declaration of the model, or to the operator that lost a dim and the reason.

        Args:
            value: id, name or handle.
            axis: axis of one dim; None: all dims.

        Returns:
            Explanation: print it.

        Raises:
            NameLookupError: no value has this name, or the value has no such axis.

        Examples:
            >>> print(str(model.explain("head/flat", 0)).splitlines()[1])
              head/flat[0] = batch: Reshape '/head/Reshape', from element 0 of head/target_shape
        """
        axis = expect(axis, (int, type(None)), "axis", "the number of an axis, or None")
        return self.inference.explain(self._value_id(value), axis)

    def with_dims(self, dims: Mapping[str, int] | None = None, /, **named: int) -> Sized:
        """Tell all shapes, and the memory of each value, for sizes of the model's symbols; the model is not touched.

        Symbols without a size stay symbols; the result lists the values whose size they leave open.

        Args:
            dims: sizes by symbol, for names that are no Python names.
            named: sizes by symbol.

        Returns:
            Sized: print it; shapes and bytes by value.

        Raises:
            NameLookupError: no input has a symbol of this name; the message lists those that there are.
            ValueError: a size is not an int from 0 on.

        Examples:
            >>> print(str(model.with_dims(batch=8)).splitlines()[0])
            batch=8: values 236.2 kB, 51.2 kB at once at /block1/bn1/BatchNormalization; weights 22.7 kB
        """
        return self.inference.with_dims(sizes_of(dims, named))

    def _value_id(self, value: int | str | Value) -> int:
        if isinstance(value, Value):
            return value.id
        value = plain(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if value not in self.graph.values:
                raise NameLookupError(f"no value of the model has the id {value}")
            return value
        return self._value_record(value).id  # type: ignore[arg-type]  # it refuses bools
