"""Look-up by the names that users use: nodes by name, position or output, values by name, scopes by path."""

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any

from onnxlab.argument_types import expect, plain
from onnxlab.errors import NameLookupError
from onnxlab.graph.index.index import Index, function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.spelling import suggestion


class Names:
    """Look nodes, values and scopes up by name. Node names are collected scope by scope: of 100,000 in 40 ms.

    In a main graph just read, the index answers the first lookups from hashes of the names, and the names are
    collected only after many lookups.

    Attributes:
        index: the records of the named nodes, values and scopes.
        lock: the graph's lock.
    """

    def __init__(self, index: Index, lock: AbstractContextManager[Any]) -> None:
        self.index = index
        self.lock = lock  # a look-up updates the tables, and its caller may not hold the lock
        self._by_name: dict[int, dict[str, int | dict[int, None]]] = {}  # the one node of a name, as mostly, or several
        self._known: dict[int, dict[int, str]] = {}
        self._stale: dict[int, int] = {}
        self._telling: dict[tuple[int, str], bool] = {}  # answers of `tells` since the last change of a name
        self._touched: dict[int, None] = {}  # nodes of the main graph that may have another name than in the file

    def forget(self, node: NodeRecord) -> None:
        """Look at the name of a node again: it was added or changed, or is about to be removed."""
        with self.lock:
            self._telling.clear()
            if node.scope in self._known:
                self._stale[node.id] = node.scope
            elif node.scope == self.index.main.id:
                self._touched[node.id] = None

    def nodes_called(self, scope: Scope, name: str) -> list[int]:
        """Ids of the nodes of a scope with a name, in file order."""
        with self.lock:
            ids = list(self._called(scope, name))
        return sorted(ids, key=lambda node: self.index.nodes[node].label) if len(ids) > 1 else ids

    def resolve_node(self, key: int | str) -> int:
        """Id of a node: an int is a position in file order (negative from the end), a str a node name, else an output.

        "if_3/then_branch/Conv_2" (or "if_3/then/Conv_2") is a path into the bodies of a node; a key with slashes is
        first tried as a plain name. "Conv#12" is the label of a nameless node.

        Raises:
            NameLookupError: the key fits no node, or more than one; the message lists candidates.
        """
        index = self.index
        key = key if isinstance(key, str) else plain(key)
        if isinstance(key, int) and not isinstance(key, bool):
            try:
                return index.main.node_ids[key]
            except IndexError:
                raise NameLookupError(
                    f"no node at position {key}: the graph has {len(index.main.node_ids)} nodes"
                ) from None
        if not isinstance(key, str):
            raise NameLookupError(f"nodes are looked up by position or name, got {type(key).__name__}: {key!r}")
        if not key:
            raise NameLookupError("an empty name means no node; use a position, an output name, or model.node(id)")
        for scope, name in self._split_path(key):
            if node := self._in_scope(scope, name, key):
                return node
        raise NameLookupError(f"no node is called {key!r}, and none makes a value of that name.{self._suggest(key)}")

    def tells(self, scope: Scope, name: str) -> bool:
        """Whether one node alone of a scope has a name."""
        with self.lock:
            known = self._telling.get((scope.id, name))
            if known is None:
                known = self._telling[scope.id, name] = len(self._called(scope, name)) == 1
            return known

    def _called(self, scope: Scope, name: str) -> Collection[int]:
        """Ids of the nodes of a scope with a name, in any order."""
        names = self._by_name.get(scope.id)
        if names is None and (ids := self._searched(scope, name)) is not None:
            return ids
        if names is None or self._stale:
            names = self._names(scope)
        entry = names.get(name, 0)
        return entry if isinstance(entry, dict) else (entry,) if entry else ()

    def _searched(self, scope: Scope, name: str) -> list[int] | None:
        """Ids of the nodes with a name, without a table of all; None where that is there or has to be made."""
        index = self.index
        if scope.id in self._by_name or scope.id != index.main.id:
            return None
        read = index.nodes_called(scope, name) if name else []
        if read is None:
            return None
        nodes = index.nodes
        return [
            ident
            for ident in dict.fromkeys([*read, *self._touched])
            if name and ident in nodes and nodes[ident].scope == scope.id and nodes[ident].proto.name == name
        ]

    def _in_scope(self, scope: Scope, name: str, key: str) -> int:
        ids = self.nodes_called(scope, name)
        if len(ids) > 1:
            positions = ", ".join(str(scope.position(self.index.nodes[node])) for node in ids[:8])
            raise NameLookupError(
                f"{len(ids)} nodes are called {key!r}, at positions {positions}; use a position, or an output's name"
            )
        if ids:
            return ids[0]
        vid = scope.names.get(name)
        if vid and (producer := self.index.values[vid].producer):
            return producer[0]
        operator, _, position = name.rpartition("#")
        if operator and position.isdigit() and int(position) < len(scope.node_ids):
            node = scope.node_ids[int(position)]
            if self.index.nodes[node].op_type == operator:
                return node
        return 0

    def _names(self, scope: Scope) -> dict[str, int | dict[int, None]]:
        if self._stale:
            self._refresh()
        ids_of = self._by_name.get(scope.id)
        if ids_of is None:
            nodes, ids = self.index.nodes, list(scope.node_ids)
            if scope.id == self.index.main.id:
                self._touched.clear()
            names = [nodes[node].proto.name for node in ids]
            self._known[scope.id] = dict(zip(ids, names, strict=True))
            ids_of = self._by_name[scope.id] = dict(zip(names, ids, strict=True))
            if len(ids_of) < len(names):
                for name, node in zip(names, ids, strict=True):
                    if ids_of[name] != node:
                        _enter(ids_of, name, node)
            ids_of.pop("", None)
        return ids_of

    def _refresh(self) -> None:
        for ident, scope in self._stale.items():
            names, known, node = self._by_name[scope], self._known[scope], self.index.nodes.get(ident)
            name, old = node.proto.name if node is not None else "", known.get(ident, "")
            if name == old:
                continue
            if old:
                _strike(names, old, ident)
            if name:
                _enter(names, name, ident)
            if node is None:
                known.pop(ident, None)
            else:
                known[ident] = name
        self._stale.clear()

    def _suggest(self, key: str) -> str:
        with self.lock:
            names = list(self._names(self.index.main))
        inside = self._inside(key, lambda scope: self.nodes_called(scope, key))
        return inside or suggestion(key, [*names, *self.index.main.names])

    def _inside(self, key: str, has: Callable[[Scope], object]) -> str:
        """The end of a message, with the paths of what bears a name in bodies and functions; "" where nothing does."""
        index = self.index
        paths = (
            f"{self.scope_path(scope)}/{key}"
            for scope in index.scopes.values()
            if scope.id != index.main.id and has(scope)
        )
        places = ", ".join(repr(path) for path in islice(paths, 3))
        return f" In bodies and functions there is {places}." if places else ""

    def label(self, node: NodeRecord) -> str:
        """A node's name in messages: its own, or operator and position ("Conv#12") where it has none."""
        return node.name or self.label_by_place(node)

    def label_by_place(self, node: NodeRecord) -> str:
        """Operator and position of a node: "Conv#12"."""
        return f"{node.op_type}#{self.index.scopes[node.scope].position(node)}"

    def resolve_value(self, key: str) -> int:
        """Id of the value called `key` in the main graph, or on a path ("if_3/then_branch/x", "my.domain::f/x").

        Raises:
            NameLookupError: no such value; the message lists similar names.
        """
        if not isinstance(key, str) or not key:
            raise NameLookupError(f"values are looked up by a name that is not empty, got {key!r}")
        for scope, name in self._split_path(key):
            if vid := scope.names.get(name):
                return vid
        raise NameLookupError(
            f"no value is called {key!r}{self._as_node(key)}."
            f"{self._inside(key, lambda scope: key in scope.names) or suggestion(key, self.index.main.names)}"
        )

    def _as_node(self, key: str) -> str:
        """Words for a key that is the name of a node; "" where it is not."""
        try:
            node = self.index.nodes[self.resolve_node(key)]
        except NameLookupError:
            return ""
        outputs = ", ".join(repr(name) for name in node.proto.output if name)
        return f"; it is a node, which makes {outputs or 'none'}"

    def scope_path(self, scope: Scope, telling: bool = False) -> str:
        """The path that leads to a scope: "" for the main graph, "domain::name" (":overload") for a function.

        A `telling` path has operator and position ("If#3") in the place of a name that several nodes have, and the
        position of a function ("domain::name#3") behind the name of one before it.
        """
        index = self.index
        parts: list[str] = []
        while scope.id != index.main.id:
            if scope.is_function:
                overload = f":{scope.proto.overload}" if scope.proto.overload else ""
                again = telling and index.functions.get(function_key(scope.proto), scope.id) != scope.id
                position = f"#{index.function_ids.index(scope.id)}" if again else ""
                parts.append(f"{scope.proto.domain}::{scope.proto.name}{overload}{position}")
                break
            if scope.kind == "training":
                parts.append(scope.attribute)  # "training_info[0].algorithm"
                break
            owner = index.nodes[scope.owner]
            siblings = owner.bodies[scope.attribute]
            number = f"[{siblings.index(scope.id)}]" if len(siblings) > 1 else ""
            scope_of_owner = index.scopes[owner.scope]
            tells = not telling or self.tells(scope_of_owner, owner.name)
            parts += [scope.attribute + number, self.label(owner) if tells else self.label_by_place(owner)]
            scope = scope_of_owner
        return "/".join(reversed(parts))

    def find_scope(self, path: str) -> Scope:
        """The scope that a path leads to, a telling one too; see `scope_path`.

        Raises:
            NameLookupError: no scope has this path; the message lists the paths of scopes.
        """
        expect(path, str, "the path of a scope", 'a string, "" for the main graph')
        if not path:
            return self.index.main
        short = without_branch(path)
        repeated = len(self.index.functions) < len(self.index.function_ids)
        for telling in (True, False) if repeated else (False, True) if "#" in path else (False,):
            scope_at = {without_branch(self.scope_path(scope, telling)): scope for scope in self.index.scopes.values()}
            if short in scope_at:
                return scope_at[short]
        known = ", ".join(repr(self.scope_path(scope)) for scope in list(self.index.scopes.values())[1:20]) or "none"
        raise NameLookupError(f"no body or function is called {path!r}; there are {known}")

    def _split_path(self, key: str) -> Iterable[tuple[Scope, str]]:
        """Ways to read a key: a plain name of the main graph first, then a scope's path and a name in it."""
        yield self.index.main, key
        if "/" not in key:
            return
        short = without_branch(key)
        for scope in self.index.scopes.values():
            prefix = without_branch(self.scope_path(scope)) + "/"
            if scope.id != self.index.main.id and short.startswith(prefix):
                yield scope, key[len(prefix) - len(short) :]


def _enter(names: dict[str, int | dict[int, None]], name: str, node: int) -> None:
    """Give one more node a name."""
    entry = names.get(name)
    if entry is None:
        names[name] = node
    elif isinstance(entry, int):
        names[name] = {entry: None, node: None}
    else:
        entry[node] = None


def _strike(names: dict[str, int | dict[int, None]], name: str, node: int) -> None:
    """Take a name from a node."""
    entry = names[name]
    if isinstance(entry, int) or len(entry) == 1:
        del names[name]
    else:
        del entry[node]


def without_branch(path: str) -> str:
    """A path with "then" for "then_branch", as people write it."""
    return re.sub(r"_branch(?=/|$)", "", path)
