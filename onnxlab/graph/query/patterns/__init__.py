"""Patterns of nodes as text: the language of rewriting and of what the Numba provider fuses.

Files:
    matcher  Where a pattern matches, or why it does not: the deepest point that it got to, in words.
    parser   Text to patterns, see `pattern.py`; what is no pattern is refused with the place.
    pattern  Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; what their pieces stand for.
    wiring   What a matcher asks of nodes and values, so that it is one for live graphs and for parts that are
             compiled.
"""
