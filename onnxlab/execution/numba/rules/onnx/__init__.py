"""Rules for the operators of ai.onnx.

Files:
    attention            Attention of ai.onnx and the pattern that exporters write, and what all rules of attention
                         are made of.
    conv                 Conv and BatchNormalization: tables of offsets over images whose channels are contiguous.
    conv_transpose       ConvTranspose: for each phase of the strides a product of its own, over the taps that reach
                         it, written in place.
    dequantized          Operators on floats that stand for integers.
    einsum               Einsum of two operands as products of matrices, in stacks along the axes that both have and
                         the result too.
    elementwise          Elementwise operators as operations of the vector machine, and what of them products take in.
    indexing             Operators that take elements by index: Gather, Pad, Resize and Upsample,
                         GatherBlockQuantized.
    integer_convolution  Convolutions of quantized images: ConvInteger and QLinearConv.
    integer_matrices     Products of quantized matrices: MatMulInteger and its kin.
    integers             Elementwise operators on int32 and int64, and casts of them: what loops count and decide by.
    matmul               MatMul and Gemm as products.
    order                Places of the largest elements: ArgMax, ArgMin and TopK of few elements,
                         ArrayFeatureExtractor.
    pool                 Pools over images whose channels are contiguous.
    quantization         Quantization and elementwise operators on quantized values: chains that read and write
                         levels.
    recurrent            LSTM, GRU, RNN and DynamicQuantizeLSTM with constant weights.
    rotary               Rotary embeddings: pairs of features turned by angles that depend on their token's place.
    rows                 Softmax, the norms and reductions: records over rows of contiguous elements.
    scatter              Operators on elements at tuples of indices: ScatterElements, ScatterND, GatherElements,
                         GatherND.
    shape                Operators that move elements: mostly other views of the same memory, else copies.
    signal               STFT of real signals as a product: frames that overlap, times the Fourier transform of a
                         window as a matrix.
"""
