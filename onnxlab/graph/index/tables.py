"""The tables that every part of the index reads: records by id, the nesting of scopes, the nodes' neighbors.

`index.py` describes the whole index.
"""

from collections.abc import Iterator

import onnx

from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord

FunctionKey = tuple[str, str, str]
"""(domain, name, overload), with "" for ai.onnx."""


class Tables:
    """Nodes, values and scopes by id.

    Attributes:
        undefined: ids of values that are read but not defined.
        gone: the last records of values removed since `gone` was last cleared, by id; some may exist again.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, NodeRecord] = {}
        self.values: dict[int, ValueRecord] = {}
        self.scopes: dict[int, Scope] = {}
        self.undefined: set[int] = set()
        self.gone: dict[int, ValueRecord] = {}
        self._last_id = 0

    @property
    def newest_id(self) -> int:
        """The greatest id that was given so far."""
        return self._last_id

    def new_id(self) -> int:
        """An id that was never used before."""
        self._last_id += 1
        return self._last_id

    # -- nesting ----------------------------------------------------------------------------------------------------

    def parent_of(self, scope: Scope) -> Scope | None:
        """The scope around a body, None for the others."""
        return self.scopes.get(scope.parent)

    def root_of(self, scope: Scope) -> Scope:
        """The main graph or function that a scope is in."""
        while scope.parent:
            scope = self.scopes[scope.parent]
        return scope

    def is_inside(self, scope_id: int, outer: int) -> bool:
        """Whether a scope is `outer` or nested in it."""
        while scope_id and scope_id != outer:
            scope_id = self.scopes[scope_id].parent
        return scope_id == outer

    def owner_in(self, node: NodeRecord, scope_id: int) -> int:
        """Id of the node of `scope_id` that is `node` or holds it in a body; 0 where none does."""
        while node.scope != scope_id:
            owner = self.scopes[node.scope].owner
            if not owner:
                return 0
            node = self.nodes[owner]
        return node.id

    def calls(self, scope: Scope) -> Iterator[NodeRecord]:
        """The nodes that call a function; none for another scope."""
        if scope.kind == "function":
            key = function_key(scope.proto)
            yield from (node for node in self.nodes.values() if function_key(node.proto) == key)

    def of_domain(self, domain: str, root: Scope) -> Iterator[NodeRecord]:
        """The nodes with operators of a domain whose versions the imports of a main graph or function say."""
        domain = "" if domain == "ai.onnx" else domain
        for node in self.nodes.values():
            if node.domain == domain:
                node_root = self.root_of(self.scopes[node.scope])
                if node_root is root or not (node_root.is_function or root.is_function):
                    yield node

    # -- neighbors -------------------------------------------------------------------------------------------------

    def consumers(self, node: NodeRecord) -> Iterator[int]:
        """Ids of the nodes of the same scope that read what `node` makes, themselves or in a body; may repeat."""
        for vid in node.outputs:
            value = self.values.get(vid)
            if value and value.producers and value.producers[0][0] == node.id:
                for use, _ in value.uses:
                    reader = self.nodes[use]
                    consumer = use if reader.scope == node.scope else self.owner_in(reader, node.scope)
                    if consumer:
                        yield consumer
                yield from self._returning(value, node.scope)

    def _returning(self, value: ValueRecord, scope: int) -> Iterator[int]:
        """Ids of the nodes of a scope with a body that returns a value of that scope as it is."""
        for returning, _ in value.formal_outputs:
            body = self.scopes[returning]
            if returning != scope and body.owner and (owner := self.owner_in(self.nodes[body.owner], scope)):
                yield owner

    def producers(self, node: NodeRecord) -> Iterator[int]:
        """Ids of the nodes of the same scope that make what `node` or a body of it reads; may repeat."""
        for vid in [*node.inputs, *self.captures(node)] if node.bodies else node.inputs:
            if vid and (producer := self.values[vid].producer):
                maker = self.nodes[producer[0]]
                if maker.scope == node.scope:
                    yield maker.id

    def captures(self, node: NodeRecord) -> list[int]:
        """Ids of the values that the bodies of a node read from outside of them; may repeat."""
        captured: list[int] = []
        for bodies in node.bodies.values():
            for body in bodies:
                captured.extend(vid for vid in self._read_in(body) if not self.is_inside(self.values[vid].scope, body))
        return captured

    def _read_in(self, scope_id: int) -> Iterator[int]:
        """Ids of the values that nodes and outputs of a scope and of the scopes in it read; may repeat."""
        stack = [scope_id]
        while stack:
            scope = self.scopes[stack.pop()]
            for inner_id in scope.node_ids:
                inner = self.nodes[inner_id]
                yield from filter(None, inner.inputs)
                for bodies in inner.bodies.values():
                    stack.extend(bodies)
            yield from scope.outputs


def function_key(proto: onnx.FunctionProto | onnx.NodeProto) -> FunctionKey:
    """The key by which nodes call a function, of the function and of a node."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    name = proto.op_type if isinstance(proto, onnx.NodeProto) else proto.name
    return (domain, name, proto.overload)
