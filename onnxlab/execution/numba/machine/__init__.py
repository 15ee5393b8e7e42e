"""Compiled code: kernels to object code, on disk and into memory; the host, threads and records.

Files:
    availability       Whether kernels can be compiled here, and if not, why: Numba is an extra, and a browser has
                       none.
    compilation        Kernels to LLVM IR by Numba, IR to object code by LLVM; and the process that compiles in the
                       background of another.
    compiler_process   The process that compiles kernels for this one: started when something is missing, gone some
                       time after.
    host               Properties of the processor for kernels: the width of its vectors and the tile that fits its
                       registers.
    object_cache       Compiled kernels: how they are declared, and the folder on disk in which their object code is
                       kept.
    object_loading     Object code of kernels into memory that can be run. It takes LLVM's loader alone, neither Numba
                       nor a compiler.
    records            The words of each kernel's records, by name: what the planner writes and the kernel reads.
    tally_rows         The rows of the kernel `tally`.
    vector_operations  The operations of the elementwise machine, as expressions over vectors x, y and z; truth values
                       are 0 and 1.
"""
