"""The hot path: regions of a model as plans of compiled kernels (Numba), NumPy until they are ready.

    Runner(graph, inference.fact, [NumbaProvider(), NumpyProvider()])

The provider takes nodes of the operators in `rules` on float32, float16 (widened) and 8-bit integers, and the nodes
that compute their shapes. NumPy runs the first call. After it, a background thread imports the modules for claiming and
compiling, and compiles. Numba itself is imported only by the process that compiles.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

from onnxlab import dtypes
from onnxlab.errors import OnnxlabError
from onnxlab.execution.base import background
from onnxlab.execution.base.provider import (
    Capabilities,
    CompiledPart,
    Part,
    PartitionView,
    Provider,
    Step,
    SubgraphClaim,
)
from onnxlab.execution.numba.machine import availability
from onnxlab.execution.numba.plan.weight_packing import SharedConstants
from onnxlab.execution.numba.region.fallback import failed, with_fallback
from onnxlab.execution.numba.rules.loading import load
from onnxlab.execution.numpy.provider import NumpyProvider, check_arity, schema_of, step_of
from onnxlab.execution.program.executor import ProgramBody
from onnxlab.execution.program.program import assemble
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops import find_traits
from onnxlab.shapes import TensorFact

_WORTH = 5  # weight of rules below which a scope is left to NumPy


_WORTH_OFTEN = 2  # weight of rules below which a body, which runs again and again, is left to NumPy


class NumbaProvider(Provider):
    """Runs regions of nodes with compiled kernels.

    Args:
        threads: of a run.
        background: let NumPy run the nodes while kernels compile; otherwise the first call waits for the kernels.
        precise: do without Winograd's convolutions, which round more than others.
        least: gain, in passes over memory, below which no node of a scope is claimed.
    """

    name = "numba"

    def __init__(self, threads: int = 1, background: bool = True, precise: bool = False, least: int = _WORTH) -> None:
        self.threads = threads
        in_background = background and not availability.missing()
        self.capabilities = Capabilities(inlines=True, own_threads=True, background=in_background, trusted=True)
        self.precise = precise
        self.least = least
        self._constants = SharedConstants()

    def prepare(self) -> None:
        """Import and load all that claiming nodes and running them takes."""
        if availability.missing():
            return
        load()
        background.rest()
        importlib.import_module("onnxlab.execution.numba.region.region").engine.start()
        importlib.import_module("onnxlab.execution.numba.plan.kernels_ahead").begin()

    def get_capability(self, view: PartitionView) -> list[SubgraphClaim]:
        """Claim nodes that have a rule, and those that compute shapes; `view.refuse` gets the reasons for others."""
        claims = None if availability.missing() else _Claims(view)
        if claims is None or claims.weight < (self.least if view.scope.scope.kind != "subgraph" else _WORTH_OFTEN):
            reason = availability.missing() or "too little to do to be worth compiling"
            view.refusals.update((node.id, reason) for node in view.nodes)
            return []
        claims.close()
        view.notes[self] = claims
        return [SubgraphClaim(tuple(claims.taken))]

    def still(self, view: PartitionView, nodes: Collection[NodeView]) -> bool:
        """Whether it would claim the same nodes, where only `nodes`, or the data that they read, changed."""
        claims: _Claims | None = view.notes.get(self)
        return claims is not None and claims.still(view, nodes)

    def compile(self, part: Part, view: PartitionView) -> CompiledPart:
        """A region. Raises OnnxlabError where NumPy, by which the region runs at first, cannot run it."""
        claims: _Claims | None = view.notes.get(self)
        return self._region(part, view, frozenset(() if claims is None else claims.names))

    def _region(
        self, part: Part, view: PartitionView, known: frozenset[str], constants: Mapping[str, Any] | None = None,
        before: Any = None,
    ) -> CompiledPart:  # fmt: skip
        """A region of a part, or of a piece of one.

        Args:
            known: values that follow from shapes.
            constants: those of a part that can be compiled; default: gathered, after a check.
            before: the region before an edit.
        """
        from onnxlab.execution.numba.plan.elementwise_chains import SMALL_FLOATS
        from onnxlab.execution.numba.region.region import Region

        whole = part
        if constants is None:
            NumpyProvider().check(part, view)  # by which the region runs at first
            whole = _with_constants(part, view)
            constants = view.constants(whole.nodes)

        @cache
        def step(node: NodeView) -> Step:
            return step_of(node, view.scope)

        fallback = ProgramBody(part.inputs, part.outputs, (), (), lambda: assemble(
            NumpyProvider().compile(part, view), part.inputs, part.outputs, view.constant, "a region"))  # fmt: skip
        facts = {name: view.fact(name) for name in part.outputs}
        halves = {name: fact.dtype for name, fact in facts.items() if fact.dtype in SMALL_FLOATS}
        region = Region(
            whole, constants, step, view.opsets, fallback, halves, lambda: self.threads, self.capabilities.background,
            self.precise, self._constants.region(),
            lambda node: fallback if node not in part.nodes else with_fallback(
                node, part, view, lambda piece, inner: self._region(piece, inner, known)),
            known.intersection(part.inputs), before,
        )  # fmt: skip

        def again(later: Part, now: PartitionView, names: Collection[str]) -> CompiledPart | None:
            nonlocal view
            if whole is not part:  # an edit may be of a node that is not the part's
                return None
            others = [] if later.nodes == part.nodes else [*{*later.nodes} - {*part.nodes}]
            if not others and constants.keys().isdisjoint(names) and region.edited_elsewhere():
                view = now  # else the earlier model is kept
                return CompiledPart(region)
            NumpyProvider().check(Part("numpy", tuple(others), (), ()), now)
            replaced = {name: now.constant(name) for name in names if name in constants}
            return self._region(later, now, known, {**constants, **replaced}, region)

        return region.compiled_part(again)


class _Claims:
    """Chooses the nodes of a scope to take.

    Attributes:
        constant, fact: as of `PartitionView`, until the claims are closed.
        names: names of values that are constant or follow from shapes.
        taken: {node id: None} in order.
        weight: sum of the weights of the rules.
    """

    def __init__(self, view: PartitionView) -> None:
        self._look_at(view)
        self._find = load()
        self._reads = view.visible.union(*map(view.reads, background.paced(view.nodes)))
        self.names: set[str] = set()
        self._makers: dict[str, NodeView] = {}
        self._made: set[str] = set()  # names that the region computes
        self.weight = 0
        claimed = [node for node in background.paced(view.nodes) if self._takes(node)]
        needed: set[str] = {name for node in background.paced(claimed) for name in node.inputs}
        chosen = {node.id for node in claimed}
        for node in background.paced(reversed(view.nodes)):  # backward: known nodes are taken only for their readers
            if not needed.isdisjoint(node.outputs) and self._makers.get(node.outputs[0]) is node:
                chosen.add(node.id)
                needed.update(node.inputs)
        self.taken = {node.id: None for node in background.paced(view.nodes) if node.id in chosen}
        self._failures = len(failed)  # of these nodes, none was left to NumPy until now

    def close(self) -> None:
        """Drop the view once all nodes are claimed."""
        del self._view, self.constant, self.fact

    def still(self, view: PartitionView, nodes: Collection[NodeView]) -> bool:
        """Whether the same nodes of a later view would be claimed, where only `nodes`, or what they read, changed."""
        now = copy(self)
        now._look_at(view)
        for node in nodes:
            known = bool(node.outputs) and self._makers.get(node.outputs[0]) is not None
            if known != (node.domain == "" and now._is_known(node)):
                return False
            if not known and now._refusal(node) != view.refusals.get(node.id, ""):
                return False
        if len(failed) != self._failures and any(node in failed for node in view.nodes if node.id in self.taken):
            return False
        self._failures = len(failed)
        return True

    def _look_at(self, view: PartitionView) -> None:
        self._view, self.fact = view, view.fact
        self.constant = view.constant

    def read(self, name: str) -> bool:
        """Whether a value is read by a node or asked for."""
        return name in self._reads

    def known(self, name: str) -> bool:
        """Whether a value is a constant or follows from shapes."""
        return name in self.names or self.constant(name) is not None

    def made(self, name: str) -> bool:
        """Whether the region computes a value."""
        return name in self._made

    def _takes(self, node: NodeView) -> bool:
        """Whether a node is to be compiled; notes the nodes whose outputs are known."""
        view = self._view
        if node.domain == "" and self._is_known(node):
            self.names.update(node.outputs)
            self._makers.update((name, node) for name in node.outputs)
            return False
        reason = self._refusal(node)
        if reason:
            view.refuse(node, reason)
            return False
        self.weight += self._find(node).weight
        self._made.update(node.outputs)
        return True

    def _is_known(self, node: NodeView) -> bool:
        if not node.outputs:
            return False
        if find_traits(node.domain, node.op_type).shape_only:
            return bool(node.inputs) and view_fact(self, node.inputs[0]) is not None
        makes_text = node.op_type == "Cast" and node.attributes.get("to") == dtypes.STRING
        by_sizes = find_traits(node.domain, node.op_type).size_arithmetic and not makes_text
        return by_sizes and all(self.known(name) for name in node.inputs if name)

    def _refusal(self, node: NodeView) -> str:
        """The reason why a node is not taken, "" where it is; also where its rule raises, as for missing inputs."""
        if node in failed:
            return failed[node]
        rule = self._find(node)
        if rule is None or (node.domain, node.op_type, node.overload) in self._view.scope.compiler.snapshot.functions:
            return "no rule for its operator in this version"
        if node.attributes.bodies or any(type(value).__name__ == "AttributeRef" for value in node.attributes.values()):
            return "it has bodies, or refers to an attribute of a function"
        try:
            schema = schema_of(node, self._view.scope)
            if schema is not None:
                check_arity(node, schema, node.attributes)
            return rule.accept(node, self) or _unknown_integers(node, self, rule.reads)
        except OnnxlabError as error:
            return str(error)
        except Exception as error:  # of a faulty node: it goes to NumPy, which names the fault
            return f"its rule cannot judge it ({type(error).__name__}: {error})"


def _unknown_integers(node: NodeView, claims: _Claims, reads: Collection[int]) -> str:
    """Integers that say shapes must be known, or come from outside so that plans can be made for each value."""
    for slot, name in enumerate(node.inputs):
        if not name or claims.known(name) or slot in reads:
            continue
        fact = view_fact(claims, name)
        if fact is not None and fact.dtype is not None and fact.dtype.kind in "iu" and fact.dtype.itemsize == 8:
            small = fact.shape is not None and len(fact.shape) <= 1
            if claims.made(name) or not small:
                return f"{name!r} is known only when it has been computed"
    return ""


def view_fact(view: PartitionView | _Claims, name: str) -> TensorFact | None:
    """The shape and element type of a tensor whose rank is known."""
    constant = view.constant(name)
    if constant is not None:
        return TensorFact(0, constant.shape)
    fact = view.fact(name)
    return fact if isinstance(fact, TensorFact) and fact.shape is not None else None


def _with_constants(part: Part, view: PartitionView) -> Part:
    """The part and those nodes of others that make inputs of it from constants alone, which it computes itself.

    What they make is then a constant for its kernels, which pack weights once, and not in every run.
    """
    needed, chosen, names, makers = {*part.inputs}, list[NodeView](), set[str](), list[NodeView]()
    for node in background.paced(reversed(view.nodes)):
        if needed.isdisjoint(node.outputs) or node in failed:
            continue
        if find_traits(node.domain, node.op_type).size_arithmetic:
            chosen.append(node)
            needed.update(node.inputs)
    for node in reversed(chosen):
        if all(not name or name in names or view.constant(name) is not None for name in node.inputs):
            makers.append(node)
            names.update(node.outputs)
    return replace(part, nodes=(*makers, *part.nodes)) if makers else part
