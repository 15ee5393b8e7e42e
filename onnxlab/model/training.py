"""Training with the artifacts of onnxruntime-training: a training graph, an optimizer graph and a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.value_info import describe
from onnxlab.model.model import Model

if TYPE_CHECKING:
    from onnxlab.formats.ort.checkpoint import TrainingCheckpoint

Array = Any

_DOMAIN: Final = "com.microsoft"
_MOMENTS: Final = ("momentum0", "momentum1")
# lists of arrays that an optimizer returns after its flag
_STATES: Final = {"AdamWOptimizer": 3, "SGDOptimizerV2": 1}


class Training:
    """Steps of training on NumPy, as onnxruntime-training makes them from the same artifacts.

    Attributes:
        parameters: {name: array} of all parameters, trained and frozen, as they are by now.
        step_count: how many steps the optimizer has made, those before the checkpoint included.
        learning_rate: of the steps to come.
    """

    def __init__(
        self, training: Model, optimizer: Model, checkpoint: TrainingCheckpoint, *, learning_rate: float | None = None
    ) -> None:
        """Take the artifacts; neither model is changed.

        Args:
            training: the graph that computes loss and gradients, and accumulates them.
            optimizer: the graph of one optimizer node.
            checkpoint: the initial parameters and state of the optimizer.
            learning_rate: default: that of the checkpoint, else 0.001.

        Raises:
            EditError: a graph is not of the expected kind, or does not belong to the checkpoint.
        """
        from onnxlab.formats.ort.checkpoint import OptimizerGroup

        self._checkpoint = checkpoint
        self.parameters = {name: tensors.to_array(tensor) for name, tensor in checkpoint.parameters.items()}
        self._training = training
        self._gradients = _gradients(training, self.parameters)
        self._optimizer, self._states = _with_states(optimizer)
        group = checkpoint.groups[0] if checkpoint.groups else OptimizerGroup(learning_rate=0.001)
        self.step_count = group.step
        self.learning_rate = group.learning_rate if learning_rate is None else learning_rate
        self._moments = {
            name: [
                tensors.to_array(group.momentums[name][key]) if key in group.momentums.get(name, {})
                else np.zeros_like(self.parameters[name]) for key in _MOMENTS
            ]
            for name in self._gradients
        }  # fmt: skip
        self._accumulated: dict[str, Array] = {}

    def backward(self, feeds: Mapping[str, Any]) -> float:
        """Run the training graph on inputs of the user, and add its gradients to those not yet stepped; the loss."""
        arrays = {**feeds, **self.parameters}
        loss = self._training.outputs[0].name
        for value in self._training.inputs:
            if value.name == "lazy_reset_grad":
                arrays[value.name] = np.ones(1, np.bool_)
            elif value.name.endswith("_grad.accumulation.buffer"):
                arrays[value.name] = np.zeros_like(
                    self.parameters[value.name.removesuffix("_grad.accumulation.buffer")]
                )
        results = self._training.run(arrays, [loss, *self._gradients.values()])
        for name, gradient in self._gradients.items():
            before = self._accumulated.get(name)
            self._accumulated[name] = results[gradient] if before is None else before + results[gradient]
        return float(np.asarray(results[loss]).reshape(()))

    def step(self, feeds: Mapping[str, Any] | None = None) -> float | None:
        """Let the optimizer make a step by the gradients that were gathered, and forget them.

        Args:
            feeds: inputs to run `backward` on first; its loss is returned, else None.

        Raises:
            EditError: no gradients were gathered.
        """
        loss = self.backward(feeds) if feeds is not None else None
        if not self._accumulated:
            raise EditError("there are no gradients to make a step by: give feeds, or call backward(feeds) before")
        names = list(self._gradients)
        self.step_count += 1
        arrays: dict[str, Any] = {
            "learning_rate": np.asarray(self.learning_rate, np.float32), "step": np.asarray(self.step_count, np.int64),
            "params": [self.parameters[name] for name in names],
            "gradients": [self._accumulated[name] for name in names],
            "first_order_moments": [self._moments[name][0] for name in names],
            "second_order_moments": [self._moments[name][1] for name in names],
        }  # fmt: skip
        input_names = {value.name for value in self._optimizer.inputs}
        shapes = {value.name: self._optimizer.fact(value.id) for value in self._optimizer.inputs}
        for name in ("learning_rate", "step"):
            if name in shapes and getattr(shapes[name], "shape", None):
                arrays[name] = arrays[name].reshape(1)
        results = self._optimizer.run(
            {name: value for name, value in arrays.items() if name in input_names}, self._states
        )
        for state, place in zip(self._states, (None, 0, 1), strict=False):
            for name, array in zip(names, results[state], strict=True):
                if place is None:
                    self.parameters[name] = np.asarray(array)
                else:
                    self._moments[name][place] = np.asarray(array)
        self._accumulated = {}
        return loss

    def checkpoint(self) -> TrainingCheckpoint:
        """The parameters and the state of the optimizer as they are by now."""
        from onnxlab.formats.ort.checkpoint import OptimizerGroup, with_values

        order = [*self._checkpoint.trained, *self._checkpoint.frozen]
        values = [tensors.from_array(self.parameters[name], name) for name in order]
        updated, _ = with_values(self._checkpoint, values)
        momentums = {
            name: {
                key: tensors.from_array(array, key)
                for key, array in zip(_MOMENTS[: len(self._states) - 1], moments, strict=False)
            }
            for name, moments in self._moments.items()
        }
        old = self._checkpoint.groups[0] if self._checkpoint.groups else OptimizerGroup()
        group = replace(old, step=self.step_count, learning_rate=self.learning_rate, momentums=momentums)
        return replace(updated, groups=(group,))

    def export(self, model: Model) -> None:
        """Put the trained parameters into a model for inference, by the names of its initializers, as one step.

        Raises:
            EditError: the model has none of the parameters, or one of another shape or type.
        """
        held = {tensor.name: tensor for tensor in model.proto.graph.initializer}
        shared = [name for name in self.parameters if name in held]
        if not shared:
            raise EditError(f"the model has no initializer of the names {', '.join(list(self.parameters)[:5])}")
        for name in shared:
            array, tensor = self.parameters[name], held[name]
            dtype, held_dtype = dtypes.from_numpy(array.dtype), tensor.data_type
            if (dtype, list(array.shape)) != (held_dtype, list(tensor.dims)):
                words = [
                    f"{dtypes.name(kind)}{list(shape)}"
                    for kind, shape in ((held_dtype, tensor.dims), (dtype, array.shape))
                ]
                raise EditError(f"{name!r} is {words[0]} in the model and {words[1]} in training")
        with model.graph.edit("export trained parameters"):
            for name in shared:
                value = model.graph.values[model.graph.main.names[name]]
                tensor = tensors.from_array(self.parameters[name], name)
                describe(tensor, value.tensor)
                edits.set_initializer(model.graph, value, tensor)


def _gradients(training: Model, parameters: Mapping[str, Array]) -> dict[str, str]:
    """{parameter: the value that its gradient is}, of the accumulators of a training graph."""
    gradients = {}
    for node in training.nodes:
        if node.op_type.startswith("InPlaceAccumulator") and node.proto.domain == _DOMAIN:
            name = node.proto.input[0].removesuffix("_grad.accumulation.buffer")
            if name not in parameters:
                raise EditError(f"the training graph accumulates gradients of {name!r}, which is not in the checkpoint")
            gradients[name] = node.proto.input[1]
    if not gradients:
        raise EditError(f"{training.name} is no training graph: it has no InPlaceAccumulatorV2 of com.microsoft")
    return gradients


def _with_states(optimizer: Model) -> tuple[Model, list[str]]:
    """A copy of an optimizer graph whose node gives out the new state, and the names of that."""
    proto = onnx.ModelProto()
    proto.CopyFrom(optimizer.proto)
    nodes = [node for node in proto.graph.node if node.domain == _DOMAIN and node.op_type in _STATES]
    if len(nodes) != 1:
        raise EditError(f"{optimizer.name} is no optimizer graph: it has {len(nodes)} nodes of {', '.join(_STATES)}")
    (node,) = nodes
    names = [f"state_{place}" for place in range(_STATES[node.op_type])]
    del node.output[1:]
    node.output.extend(names)
    return Model(proto), names
