"""Patterns of nodes as text, and where they match.

Files:
    matcher    Where a pattern matches, or why it does not: the deepest point that it got to, in words.
    parser     Text to patterns, see `pattern.py`; what is no pattern is refused with the place.
    pattern    Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; what their pieces stand for.
    selecting  Selected nodes as the text of a pattern, with wildcards for what comes from outside.
"""
