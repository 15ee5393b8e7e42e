import numpy as np

from onnxlab.ops.base.prepared_constants import is_constant, mark_constant, prepared


def test_constants_are_prepared_once_and_sequences_each_time():
    array, sums = np.ones(2), []
    sequence = [array]
    mark_constant(array)
    mark_constant(sequence)
    for _ in range(2):
        prepared("sum", lambda x: sums.append(x.sum()), array)
    assert is_constant(array)
    assert not is_constant(sequence)
    assert len(sums) == 1
