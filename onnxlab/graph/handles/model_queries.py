"""Questions that a Model answers about its structure, by names and handles: thin calls of `node_search`, `cones`."""

from collections.abc import Callable, Sequence
from typing import Any

from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.handles.model_edits import Editing
from onnxlab.graph.handles.structure import Structure
from onnxlab.graph.query import node_search
from onnxlab.graph.query.node_search import Pattern


class Querying(Editing):
    """Queries about a model's structure. Nodes come back as handles, scope by scope in file order.

    The bodies of If, Loop and Scan, and functions, are scopes of their own.
    """

    __slots__ = ()

    @property
    def structure(self) -> Structure:
        """Ancestors, cones, paths, boundaries, and copies of blocks; see `help(model.structure)`.

        Examples:
            >>> len(model.structure.ancestors("/head/Softmax"))
            23
        """
        return Structure(self)

    def find(
        self,
        op_type: Pattern | None = None,
        *,
        domain: Pattern | None = None,
        name: Pattern | None = None,
        dtype: Any = None,
        shape: Sequence[Any] | None = None,
        scope: str | None = None,
        where: Callable[[Node], Any] | None = None,
        **attributes: Any,
    ) -> list[Node]:
        """Find the nodes for which all holds that is given.

        Args:
            op_type: a glob ("Conv*"), or several of which one must match.
            domain: the same for the operator's domain.
            name: the same for the node's name.
            dtype: inferred element type of one of the outputs.
            shape: shape of the same output: ints, names of dims, None for any dim, `...` for any number of dims.
            scope: a path to search alone ("" is the main graph); None searches bodies and functions too.
            where: asked last, with a handle.
            attributes: values by name, defaults included; `...` for "is set", None for "is not set".

        Returns:
            list[Node]: the nodes, scope by scope in file order.

        Raises:
            NameLookupError: there is no such scope.

        Examples:
            >>> model.find("Conv", name="/block2/*", shape=(..., 4, 4), strides=[2, 2])
            [<Node '/block2/conv1/Conv': Conv>, <Node '/block2/shortcut/Conv': Conv>]
            >>> model.find(where=lambda node: len(node.inputs) > 4)[0]
            <Node '/stem/bn/BatchNormalization': BatchNormalization>
        """
        condition = None if where is None else (lambda node: where(Node(self.graph, node.id)))
        matches = node_search.find(
            self.graph, self._fact_of, op_type=op_type, domain=domain, name=name, dtype=dtype, shape=shape,
            scope=None if scope is None else self._scope_record(scope), where=condition, attributes=attributes,
        )  # fmt: skip
        return [Node(self.graph, node) for node in matches]

    def find_values(
        self,
        name: Pattern | None = None,
        *,
        dtype: Any = None,
        shape: Sequence[Any] | None = None,
        kind: str | None = None,
        scope: str | None = None,
    ) -> list[Value]:
        """Find the values for which all holds that is given.

        Args:
            name: a glob, or several of which one must match.
            dtype: inferred element type.
            shape: ints, names of dims, None for any dim, `...` for any number of dims.
            kind: "input", "output", "initializer", "made" or "unused".
            scope: a path to search alone ("" is the main graph); None searches bodies and functions too.

        Returns:
            list[Value]: the values.

        Raises:
            NameLookupError: there is no such scope or kind.

        Examples:
            >>> model.find_values("head.*", kind="initializer")
            [<Value 'head.minus_one'>, <Value 'head.fc.weight'>, <Value 'head.fc.bias'>]
        """
        where = None if scope is None else self._scope_record(scope)
        matches = node_search.find_values(
            self.graph, self._fact_of, name=name, dtype=dtype, shape=shape, kind=kind, scope=where
        )
        return [Value(self.graph, value) for value in matches]
