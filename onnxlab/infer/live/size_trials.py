"""Whether a model works with other sizes: tried in the background where an edit made a dim of an input dynamic.

A batch of 1 that becomes `N` is inferred again with 2 and 3 in its place. Nodes that refuse these sizes depend on the
old one, by the target of a Reshape or a constant of a fixed shape. Trials run after the edit; they hold the graph's
lock for some milliseconds at a time, and start again where an edit comes in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from weakref import ref

from onnxlab import threads
from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Changes, Inference
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import Dim, map_dims, replace_symbols
from onnxlab.shapes.arithmetic import sole_atom
from onnxlab.shapes.expressions import Atom, symbol_atoms

FACTORS = (2, 3)
"""Factors by which the old size is multiplied: sizes that have to be divisible stay so."""

SECONDS = 2.0
"""Processor time of one trial; where it takes more, what was found until then counts."""

_SLICE = 0.002
_PAUSE = 0.05


class Trial:
    """The sizes that edits made dynamic, and the nodes that refuse others.

    Attributes:
        sizes: the former sizes of those dims of inputs that are dynamic now, by symbol; commits are followed where
            there are some, or where a commit changes an input.
        on_found: called, without arguments, where other nodes refuse than before; in the thread that found it.
    """

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self._graph = graph
        self._inference = inference
        self.sizes: dict[str, int] = {}
        self._tried = -1
        self._found: tuple[Diagnostic, ...] = ()
        self._thread: threading.Thread | None = None
        self.on_found: list[Callable[[], object]] = []

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """The nodes that refuse other sizes, as far as tried: the latest edit may still wait for its trial."""
        return [diagnostic for diagnostic in self._found if diagnostic.node in self._graph.nodes]

    def follow(self, changed: Changes) -> None:
        """Follow a commit by the facts that it changed; a background thread tries the sizes that have to be tried."""
        inputs = [vid for vid in self._graph.main.inputs if vid in changed] if changed else []
        for vid in inputs:
            old, new = (fact.shape or () for fact in changed[vid])
            if len(old) == len(new):
                for was, dim in zip(old, new, strict=True):
                    atom = None if isinstance(dim, int) else sole_atom(dim)
                    if isinstance(was, int) and atom is not None:
                        self.sizes[atom.name] = was
        if inputs and self.sizes:
            symbols = {atom.name for atom in self._symbols()}
            self.sizes = {name: size for name, size in self.sizes.items() if name in symbols}
        if self.sizes:
            self._start()
        else:
            self._found = ()

    def finish(self) -> None:
        """Try now, in this thread, what was not tried yet."""
        while self.sizes and self._tried != self._graph.version:
            self.attempt()

    def _symbols(self) -> Iterable[Atom]:
        for vid in self._graph.main.inputs:
            for dim in self._inference.fact(vid).shape or ():
                yield from symbol_atoms(dim)

    def _start(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        this = ref(self)
        self._thread = threads.start(lambda: _work(this), "onnxlab-sizes")  # without threads, `finish` does the work

    def is_done(self) -> bool:
        """Whether there is nothing to try; the background thread, if it asks, then counts as ended."""
        with self._graph.lock:
            done = not self.sizes or self._tried == self._graph.version
            if done and self._thread is threading.current_thread():
                self._thread = None
            return done

    @property
    def version(self) -> int:
        """The version of the model."""
        return self._graph.version

    def attempt(self) -> None:
        """Try the sizes on the model as it is now; an edit meanwhile makes that void."""
        with self._graph.lock:
            version, sizes = self._graph.version, dict(self.sizes)
            known = {
                (diagnostic.node, diagnostic.code)
                for diagnostic in self._inference.problems
                if diagnostic.severity == "error"
            }
        until = threads.thread_time() + SECONDS
        refusals: dict[tuple[int, str], Diagnostic] = {}
        for factor in FACTORS:
            chosen = {name: size * factor or factor for name, size in sizes.items()}
            refused = self._refused(version, chosen, until)
            if refused is None:
                return
            for diagnostic in refused:
                if (diagnostic.node, diagnostic.code) not in known:
                    refusals.setdefault((diagnostic.node, diagnostic.code), _with(diagnostic, chosen))
        with self._graph.lock:
            if self._graph.version != version:
                return
            before, self._found, self._tried = self._found, tuple(refusals.values()), version
        if before != self._found:
            for listener in list(self.on_found):
                listener()

    def _refused(self, version: int, sizes: Mapping[str, int], until: float) -> list[Diagnostic] | None:
        """The errors of the main graph for these sizes; None where the model was changed meanwhile."""
        graph = self._graph

        def size(atom: Atom) -> Dim | None:
            return sizes.get(atom.name)

        with graph.lock:
            if graph.version != version:
                return None
            walker, frame = Walker(graph, self._inference.policy), FactFrame()
            walker.budget.renew(0, SECONDS)  # limits a node with large bodies, which is one step of the loop below
            for vid in graph.main.inputs:
                fact = walker.sources.fact(graph.values[vid])
                frame.set(vid, map_dims(fact, lambda dim: replace_symbols(dim, size)))
            walker.walk_initializers(frame, graph.main)
            waiting = list(graph.index.topological(graph.main))[::-1]
        while waiting and threads.thread_time() < until:
            with graph.lock:
                if graph.version != version:
                    return None
                end = time.perf_counter() + _SLICE
                while waiting and time.perf_counter() < end:
                    walker.infer_node(frame, graph.nodes[waiting.pop()])
            time.sleep(0)  # a thread that waits for the lock gets it
        with graph.lock:
            if graph.version != version:
                return None
            frames = [frame, *(call.frame for call in walker.calls.alive(frame).values())]
            problems = [problem for frame_of_call in frames for problem in walker.diagnostics(frame_of_call)]
        return [problem for problem in problems if problem.severity == "error"]


def _with(refusal: Diagnostic, sizes: Mapping[str, int]) -> Diagnostic:
    """The refusal with the sizes that it is about."""
    shown = ", ".join(f"{name}={size}" for name, size in list(sizes.items())[:4])
    where, _, reason = refusal.message.partition("): ")
    hint = f"{refusal.hint}; or keep the size fixed" if refusal.hint else "let it follow the size, or keep that fixed"
    return replace(
        refusal, severity="warning", code="refuses-size", message=f"{where}): with {shown}, {reason}", hint=hint
    )


def _work(trial: ref[Trial]) -> None:
    """Run trials until none waits; the model may be freed at any time."""
    seen = -1
    while True:
        time.sleep(_PAUSE)
        held = trial()
        if held is None or held.is_done():
            return
        if held.version == seen:
            held.attempt()
        seen = held.version  # edits come in bursts: the trial waits for their end
        del held
