"""Steps of the training that a model describes itself by a TrainingInfoProto: two graphs and their bindings."""

from collections.abc import Iterable, Mapping
from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.execution.program.run_errors import describe as described
from onnxlab.graph import edits
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.value_info import describe
from onnxlab.model.model import Model

Array = Any


class TrainingInfo:
    """One TrainingInfoProto of a model, run on NumPy.

    Attributes:
        variables: {name: array} of the initializers of the main graph and of the algorithm, as the steps leave them.
    """

    def __init__(self, model: Model, place: int = 0) -> None:
        """Take a model; it is not changed before `apply`.

        Args:
            model: a model with training information.
            place: position of the TrainingInfoProto in the model.

        Raises:
            EditError: there is no such TrainingInfoProto, a binding names something that is missing, or the main graph
                and the algorithm have initializers of one name.
        """
        if not 0 <= place < len(model.proto.training_info):
            count = len(model.proto.training_info)
            raise EditError(f"the model has {count} entries of training_info, and none at place {place}")
        self._model, self._place = model, place
        info = model.proto.training_info[place]
        self._bindings = {
            "initialization": {entry.key: entry.value for entry in info.initialization_binding},
            "algorithm": {entry.key: entry.value for entry in info.update_binding},
        }
        main = {tensor.name: tensor for tensor in model.proto.graph.initializer}
        inner = {tensor.name: tensor for tensor in info.algorithm.initializer}
        if both := main.keys() & inner.keys():
            raise EditError(f"{min(both)!r} is an initializer of the main graph and one of the algorithm; rename one")
        base = model.graph.base_dir
        self.variables = {name: tensors.to_array(tensor, base) for name, tensor in {**main, **inner}.items()}
        self._graphs = {
            "initialization": self._runnable(info.initialization, {}),
            "algorithm": self._runnable(info.algorithm, {name: main[name] for name in main if name not in inner}),
        }
        for part, bindings in self._bindings.items():
            outputs = {output.name for output in getattr(info, part).output}
            for variable, output in bindings.items():
                if variable not in self.variables or output not in outputs:
                    raise EditError(
                        f"the {part} binds {variable!r} to {output!r}, which are no initializer and output of it"
                    )

    def _runnable(self, graph: onnx.GraphProto, outside: Mapping[str, onnx.TensorProto]) -> Model:
        """A graph as a model of its own, with the initializers of the main graph that it reads."""
        proto = onnx.ModelProto(ir_version=self._model.proto.ir_version)
        proto.opset_import.extend(self._model.proto.opset_import)
        proto.functions.extend(self._model.proto.functions)
        proto.graph.CopyFrom(graph)
        named = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
        proto.graph.initializer.extend(tensor for name, tensor in outside.items() if name not in named)
        return Model(proto)

    def initialize(self, seed: int | None = None) -> None:
        """Run the initialization, and assign what it makes to the variables that are bound to it.

        Args:
            seed: of random operators.
        """
        self._run("initialization", {}, seed)

    def step(self, feeds: Mapping[str, Any] | None = None, seed: int | None = None) -> dict[str, Array]:
        """Run the algorithm once, and assign its outputs to the variables that are bound to them; its outputs.

        Args:
            feeds: an array for each input of the algorithm.
            seed: of random operators.

        Raises:
            RunError: the algorithm cannot be run on these inputs; the variables stay as they are.
        """
        return self._run("algorithm", feeds or {}, seed)

    def _run(self, part: str, feeds: Mapping[str, Any], seed: int | None) -> dict[str, Array]:
        graph = self._graphs[part]
        held = {tensor.name for tensor in graph.proto.graph.initializer}
        stored = {name: array for name, array in self.variables.items() if name in held and name not in feeds}
        results = graph.run({**stored, **feeds}, [value.name for value in graph.outputs], seed=seed)
        for variable, output in self._bindings[part].items():
            self.variables[variable] = results[output]
        return results

    def apply(self) -> int:
        """Put the variables into the model as one step that can be undone; returns how many changed.

        Raises:
            EditError: an initializer is not there any more, or has another shape or type than its variable by now.
        """
        with self._model.graph.lock:
            changed = list(self._changed())
            with self._model.graph.edit("apply training"):
                for scope, name in changed:
                    value = self._model.graph.values[scope.names[name]]
                    tensor = tensors.from_array(self.variables[name], name)
                    describe(tensor, value.tensor)
                    edits.set_initializer(self._model.graph, value, tensor)
        return len(changed)

    def _changed(self) -> Iterable[tuple[Scope, str]]:
        """(scope, name) of the initializers whose variables have other elements."""
        info = self._model.proto.training_info[self._place]
        scopes = [scope for scope in self._model.graph.scopes.values() if scope.proto is info.algorithm]
        missing = {name for bindings in self._bindings.values() for name in bindings}
        for scope in (self._model.graph.main, *scopes):
            for tensor in scope.proto.initializer:
                array = self.variables.get(tensor.name)
                if array is None:
                    continue
                missing.discard(tensor.name)
                before = tensors.to_array(tensor, self._model.graph.base_dir)
                if before.shape != array.shape or before.dtype != array.dtype:
                    raise EditError(f"{tensor.name!r} is {described(before)}, and {described(array)} after training")
                if before.tobytes() != array.tobytes():
                    yield scope, tensor.name
        if missing:
            raise EditError(f"{min(missing)!r} is no initializer of the model any more; take its training_info anew")
