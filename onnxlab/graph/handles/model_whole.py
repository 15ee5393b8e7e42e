"""Edits of a Model as a whole: its opsets, metadata and documentation, conversion, and cleaning."""

from typing import Any

from onnxlab.graph import edits
from onnxlab.graph.handles.model_lookup import Lookup
from onnxlab.graph.handles.properties import Metadata, Opsets


class WholeEditing(Lookup):
    """Fields of a model, and edits that go over all of it; see `Model`."""

    __slots__ = ()

    @property
    def opsets(self) -> Opsets:
        """Opset versions by operator domain, live; setting one converts nothing."""
        return Opsets(self.graph)

    def opsets_of(self, function: str) -> Opsets:
        """The same of what a function ("local::Block") imports; graphs and bodies go by the model's."""
        return Opsets(self.graph, self._scope_record(function))

    @property
    def metadata(self) -> Metadata:
        """metadata_props of the model, live; those of its graph are `graph_metadata`."""
        return Metadata(self.graph, lambda: None)

    @property
    def graph_metadata(self) -> Metadata:
        """metadata_props of the main graph, live."""
        return Metadata(self.graph, lambda: self.graph.main)

    @property
    def doc_string(self) -> str:
        """The model's text about itself. Setting it is an edit."""
        return str(self.graph.proto.doc_string)

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, None, text)

    @property
    def graph_doc_string(self) -> str:
        """The main graph's text about itself. Setting it is an edit."""
        return str(self.graph.proto.graph.doc_string)

    @graph_doc_string.setter
    def graph_doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, self.graph.main, text)

    def set_field(self, field: str, value: Any) -> None:
        """Set ir_version, producer_name, producer_version, domain or model_version."""
        edits.set_model_field(self.graph, field, value)

    def convert_opset(self, version: int) -> int:
        """Convert the model, bodies and functions included, to another version of ai.onnx, up or down.

        Only nodes whose operators changed between the two versions are touched, by onnx's own adapters or, where the
        older version has no such operator, by what its schema says it stands for. Returns how many nodes changed.

        Raises:
            EditError: there is no such version, or nodes cannot be said in it; the message lists them with reasons.
        """
        return edits.convert_opset(self.graph, version, self._declaration, lambda vid: self._fact_of(vid).value)

    def sort_nodes(self) -> int:
        """Put producers before consumers everywhere; returns how many nodes were moved."""
        return edits.sort_nodes(self.graph)

    def drop_dead_nodes(self) -> int:
        """Remove the nodes that no output depends on; returns how many."""
        return edits.drop_dead_nodes(self.graph)

    def drop_unused_initializers(self) -> int:
        """Remove the stored tensors without readers; returns how many."""
        return edits.drop_unused_initializers(self.graph)

    def drop_unused_functions(self) -> int:
        """Remove the functions that are never called; returns how many."""
        return edits.drop_unused_functions(self.graph)
