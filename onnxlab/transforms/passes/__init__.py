"""Passes, one file each: what they look for and what they put there.

Files:
    constant_folding  Constant folding: what depends on no input is computed now and stored, as far as a budget of
                      bytes allows.
    duplicates        Common subexpressions and equal initializers: one of them serves all.
    fusions           Rules over the graph: each node is tried with the rules of its operator, and again after one
                      applied near it.
    known_shapes      Shape folding: what inference knows of sizes is stored, so that nothing computes it when the
                      model runs.
    no_ops            Nodes that give back what they are given: taken out.
    pairs             Nodes that undo or repeat what the node before them did.
    unused            Dead code: nodes that no output depends on, and initializers and functions that nothing uses.
"""
