"""Laws, and shape rules of ONNX Runtime's own operators that no processor's kernel can be asked about."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from onnxlab import ops, runtime_schemas, schemas
from onnxlab.ops.base.one_line_rules import parsed
from onnxlab.shapes import UNKNOWN, Dim, Fact, TensorFact, known, symbol, tensor
from tests.infer.support.models import ints, one_node

F, H, J, L = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
BLACK_BOXES = {"EPContext", "Snpe"}
"""Whatever another program compiled: their outputs are what the model declares."""
QKV = {"num_heads": 4, "kv_num_heads": 2}
CACHE = (H, ["blocks", 16, 2, 8])


@pytest.fixture
def no_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Laws alone: the nodes lack inputs and attributes that their rules do not read."""
    monkeypatch.setattr(runtime_schemas, "find", lambda *_: None)
    schemas._forget_found()
    yield
    monkeypatch.undo()
    schemas._forget_found()


def of_one(
    op_type: str, inputs: list[Any], outputs: int, domain: str = "com.microsoft", **attributes: Any
) -> list[str]:
    facts, inference = one_node(op_type, inputs, outputs, domain=domain, **attributes)
    assert inference.diagnostics == []
    return [str(fact) for fact in facts]


def test_every_operator_of_onnxruntime_has_a_rule() -> None:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    known = {schema.name for schema in state.get_all_operator_schema() if schema.domain == "com.microsoft"}
    assert len(known) > 100
    assert {name for name in known if ops.find_rule("com.microsoft", name, 1) is None} == BLACK_BOXES & known


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "expected"),
    [
        ("PagedAttention", [(H, ["t", 64]), None, None, CACHE, CACHE], QKV,
         ["float16[t,32]", "float16[blocks,16,2,8]", "float16[blocks,16,2,8]"]),
        ("PagedAttention", [(H, ["t", 32]), (H, ["t", 16]), None, CACHE], {**QKV, "v_head_size": 6},
         ["float16[t,24]", "float16[blocks,16,2,8]", "float16[blocks,16,2,8]"]),
        ("SparsePagedAttention", [(H, ["t", 32]), (H, ["t", 16]), (H, ["t", 16]), CACHE, CACHE], QKV,
         ["float16[t,32]", "float16[blocks,16,2,8]", "float16[blocks,16,2,8]"]),
        ("GatedDeltaNet", [(H, ["t", 4, 8]), (H, ["t", 4, 8]), (H, ["t", 8, 16]), (J, ["n"])], {},
         ["float16[t,8,16]", "?[n - 1,8,16,8]", "?[n - 1,0]"]),
        ("GatedDeltaNet", [(H, ["b", "s", 192]), None, None, None, None, None, (F, ["b", 8, 16, 8])],
         {"state_update_capacity": 2}, ["float16[b,s,8,16]", "float32[b,8,16,8]", "float32[b,336]"]),
        ("DecoderMaskedSelfAttention", [(F, ["b", 1, 16]), (F, [16, 48]), (F, [48]), None, (F, [2, "b", 4, "p", 4])],
         {"num_heads": 4}, ["float32[b,1,16]", "float32[2,b,4,p + 1,4]"]),
        ("DecoderMaskedSelfAttention", [(F, ["b", 1, 16]), (F, [16, 48]), (F, [48]), None, (F, [2, "b", 4, 99, 4])],
         {"num_heads": 4, "past_present_share_buffer": 1}, ["float32[b,1,16]", "float32[2,b,4,99,4]"]),
        ("DynamicSparseAttention", [(H, ["b", "s", 64])], QKV, ["float16[b,s,32]", "float16[b,2,y1.2,8]"]),
        ("QuantizeBFP", [(F, ["b", 3])], {"bfp_type": 1}, ["uint8[y0.0]", "int64[2]", "int64[2]"]),
        ("DequantizeBFP", [(TensorProto.UINT8, ["n"]), ints(4, 5), ints(5, 1)], {"bfp_type": 1}, ["float32[4,5]"]),
        ("BitmaskDropout", [(F, ["b", 64])], {}, ["float32[b,64]", "uint32[2*b]"]),
        ("GemmFloat8", [(F, ["k", "m"]), (F, ["k", 5])], {"transA": 1, "dtype": 16}, ["bfloat16[m,5]"]),
        ("MatMulBlockQuantizedFp4Weight", [(H, ["b", "s", 32]), (TensorProto.UINT8, [48, 16])], {},
         ["float16[b,s,48]"]),
        ("DecoderAttention", [(F, ["s", "b", 32])], {"num_heads": 4},
         ["float32[s,b,32]", "float32[b,4,y1.2,8]", "float32[b,4,y2.2,8]"]),
        ("VarlenCausalConvWithState", [(F, ["t", 8]), None, None, None, (F, ["b", 8, 3])],
         {"state_update_capacity": 2}, ["float32[t,8]", "float32[b,8,3]", "float32[b,2,8]"]),
        ("VarlenNGramHashMapping", [(L, ["t"]), None, None, (J, ["e"])], {"max_ngram_size": 3, "n_head_per_ngram": 4},
         ["int64[t,8]", "int64[e - 1,2]", "int32[e - 1,2]"]),
        ("PackedSparseAttentionIndexer", [(F, ["t", 32]), *[None] * 11, (F, ["b", 99, 8])],
         {"policy_mode": "csa", "index_topk": 5, "compress_ratio": 4, "state_capacity": 99},
         ["int32[t,5]", "int32[t]", "float32[b,99,8]"]),
        ("WhisperBeamSearch", [(F, ["b", 80, "t"]), ints(20), None, ints(4), ints(2)], {},
         ["int32[b,2,20]", "float32[b,2]"]),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("no_schemas")
def test_shapes_are_what_the_documentation_says(
    op_type: str, inputs: list[Any], attributes: dict[str, Any], expected: list[str]
) -> None:
    assert of_one(op_type, inputs, len(expected), **attributes) == expected


@pytest.mark.parametrize(("channels", "expected"), [(32, "32"), (12, "16"), (3, "y0.1"), ("c", "y0.1")])
def test_channels_are_filled_up_to_blocks_of_either_size(channels: int | str, expected: str) -> None:
    types = of_one("ReorderInput", [(F, ["n", channels, 7, 7])], 1, "com.microsoft.nchwc")
    assert types == [f"float32[n,{expected},7,7]"]


def test_a_convolution_with_channels_last() -> None:
    types = of_one("Conv", [(F, ["n", "h", 8, 3]), (F, [6, 3, 3, 3])], 1, "com.ms.internal.nhwc")
    assert types == ["float32[n,h - 2,6,6]"]


@pytest.mark.usefixtures("no_schemas")
def test_a_law_says_which_attribute_is_missing() -> None:
    _, inference = one_node("MatMulNBitsMlp", [(F, ["b", 8])], 1, domain="com.microsoft")
    (diagnostic,) = inference.diagnostics
    assert (diagnostic.code, diagnostic.expected) == ("attribute-missing", "N")


def known_scalar(value: int) -> TensorFact:
    return TensorFact(L, (), known(np.int64(value)))


class Open:
    """The part of an InferContext that a law asks for."""

    def symbol(self, slot: int, axis: int) -> Dim:
        return symbol(f"y{slot}.{axis}", key=("test", slot, axis))


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([tensor(F, symbol("b"), 4, 5, 6), known_scalar(7)],
         ["float32[8,4,5,3]", "int32[b,y1.1]", "int64[y1.1,1]", "float32[b,4,5,6]"]),
        ([tensor(F, 2, 6), None], ["float32[y0.0,3]", "int32[2,y1.1]", "int64[y1.1,1]", "float32[2,6]"]),
        ([TensorFact(F), None], ["float32[?]", "int32[y1.0,y1.1]", "int64[y1.1,1]", "float32[?]"]),
        ([tensor(F, 2), None], ["float32[?]", "int32[y1.0,y1.1]", "int64[y1.1,1]", "float32[2]"]),
        ([UNKNOWN], ["?[?]", "int32[y1.0,y1.1]", "int64[y1.1,1]", "?"]),
    ],
)  # fmt: skip
def test_a_law_reads_what_it_can_and_leaves_the_rest_open(inputs: list[Fact | None], expected: list[str]) -> None:
    law = parsed("B, ..., C | =N -> 0: N + 1, ..., C//2 | int32: B, D | int64: D, 1 | 0")
    assert [str(fact) for fact in law(Open(), {}, *inputs)] == expected
