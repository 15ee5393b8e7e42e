"""Positions of the messages of a repeated field by their names, while others come and go around them.

A position in a repeated field changes with every insertion before it, so each message gets a label of its own, with
gaps like those of the nodes; a bisection finds the position of a label. A scan for a declaration among 100,000 would
take 20 ms.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from onnxlab.graph.index.order_labels import label_between, spread

EntryField = Literal["initializer", "sparse_initializer", "value_info", "quantization_annotation"]


def entry_name(field: str, message: Any) -> str:
    """The name that an entry goes by; a sparse initializer by that of its values, an annotation by its tensor's."""
    if field == "sparse_initializer":
        return message.values.name  # type: ignore[no-any-return]
    return message.tensor_name if field == "quantization_annotation" else message.name  # type: ignore[no-any-return]


def formal_name(formal: Any) -> Any:
    """The name of an input or output: of a graph a ValueInfoProto, of a function the name itself."""
    return formal if isinstance(formal, str | bytes) else formal.name


def mentioned_names(field: str, message: Any) -> Iterable[str]:
    """All names of values in an entry: an annotation also names the scales and zero points of its tensor."""
    if field != "quantization_annotation":
        return (entry_name(field, message),)
    return {message.tensor_name, *(entry.value for entry in message.quant_parameter_tensor_names)}


class Entries:
    """The messages of one repeated field of a scope by the names that they mention."""

    __slots__ = ("_by_name", "_names_of", "_sorted")

    def __init__(self, field: str, messages: Sequence[Any]) -> None:
        self._names_of: Callable[[Any], Iterable[str]] = lambda message: mentioned_names(field, message)
        self._sorted = spread(len(messages))
        self._by_name: dict[str, int | set[int]] = {}  # most names are mentioned once, and a set takes 200 bytes
        for label, message in zip(self._sorted, messages, strict=True):
            for name in self._names_of(message):
                self._add(name, label)

    def __len__(self) -> int:
        return len(self._sorted)

    def positions(self, name: str) -> list[int]:
        """Positions of the messages that mention a name, in ascending order."""
        labels = self._by_name.get(name)
        if labels is None:
            return []
        if isinstance(labels, int):
            return [bisect_left(self._sorted, labels)]
        return [bisect_left(self._sorted, label) for label in sorted(labels)]

    def insert(self, position: int, message: Any) -> None:
        """Note a message that now stands at `position`."""
        label = self._label_at(position)
        if not label:
            self._spread()
            label = self._label_at(position)
        self._sorted.insert(position, label)
        for name in self._names_of(message):
            self._add(name, label)

    def _label_at(self, position: int) -> int:
        labels = self._sorted
        return label_between(
            labels[position - 1] if position else 0, labels[position] if position < len(labels) else None
        )

    def remove(self, position: int, message: Any) -> None:
        """Forget a message that stands, or stood until now, at `position`."""
        label = self._sorted.pop(position)
        for name in self._names_of(message):
            self._discard(name, label)

    def renamed(self, position: int, names_before: Iterable[str], message: Any) -> None:
        """Follow a message that mentions other names than before."""
        label = self._sorted[position]
        for name in names_before:
            self._discard(name, label)
        for name in self._names_of(message):
            self._add(name, label)

    def _add(self, name: str, label: int) -> None:
        known = self._by_name.get(name)
        if known is None:
            self._by_name[name] = label
        elif isinstance(known, int):
            self._by_name[name] = {known, label}
        else:
            known.add(label)

    def _discard(self, name: str, label: int) -> None:
        known = self._by_name[name]
        if isinstance(known, int):
            del self._by_name[name]
            return
        known.discard(label)
        if len(known) == 1:
            self._by_name[name] = known.pop()

    def _spread(self) -> None:
        """Give all labels anew: the gap at one place is used up."""
        fresh = dict(zip(self._sorted, spread(len(self._sorted)), strict=True))
        self._sorted = list(fresh.values())
        for name, known in self._by_name.items():
            self._by_name[name] = fresh[known] if isinstance(known, int) else {fresh[label] for label in known}
