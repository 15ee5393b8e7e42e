"""Running a model or any part of it: providers, partition, programs, runs.

Files:
    base/      Foundations of execution: providers, the value store, BLAS threads, background work.
    numba/     The Numba provider: regions of a model as plans of compiled kernels.
    numpy/     The reference provider: every node by its NumPy kernel, a function's body, or a schema's.
    ort/       onnxruntime as a provider (extra `ort`).
    planning/  From scopes to programs: inlining, partition, order, and compiling in the background.
    program/   Programs: steps over numbered slots, the loop that runs them, folding, and errors of runs.
    run/       Runs of one ModelGraph: general, incremental and fast ones, and what they are given and asked for.
"""
