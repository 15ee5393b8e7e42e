"""Facts are interned, immutable, and read well."""

import pickle

import numpy as np
import pytest

from onnxlab import dtypes
from onnxlab.shapes import (
    UNKNOWN,
    KnownValue,
    MapFact,
    OptionalFact,
    SequenceFact,
    SparseTensorFact,
    TensorFact,
    known,
    symbol,
)

BATCH = symbol("batch")


def test_equal_facts_are_one_object() -> None:
    assert TensorFact(1, (BATCH, 3)) is TensorFact(1, (symbol("batch"), 3))
    assert SequenceFact(TensorFact(1)) is SequenceFact(TensorFact(1))
    assert TensorFact(1, ()) is not SparseTensorFact(1, ())
    assert TensorFact(7, (1,), known(np.array([1]))) is not TensorFact(7, (1,), known(np.array([2])))


@pytest.mark.parametrize(
    ("fact", "written", "label"),
    [
        (TensorFact(1, (1, 64, 112, 112)), "float32[1,64,112,112]", "1×64×112×112"),
        (TensorFact(10, (BATCH, BATCH + 1)), "float16[batch,batch + 1]", "batch×(batch + 1)"),
        (TensorFact(7), "int64[?]", ""),
        (TensorFact(1, ()), "float32[]", "scalar"),
        (TensorFact(0, (2,)), "?[2]", "2"),
        (UNKNOWN, "?", ""),
        (SequenceFact(TensorFact(1, (2,))), "seq(float32[2])", "seq 2"),
        (OptionalFact(UNKNOWN), "optional(?)", "optional"),
        (MapFact(7, TensorFact(1, ())), "map(int64,float32[])", "map"),
        (SparseTensorFact(1, (4, 4)), "sparse float32[4,4]", "4×4"),
    ],
)
def test_texts(fact: TensorFact, written: str, label: str) -> None:
    assert str(fact) == written
    assert fact.label() == label
    assert pickle.loads(pickle.dumps(fact)) is fact


def test_a_fact_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        TensorFact(1, ()).elem_type = 7


def test_value_has_the_dtype_of_the_fact() -> None:
    fact = TensorFact(dtypes.INT32, (2,), known(np.array([3, 4], dtype=np.int32)))
    assert fact.value is not None
    assert fact.value.dtype == np.int32
    assert fact.value.tolist() == [3, 4]
    assert TensorFact(7, (1,), KnownValue("i", (1,), (BATCH,))).value is None


def test_rank_dtype_and_bytes() -> None:
    fact = TensorFact(dtypes.FLOAT16, (BATCH, 4))
    assert (fact.rank, fact.dtype, str(fact.nbytes())) == (2, np.float16, "8*batch")
    assert (UNKNOWN.rank, UNKNOWN.dtype, UNKNOWN.shape) == (None, None, None)


def test_a_nan_equals_itself_and_types_do_not_mix() -> None:
    assert known(np.array([np.nan])) is known(np.array([float("nan")]))
    assert known(np.array([0.0])) is not known(np.array([-0.0]))
    assert known(np.array([1])) is not known(np.array([True]))
    assert known(np.zeros(100_000)) is None
    assert known(np.array(["a"])) is None
