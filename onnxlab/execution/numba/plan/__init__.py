"""Plans: records for the interpreter, the memory they work in, what a plan takes from one before.

Files:
    autotune            Autotuning: the fastest of several ways to compute the same, measured once and remembered by
                        the process.
    checkpoints         Runs after an edit begin where it begins to matter: the steps before it would do what they did
                        in the run before.
    copies              Copies as records: any strided view into any other, dims merged and put into the order that
                        suits the memory.
    elementwise_chains  Elementwise chains: expressions that wait until their elements are needed, then one record for
                        all of them.
    engine              Kernels by name, made ready when they are asked for, and the call into the interpreter.
    lowering_cache      Dependency-tracked memo of lowering: a later plan lowers again only the steps whose inputs an
                        edit touched.
    plan                Plans: records for the interpreter, the layout of the arena they work in, and one run of them.
    quantized_view      Quantized values inside a region: int16 with the zero point taken off, whatever their dtype
                        and zero point are.
    views               Strided views of buffers, the places of values while a plan is made, without any memory behind
                        them yet.
    weight_packing      Constants in the layouts of kernels, shared by the regions of a provider: an edit repacks only
                        what it changed.
    weight_renewal      Plans again with other weights: an edit of what is only packed packs it anew and lowers
                        nothing.
"""
