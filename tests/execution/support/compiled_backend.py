"""ONNX's backend interface over the Numba provider: whatever it can take is compiled at once, however little it is."""

import onnx.backend.test
import onnx.checker

from onnxlab.backend import Backend, BackendRep
from onnxlab.execution.base.node_models import as_model
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from tests.execution.support.internals import programs_of
from tests.execution.support.regions import Eager

REACHED = {"regions": 0, "whole": 0}
"""How many regions ran, and how many of them without a node left to NumPy."""


class EagerRep(BackendRep):
    def __init__(self, model):
        super().__init__(model)
        graph = ModelGraph(model)
        self._runner = Runner(graph, Inference(graph).fact, [Eager(), NumpyProvider()])

    def run(self, inputs, **kwargs):
        results = super().run(inputs, **kwargs)
        for program in programs_of(self._runner):
            for instruction in program.instructions:
                if type(instruction.call).__name__ == "Region":
                    REACHED["regions"] += 1
                    REACHED["whole"] += not instruction.call.reason  # type: ignore[attr-defined]
        return results


class EagerBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return EagerRep(as_model(model))


def failures(chosen=lambda name: True):
    """{name: why} of the cases that fail, and how many pass."""
    from tests.test_backend import KNOWN_FAILURES, NOT_HERE

    suite = onnx.backend.test.BackendTest(EagerBackend, __name__)
    suite.exclude(NOT_HERE)
    failed, passed = {}, 0
    for case_class in suite.test_cases.values():
        for name in dir(case_class):
            test = getattr(case_class, name)
            if not name.startswith("test_") or getattr(test, "__unittest_skip__", False) or not chosen(name):
                continue
            try:
                test(case_class(name))
                passed += 1
            except Exception as error:
                if name not in KNOWN_FAILURES:
                    failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
    return failed, passed
