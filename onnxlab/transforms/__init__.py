"""Rewriting: passes that leave a model with fewer nodes that compute the same, and the proof by running both.

Files:
    receipt         What rewriting did: each application of a pass, what was lost, and what running both models said.
    rewriting       The graph as passes see it: facts, constants, and the few edits that rewriting is made of.
    simplification  `simplify`: the passes that leave less of a model without changing what it computes, as one step
                    of the history.
    verification    Proof by execution: a model before and after a rewrite, run on inputs of several kinds and
                    compared.
    passes/         Passes, one file each: what they look for and what they put there.
    patterns/       Patterns of nodes as text, and where they match.
    rules/          Rules: patterns of nodes with what takes their place.
"""
