"""Patterns of nodes as text: the language of rewriting and of what the Numba provider fuses.

Files:
    matcher  The match of a pattern, or the reason against it: the deepest point that was reached, in words.
    parser   Text to patterns, see `pattern.py`; what is no pattern is refused with the place.
    pattern  Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; what their pieces stand for.
    wiring   The interface of a matcher to nodes and values, so that one serves live graphs and parts that are
             compiled.
"""
