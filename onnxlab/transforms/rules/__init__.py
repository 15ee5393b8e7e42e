"""Rules: patterns of nodes with what takes their place.

Files:
    linear       Rules of layers that are linear: what follows a convolution or product and is linear too goes into
                 its weights.
    no_ops       Nodes that give back what they are given: taken out.
    pairs        Nodes that undo or repeat what the node before them did.
    replacement  What takes the place of a match: nodes and constants are made, checked, and put there.
    rule         What a rule is: patterns, named conditions, and what takes their place; and applying one.
    table        The standard set of rules, by level and by name.
    user_rules   Rules of users: written in a line, in a decorator, or in a file that is named.
"""
