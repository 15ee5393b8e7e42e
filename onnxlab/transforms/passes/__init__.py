"""Passes, one file each: what they look for and what they put there.

Files:
    constant_folding  Constant folding: what depends on no input is computed now and stored, as far as a budget of
                      bytes allows.
    control_flow      Ifs whose condition is known, and what every iteration of a loop computes anew: both stand
                      outside afterwards.
    duplicates        Common subexpressions and equal initializers: one of them serves all.
    evaluation        Constants computed outside of the main graph: nodes of bodies and functions, run in a model of
                      their own.
    known_shapes      Shape folding: what inference knows of sizes is stored, so that nothing computes it when the
                      model runs.
    unused            Dead code: nodes that no output depends on, and initializers and functions that nothing uses.
    worklist          Rules over the graph: each node is tried with the rules of its operator, and again after one
                      applied near it.
"""
