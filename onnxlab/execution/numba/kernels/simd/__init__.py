"""Vectors of float32 and of narrow integers as Numba types: what kernels are written in.

Files:
    half_floats      float16 to float32 and back: by instructions where the processor has them, else by arithmetic on
                     their bits.
    lanes            Vectors of float32 as a Numba type, and their arithmetic: what kernels are written in.
    memory           Memory of kernels by address: vectors and numbers to and from it, counters that threads share,
                     calls by address.
    microkernel      The tile at the heart of products and convolutions: a few rows times a panel of packed weights,
                     in registers.
    narrow_integers  Integers in memory as vectors: 8 and 16 bits as float32 and back, and sums of products of pairs
                     and quads.
    operations       The loops of the elementwise machine, written out from the table of its operations.
    single_row       One row times several panels of packed weights at once: what a tile of one row cannot do at full
                     speed.
    tail_vectors     Vectors where a row may end: whole where there is room for one, else its first lanes.
    vector_math      Functions of float32 vectors: range reduction and polynomials, right to a few units in the last
                     place.
"""
