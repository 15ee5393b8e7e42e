"""Arithmetic: elementwise operators, matrix products, reductions, casts, signals, random numbers.

Files:
    cast             Conversions between element types: Cast, CastLike, BitCast.
    einsum_equation  The equation of an Einsum: the letters of each operand's axes and of the result's.
    elementwise      Elementwise operators of two or more inputs: arithmetic, comparison, logic, bits, Where.
    matmul           Matrix products: MatMul, Gemm, Einsum.
    random           Random tensors: RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.
    reduce           Reductions: ReduceSum and its kin, ArgMax, ArgMin, CumSum, CumProd.
    signal           Signal processing: DFT, STFT, window functions, MelWeightMatrix.
    unary            Elementwise mathematical functions of one input: roots, exponentials, trigonometry, Erf; and Det.
"""
