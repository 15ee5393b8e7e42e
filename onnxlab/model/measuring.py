"""Measures of a Model: the memory of a run over its schedule, what its nodes cost, and how long they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxlab.argument_types import expect
from onnxlab.execution.run.progress_bar import bar
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.handles.model_lookup import Lookup, NodeKey
from onnxlab.infer.questions.what_if import sizes_of
from onnxlab.model.running import RunnerOwner

if TYPE_CHECKING:
    from onnxlab.analysis.cost.cost import Cost
    from onnxlab.analysis.memory.buffers import Share
    from onnxlab.analysis.memory.estimate import Estimate
    from onnxlab.analysis.memory.timeline import MemoryTimeline
    from onnxlab.analysis.profile import Profile
    from onnxlab.analysis.tree_ensembles import Trees
    from onnxlab.execution.base.provider import Provider

Dims = Mapping[str, int]


_INPUTS = "a mapping of inputs to arrays"


class Measuring(Lookup, RunnerOwner):
    """Memory, cost and times of a Model, as members."""

    __slots__ = ()

    name: str

    def profile(
        self, feeds: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None, *, runs: int = 3,
        providers: Sequence[str | Provider] | None = None, threads: int = 1,
    ) -> Profile:  # fmt: skip
        """Measure seconds, bytes and floating-point operations of every node.

        A bar shows in the terminal for what takes longer than a second. Raises as `run`.

        Args:
            feeds: arrays by input; default: those of the last run, else made-up ones.
            outputs: values to compute; default: the graph's outputs.
            runs: number of runs; the fastest time of each node counts.
            providers: as of `run`; the profile waits until their code is compiled. Default: NumPy, node by node.
            threads: as of `run`.

        Returns:
            Profile: print it.

        Examples:
            >>> len(model.profile(runs=1).entries)
            24
            >>> len(model.profile(runs=1, providers=["numba"]).entries)
            24
        """
        from onnxlab.analysis.profile import profile

        threads = expect(threads, int, "threads", "a number")
        with bar(f"profile {self.name}") as drawn:
            by = None if providers is None else self.runner.by(providers, threads)
            return profile(self.runner, self._by_name(feeds), self._by_name(outputs), runs=runs, progress=drawn, by=by)

    def memory(
        self, dims: Dims | None = None, /, inputs: Mapping[str, Any] | None = None, share: Share = "live",
        **named: int,
    ) -> MemoryTimeline:  # fmt: skip
        """Tell the bytes alive over the schedule, by facts alone: the peak, and what is alive there.

        Sizes of symbols are those given, else those of the inputs, else of the last run, else assumed: a batch of 1.

        Args:
            dims: sizes by symbol, for names that are no Python names.
            inputs: arrays by input, which tell sizes.
            share: how values share memory. "live": views, and activations written over their inputs; "onnxruntime": as
                its planner does, which also holds free memory for later values; "none": not at all.
            named: sizes by symbol, such as `batch=64`.

        Returns:
            MemoryTimeline: print it; `curve`, `peak`, `alive()`, `to_svg()`.

        Raises:
            NameLookupError: no input has a symbol of this name; the message lists those that there are.
            ValueError: a size is not an int from 0 on.

        Examples:
            >>> model.memory(batch=1).peak, model.memory(batch=64).peak
            (6400, 409600)
        """
        from onnxlab.analysis.memory.timeline import timeline

        arrays = (
            self.runner.last_inputs() if inputs is None else expect(self._by_name(inputs), Mapping, "inputs", _INPUTS)
        )
        return timeline(self.graph, self.inference, sizes_of(dims, named), arrays, share=share)

    def estimate(self, feeds: Mapping[str, Any] | None = None) -> Estimate:
        """Estimate the memory that `run` is going to take, without running anything.

        Args:
            feeds: the inputs of the run; default: those of the last run, else a batch of 1.

        Returns:
            Estimate: print it; `peak`, `kept`, `available`, `fits`.

        Raises:
            FeedError: the feeds do not fit the inputs.

        Examples:
            >>> model.estimate({"image": np.zeros((64, 1, 8, 8), np.float32)}).peak
            409600
        """
        from onnxlab.analysis.memory.estimate import estimate
        from onnxlab.analysis.memory.timeline import timeline
        from onnxlab.execution.run.compiled_parts import Compiled

        last = self.runner.last_inputs()
        arrays = last if feeds is None else self.runner.checked(self._by_name(feeds))
        memory = timeline(self.graph, self.inference, {}, arrays)
        names = {self.graph.values[value].name for value in self.graph.main.outputs}
        outputs = sum({place.values: place.nbytes for place in memory.allocations if names & {*place.values}}.values())
        return estimate(memory, outputs, Compiled(self.runner).states() if _alike(arrays, last) else ())

    def cost(
        self, dims: Dims | None = None, /, inputs: Mapping[str, Any] | None = None, *, measure: bool = False,
        runs: int = 3, threads: int = 1, **named: int,
    ) -> Cost:  # fmt: skip
        """Count operations and bytes of every node and group, against what this machine can do.

        The machine's roofline is measured once and kept in the folder of compiled kernels. Sizes are as of `memory`.

        Args:
            dims: sizes by symbol, for names that are no Python names.
            inputs: arrays by input, which tell sizes.
            measure: also run, and say how near each node comes to the roofline.
            runs: number of measured runs; the fastest time of each node counts.
            threads: number of threads that the roofline is measured with.
            named: sizes by symbol.

        Returns:
            Cost: print it; `heaviest()`, `by_group()`, `by_operator()`.

        Raises:
            NameLookupError: no input has a symbol of this name; the message lists those that there are.
            ValueError: a size is not an int from 0 on, or there are fewer than one thread or run.
            RunError: as `run`, with `measure`.

        Examples:
            >>> cost = model.cost(batch=1)
            >>> max(cost.nodes, key=lambda work: work.flops).label, round(cost.total.intensity, 1)
            ('/block1/conv1/Conv', 3.3)
        """
        from onnxlab.analysis.cost.cost import cost
        from onnxlab.analysis.cost.roofline import roofline
        from onnxlab.analysis.profile import profile

        inputs = expect(self._by_name(inputs), (Mapping, type(None)), "inputs", _INPUTS)
        arrays = self.runner.last_inputs() if inputs is None else inputs
        sizes = sizes_of(dims, named)
        graph, policy, roof = self.graph, self.inference.policy, roofline(threads)
        counted = cost(graph, policy, sizes, arrays, roof)
        if not measure:
            return counted
        feeds = dict(inputs or {}) if inputs is not None or sizes else dict(arrays)
        sample = self.runner.sample_inputs(feeds, sizes=counted.dims)
        seconds: dict[int, float] = {}
        for entry in profile(self.runner, sample, runs=runs).entries:
            seconds[entry.node] = seconds.get(entry.node, 0.0) + entry.seconds
        return cost(graph, policy, sizes, sample, roof, seconds)

    def trees(self, node: NodeKey) -> Trees:
        """Look into a tree ensemble of ai.onnx.ml: its trees, their splits, and which features they use.

        Args:
            node: handle, name or id.

        Returns:
            Trees: print it; `features`, `depths`, `text(3)` writes a tree.

        Raises:
            EditError: the node is no tree ensemble, or its attributes hold no trees.
            NameLookupError: there is no such node.

        Examples:
            >>> model.trees(model.nodes[0])
            Traceback (most recent call last):
            onnxlab.errors.EditError: Conv is no tree ensemble
        """
        from onnxlab.analysis.tree_ensembles import trees_of

        record = self._node_record(node)
        return trees_of(record.op_type, Node(self.graph, record.id).attributes)


def _alike(arrays: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether inputs have the shapes of others."""
    return {name: np.shape(array) for name, array in arrays.items()} == {
        name: np.shape(array) for name, array in others.items()
    }
