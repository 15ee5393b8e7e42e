"""Patterns of nodes that become one step of a plan.

Files:
    fusions          The table of fusions: which patterns of nodes become which one step of a plan.
    joined_products  Products of one value with several constant matrices, as queries, keys and values are made: one
                     product for all.
"""
