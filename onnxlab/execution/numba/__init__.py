"""The Numba provider: regions of a model as plans of compiled kernels.

Files:
    provider        The hot path: regions of a model as plans of compiled kernels (Numba), NumPy until they are ready.
    tiered_kernels  NumPy's kernels, and compiled ones in their place where they take long in runs that keep every
                    value.
    kernels/        What is compiled: kernels over vectors and addresses, and what calls them. Importing them imports
                    Numba.
    lowering/       Nodes to records: products, convolutions, attention, recurrent layers, bound to shapes.
    machine/        Compiled code: kernels to object code, on disk and into memory; the host, threads and records.
    plan/           Plans: records for the interpreter, the memory they work in, what a plan takes from one before.
    region/         Parts of a model that the provider runs, and the fallback to NumPy of single nodes.
    rules/          How nodes become records, by operator: a table of rules, one file per family.
"""
