"""A Model copied, or sent to another process: with its files, without the session around it."""

from dataclasses import replace
from typing import Any, Self

import onnx

from onnxlab.errors import SaveError
from onnxlab.formats.source import LARGEST, Source
from onnxlab.infer import Inference, Policy
from onnxlab.model.saving import Saving


class Copying(Saving):
    """Copies by `copy` and `pickle`: another Model with its proto, its path and the folder of its data.

    History, journal, arrays, pins and subscribers stay behind. Unsaved edits are unsaved in the copy too, and the copy
    has no crash journal before it is saved. `copy.copy` makes a deep copy as well: two models never share messages.
    """

    __slots__ = ()

    inference: Inference

    def __copy__(self) -> Self:
        with self.graph.lock:
            proto = onnx.ModelProto()
            proto.CopyFrom(self.graph.proto)
            return _remade(type(self), proto, *self._about())  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copy = memo[id(self)] = self.__copy__()
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        with self.graph.lock:
            if self.graph.proto.ByteSize() > LARGEST:
                raise SaveError(
                    "this model cannot be pickled: a message of 2 GiB or more cannot be serialized; save it with "
                    "external_data=True, and load it where it is needed"
                )
            return _parsed, (type(self), self.graph.proto.SerializeToString(), *self._about())

    def _about(self) -> tuple[Source, bool, Policy]:
        """The source of the model, whether it differs from its file, and the policy of what counts as true in it."""
        source = replace(self._source, layout={})  # the layout is about messages of this model
        if self.graph.history.state != 0:  # the bytes as loaded are not those of the copy before any edit
            source = replace(source, origin=None, stamp=None, data=None)
        return source, self.dirty, self.inference.policy


def _parsed(kind: type[Any], data: bytes, *about: Any) -> Any:
    return _remade(kind, onnx.ModelProto.FromString(data), *about)


def _remade(kind: type[Any], proto: onnx.ModelProto, source: Source, dirty: bool, policy: Policy) -> Any:
    model = kind(proto, source)
    if dirty:  # no journal leads from the file to this state
        model._saved_state = -1
        model._journal.begin(None)
    if not policy.is_default:
        model.inference.policy = policy
    return model
