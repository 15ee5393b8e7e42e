"""The index over the protos: producers and readers of values, and the meaning of names by scope.

The index is built once from the messages, and the primitive changes keep it up to date; the index never changes a
message. A rebuild reproduces all of its state but the order of `uses` and the ids of nameless nodes and scopes. Its
layers are classes, each derived from the one before: records and nesting (`tables.py`), file order and ranks
(`order.py`), uses and edges (`edges.py`), the meaning of names (`bindings.py`), reading whole scopes (`build.py`), and
the updates of edits (this file).
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import onnx

from onnxlab.graph.index.build import Builder
from onnxlab.graph.index.records import GRAPH_KINDS, NO_BODIES, NodeImage, NodeRecord, Scope, ScopeImage, ValueRecord
from onnxlab.graph.index.tables import FunctionKey, function_key

Ids = dict[str, int]


class Index(Builder):
    """Nodes, values and scopes by id, for a model.

    Attributes:
        main: the scope of the model's graph.
        functions: scope ids of the model-local functions by the key of their calls (the first of equal ones).
        function_ids: scope ids of all model-local functions in file order.
        training: scope ids of the graphs of each training_info, by field ("initialization", "algorithm").
        rewired: whether uses of values are kept up to date already, so that `before_rewiring` has nothing to do.
        may_say_paths: whether names or metadata of nodes may hold paths of modules (see `name_scopes.py`).
    """

    rewired = True
    may_say_paths = True

    def __init__(self, proto: onnx.ModelProto) -> None:
        super().__init__()
        self.functions: dict[FunctionKey, int] = {}
        self.function_ids: list[int] = []
        self.training: list[dict[str, int]] = []
        self.main = self.add_scope("graph", proto.graph)
        for function in proto.functions:
            self.function_ids.append(self.add_scope("function", function).id)
        self._name_functions()
        for number, training in enumerate(proto.training_info):
            self.training.append({
                name: self.add_scope(
                    "training", getattr(training, name), attribute=f"training_info[{number}].{name}",
                    parent=self.main.id,
                ).id
                for name in ("initialization", "algorithm") if training.HasField(name)
            })  # fmt: skip

    def before_change(self) -> None:
        """Called before any change of the model by an edit."""

    def before_rewiring(self) -> None:
        """Called before uses of values change: an index that puts work off has to know how they were."""

    def nodes_called(self, scope: Scope, name: str) -> list[int] | None:
        """Nodes of a scope that may have had a name when it was read, all that had it among them.

        None where the index has no such hint, and a table of all names is needed.
        """
        return None

    def forget_signatures(self) -> None:
        """Let go of what only a first inference asks for."""

    def in_file_order(self) -> Iterator[NodeRecord]:
        """All nodes, those of bodies behind their owners: in an order that every copy of the model has."""
        training = [scope for step in self.training for scope in step.values()]
        for scope in (self.main.id, *self.function_ids, *training):
            yield from self._nodes_inside(self.scopes[scope])

    def _nodes_inside(self, scope: Scope) -> Iterator[NodeRecord]:
        for ident in scope.node_ids:
            node = self.nodes[ident]
            yield node
            for bodies in node.bodies.values():
                for body in bodies:
                    yield from self._nodes_inside(self.scopes[body])

    # -- functions and scopes ---------------------------------------------------------------------------------------

    def add_function(self, position: int, proto: onnx.FunctionProto, image: ScopeImage | None = None) -> Scope:
        """Add a function's scope at a position of the list of functions."""
        scope = self.add_scope("function", proto, image=image)
        self.function_ids.insert(position, scope.id)
        self._name_functions()
        return scope

    def remove_function(self, scope: Scope) -> ScopeImage:
        """Remove a function's scope and return its image."""
        image = self.remove_scope(scope)
        self.function_ids.remove(scope.id)
        self._name_functions()
        return image

    def _name_functions(self) -> None:
        self.functions.clear()
        for scope in self.function_ids:
            self.functions.setdefault(function_key(self.scopes[scope].proto), scope)

    def remove_scope(self, scope: Scope) -> ScopeImage:
        """Take a scope and all that is in it out of the index."""
        nodes = [self.remove_node(self.nodes[node]) for node in reversed(scope.node_ids)]
        nodes.reverse()
        # an output that nothing makes is a value of the graph around it all, which may go with its last reader
        ids = {self.values[vid].name: vid for vid in scope.outputs} | _image_values(nodes) | scope.names
        returned, scope.outputs = dict.fromkeys(scope.outputs), []
        for vid in returned:
            self._returned(self.values[vid], scope.id, ())
            self.settle(self.values[vid])
        inputs, scope.inputs = dict.fromkeys(scope.inputs), []
        for vid in inputs:
            self.values[vid].is_input = False
            self.settle(self.values[vid])
        for vid in list(scope.names.values()):
            if self.values[vid].initializer is not None:
                self.values[vid].initializer = None
                self.settle(self.values[vid])
        self.unsorted.discard(scope.id)
        del self.scopes[scope.id]
        for watcher in self.watchers:
            watcher.scope_removed(scope.id)
        return ScopeImage(scope.id, ids, nodes)

    def remove_bodies(
        self, node: NodeRecord, attribute: str, start: int = 0, count: int | None = None
    ) -> list[ScopeImage]:
        """Take the graphs of an attribute out of the index: all, or `count` from the one at `start`."""
        bodies = node.bodies.get(attribute, [])
        stop = len(bodies) if count is None else start + count
        images = [self.remove_scope(self.scopes[body]) for body in bodies[start:stop]]
        rest = {**node.bodies, attribute: bodies[:start] + bodies[stop:]}
        if len(rest[attribute]) == 0:
            del rest[attribute]
        node.bodies = rest or NO_BODIES
        return images

    # -- nodes ------------------------------------------------------------------------------------------------------

    def add_node(
        self, scope: Scope, position: int, proto: onnx.NodeProto, image: NodeImage | None = None, ident: int = 0
    ) -> NodeRecord:
        """Index a node that now stands at `position` of a scope, under an id of its own, or a new one."""
        node = NodeRecord(ident or self.new_id(), scope.id, proto, 0, [], [], NO_BODIES)
        self.nodes[node.id] = node
        for watcher in self.watchers:
            watcher.node_added(node)
        ids = image.values if image else {}
        self._place(scope, position, node)
        self.set_outputs(node, proto.output[:], ids)
        self.set_inputs(node, proto.input[:], ids)
        if proto.attribute:
            self._bind_bodies(node, image)
        return node

    def remove_node(self, node: NodeRecord) -> NodeImage:
        """Remove a node with its bodies and return its image."""
        scope = self.scopes[node.scope]
        ids = {self.values[vid].name: vid for vid in (*node.inputs, *node.outputs) if vid}
        image = NodeImage(node.proto, node.id, ids)
        if node.bodies:
            image.bodies.update({name: self.remove_bodies(node, name) for name in list(node.bodies)})
        self.set_inputs(node, [])
        self.set_outputs(node, [])
        self._take_out(scope, node)
        del self.nodes[node.id]
        for watcher in self.watchers:
            watcher.node_removed(node)
        return image

    def set_inputs(self, node: NodeRecord, names: Sequence[str], ids: Ids | None = None) -> None:
        """Let a node read the values that `names` mean in its scope."""
        scope, ident, values = self.scopes[node.scope], node.id, self.values
        before, left = node.inputs, []
        now: list[int] = []
        node.inputs = now
        for slot, (vid, name) in enumerate(zip_longest(before, names)):
            if vid:
                value = values[vid]
                if value.name == name:
                    now.append(vid)  # an edge that remains must not be reported as new
                    continue
                left.append(value)
                self._disconnect(value, ident, slot)
            if name:
                value = self.value_for_reading(scope, name, ids)
                now.append(value.id)
                self._connect(value, ident, slot)
            elif name is not None:
                now.append(0)
        for value in left:
            if not value.producers and value.id in values:  # else the value is defined
                self.settle(value)

    def set_outputs(self, node: NodeRecord, names: Sequence[str], ids: Ids | None = None) -> None:
        """Let a node make the values called `names` in its scope."""
        left = self._leave_outputs(node, names) if node.outputs else ()
        now = node.outputs = node.outputs or [0] * len(names)
        for slot, name in enumerate(names):
            if name and not now[slot]:
                value = self.declare(self.scopes[node.scope], name, ids.get(name, 0) if ids else 0)
                self._set_producers(value, [*value.producers, (node.id, slot)])
                self.refresh_info(value)
                now[slot] = value.id
        for value in left:
            if not value.producers and value.id in self.values:  # else the value is defined
                self.settle(value)

    def _leave_outputs(self, node: NodeRecord, names: Sequence[str]) -> list[ValueRecord]:
        """Let a node make no more than those of its values that keep their slots; returns the others."""
        ident, now, left = node.id, [0] * len(names), []
        for slot, (vid, name) in enumerate(zip_longest(node.outputs, names)):
            if vid:
                value = self.values[vid]
                if value.name == name:
                    now[slot] = vid
                elif value not in left:
                    left.append(value)
        node.outputs = now
        for value in left:
            slots = {(ident, slot) for slot, vid in enumerate(now) if vid == value.id}
            self._set_producers(
                value, [producer for producer in value.producers if producer[0] != ident or producer in slots]
            )
        return left

    # -- formal inputs and outputs ----------------------------------------------------------------------------------

    def add_input(self, scope: Scope, position: int, info: Any, ids: Ids | None = None) -> ValueRecord:
        """Declare an input at a position of a scope's inputs."""
        name = info if scope.is_function else info.name
        value = self.declare(scope, name, (ids or {}).get(name, 0))
        value.is_input = True
        scope.inputs.insert(position, value.id)
        self.refresh_info(value)
        return value

    def remove_input(self, scope: Scope, position: int) -> ValueRecord:
        """Forget an input; its message may still be there."""
        value = self.values[scope.inputs.pop(position)]
        if value.id not in scope.inputs:
            value.is_input = False
            self.settle(value)
        return value

    def add_output(self, scope: Scope, position: int, info: Any, ids: Ids | None = None) -> ValueRecord:
        """Declare an output at a position of a scope's outputs."""
        value = self.value_for_reading(scope, info if scope.is_function else info.name, ids or {})
        scope.outputs.insert(position, value.id)
        self._number_outputs(scope, position)
        self.refresh_info(value)
        return value

    def remove_output(self, scope: Scope, position: int) -> ValueRecord:
        """Forget an output; its message may still be there."""
        value = self.values[scope.outputs.pop(position)]
        self._returned(value, scope.id, tuple(at for at, vid in enumerate(scope.outputs) if vid == value.id))
        self._number_outputs(scope, position)
        self.settle(value)
        return value

    def _number_outputs(self, scope: Scope, position: int) -> None:
        """Say anew where a scope returns the values that stand at `position` or behind it."""
        places: dict[int, list[int]] = {vid: [] for vid in scope.outputs[position:]}
        for at, vid in enumerate(scope.outputs):
            if vid in places:
                places[vid].append(at)
        for vid, positions in places.items():
            self._returned(self.values[vid], scope.id, tuple(positions))


def _image_values(nodes: list[NodeImage]) -> Ids:
    ids: Ids = {}
    for node in nodes:
        ids.update(node.values)
    return ids


__all__ = ["GRAPH_KINDS", "FunctionKey", "Index", "NodeImage", "ScopeImage", "function_key"]
