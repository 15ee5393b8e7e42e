"""The Numba provider: regions of a model as plans of compiled kernels.

Files:
    provider   The hot path: regions of a model as plans of compiled kernels (Numba), NumPy until they are ready.
    tallying   The kernel `tally`, called from Python.
    kernels/   Kernels over vectors and addresses, and the interpreter that calls them. Importing them imports Numba.
    lowering/  Nodes to records: products, convolutions, attention, recurrent layers, bound to shapes.
    machine/   Compiled code: kernels to object code, on disk and into memory; the host, threads and records.
    plan/      Plans: records for the interpreter, the memory they work in, what a plan takes from one before.
    region/    Parts of a model that the provider runs, and the fallback to NumPy of single nodes.
    rules/     Lowering rules of nodes to records, by operator: a table, one file per family.
"""
