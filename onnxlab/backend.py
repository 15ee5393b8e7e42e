"""The NumPy provider behind ONNX's own backend interface.

    from onnxlab.backend import Backend
    rep = Backend.prepare(model)
    outputs = rep.run([x, y])

`onnx.backend.test.BackendTest(Backend, __name__)` drives ONNX's conformance suite through it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.base

from onnxlab.errors import FeedError
from onnxlab.execution.base.node_models import as_model
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph


class BackendRep(onnx.backend.base.BackendRep):
    """A model that is ready to run, any number of times and from any number of threads.

    Args:
        model: kept, not copied.
        base_dir: folder of its external data.
    """

    def __init__(self, model: onnx.ModelProto, base_dir: Path | None = None) -> None:
        self._runner = Runner(ModelGraph(model, base_dir))
        initializers = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [value.name for value in model.graph.input]
        self._required = [name for name in self._inputs if name not in initializers]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the graph's outputs in order.

        Args:
            inputs: arrays in the order of the graph's inputs (those that are initializers may be left out), one
                array for a model with one input, or {name: array}.
            kwargs: `seed` for random operators; others are not used.

        Raises:
            FeedError, RunError, UnsupportedOperatorError: as `Runner.run`.
        """
        arrays = self._runner.run(self._feeds(inputs), keep=False, seed=kwargs.get("seed"))
        outputs = self._runner.graph.snapshot().main.outputs
        return tuple(arrays[name] for name in outputs)

    def _feeds(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        if isinstance(inputs, np.ndarray) or not isinstance(inputs, Sequence):
            inputs = [inputs]
        names = self._inputs if len(inputs) == len(self._inputs) else self._required
        if len(inputs) > len(names):
            raise FeedError(f"the model takes {len(names)} inputs ({', '.join(names)}), given {len(inputs)}")
        return dict(zip(names, inputs, strict=False))


class Backend(onnx.backend.base.Backend):
    """onnxlab as a backend in the sense of `onnx.backend.base`, on the CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for "CPU" and "CPU:0"."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Make a model ready to run.

        Args:
            kwargs: `base_dir`, the folder of its external data; others are not used.

        Raises:
            ValueError: a device other than the CPU.
        """
        cls._check_device(device)
        return BackendRep(model, kwargs.get("base_dir"))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare and run."""
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node.

        Args:
            inputs: arrays of the inputs that the node names, in order.
            outputs_info: not used: types follow from the inputs.
            kwargs: `opset_version` of the node's domain; default the newest.
        """
        cls._check_device(device)
        return BackendRep(as_model(node, kwargs.get("opset_version"))).run(inputs, **kwargs)

    @classmethod
    def _check_device(cls, device: str) -> None:
        if not cls.supports_device(device):
            raise ValueError(f"device {device!r} is not supported; use 'CPU'")


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
