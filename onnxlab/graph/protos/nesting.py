"""The message for models that protobuf cannot read: those made in memory may be nested too deep for it."""

from collections.abc import Iterator
from contextlib import contextmanager

from google.protobuf.message import DecodeError, EncodeError

from onnxlab.errors import LoadError


@contextmanager
def nesting_refused() -> Iterator[None]:
    """Raise LoadError, in a `with` or as a decorator, where protobuf cannot read a message, or Python gets too deep."""
    try:
        yield
    except (DecodeError, EncodeError, RecursionError) as error:
        deep = isinstance(error, RecursionError) or "depth" in str(error).lower()
        why = "it is nested deeper than protobuf's 100 levels" if deep else f"protobuf cannot read it ({error})"
        raise LoadError(f"cannot load this model: {why}") from None
