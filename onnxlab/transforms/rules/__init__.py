"""Rules: patterns of nodes with what takes their place.

Files:
    linear  Rules of layers that are linear: what follows a convolution or product and is linear too goes into its
            weights.
    rule    What a rule is: a pattern, named conditions, and what takes its place; and applying one.
"""
