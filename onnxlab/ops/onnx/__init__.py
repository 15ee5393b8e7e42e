"""Operators of ai.onnx, by family: NumPy kernels and shape rules.

Files:
    control/   Control flow and sequences.
    math/      Arithmetic: elementwise operators, matrix products, reductions, casts, signals, random numbers.
    nn/        Neural networks: convolutions, pools, norms, activations, attention, recurrent layers, quantization.
    tensor/    Tensors rearranged, indexed, resized and made; images and strings.
    training/  Gradients, losses and optimizers.
"""
