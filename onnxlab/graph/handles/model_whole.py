"""Edits of a Model as a whole: its opsets, metadata and documentation, conversion, and cleaning."""

from typing import Any

from onnxlab.argument_types import plain
from onnxlab.graph import edits
from onnxlab.graph.handles.model_lookup import Lookup
from onnxlab.graph.handles.properties import Metadata, Opsets


class WholeEditing(Lookup):
    """Fields of a model, and edits that go over all of it; see `Model`."""

    __slots__ = ()

    @property
    def opsets(self) -> Opsets:
        """Opset versions by operator domain, live; setting one converts nothing (`convert_opset` does).

        Examples:
            >>> dict(model.opsets)
            {'': 20}
            >>> model.opsets["com.microsoft"] = 1
        """
        return Opsets(self.graph)

    def opsets_of(self, function: str) -> Opsets:
        """Opset versions that a function imports, live; graphs and bodies go by the model's.

        Args:
            function: its path, "local::Block".

        Returns:
            Opsets: versions by operator domain; setting one is an edit and converts nothing.

        Raises:
            NameLookupError: there is no such function.
            EditError: the path leads to a graph.

        Examples:
            >>> model.make_function(["/stem/relu/Relu"], "Activation")
            [<Node 'Activation': local::Activation>]
            >>> dict(model.opsets_of("local::Activation"))
            {'': 20}
        """
        return Opsets(self.graph, self._scope_record(function))

    @property
    def metadata(self) -> Metadata:
        """metadata_props of the model, live; those of its graph are `graph_metadata`.

        Examples:
            >>> model.metadata["license"] = "MIT"
            >>> model.metadata
            {'license': 'MIT'}
        """
        return Metadata(self.graph, lambda: None)

    @property
    def graph_metadata(self) -> Metadata:
        """metadata_props of the main graph, live; those of the model are `metadata`.

        Examples:
            >>> model.graph_metadata["trained"] = "2024"
            >>> model.graph_metadata
            {'trained': '2024'}
        """
        return Metadata(self.graph, lambda: self.graph.main)

    @property
    def doc_string(self) -> str:
        """Documentation of the model in the file. Setting it is an edit.

        Examples:
            >>> model.doc_string = "Recognizes digits."
            >>> model.history.labels
            ['document the model']
        """
        return str(self.graph.proto.doc_string)

    @doc_string.setter
    def doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, None, text)

    @property
    def graph_doc_string(self) -> str:
        """Documentation of the main graph in the file. Setting it is an edit.

        Examples:
            >>> model.graph_doc_string = "A small ResNet."
        """
        return str(self.graph.proto.graph.doc_string)

    @graph_doc_string.setter
    def graph_doc_string(self, text: str) -> None:
        edits.set_doc_string(self.graph, self.graph.main, text)

    def set_field(self, field: str, value: Any) -> None:
        """Set a plain field of the model.

        Args:
            field: ir_version, producer_name, producer_version, domain or model_version.
            value: a number or text.

        Raises:
            EditError: there is no such field, or the value does not fit it.

        Examples:
            >>> model.set_field("model_version", 2)
            >>> model.proto.model_version
            2
        """
        edits.set_model_field(self.graph, field, plain(value))

    def bind(self, variable: str, output: str | None, initialization: bool = False, training: int = 0) -> None:
        """Bind a variable of the training that the model describes itself (`training_info`) to what is assigned to it.

        Args:
            variable: an initializer of the algorithm, or else of the model.
            output: output of the algorithm, assigned after each step; None removes the binding.
            initialization: whether `output` is one of the initialization, assigned before the first step.
            training: position in `training_info`.

        Raises:
            EditError: there is no such initializer, output or training information.

        Examples:
            >>> model.bind("w", "new_w")
            Traceback (most recent call last):
            onnxlab.errors.EditError: the model has 0 entries of training_info, and none at place 0
        """
        edits.set_binding(self.graph, variable, output, initialization, training)

    def convert_opset(self, version: int) -> int:
        """Convert the model, bodies and functions included, to another version of ai.onnx, up or down.

        Only nodes whose operators changed between the two versions are converted, by onnx's own adapters or, where the
        older version has no such operator, by the function body in the operator's schema.

        Args:
            version: version of ai.onnx.

        Returns:
            int: number of nodes changed.

        Raises:
            EditError: there is no such version, or nodes have no form in it; the message lists these with reasons.

        Examples:
            >>> model.convert_opset(11)
            2
            >>> model.opsets[""]
            11
        """
        return edits.convert_opset(self.graph, version, self._declaration, lambda vid: self._fact_of(vid).value)

    def sort_nodes(self) -> int:
        """Put producers before consumers everywhere.

        Returns:
            int: number of nodes moved.

        Raises:
            EditError: nodes form a cycle.

        Examples:
            >>> model.sort_nodes()
            0
        """
        return edits.sort_nodes(self.graph)

    def drop_dead_nodes(self) -> int:
        """Remove the nodes that no output depends on.

        Returns:
            int: number removed.

        Examples:
            >>> extra = model.add_node("Relu", ["image"])
            >>> model.drop_dead_nodes()
            1
        """
        return edits.drop_dead_nodes(self.graph)

    def drop_unused_initializers(self) -> int:
        """Remove the stored tensors that no node reads.

        Returns:
            int: number removed.

        Examples:
            >>> unused = model.add_initializer("unused", np.zeros(3))
            >>> model.drop_unused_initializers()
            1
        """
        return edits.drop_unused_initializers(self.graph)

    def drop_unused_functions(self) -> int:
        """Remove the functions that no node calls.

        Returns:
            int: number removed.

        Examples:
            >>> call = model.make_function(["/stem/relu/Relu"], "Activation")
            >>> model.inline()
            1
            >>> model.drop_unused_functions()
            0
        """
        return edits.drop_unused_functions(self.graph)
