"""Models in fewer bits: weights in int8 or half precision, and nodes that compute in half precision.

Files:
    calibration     Calibration: the ranges of the values that are to be stored in 8 bits, from runs on inputs as they
                    come in use.
    dynamic_int8    Products of integers with ranges that each run measures: DynamicQuantizeLinear before a
                    MatMulInteger, for no inputs.
    forms           Forms of a model in fewer bits, by name: what each does, which version of ai.onnx it needs, and
                    its pipeline.
    half_precision  Nodes that compute in half precision: weights and values between them are of half the bytes, with
                    Casts around.
    int8_nodes      The nodes that are computed in 8 bits, and the values between them, by the traits of operators and
                    by ranges.
    integers        Arrays as integers with scales: ranges of values, weights by channels, biases by the scales of a
                    product.
    static_int8     Nodes in 8 bits: QuantizeLinear and DequantizeLinear around them, which runtimes fuse into
                    products of integers.
    stored_weights  Weights stored in fewer bits: 4 bits with a scale for each block, int8 with one for each channel,
                    half precision.
"""
