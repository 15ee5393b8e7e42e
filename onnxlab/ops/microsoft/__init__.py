"""Operators of com.microsoft, as ONNX Runtime's optimizer and exporters write them.

Files:
    attention    com.microsoft attention: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding,
                 QAttention.
    decoding     com.microsoft attention of decoders: DecoderMaskedMultiHeadAttention, SparseAttention.
    experts      com.microsoft mixtures of experts: MoE, and QMoE with weights of 2, 4 or 8 bits.
    fused        com.microsoft operators on floats: what the optimizer of ONNX Runtime fuses, with its names and
                 defaults.
    gates        com.microsoft operators that gate and normalize: scaled and gated forms, GroupNorm with a skip.
    general      com.microsoft operators that exist in ai.onnx too or nearly, Tokenizer, and gathering from quantized
                 tables.
    images       com.microsoft operators on images and signals: CropAndResize, ConvTransposeWithDynamicPads, Fourier
                 transforms.
    integers     com.microsoft operators on integers, hashes and tables: products, sums, MurmurHash3, lookups, blocks
                 of n-grams.
    quantized    com.microsoft operators on quantized tensors: QLinear*, dynamic quantization, MatMulNBits.
    search       Search for sequences of tokens, and n-grams of them: what a generating model does around its network.
    text_counts  Counts of n-grams in texts: TfIdfVectorizer and the nodes that make words for it, at once, without
                 arrays of words.
    training     com.microsoft operators of training on a device: gradients, accumulation, and steps of optimizers.
"""
