"""Plans: records for the interpreter, the memory they work in, what a plan takes from one before.

Files:
    arena               The layout of the arena: buffers that are not alive at once share memory.
    builder             Plans while they are made: records with symbolic addresses in pieces, one for each step;
                        `finish` links them.
    checkpoints         Runs after an edit begin where it begins to matter: the steps before it would do what they did
                        in the run before.
    copies              Copies as records: any strided view into any other, dims merged and put into the order that
                        suits the memory.
    elementwise_chains  Elementwise chains: expressions that wait until their elements are needed, then one record for
                        all of them.
    engine              Kernels by name, made ready when they are asked for, and the call into the interpreter.
    kernels_ahead       Kernels that are compiled before a model needs them: from the first use of the package on,
                        until all are on disk.
    lowering_cache      Dependency-tracked memo of lowering: a later plan lowers again only the steps whose inputs an
                        edit touched.
    memory              Memory of runs: aligned, and the addresses of arrays in it.
    plan                Plans: records for the interpreter, linked for one set of input shapes, and one run of them.
    views               Strided views of buffers, the places of values while a plan is made, without any memory behind
                        them yet.
    weight_packing      Constants in the layouts of kernels, shared by the regions of a provider: an edit repacks only
                        what it changed.
"""
