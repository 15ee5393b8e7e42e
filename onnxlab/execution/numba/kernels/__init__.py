"""Kernels over vectors and addresses, and the interpreter that calls them. Importing them imports Numba.

Files:
    attention        Attention: softmax(scale * (queries times keys) + mask) times values, without the scores ever
                     leaving the cache.
    copies           Copies between any two strided layouts: transposes, slices, concatenations, packing,
                     broadcasting.
    dot              Products and convolutions of integers: rows of int16 addressed by tables, times packed pairs of
                     int16, in batches.
    dot_u8s8         Products of integers by quads: four uint8 of a row times four int8 of a column at a time, added
                     to 32 bits.
    elementwise      Chains of elementwise operators: a small vector machine whose registers are tiles that stay in
                     the first cache.
    gates            Gates of recurrent layers: their activations, and the steps of LSTM, GRU and RNN over rows of
                     hidden units.
    gather           Elements by index: Gather along an axis, weighted sums of a few elements as Resize has them,
                     Scatter and its kin.
    gemm             Products of matrices and convolutions: rows addressed by tables, times packed panels, in batches.
    gemv             One row times a matrix that is stored turned, as fully connected layers of one sample have it:
                     nothing is packed.
    integers         Elementwise operators on integers, and casts between them, bool and float32.
    interpreter      The loop that runs a plan: records in order, the units of each shared by the threads of a run.
    low_bits         Products with weights of a few bits, which get their scale and zero point by blocks of the depth.
    ranges           The range of a tensor, and the scale and zero point by which DynamicQuantizeLinear makes uint8 of
                     it.
    recurrent        Recurrent layers: LSTM, GRU and RNN over time, one unit for each direction and block of the
                     batch.
    rows             Rows of contiguous numbers: softmax, the norms, and reductions along rows or down columns.
    tally            Counts, range, sums and a histogram of float32 in one pass.
    texts            Texts that are split into words, whose n-grams are counted: what TfIdfVectorizer makes of UTF-8.
    trees            Ensembles of decision trees, and the choice of labels.
    vector_machines  Support vector machines: the kernel function of a row and all support vectors, decisions, votes
                     and probabilities.
    windows          Windows over pixels with contiguous channels: depthwise convolution and pooling.
    winograd         Winograd's minimal filtering F(4×4, 3×3): 36 products of small matrices in place of 9 taps over
                     16 pixels.
    simd/            Vectors of float32 and of narrow integers as Numba types: what kernels are written in.
"""
