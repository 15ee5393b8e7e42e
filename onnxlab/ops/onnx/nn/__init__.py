"""Neural networks: convolutions, pools, norms, activations, attention, recurrent layers, quantization.

Files:
    activation    Activation functions: rectifiers, sigmoids, GELU and its kin, Softmax, LogSoftmax, Hardmax, Clip.
    attention     Attention and what transformers put around it: Attention, RotaryEmbedding, LinearAttention,
                  CausalConvWithState.
    conv          Convolutions of float tensors: Conv, ConvTranspose.
    norm          Normalizations: Batch-, Instance-, Group-, Layer-, RMS-, Lp- and MeanVarianceNormalization, LRN.
    pool          Pools: MaxPool, AveragePool, LpPool, their global forms, MaxUnpool.
    quantization  Quantization: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the integer products and
                  convolutions.
    recurrent     Recurrent layers: RNN, GRU, LSTM.
    time_steps    The time steps of recurrent layers: what RNN, GRU and LSTM are called with, and the loop over it.
    window_dims   Dims that sliding windows give: what the shape rules of convolutions and poolings share.
"""
