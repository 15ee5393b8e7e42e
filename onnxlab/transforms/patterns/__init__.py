"""Patterns of nodes as text, and where they match.

Files:
    rule_match  Matches of patterns in a live graph, with what rules ask of them.
    selecting   Selected nodes as the text of a pattern, with wildcards for what comes from outside.
"""
