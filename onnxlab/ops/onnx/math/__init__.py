"""Arithmetic: elementwise operators, matrix products, reductions, casts, signals, random numbers.

Files:
    cast               Conversions between element types: Cast, CastLike, BitCast.
    einsum_equation    The equation of an Einsum: the letters of each operand's axes and of the result's.
    elementwise        Elementwise operators of two or more inputs: arithmetic, comparison, logic, bits, Where.
    elementwise_rules  Shape rules of operators that work element by element, with the arithmetic of known elements.
    matmul             Matrix products: MatMul, Gemm, Einsum.
    matmul_rules       Shape rules of matrix products: MatMul and its quantized forms, Gemm, Einsum.
    random             Random tensors: RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.
    reduce             Reductions: ReduceSum and its kin, ArgMax, ArgMin, CumSum, CumProd.
    reduce_rules       Shape rules of reductions: Reduce*, CumSum has the rule of elementwise operators.
    signal             Signal processing: DFT, STFT, window functions, MelWeightMatrix.
    signal_rules       Shape rules of Fourier transforms.
    unary              Elementwise mathematical functions of one input: roots, exponentials, trigonometry, Erf; and
                       Det.
"""
