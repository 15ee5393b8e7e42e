"""Shape rules of com.microsoft operators that fit on a line; see one_line_rules.py for how they are written.

Source: docs/ContribOperators.md of ONNX Runtime, and the schemas that onnxruntime 1.31 registers.
"""

from __future__ import annotations

from onnxlab.ops.base.one_line_rules import law

_EMBEDDED = "B, S | | ?, H -> {0}: B, S, H | int32: B | {0}: B, S, H"
_PRODUCT_OF_ROWS = "..., ? | N, ... -> 0: ..., N"
_HASHES = "(@max_ngram_size - 1)*@n_head_per_ngram"
_STATE = "@max_ngram_size - 1"
_SEARCHED = "B, ... | =L | | =K | =R -> int32: B, R, L | float32: B, R | float32: ?, B, K, ?"
_FOUND = "B, ... | =L -> 0: B, L | float32: B, @?vocab_size"

LAWS = {
    # like one of the inputs
    "BiasAdd": "-> 0", "BiasDropout": "-> 0", "BiasGelu": "-> 0", "BiasSoftmax": "-> 0", "BranchwiseRMSNorm": "-> 0",
    "FastGelu": "-> 0", "GatedAdd": "-> 0", "GatedRMSNorm": "-> 0", "Gelu": "-> 0", "GroupNorm": "-> 0",
    "Inverse": "-> 0", "LongformerAttention": "-> 0", "MRotaryEmbedding": "-> 0", "MoE": "-> 0", "QMoE": "-> 0",
    "QLinearLeakyRelu": "-> 0", "QLinearSigmoid": "-> 0", "QLinearSoftmax": "-> 0", "QOrderedAttention": "-> 0",
    "QOrderedGelu": "-> 0", "QOrderedLayerNormalization": "-> 0", "QOrderedLongformerAttention": "-> 0",
    "QuickGelu": "-> 0", "RotaryEmbedding": "-> 0", "SampleOp": "-> 0", "ScaledSiLU": "-> 0", "Trilu": "-> 0",
    "NGramRepeatBlock": "-> 1",
    "EngramGate": "-> 0 | 0", "HyperConnectionPostMix": "-> 0", "LinearAttentionGate": "-> 0 | 0",
    "SkipGroupNorm": "-> 0 | 0", "GemmaRotaryEmbedding": "-> 1 | 3",
    "QuantizeWithOrder": "... -> int8: ...", "DequantizeWithOrder": "... -> @to/float32: ...",
    # normalizations with statistics, and the sum of input and skip
    "SkipLayerNormalization": "..., ? -> 0 | float32: ..., 1 | float32: ..., 1 | 0",
    "SkipSimplifiedLayerNormalization": "..., ? -> 0 | float32: ..., 1 | float32: ..., 1 | 0",
    # embeddings
    "EmbedLayerNormalization": _EMBEDDED.format(2), "QEmbedLayerNormalization": _EMBEDDED.format("float32"),
    "TorchEmbedding": "?, W | ... -> 0: ..., W", "WordConvEmbedding": "..., ? | F, ... -> 1: ..., F",
    # products with a packed weight
    "MatMulNBitsMlp": "..., ? -> 0: ..., @N | 0",
    "MatMulNBitsQkv": "..., ? -> 0: ..., @Nq | 0: ..., @Nkv | 0: ..., @Nkv | 0",
    "MatMulBlockQuantizedFp4Weight": _PRODUCT_OF_ROWS, "MatMulBlockQuantizedFp8Weight": _PRODUCT_OF_ROWS,
    # attention and its helpers
    "DecoderAttention": "T, B, H -> 0 | 0: B, @num_heads, ?, H//@num_heads | 0: B, @num_heads, ?, H//@num_heads",
    "RelativePositionBias": "?, H | =Q | =K -> 0: 1, H, Q, K",
    "GatedRelativePositionBias": "B, S, ? -> 0: B, @num_heads, S, S",
    "RestorePadding": "?, H | B, S -> 0: B, S, H",
    "RemovePadding": "B, S, H -> 0: ?, H | int32: B, S | int32: B + 1 | int32: 1",
    # state carried from call to call
    "VarlenCausalConvWithState": "T, C | | | | B, ?, ? -> 0 | 4 | 0: B, @?state_update_capacity, C",
    "NGramHashMapping": f"B, S -> 0: B, S, {_HASHES} | 0: B, {_STATE}",
    "VarlenNGramHashMapping": f"T | | | E -> 0: T, {_HASHES} | 0: E - 1, {_STATE} | 3: E - 1, {_STATE}"
    f" | 0: E - 1, @?state_update_capacity, {_STATE}",
    # search and text
    "GreedySearch": _FOUND, "Sampling": _FOUND, "BeamSearch": _SEARCHED, "WhisperBeamSearch": _SEARCHED,
    "BifurcationDetector": "-> 0: ? | 2", "Tokenizer": "... -> 0: ..., ?",
    # signals and images
    "CDist": "M, ? | N, ? -> 0: M, N", "BiasSplitGelu": "..., W -> 0: ..., W//2", "IsAllFinite": "-> bool:",
    "CropAndResize": "?, C, ?, ? | R, ? | | =Y, X -> 0: R, C, Y, X",
    "DynamicTimeWarping": "-> int32: 2, ?",
    "Unique": "N -> 0: U | int64: N | int64: U",
}  # fmt: skip

for _name, _text in LAWS.items():
    law(_name, _text)
