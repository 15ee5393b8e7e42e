"""Regions compiled to plans: what the Numba provider is made of.

host.py        vector width and tile of the processor
records.py     the words of each kernel's records
operations.py  the operations of the elementwise machine
views.py       values as strided views of buffers without memory yet
plan.py        records, arena and one run of them
packing.py     constants in the kernels' layouts, shared between regions
moving.py      copies as records
products.py    products and convolutions as records
winograd.py    3×3 convolutions with a quarter of the multiplications
integers.py    products and convolutions of quantised values as records
levels.py      quantised values inside a region
recurrent.py   LSTM, GRU and RNN as records
chains.py      elementwise chains as records
binder.py      a region bound to the shapes of a call
rules/         how nodes become records, by operator
region.py      a plan per set of shapes, and NumPy until there is one
engine.py      kernels by name, made ready when they are asked for
background.py  the one background thread
compiling.py   kernels to object code, in a process of its own
compiler_process.py  that process, as this one sees it
loading.py     object code into memory
threads.py     helpers that run a plan together
cache.py       compiled kernels on disk
kernels/       what is compiled: importing it imports Numba, in the process that compiles
"""
