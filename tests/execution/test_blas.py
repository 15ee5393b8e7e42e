import numpy as np
import pytest

from onnxlab.execution import blas
from onnxlab.execution.numpy_provider import NumpyProvider
from onnxlab.execution.provider import SubgraphClaim
from tests.execution.models import runner


def threads():
    return [library.get_num_threads() for library in blas.controller().lib_controllers if library.user_api == "blas"]


def seen_in_a_run(**options):
    """BLAS threads while a node is run."""
    seen = []

    class Looker:
        name = "looker"

        def get_capability(self, view):
            return [SubgraphClaim(tuple(node.id for node in view.nodes))]

        def compile(self, part, view):
            return lambda context, *arrays: (seen.append(threads()), list(arrays))[1]

    providers = [Looker(), NumpyProvider()]
    run = runner("g (float[1] x) => (float[1] y) { y = Relu (x) }", providers=providers, **options)
    for _ in range(2):
        run.run({"x": np.ones(1, np.float32)}, keep=False)
    return seen


def test_runs_use_one_thread_and_put_back_what_was():
    before = threads()
    assert seen_in_a_run() == [[1] * len(before)] * 2
    assert threads() == before


def test_runs_leave_blas_alone_where_asked():
    before = threads()
    assert seen_in_a_run(threads=0) == [before] * 2


@pytest.mark.parametrize("asked", [1, 3])
def test_a_limit_of_the_user_stays(asked):
    with blas.limited(2):
        before = threads()
        assert seen_in_a_run(threads=asked) == [before] * 2
        assert threads() == before
