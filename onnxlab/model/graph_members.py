"""The graph of a Model: nodes and values as handles, its inputs and outputs, and networkx."""

from typing import Any

import onnx

from onnxlab.argument_types import plain
from onnxlab.graph.handles.handles import Node, Nodes, Value
from onnxlab.graph.handles.model_lookup import Lookup
from onnxlab.graph.index.records import Scope
from onnxlab.infer import Inference


class GraphMembers(Lookup):
    """Nodes and values of a model; see `Model`."""

    __slots__ = ()

    inference: Inference

    @property
    def proto(self) -> onnx.ModelProto:
        """The live ModelProto: read it freely, change it through the model.

        Examples:
            >>> model.proto.graph.name
            'digits'
        """
        return self.graph.share()

    @property
    def nodes(self) -> Nodes:
        """Nodes of the main graph: by position, name, output, or path into a body ("if_3/then_branch/Conv_2").

        Examples:
            >>> model.nodes[0], model.nodes["/stem/relu/Relu"], len(model.nodes)
            (<Node '/stem/conv/Conv': Conv>, <Node '/stem/relu/Relu': Relu>, 24)
        """
        return Nodes(self.graph)

    @property
    def nx(self) -> Any:
        """The main graph as a live, read-only networkx.MultiDiGraph of node ids: any of its algorithms runs on it.

        Nodes have `op_type`, `domain` and `name`; edges `name`, `kind` ("data" or "capture"), and by inference `dtype`,
        `shape` and `bytes`. `model.node(id)` is a node's handle.

        Examples:
            >>> import networkx
            >>> way = networkx.dag_longest_path(model.nx, weight="bytes")
            >>> model.node(way[0])
            <Node '/stem/conv/Conv': Conv>
        """
        return self._network(self.graph.main)

    def nx_of(self, scope: str) -> Any:
        """View a body or function as a networkx graph; see `nx`.

        Args:
            scope: its path: "if_3/then_branch", "domain::name"; "" is the main graph.

        Returns:
            networkx.MultiDiGraph: live and read-only.

        Raises:
            NameLookupError: there is no such scope.

        Examples:
            >>> model.nx_of("").number_of_nodes()
            24
        """
        return self._network(self._scope_record(scope))

    def _network(self, scope: Scope) -> Any:
        self.graph.networks.fact_of = self.inference.fact  # only now: views with facts keep all facts in memory
        return self.graph.nx(scope)

    def node(self, ident: int) -> Node:
        """Look a node up.

        Args:
            ident: id of the node, or what `nodes[…]` takes: a position, name, output or path.

        Returns:
            Node: the handle.

        Raises:
            NameLookupError: no node, or more than one, matches.

        Examples:
            >>> model.node("/stem/relu/Relu").op_type
            'Relu'
        """
        ident = plain(ident)
        known = isinstance(ident, int) and ident in self.graph.nodes
        return Node(self.graph, ident if known else self.graph.resolve_node(ident))

    def value(self, key: int | str) -> Value:
        """Look a value up.

        Args:
            key: id or name of the value, or a path into a body ("if_3/then_branch/x").

        Returns:
            Value: the handle.

        Raises:
            NameLookupError: there is no such value.

        Examples:
            >>> model.value("stem/relu_out").producer
            <Node '/stem/relu/Relu': Relu>
        """
        key = plain(key)
        if isinstance(key, int) and key in self.graph.values:
            return Value(self.graph, key)
        return Value(self.graph, self.graph.resolve_value(key))  # type: ignore[arg-type]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Inputs that a run must be given: those that are not also initializers.

        Examples:
            >>> model.inputs
            (<Value 'image'>,)
        """
        values = (Value(self.graph, vid) for vid in self.graph.main.inputs)
        return tuple(value for value in values if value.initializer is None)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Outputs of the main graph, in order.

        Examples:
            >>> model.outputs
            (<Value 'probabilities'>,)
        """
        return tuple(Value(self.graph, vid) for vid in self.graph.main.outputs)
