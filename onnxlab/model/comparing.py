"""What changed in a Model since another state of its history, and making the changes of a difference."""

from collections.abc import Collection

from onnxlab.analysis.diff.change import Ignorable
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.patching import patch
from onnxlab.analysis.diff.versions import as_of
from onnxlab.graph.edit.model_graph import ModelGraph


class Comparing:
    """Differences of a Model, as members."""

    __slots__ = ()

    graph: ModelGraph

    def changes_since(self, state: int | str = 0, *, ignore: Collection[Ignorable] = ()) -> Diff:
        """Compare the model with what it was at another state of its history.

        Args:
            state: a number of edits since the model was loaded, negative from now, or the label of the edit that led
                to it; 0 is the model as loaded.
            ignore: as of `onnxlab.diff`.

        Returns:
            Diff: from that state to now.

        Raises:
            EditError: the history has no such state, or had to drop the edits since then.

        Examples:
            >>> model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> print(model.changes_since().changes[0])
            node /stem/relu/Relu: operator Relu → Sigmoid
        """
        with self.graph.lock:
            return Diff(as_of(self.graph, self.graph.history.position_of(state)), self.graph, ignore)

    def patch(self, diff: Diff, *, strict: bool = True) -> list[str]:
        """Make the changes of a difference to this model, as one step of the history.

        The first model of the difference becomes the second one to the byte, unless something was ignored. In another
        model, what corresponds to the first one by structure is changed.

        Args:
            diff: of two other models, from `onnxlab.diff`.
            strict: refuse where something that changed is not in this model; False makes the other changes.

        Returns:
            list[str]: what could not be found.

        Raises:
            EditError: something is missing, the models were edited since, or the result would not be valid.

        Examples:
            >>> other = onnxlab.load()
            >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> model.patch(onnxlab.diff(model, other))
            []
            >>> model.nodes["/stem/relu/Relu"].op_type
            'Sigmoid'
        """
        return patch(self.graph, diff, strict=strict)
