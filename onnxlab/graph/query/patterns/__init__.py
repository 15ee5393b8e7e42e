"""Patterns of nodes as text: the language of rewriting and of what the Numba provider fuses.

Files:
    matcher      The match of a pattern, or the reason against it: the deepest point that was reached, in words.
    parser       Patterns of nodes as text, such as `Add(MatMul(a, w:const), c:const)`; a text that is none is refused
                 with the place.
    syntax_tree  Syntax trees of patterns: the nodes, values, numbers and literals that the text of a pattern stands
                 for.
    wiring       The interface of a matcher to nodes and values, so that one serves live graphs and parts that are
                 compiled.
"""
