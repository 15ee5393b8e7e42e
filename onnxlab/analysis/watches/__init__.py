"""Watches: expressions on values that are checked after runs and edits.

Files:
    expression  Expressions of watches: `abs_max < 65504 and nan == 0`, `shape == (batch, 80, None)`.
    references  Arrays that watches compare with: files beside the model, read when they are asked for.
    watches     Watches of a model: expressions on its values, checked against the last run and against what inference
                knows.
"""
