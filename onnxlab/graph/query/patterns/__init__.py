"""Patterns of nodes as text: the language of rewriting and of what the Numba provider fuses.

Files:
    parser   Text to patterns, see `pattern.py`; what is no pattern is refused with the place.
    pattern  Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; what their pieces stand for.
"""
