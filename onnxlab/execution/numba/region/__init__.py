"""Parts of a model that the provider runs, and the fallback to NumPy of single nodes.

Files:
    fallback      Around what could not be bound: the node that failed goes to NumPy, the rest of its region stays
                  compiled.
    inner_values  Values inside a region: where its plan leaves them in memory, and a run of the plan that copies some
                  of them.
    loop_plan     Plans in loops: all iterations by one call of compiled code, or some thousand of them.
    region        A part of a model that the Numba provider runs: a plan per set of input shapes, and NumPy until
                  there is one.
    short_plans   Plans of microseconds, for which the way to the compiled code would take longer than the code.
"""
