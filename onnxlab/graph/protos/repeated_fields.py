"""Messages in the repeated fields of others."""

from typing import Any

from onnxlab.graph.protos.tensors import RawTensor


def insert_message(messages: Any, position: int, message: Any) -> Any:
    """Put a copy of a message, or of a RawTensor, into a repeated field and return it.

    protobuf's own `insert` serializes and parses instead of copying, five times the time of a large tensor.

    Raises:
        TypeError: the field has messages of another type; the field is unchanged.
    """
    raw = isinstance(message, RawTensor)
    messages.insert(position, type(message.message if raw else message)())
    entry = messages[position]
    try:
        if raw:
            message.copy_to(entry)
        else:
            entry.CopyFrom(message)
    except BaseException:
        del messages[position]
        raise
    return entry
