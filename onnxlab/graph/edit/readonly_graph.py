"""A graph for a single look, such as inference from scratch."""

from __future__ import annotations

from functools import partial

import onnx

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.readonly_index import GlanceIndex


class ReadOnlyGraph(ModelGraph):
    """A ModelGraph that is likely to be looked at once and dropped; all that a ModelGraph can do, it can."""

    def __init__(self, proto: onnx.ModelProto, data: bytes | None = None) -> None:
        self.index_type = partial(GlanceIndex, data=data)
        super().__init__(proto)
        assert isinstance(self.index, GlanceIndex)
        self.met = self.index

    def take_apart(self) -> None:
        """Let go of everything at once, the message included; nothing can be asked any more."""
        vars(self.index).clear()
        vars(self).clear()
