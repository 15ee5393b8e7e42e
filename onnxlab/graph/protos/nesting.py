"""The message for models that protobuf cannot read: those made in memory may be nested too deep for it."""

from contextlib import ContextDecorator

from google.protobuf.message import DecodeError, EncodeError

from onnxlab.errors import LoadError


class nesting_refused(ContextDecorator):  # noqa: N801 - used like a function
    """Raise LoadError, in a `with` or as a decorator, where protobuf cannot read a message, or Python gets too deep."""

    def __enter__(self) -> None:
        """Nothing has to be done."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise LoadError instead of an error of depth."""
        if not isinstance(error, (DecodeError, EncodeError, RecursionError)):
            return
        deep = isinstance(error, RecursionError) or "depth" in str(error).lower()
        why = "it is nested deeper than protobuf's 100 levels" if deep else f"protobuf cannot read it ({error})"
        raise LoadError(f"cannot load this model: {why}") from None
