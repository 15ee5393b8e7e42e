"""Rules for the operators of com.microsoft.

Files:
    attention        Attention of com.microsoft: Attention, MultiHeadAttention and GroupQueryAttention, with their
                     masks and caches.
    fused            Operators that ONNX Runtime's optimizer fuses: lowered as those they were fused from, which wait
                     and join again.
    low_bits         MatMulNBits: weights of 2, 4 or 8 bits with scales by blocks.
    quantized_pools  com.microsoft's pools and Concat of quantized values: floats inside, quantized where they are
                     written.
"""
