"""Search for sequences of tokens, and n-grams of them: what a generating model does around its network."""

from __future__ import annotations

from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.traits import OpTraits, traits

DOMAIN = "com.microsoft"


# -- shape rules -------------------------------------------------------------------------------------------------------


law("NGramHashMapping", "B, S -> 0: B, S, (@max_ngram_size - 1)*@n_head_per_ngram | 0: B, @max_ngram_size - 1")
law(
    "VarlenNGramHashMapping",
    "T | | | E -> 0: T, (@max_ngram_size - 1)*@n_head_per_ngram | 0: E - 1, @max_ngram_size -"
    " 1 | 3: E - 1, @max_ngram_size - 1 | 0: E - 1, @?state_update_capacity, @max_ngram_size - 1",
)
law("GreedySearch", "B, ... | =L -> 0: B, L | float32: B, @?vocab_size")
law("Sampling", "B, ... | =L -> 0: B, L | float32: B, @?vocab_size")
law("BeamSearch", "B, ... | =L | | =K | =R -> int32: B, R, L | float32: B, R | float32: ?, B, K, ?")
law("WhisperBeamSearch", "B, ... | =L | | =K | =R -> int32: B, R, L | float32: B, R | float32: ?, B, K, ?")
law("BifurcationDetector", "-> 0: ? | 2")


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "BeamSearch GreedySearch Sampling WhisperBeamSearch", OpTraits(category="control", shape="other", flops=1), DOMAIN
)
traits("BifurcationDetector", OpTraits(category="control", shape="data", flops=1), DOMAIN)
traits("NGramHashMapping VarlenNGramHashMapping", OpTraits(category="text", shape="shapes", flops=1), DOMAIN)
