"""Patterns of nodes as text, and where they match.

Files:
    matcher    Where a pattern matches, or why it does not: the deepest point that it got to, in words.
    selecting  Selected nodes as the text of a pattern, with wildcards for what comes from outside.
"""
