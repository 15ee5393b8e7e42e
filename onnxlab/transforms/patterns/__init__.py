"""Patterns of nodes as text, and where they match.

Files:
    matcher  Where a pattern matches, or why it does not: the deepest point that it got to, in words.
    pattern  Patterns of nodes as text: `Add(MatMul(a, w:const), c:const)`.
"""
