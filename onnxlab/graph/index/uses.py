"""Uses of values of a model as it was read: sorted arrays; the readers of one value are made when asked for."""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

import numpy as np

from onnxlab.graph.index.records import NodeRecord

_ID, _INPUTS = attrgetter("id"), attrgetter("inputs")


class Uses:
    """The readers of all values, by value.

    Args:
        nodes: in the order in which their uses count; each reads the ids that its `inputs` list, 0 for none.
    """

    def __init__(self, nodes: Iterable[NodeRecord]) -> None:
        records = list(nodes)
        inputs = list(map(_INPUTS, records))
        counts = np.fromiter(map(len, inputs), np.int64, len(inputs))
        read = np.fromiter(chain.from_iterable(inputs), np.int64, int(counts.sum()))
        idents = np.fromiter(map(_ID, records), np.int64, len(records))
        order = np.argsort(read, kind="stable")
        self._values = read[order]
        self._nodes = np.repeat(idents, counts)[order]
        first = np.repeat(np.cumsum(counts) - counts, counts)
        self._slots = (np.arange(len(read)) - first)[order]

    def of(self, value: int) -> dict[tuple[int, int], None]:
        """{(node id, input slot): None} of a value."""
        start = int(self._values.searchsorted(value))
        stop = int(self._values.searchsorted(value + 1))
        return dict.fromkeys(zip(self._nodes[start:stop].tolist(), self._slots[start:stop].tolist(), strict=True))
