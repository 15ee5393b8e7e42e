"""Passes, one file each: what they look for and what they put there.

Files:
    constant_folding  Constant folding: nodes that depend on no input are computed, their outputs stored, within a
                      budget of bytes.
    control_flow      Control flow: an If with a known condition becomes its branch, and loop invariants move out of
                      the body.
    duplicates        Common subexpressions and equal initializers: one of each remains.
    evaluation        Constants computed outside of the main graph: nodes of bodies and functions, run in a model of
                      their own.
    known_shapes      Shape folding: sizes that inference knows are stored, and the nodes that compute them removed.
    unused            Dead code elimination: removes nodes that no output depends on, and unused initializers and
                      functions.
    worklist          Rules over the graph: each node is tried with the rules of its operator, and again after one
                      applied near it.
"""
