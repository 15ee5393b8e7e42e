"""Fields of a value, read and set, and the edits that concern no other handle."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx

from onnxlab.errors import NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edits import constants
from onnxlab.graph.edits.metadata import description
from onnxlab.graph.handles.handle_base import Handle
from onnxlab.graph.handles.properties import Metadata
from onnxlab.graph.index.records import ValueRecord

if TYPE_CHECKING:
    import numpy as np


class ValueFields(Handle):
    """The fields of a value; see `Value`."""

    __slots__ = ()

    @property
    def _record(self) -> ValueRecord:
        try:
            return self._graph.values[self.id]
        except KeyError:
            raise NameLookupError(f"value {self.id} is not in the model any more") from None

    @property
    def name(self) -> str:
        """The value's name. Setting it renames the value everywhere.

        Examples:
            >>> value.name = "features"
            >>> value.producer.outputs
            (<Value 'features'>,)
        """
        return self._record.name

    @name.setter
    def name(self, name: str) -> None:
        edits.rename_value(self._graph, self._record, name)

    @property
    def path(self) -> str:
        """The name with the path of its scope in front of it: unique in the model.

        Examples:
            >>> value.path
            'stem/relu_out'
        """
        path = self._graph.scope_path(self._graph.scopes[self._record.scope])
        return f"{path}/{self.name}" if path else self.name

    @property
    def is_input(self) -> bool:
        """Whether it is an input of its graph or function.

        Examples:
            >>> model.value("image").is_input
            True
        """
        return self._record.is_input

    @property
    def is_output(self) -> bool:
        """Whether it is an output of its graph or function.

        Examples:
            >>> model.value("probabilities").is_output
            True
        """
        return self._record.is_output

    @property
    def initializer(self) -> "onnx.TensorProto | onnx.SparseTensorProto | None":
        """The live proto of an initializer, None for other values; `array` has its data.

        Examples:
            >>> list(model.value("head.fc.bias").initializer.dims)
            [10]
        """
        return self._record.initializer  # type: ignore[no-any-return]

    @property
    def array(self) -> "np.ndarray[Any, Any] | None":
        """Data of an initializer or a Constant, read-only; None for other values.

        Setting it replaces the data of an initializer; `producer.to_initializer()` makes one of a Constant.

        Examples:
            >>> bias = model.value("head.fc.bias")
            >>> bias.array = np.zeros(10, np.float32)
            >>> bias.array.sum()
            np.float32(0.0)
        """
        return constants.stored_array(self._graph, self._record)

    @array.setter
    def array(self, array: Any) -> None:
        edits.set_initializer(self._graph, self._record, array)

    @property
    def info(self) -> onnx.ValueInfoProto | None:
        """The live declaration of its type, None where the model has none.

        Examples:
            >>> model.value("image").info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
            True
        """
        return self._record.info

    @property
    def doc_string(self) -> str:
        """Documentation of this value in the model. Setting it is an edit.

        Examples:
            >>> model.value("image").doc_string = "digits, 0 to 1"
        """
        described = description(self._record)
        return str(described.doc_string) if described is not None else ""

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self._graph, self._record, text)

    @property
    def metadata(self) -> Metadata:
        """metadata_props of the value's declaration, or of an initializer's tensor where nothing declares it; live.

        Examples:
            >>> model.value("image").metadata["layout"] = "NCHW"
            >>> model.value("image").metadata
            {'layout': 'NCHW'}
        """
        return Metadata(self._graph, lambda: self._record)

    def set_shape(self, shape: Sequence[int | str | None]) -> None:
        """Declare the shape of a graph input or output; shapes downstream follow at once.

        Args:
            shape: an integer for each dim, a name for a dynamic one, None for an unknown one.

        Raises:
            EditError: the value is no input or output, or a dim is invalid.

        Examples:
            >>> model.value("image").set_shape([16, 1, 8, 8])
            >>> print(model.fact("probabilities"))
            float32[16,10]
        """
        edits.set_shape(self._graph, self._record, shape)

    def set_dim(self, axis: int, dim: int | str | None) -> None:
        """Change one declared dim of a graph input or output.

        Args:
            axis: index of the dim; negative from the end.
            dim: an integer, a name, which makes it dynamic, or None for unknown.

        Raises:
            EditError: the value is no input or output, or has no such axis.

        Examples:
            >>> model.value("image").set_dim(0, "n")
            >>> print(model.fact("probabilities"))
            float32[n,10]
        """
        edits.set_dim(self._graph, self._record, axis, dim)

    def set_dtype(self, dtype: Any) -> None:
        """Declare the element type of a graph input or output.

        Args:
            dtype: "float16", a NumPy dtype or a DataType.

        Raises:
            EditError: the value is no input or output, or there is no such type.

        Examples:
            >>> model.value("image").set_dtype("float16")
            >>> print(model.fact("image"))
            float16[batch,1,8,8]
        """
        edits.set_dtype(self._graph, self._record, dtype)

    def to_input(self, keep_default: bool = False) -> None:
        """Make an initializer a graph input.

        Args:
            keep_default: keep its data as the default of the input.

        Raises:
            EditError: the value is no initializer.

        Examples:
            >>> model.value("head.fc.bias").to_input()
            >>> model.inputs
            (<Value 'image'>, <Value 'head.fc.bias'>)
        """
        edits.initializer_to_input(self._graph, self._record, keep_default)

    def to_initializer(self, array: Any = None) -> None:
        """Store an array in the place of a graph input.

        Args:
            array: the data; None takes the default that the input has.

        Raises:
            EditError: the value is no input, or the array does not fit its declaration.

        Examples:
            >>> model.value("image").to_initializer(np.zeros((1, 1, 8, 8), np.float32))
            >>> model.inputs
            ()
        """
        edits.input_to_initializer(self._graph, self._record, array)
