"""Programs: steps over numbered slots, the loop that runs them, folding, and errors of runs.

Files:
    buffer_reuse          Buffers of inputs that are needed no more, for results to be written into: no memory to
                          fetch, none to free.
    call                  One run: its limits, its progress, its seed, and the thread it runs in.
    constant_folding      Constant folding: results of instructions that read constants alone are kept from the first
                          run of a program.
    executor              The loop that runs a program, and what kernels may ask of it.
    feeds                 The caller's arrays, checked against what the model declares before anything runs.
    loop_body             Loops over a body that is one compiled part, or carries nothing: all iterations run at once.
    program               Programs: what is run. Steps over numbered slots, with the moment at which each slot's array
                          can be let go.
    run_errors            Errors of a run, for people: which node, which operator, on what, and what was broken.
    run_observers         Observers of runs: a count of how far one got, and takers of values that are kept, or handed
                          over when made.
    run_state             The state of one run: its budget, its random numbers, and the memory that its frames hold.
    shape_specialization  Shape specialization: results of shapes alone, computed once for inputs of the same shapes.
    straight_line         Steps of a short run as one Python function: a line for each call, values in local
                          variables.
"""
