"""Search for sequences of tokens, and n-grams of them: what a generating model does around its network."""

from __future__ import annotations

from onnxlab.ops.base.traits import OpTraits, traits

DOMAIN = "com.microsoft"

traits(
    "BeamSearch GreedySearch Sampling WhisperBeamSearch", OpTraits(category="control", shape="other", flops=1), DOMAIN
)
traits("BifurcationDetector", OpTraits(category="control", shape="data", flops=1), DOMAIN)
traits("NGramHashMapping VarlenNGramHashMapping", OpTraits(category="text", shape="shapes", flops=1), DOMAIN)
