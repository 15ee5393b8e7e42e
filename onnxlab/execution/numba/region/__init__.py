"""Parts of a model that the provider runs, and the fallback to NumPy of single nodes.

Files:
    bound_plans   Plans bound to arrays of their own: those of microseconds, and those that run in loops.
    fallback      Around what could not be bound: the node that failed goes to NumPy, the rest of its region stays
                  compiled.
    inner_values  Values inside a region: where its plan leaves them in memory, and a run of the plan that copies some
                  of them.
    region        A part of a model that the Numba provider runs: a plan per set of input shapes, and NumPy until
                  there is one.
"""
